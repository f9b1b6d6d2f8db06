"""How one record may move the scores."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True)
class Moves:
    """Up to ``together`` of ``m`` scores move up, or down, by at most ``gap`` against all others."""

    m: int
    together: int
    gap: float

    def sizes(self) -> Iterator[int]:
        """Of the sets that move up against their complement; a set that moves down leaves its complement to move up."""
        few = min(self.together, self.m - 1)
        return chain(range(1, few + 1), range(max(self.m - few, few + 1), self.m))
