"""Uniform bits by the array: whole words, and whole numbers below a bound."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import numpy as np

from privselect._util.validation import format_value
from privselect.errors import ParameterError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from privselect._util.random_bits import Entropy

_AT_ONCE = 1024  # words: a source that keeps its pool as one whole number stays fast


def check_entropy(entropy: Entropy | None) -> Entropy:
    """The operating system's source of random bits, or the one given."""
    if entropy is None:
        return random.SystemRandom()
    if not callable(getattr(entropy, "getrandbits", None)):
        raise ParameterError(f"`entropy` must have a method getrandbits, as random.SystemRandom() has, got {format_value(type(entropy).__name__)}")
    return entropy


def words(n: int, entropy: Entropy) -> NDArray[np.uint64]:
    """``n`` uniform words of 64 bits."""
    drawn = [entropy.getrandbits(64 * size).to_bytes(8 * size, "little") for size in _sizes(n)]
    return np.frombuffer(b"".join(drawn), dtype="<u8").astype(np.uint64, copy=False)


def _sizes(n: int) -> list[int]:
    whole, rest = divmod(n, _AT_ONCE)
    return [_AT_ONCE] * whole + [rest] * (rest > 0)


def many_below(bound: int, n: int, entropy: Entropy) -> NDArray[np.int64]:
    """``n`` uniform whole numbers in [0, bound), for a bound of at most 2^62: a number that is too large is drawn again."""
    bits = (bound - 1).bit_length()
    found = np.zeros(n, dtype=np.int64)
    missing = np.arange(n if bits else 0)
    while missing.size:
        found[missing] = (words(missing.size, entropy) >> np.uint64(64 - bits)).astype(np.int64)
        missing = missing[found[missing] >= bound]
    return found
