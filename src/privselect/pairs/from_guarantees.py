"""**Points**: the worst pair that satisfies a few (epsilon, delta) guarantees."""

from __future__ import annotations

from decimal import Decimal, localcontext
from typing import TYPE_CHECKING

import numpy as np

from privselect.pairs.dominating_pair import Bracket
from privselect.pairs.subnormal_masses import merge_subnormal, split_subnormal

if TYPE_CHECKING:
    from collections.abc import Sequence

_DIGITS = 400  # losses reach 700 (304 digits), deltas 1e-40
_SMALLEST_NORMAL = 2.0**-1022  # the smallest float with full precision


def bracket_from_points(points: Sequence[tuple[float, float]]) -> Bracket:
    """Return the largest pair that satisfies every guarantee ``(epsilon_i, delta_i)`` in both directions.

    Claim: under a guarantee (e, d), a test with type I error alpha has type II error at least
    ``max(0, 1 - d - e^e alpha, e^-e (1 - d - alpha))``. The pair's trade-off function is the maximum of these lines.
    Holds when the guarantees are for both orders of the neighbours. Label: **Points**.

    The envelope is traversed from the steepest line to the horizontal one. A linear piece of length q in alpha that falls by p is
    one outcome of masses (p, q). The jump at alpha = 0 is an outcome of infinite loss. The upper and lower pair of the bracket differ
    only in masses too small for full floating-point precision.
    """
    with localcontext() as context:
        # Masses as small as the smallest delta are differences of numbers near 1: floats would lose them.
        context.prec = _DIGITS
        steep = [(Decimal(e).exp(), 1 - Decimal(d)) for e, d in points]  # beta = c - s * alpha as (s, c)
        flat = [(1 / s, c / s) for s, c in steep]
        starts, lines = _upper_envelope([*steep, *flat, (Decimal(0), Decimal(0))])
        p, q = [], []
        for start, end, (slope, _) in zip(starts, starts[1:], lines, strict=False):
            p.append(float(slope * (end - start)))
            q.append(float(end - start))
        leaks = float(1 - lines[0][1]), float(1 - starts[-1])
    masses = np.array(p[::-1]), np.array(q[::-1])
    upper = split_subnormal(*masses, leaks, smallest=_SMALLEST_NORMAL)
    return Bracket(upper, (upper if len(upper.p) == len(p) else merge_subnormal(*masses, leaks, smallest=_SMALLEST_NORMAL),))


_Line = tuple[Decimal, Decimal]


def _upper_envelope(lines: list[_Line]) -> tuple[list[Decimal], list[_Line]]:
    """Return the lines that are highest somewhere on alpha >= 0, steepest first, and the alpha at which each becomes the highest."""
    starts: list[Decimal] = []
    highest: list[_Line] = []
    # Among parallel lines the highest comes first; the others never cross it.
    for slope, height in sorted(set(lines), key=lambda line: (-line[0], -line[1])):
        if highest and slope == highest[-1][0]:
            continue
        start = Decimal(0)
        while highest:
            above, top = highest[-1]
            start = (top - height) / (above - slope)
            if start > starts[-1]:
                break
            # It crosses the last line before that one is highest anywhere: drop the last line.
            starts.pop()
            highest.pop()
            start = Decimal(0)
        starts.append(min(start, Decimal(1)))
        highest.append((slope, height))
    return starts, highest
