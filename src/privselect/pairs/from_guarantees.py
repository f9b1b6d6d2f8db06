"""**Points**: the pair that knows nothing but a few (epsilon, delta) guarantees."""

from __future__ import annotations

from decimal import Decimal, localcontext
from typing import TYPE_CHECKING

import numpy as np

from privselect.pairs.bracket import Bracket
from privselect.pairs.subnormal_masses import merge_tiny, split_tiny

if TYPE_CHECKING:
    from collections.abc import Sequence

_DIGITS = 400  # losses reach 700 (304 digits), deltas may be 1e-40
_NORMAL = 2.0**-1022  # the least float that has all its digits


def bracket_from_points(points: Sequence[tuple[float, float]]) -> Bracket:
    """The largest pair that keeps every ``(epsilon_i, delta_i)`` in both directions.

    Claim: each point says that a test with error alpha of the first kind has error of the second kind at least
    ``max(0, 1 - d - e^e alpha, e^-e (1 - d - alpha))``; the pair's trade-off function is the greatest of these lines.
    Holds when the guarantee is for both orders of the neighbours. Label: **Points**.

    The envelope is walked from the steepest line to the level one: a linear piece of the trade-off function over an alpha-length
    q falling by p is one outcome of masses (p, q); its jump at alpha = 0 is an outcome of infinite loss. The two ends of the
    bracket differ only where a mass is too small for a float's digits.
    """
    with localcontext() as context:
        # Masses as small as the least delta are differences of numbers near 1: ordinary floats would lose them.
        context.prec = _DIGITS
        steep = [(Decimal(e).exp(), 1 - Decimal(d)) for e, d in points]  # beta = c - s * alpha as (s, c)
        flat = [(1 / s, c / s) for s, c in steep]
        starts, lines = _envelope([*steep, *flat, (Decimal(0), Decimal(0))])
        p, q = [], []
        for start, end, (slope, _) in zip(starts, starts[1:], lines, strict=False):
            p.append(float(slope * (end - start)))
            q.append(float(end - start))
        leaks = float(1 - lines[0][1]), float(1 - starts[-1])
    masses = np.array(p[::-1]), np.array(q[::-1])
    upper = split_tiny(*masses, leaks, smallest=_NORMAL)
    return Bracket(upper, (upper if len(upper.p) == len(p) else merge_tiny(*masses, leaks, smallest=_NORMAL),))


_Line = tuple[Decimal, Decimal]


def _envelope(lines: list[_Line]) -> tuple[list[Decimal], list[_Line]]:
    """The lines that are highest somewhere on alpha >= 0, steepest first, and where each takes over from the one before."""
    starts: list[Decimal] = []
    highest: list[_Line] = []
    # Of equally steep lines the higher comes first, and the others never cross it.
    for slope, height in sorted(set(lines), key=lambda line: (-line[0], -line[1])):
        if highest and slope == highest[-1][0]:
            continue
        start = Decimal(0)
        while highest:
            above, top = highest[-1]
            start = (top - height) / (above - slope)
            if start > starts[-1]:
                break
            # It overtakes the last line before that one has ruled anywhere.
            starts.pop()
            highest.pop()
            start = Decimal(0)
        starts.append(min(start, Decimal(1)))
        highest.append((slope, height))
    return starts, highest
