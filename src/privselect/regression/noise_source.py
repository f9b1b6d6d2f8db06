"""Standard normals and uniform bits from random bytes of the operating system or of a seed."""

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

FLOATING_POINT_NOTE = "noise is drawn in floating point, by inverting the normal CDF: leakage through rounding errors is not covered"
INSECURE_SEED_NOTE = "the noise comes from a seed or generator passed by the caller: anyone who knows it can remove the noise"


@dataclass(frozen=True, repr=False)
class NoiseSource:
    """Source of independent standard normals and uniform bits; ``read(n)`` returns n uniformly random bytes.

    It is an :class:`privselect._util.random_bits.Entropy`, so exact samplers accept it.
    """

    read: Callable[[int], bytes]

    def standard_normals(self, *shape: int) -> Floats:
        """Return an array of standard normals, each made from 128 bits.

        One bit is the sign. The other bits are a tail probability in (0, 1/2), accurate to the last digits of a float however small it
        is. The distribution is truncated at 12.9 standard deviations, beyond which the probability is below 2^-124.
        """
        count = int(np.prod(shape))
        words = np.frombuffer(self.read(2 * _WORD * count), dtype="<u8").reshape(2, count)
        sign = np.where(words[0] >> np.uint64(63), 1.0, -1.0)
        high = (words[0] & np.uint64(2**63 - 1)).astype(np.float64)
        tail = high * 2.0**-64 + (words[1].astype(np.float64) + 0.5) * 2.0**-128
        return np.asarray(sign * ndtri_exp(np.log(tail))).reshape(shape)

    def getrandbits(self, k: int, /) -> int:
        """Return a uniformly random integer below ``2^k``."""
        count = -(-k // 8)
        return int.from_bytes(self.read(count), "little") >> (8 * count - k)


def make_noise_source(insecure_seed: Any = None) -> NoiseSource:
    """Return a source that reads the operating system's entropy, or the given seed or generator.

    An integer seed is for tests: it makes the noise repeatable, and known. A ``numpy.random.RandomState`` is used directly; a search passes
    one to each trial.
    """
    if insecure_seed is None:
        return NoiseSource(os.urandom)
    if isinstance(insecure_seed, np.random.RandomState):
        return NoiseSource(insecure_seed.bytes)
    if not isinstance(insecure_seed, Integral):
        raise ParameterError(f"`insecure_seed` must be None, {_SEEDS} or a numpy RandomState, got {format_value(insecure_seed)}")
    seed = int(check_number("insecure_seed", insecure_seed, _SEEDS))
    return NoiseSource(np.random.Generator(np.random.PCG64DXSM(seed)).bytes)
