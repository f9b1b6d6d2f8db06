"""A search for the least epsilon that will do."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def smallest_epsilon_where(holds: Callable[[float], bool], *, largest: float, close: float) -> float:
    """The least epsilon >= 0 found that ``holds``, where greater ones hold too, by doubling and bisection; infinite beyond ``largest``.

    What is returned was seen to hold; it is within ``close`` of one that was not, relative.
    """
    if holds(0.0):
        return 0.0
    low, high = 0.0, 1.0
    while not holds(high):
        low, high = high, 2.0 * high
        if high > largest:
            return math.inf
    while (middle := 0.5 * (low + high)) not in {low, high} and high - low > close * high:
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
