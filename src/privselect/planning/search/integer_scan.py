"""Every value of a whole parameter that meets a budget, where the bound may rise and fall along it."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_DENSE = 64  # looked at one by one up to here
_GROWTH = 1.05  # from then on, in steps of this factor
_STRIDE = 1.25  # of the climb, where each look may be dear


def runs_that(meets: Callable[[int], bool], low: int, high: int) -> tuple[tuple[int, int], ...]:
    """The stretches of whole numbers from ``low`` to ``high`` for which ``meets`` holds, as (first, last).

    Looked at one by one at first, then in steps of 5%; the ends of each stretch are found to the last one. A stretch that starts and
    ends between two neighbouring looks is not seen.
    """
    places = _places(low, high)
    seen = {place: meets(place) for place in places}

    def edge(left: int, right: int) -> int:
        """The last place that is as ``left`` is, where ``right`` is the other way."""
        wanted = seen[left]
        while right - left > 1:
            middle = (left + right) // 2
            left, right = (middle, right) if meets(middle) == wanted else (left, middle)
        return left

    stretches: list[tuple[int, int]] = []
    first = places[0] if seen[places[0]] else None
    for before, here in itertools.pairwise(places):
        if seen[here] == seen[before]:
            continue
        last = edge(before, here)
        if first is None:
            first = last + 1
        else:
            stretches.append((first, last))
            first = None
    return (*stretches, (first, places[-1])) if first is not None else tuple(stretches)


def climbed(meets: Callable[[int], bool], low: int, high: int) -> int:
    """How far up from ``low`` every place looked at meets: in steps of a quarter up to the first that does not, whose edge is found.

    Less than ``low`` where that does not meet, and ``high`` where all do. A stretch that does not, between two looks, is not seen.
    """
    last, ahead = low - 1, low
    while meets(ahead):
        last = ahead
        if ahead == high:
            return high
        ahead = min(max(ahead + 1, math.floor(ahead * _STRIDE)), high)
    while ahead - last > 1:
        middle = (last + ahead) // 2
        last, ahead = (middle, ahead) if meets(middle) else (last, middle)
    return last


def _places(low: int, high: int) -> list[int]:
    places = list(range(low, min(low + _DENSE, high) + 1))
    while places[-1] < high:
        places.append(min(math.ceil(places[-1] * _GROWTH), high))
    return places
