"""Composition of a pair of few outcomes, outcome by outcome."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from privselect.pairs.subnormal_masses import merge_tiny, split_tiny

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from privselect.pairs.dominating_pair import DominatingPair

    Floats = NDArray[np.float64]

_MOST_CELLS = 40_000
_UNIT_ROUNDOFF = 2.0**-53


def are_few(pair: DominatingPair, times: int) -> bool:
    """Whether all combinations can be listed."""
    size = len(pair.p)
    return size == 1 or (size - 1) * math.log(times + 1) <= math.log(_MOST_CELLS)


def compose_few(pair: DominatingPair, times: int, *, side: int = 1) -> DominatingPair:
    """The pair of ``times`` independent runs, from above or below (``side`` -1): how often each outcome came is all that matters."""
    p, q = (_of_counts(masses, times) for masses in (pair.p, pair.q))
    p_only, q_only = (-math.expm1(times * math.log1p(-only)) if only < 1.0 else 1.0 for only in (pair.p_only, pair.q_only))
    # Each mass is a sum of products: a rounding for each of size + 1 operations of a step, and that of the mass it started from. Of two
    # outcomes, where runs are doubled, each doubling adds one for each of as many terms as runs so far to twice those before.
    steps = len(pair.p) + 2 if len(pair.p) != 2 else 2 * times.bit_length() + 2
    rounding = times * (steps * _UNIT_ROUNDOFF + pair.rounding)
    return (split_tiny if side > 0 else merge_tiny)(p, q, (p_only, q_only), rounding=rounding)


def _of_counts(masses: Floats, times: int) -> Floats:
    """Chances of all ways in which the outcomes may come up ``times`` times; positive terms only, so that all digits stay."""
    if len(masses) == 2:
        return _of_two(masses, times)
    cells = np.zeros((times + 1,) * (len(masses) - 1))
    cells[(0,) * cells.ndim] = 1.0
    for _ in range(times):
        one_more = masses[-1] * cells  # the last outcome: its count is what the others leave
        for axis, mass in enumerate(masses[:-1]):
            later = (slice(None),) * axis + (slice(1, None),)
            before = (slice(None),) * axis + (slice(None, -1),)
            one_more[later] += mass * cells[before]
        cells = one_more
    counts = sum(np.indices(cells.shape), start=np.zeros(cells.shape, dtype=np.intp))
    return np.asarray(cells[counts <= times])


def _of_two(masses: Floats, times: int) -> Floats:
    """The same for two outcomes, by the count of the first: runs are doubled, and one is added where the number is odd."""
    found = np.ones(1)
    for digit in f"{times:b}":
        found = np.convolve(found, found)
        if digit == "1":
            found = np.convolve(found, masses[::-1])
    return found
