"""Random bits out of random bytes, for draws that are exact."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, repr=False)
class ByteBits:
    """An :class:`privselect._util.random_bits.Entropy` over ``read(n)``, which gives n uniformly random bytes."""

    read: Callable[[int], bytes]

    def getrandbits(self, k: int, /) -> int:
        """A uniformly random whole number below ``2^k``."""
        count = -(-k // 8)
        return int.from_bytes(self.read(count), "little") >> (8 * count - k)
