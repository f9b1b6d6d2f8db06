"""**Points**: the pair that knows nothing but a few (epsilon, delta) guarantees."""

from __future__ import annotations

from decimal import Decimal, localcontext
from typing import TYPE_CHECKING

import numpy as np

from privselect.pairs.dominating import DominatingPair

if TYPE_CHECKING:
    from collections.abc import Sequence

_DIGITS = 400  # losses reach 700 (304 digits), deltas may be 1e-40


def pair_from_points(points: Sequence[tuple[float, float]]) -> DominatingPair:
    """The largest pair that keeps every ``(epsilon_i, delta_i)`` in both directions.

    Claim: each point says that a test with error alpha of the first kind has error of the second kind at least
    ``max(0, 1 - d - e^e alpha, e^-e (1 - d - alpha))``; the pair's trade-off function is the greatest of these lines.
    Holds when the guarantee is for both orders of the neighbours. Label: **Points**.

    The envelope is walked line by line: a linear piece of the trade-off function over an alpha-length q falling by p is one
    outcome of masses (p, q); its jump at alpha = 0 is an outcome of infinite loss.
    """
    with localcontext() as context:
        # Masses as small as the least delta are differences of numbers near 1: ordinary floats would lose them.
        context.prec = _DIGITS
        exact = [(Decimal(e).exp(), 1 - Decimal(d)) for e, d in points]
        steep = exact  # beta = c - s * alpha as (s, c)
        flat = [(1 / s, c / s) for s, c in exact]
        lines = [*steep, *flat, (Decimal(0), Decimal(0))]
        # At alpha = 0 the highest line rules; from there, always the flatter line that takes over first.
        alpha, (slope, height) = Decimal(0), max(lines, key=lambda line: (line[1], -line[0]))
        p_only = 1 - height
        p, q = [], []
        while slope > 0:
            crossings = [((height - c) / (slope - s), s, c) for s, c in lines if s < slope]
            end, next_slope, next_height = min(crossings, key=lambda crossing: (crossing[0], crossing[1]))
            end = min(max(end, alpha), Decimal(1))
            first, second = float(slope * (end - alpha)), float(end - alpha)
            if first > 0.0 and second > 0.0:
                p.append(first)
                q.append(second)
            alpha, slope, height = end, next_slope, next_height
        return DominatingPair(np.array(p[::-1]), np.array(q[::-1]), float(p_only), float(1 - alpha))
