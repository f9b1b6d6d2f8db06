"""What the law of K says beforehand. It is public, part of the plan; the K that was drawn is not, and nothing here knows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from privselect.counts import Count

_LEVELS = np.linspace(0.005, 0.995, 199).tolist()


def survival(law: Count) -> tuple[tuple[float, float], ...]:
    """Each k where P(K >= k) falls, with P(K > k), which it falls to; to within half a percent: finer than a picture shows, and quick.

    It begins at 0, where only a law that may run no trial has fallen already.
    """
    points = [(0.0, 1.0)]
    for level in _LEVELS:
        place = float(law.quantile(level))
        if place == points[-1][0]:
            points.pop()
        points.append((place, 1.0 - level))
    return tuple(points)
