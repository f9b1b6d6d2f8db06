"""Exact argmax of noisy scores.

Floats decide a vector when the result is certain: one noisy score lies above all others, whatever the rounding and wherever its noise
lies in its box. Otherwise the possible winners are compared as fractions, and their boxes are refined until one score is the largest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from privselect._util.random_bits import uniform_below
from privselect.noisy_max.sampling.rejection_sampler import random_integers
from privselect.noisy_max.scores import LOWEST_GAP, LOWEST_INTEGER_GAP

if TYPE_CHECKING:
    from fractions import Fraction

    from numpy.typing import NDArray

    from privselect._util.random_bits import Entropy
    from privselect.noisy_max.sampling.rejection_sampler import NoiseSamples, RejectionSampler
    from privselect.noisy_max.sampling.sample_grid import Box
    from privselect.noisy_max.scores import Scores

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]
    Flags = NDArray[np.bool_]

_SLACK = 2.0**-50  # relative error of a noise plus a gap, where the gap is exact to 2^-51


def exact_argmax(scores: Scores, unit: Fraction, sampler: RejectionSampler, entropy: Entropy) -> Integers:
    """Return the index of the largest noisy score of each vector; ``unit`` converts the sampler's units to those of the scores."""
    n, m = scores.values.shape
    integer = sampler.grid.integer
    gaps = scores.integer_gaps(unit) if integer else scores.gaps(unit)
    samples = sampler.sample(n * m, entropy)
    low, high = _noisy_bounds(gaps, samples, sampler)
    possible = high >= low.max(axis=1, keepdims=True)
    found = np.asarray(possible.argmax(axis=1))
    undecided = possible.sum(axis=1) > 1
    has_refined = np.zeros(n, dtype=bool)
    has_refined[[flat // m for flat in samples.refined]] = True
    if integer:
        tied = undecided & ~has_refined
        found[tied] = _random_column(possible[tied], entropy)
        undecided &= has_refined
    for row in np.flatnonzero(undecided).tolist():
        columns = np.flatnonzero(possible[row]).tolist()
        boxes = [samples.box(row * m + column, sampler.grid) for column in columns]
        exact = [scores.exact(row, column) / unit for column in columns]
        found[row] = columns[_argmax_by_refinement(list(zip(exact, boxes, strict=True)), entropy)]
    return found


def _noisy_bounds(gaps: Floats, samples: NoiseSamples, sampler: RejectionSampler) -> tuple[Floats, Floats]:
    """Return lower and upper bounds on each noisy score, infinite for refined samples."""
    if sampler.grid.integer:
        high = gaps + samples.index.reshape(gaps.shape)  # integers below 2^53
        low = np.where(gaps > LOWEST_INTEGER_GAP, high, -np.inf)
    else:
        start, end = (z.reshape(gaps.shape) for z in sampler.grid.bounds(samples.index))
        margin = _SLACK * (np.abs(gaps) + np.abs(start) + 1.0)
        low, high = np.where(gaps > LOWEST_GAP, gaps + start - margin, -np.inf), gaps + end + margin
    flat = list(samples.refined)
    low.flat[flat], high.flat[flat] = -np.inf, np.inf
    return low, high


def _random_column(possible: Flags, entropy: Entropy) -> Integers:
    """Draw one of the marked columns of each row, uniformly."""
    counts = possible.sum(axis=1)
    rank = np.zeros(len(possible), dtype=np.int64)
    for count in np.unique(counts).tolist():
        rows = counts == count
        rank[rows] = random_integers(count, int(rows.sum()), entropy)
    return np.asarray((possible.cumsum(axis=1) == rank[:, None] + 1).argmax(axis=1))


def _argmax_by_refinement(noisy: list[tuple[Fraction, Box]], entropy: Entropy) -> int:
    """Return which pair (score, noise) is the largest; if integers tie, draw one of them uniformly."""
    possible = list(range(len(noisy)))
    while True:
        best = max(noisy[i][0] + noisy[i][1].start for i in possible)
        possible = [i for i in possible if noisy[i][0] + noisy[i][1].end > best or noisy[i][0] + noisy[i][1].start == best]
        if len(possible) == 1 or noisy[0][1].integer:
            return possible[uniform_below(len(possible), entropy)]
        for i in possible:
            noisy[i][1].refine(entropy)
