"""Composition of a pair with few outcomes, by enumerating the counts of each outcome."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from privselect.pairs.subnormal_masses import merge_subnormal, split_subnormal

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from privselect.pairs.dominating_pair import DominatingPair

    Floats = NDArray[np.float64]

_MAX_CELLS = 40_000
_UNIT_ROUNDOFF = 2.0**-53


def can_enumerate(pair: DominatingPair, times: int) -> bool:
    """Return whether there are few enough vectors of counts to enumerate."""
    size = len(pair.p)
    return size == 1 or (size > 1 and (size - 1) * math.log(times + 1) <= math.log(_MAX_CELLS))


def compose_by_enumeration(pair: DominatingPair, times: int, *, side: int = 1) -> DominatingPair:
    """Return the pair of ``times`` independent runs, an upper (``side`` 1) or lower (-1) one, with one outcome per vector of counts."""
    p, q = (_count_probabilities(masses, times) for masses in (pair.p, pair.q))
    p_only, q_only = (-math.expm1(times * math.log1p(-only)) if only < 1.0 else 1.0 for only in (pair.p_only, pair.q_only))
    # Each mass is a sum of products: one rounding for each of the size + 1 operations of a run, and that of the step's mass.
    # For two outcomes runs are doubled: each doubling doubles the roundings and adds one for each term of a sum.
    steps = len(pair.p) + 2 if len(pair.p) != 2 else 2 * times.bit_length() + 2
    rounding = times * (steps * _UNIT_ROUNDOFF + pair.rounding)
    return (split_subnormal if side > 0 else merge_subnormal)(p, q, (p_only, q_only), rounding=rounding)


def _count_probabilities(masses: Floats, times: int) -> Floats:
    """Return the probabilities of all vectors of counts after ``times`` runs; sums of positive terms, so no digits are lost."""
    if len(masses) == 2:
        return _binomial_probabilities(masses, times)
    cells = np.zeros((times + 1,) * (len(masses) - 1))
    cells[(0,) * cells.ndim] = 1.0
    for _ in range(times):
        with_next_run = masses[-1] * cells  # the count of the last outcome follows from the others
        for axis, mass in enumerate(masses[:-1]):
            later = (slice(None),) * axis + (slice(1, None),)
            before = (slice(None),) * axis + (slice(None, -1),)
            with_next_run[later] += mass * cells[before]
        cells = with_next_run
    counts = sum(np.indices(cells.shape), start=np.zeros(cells.shape, dtype=np.intp))
    return np.asarray(cells[counts <= times])


def _binomial_probabilities(masses: Floats, times: int) -> Floats:
    """Return the probabilities of the counts of the first of two outcomes, by repeated doubling of the number of runs."""
    found = np.ones(1)
    for digit in f"{times:b}":
        found = np.convolve(found, found)
        if digit == "1":
            found = np.convolve(found, masses[::-1])
    return found
