"""How to plan where somebody waits, as before a page: with less care for the last digits."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from privselect._util.validation import ACCURACY_RANGE, REAL, check_number

if TYPE_CHECKING:
    from privselect.planning.search.search_range import Axis


_FAR = math.log(1000.0)


@dataclass(frozen=True, slots=True)
class Quickly:
    """The search and the accountant take no more care than ``accuracy``, relative.

    That much of the budget may be left unused, and it is never exceeded. The search begins at ``near``, such as the answer to a question
    much like this one, and looks at no number above ``most``.
    """

    accuracy: float = 1e-3
    near: float | None = None
    most: float | None = None

    def __post_init__(self) -> None:
        check_number("accuracy", self.accuracy, ACCURACY_RANGE)
        for name in ("near", "most"):
            if (given := getattr(self, name)) is not None:
                check_number(name, given, REAL)

    def start(self, axis: Axis) -> float | None:
        """Where the search begins; None where it is so far off that looking there would take long."""
        near = self.near
        if near is None or near + axis.shift <= 0.0 or abs(axis.place(near) - axis.place(axis.start)) > _FAR:
            return None
        return axis.kept(near)

    def kept(self, axis: Axis) -> Axis:
        """``axis``, up to the most that is looked at."""
        if self.most is None:
            return axis
        ends = {name: min(getattr(axis, name), self.most) for name in ("safest", "last", "start")}
        return replace(axis, **ends)
