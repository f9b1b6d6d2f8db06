"""Standard normals from uniformly random bytes: the operating system's, or those of a seed."""

from __future__ import annotations

import os
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtri_exp

from privselect._util.validation import check_number, format_value, integer_range
from privselect.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_WORD = 8  # bytes
_SEEDS = integer_range(0, 2**256 - 1)

FLOATS = "noise is drawn as floats, by the inverse of the normal law: what the rounding of floats tells is not covered"
SEEDED = "the noise comes from a seed or a generator that was given: who knows it can take the noise away"


@dataclass(frozen=True, repr=False)
class Normals:
    """A source of independent standard normals; ``read(n)`` gives n uniformly random bytes."""

    read: Callable[[int], bytes]

    def draw(self, *shape: int) -> Floats:
        """So many normals, 128 bits each.

        One bit is the sign, the others a tail probability in (0, 1/2), which is known to the last digits of a float however small it is:
        the law is cut beyond 12.9 deviations, where less than 2^-124 lies.
        """
        count = int(np.prod(shape))
        words = np.frombuffer(self.read(2 * _WORD * count), dtype="<u8").reshape(2, count)
        sign = np.where(words[0] >> np.uint64(63), 1.0, -1.0)
        high = (words[0] & np.uint64(2**63 - 1)).astype(np.float64)
        tail = high * 2.0**-64 + (words[1].astype(np.float64) + 0.5) * 2.0**-128
        return np.asarray(sign * ndtri_exp(np.log(tail))).reshape(shape)


def normals_from(insecure_seed: Any = None) -> Normals:
    """None is the operating system's entropy. A whole number is for tests: with it the noise is drawn again, and known.

    A ``numpy.random.RandomState`` is taken as it is, as a trial of a search hands out its own.
    """
    if insecure_seed is None:
        return Normals(os.urandom)
    if isinstance(insecure_seed, np.random.RandomState):
        return Normals(insecure_seed.bytes)
    if not isinstance(insecure_seed, Integral):
        raise ParameterError(f"`insecure_seed` must be None, {_SEEDS} or a numpy RandomState, got {format_value(insecure_seed)}")
    seed = int(check_number("insecure_seed", insecure_seed, _SEEDS))
    return Normals(np.random.Generator(np.random.PCG64DXSM(seed)).bytes)
