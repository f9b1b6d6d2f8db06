"""Which score is the greatest once noise is added, decided on the exact numbers.

Floats decide a vector where they are sure: where one noisy score lies above all others whatever the rounding and wherever in its box its
noise is. Else those that may be the greatest are compared as fractions, their boxes narrowed until one is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from privselect._util.random_bits import uniform_below
from privselect.noisy_max.sampling.random_words import many_below
from privselect.noisy_max.scores import FAR, FAR_WHOLE

if TYPE_CHECKING:
    from fractions import Fraction

    from numpy.typing import NDArray

    from privselect._util.random_bits import Entropy
    from privselect.noisy_max.sampling.rejection_sampler import Drawn, Staircase
    from privselect.noisy_max.sampling.sample_grid import Place
    from privselect.noisy_max.scores import Scores

    Floats = NDArray[np.float64]
    Wholes = NDArray[np.int64]
    Flags = NDArray[np.bool_]

_SLACK = 2.0**-50  # of a sum of a gap, right to 2^-51 of itself, and a noise


def winners(scores: Scores, unit: Fraction, staircase: Staircase, entropy: Entropy) -> Wholes:
    """The index of the greatest noisy score of each vector; ``unit`` is what the staircase's 1 means on the scores."""
    n, m = scores.values.shape
    whole = staircase.lattice.whole
    gaps = scores.whole_gaps(unit) if whole else scores.gaps(unit)
    drawn = staircase.draw(n * m, entropy)
    low, high = _bounds(gaps, drawn, staircase)
    able = high >= low.max(axis=1, keepdims=True)
    found = np.asarray(able.argmax(axis=1))
    unsure = able.sum(axis=1) > 1
    apart = np.zeros(n, dtype=bool)
    apart[[flat // m for flat in drawn.apart]] = True
    if whole:
        tied = unsure & ~apart
        found[tied] = _one_of(able[tied], entropy)
        unsure &= apart
    for row in np.flatnonzero(unsure).tolist():
        columns = np.flatnonzero(able[row]).tolist()
        places = [drawn.place(row * m + column, staircase.lattice) for column in columns]
        exact = [scores.exact(row, column) / unit for column in columns]
        found[row] = columns[_compared(list(zip(exact, places, strict=True)), entropy)]
    return found


def _bounds(gaps: Floats, drawn: Drawn, staircase: Staircase) -> tuple[Floats, Floats]:
    """Of each noisy score; none for what was drawn apart."""
    if staircase.lattice.whole:
        high = gaps + drawn.at.reshape(gaps.shape)  # whole numbers below 2^53
        low = np.where(gaps > FAR_WHOLE, high, -np.inf)
    else:
        start, end = (z.reshape(gaps.shape) for z in staircase.lattice.ends(drawn.at))
        margin = _SLACK * (np.abs(gaps) + np.abs(start) + 1.0)
        low, high = np.where(gaps > FAR, gaps + start - margin, -np.inf), gaps + end + margin
    places = list(drawn.apart)
    low.flat[places], high.flat[places] = -np.inf, np.inf
    return low, high


def _one_of(able: Flags, entropy: Entropy) -> Wholes:
    """One of the marked columns of each row, uniformly."""
    counts = able.sum(axis=1)
    rank = np.zeros(len(able), dtype=np.int64)
    for count in np.unique(counts).tolist():
        rows = counts == count
        rank[rows] = many_below(count, int(rows.sum()), entropy)
    return np.asarray((able.cumsum(axis=1) == rank[:, None] + 1).argmax(axis=1))


def _compared(noisy: list[tuple[Fraction, Place]], entropy: Entropy) -> int:
    """Which of these scores, each with its noise beside it, is the greatest: one of them, uniformly, where whole numbers tie."""
    able = list(range(len(noisy)))
    while True:
        best = max(noisy[i][0] + noisy[i][1].start for i in able)
        able = [i for i in able if noisy[i][0] + noisy[i][1].end > best or noisy[i][0] + noisy[i][1].start == best]
        if len(able) == 1 or noisy[0][1].whole:
            return able[uniform_below(len(able), entropy)]
        for i in able:
            noisy[i][1].narrow(entropy)
