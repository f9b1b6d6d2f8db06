"""Composition of a pair of few outcomes, outcome by outcome."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from privselect.pairs.dominating import DominatingPair

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_MOST_CELLS = 40_000
_SMALLEST = 1e-290  # below this a float soon loses digits


def are_few(pair: DominatingPair, times: int) -> bool:
    """Whether all combinations can be listed, with a rounding that the resulting pair allows for."""
    size, made = len(pair.p), math.comb(len(pair.p) + times - 1, times)
    # Each mass is a sum of products: a rounding for each of size + 1 operations of a step, and one for the mass it started from.
    return (times + 1) ** (size - 1) <= _MOST_CELLS and (size + 2) * times <= 3 * made + 64


def compose_few(pair: DominatingPair, times: int) -> DominatingPair:
    """The pair of ``times`` independent runs: how often each outcome came is all that matters."""
    p, q = (_of_counts(masses, times) for masses in (pair.p, pair.q))
    # An outcome may be split into one that only P and one that only P' can give: that leaks more, and needs no tiny numbers.
    proper = (p > _SMALLEST) & (q > _SMALLEST)
    p_only, q_only = (
        min(-math.expm1(times * math.log1p(-only)) + float(lost[~proper].sum()), 1.0) if only < 1.0 else 1.0
        for only, lost in ((pair.p_only, p), (pair.q_only, q))
    )
    p, q = p[proper], q[proper]
    order = np.argsort(np.log(p) - np.log(q), kind="stable")
    return DominatingPair(p[order], q[order], p_only, q_only)


def _of_counts(masses: Floats, times: int) -> Floats:
    """Chances of all ways in which the outcomes may come up ``times`` times; positive terms only, so that all digits stay."""
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
