"""**Disjoint**: several mechanisms, each on records of its own, all their outputs released."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from privselect._util.validation import check_sequence, format_value
from privselect.errors import NeighbourError, ParameterError
from privselect.mechanisms.base import Mechanism, interval_of_maxima
from privselect.mechanisms.neighbours import ADD_REMOVE, REPLACE_ONE
from privselect.text_forms import register

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import ArrayLike, NDArray

    from privselect.interval import Interval
    from privselect.pairs import Bracket

    Floats = NDArray[np.float64]


@register
@dataclass(frozen=True, slots=True)
class Disjoint(Mechanism):
    """Each of ``parts`` on its own part of the records, everything released: ``delta = max over the parts of delta_j``.

    Training on one part and a noisy count of right answers on a hold-out is such a trial. One record more or less changes one part
    alone, so for each two neighbours the whole leaks what one of the parts leaks: a selection over it costs the greater of the two
    selections, never more. Label: **Disjoint**.

    Holds when each record lies in at most one part, and which one depends on that record alone: parts that are given apart, or a split
    by a keyed hash of a stable record id. A shuffle by place is none: one record moves others. All runs in a selection use one split.
    The query of a part may be chosen after seeing the outputs of those before, so long as it leaks at most what is stated here; every
    split, also one inside a part that is itself disjoint or a selection over such, is fixed before any output is seen.

    Neighbours are data sets of which one has a record more. A replaced record may move from one part to another, so parts stated for
    replace_one are refused. Noise stated for any relation must be for a query of sensitivity 1 under adding or removing one record.

    Composed with others, or with itself, it counts as the one pair above all its parts, as each time the split may be another. Where
    it is not, ``disjoint(composed(a, times=10), composed(b, times=10))`` says so, and may cost less.
    """

    text_name = "disjoint"

    parts: tuple[Mechanism, ...] = field(metadata={"variadic": True})

    def __post_init__(self) -> None:
        parts = (self.parts,) if isinstance(self.parts, Mechanism) else check_sequence("parts", self.parts, "mechanisms")
        if not parts:
            raise ParameterError("`disjoint` needs at least one part such as gaussian(sigma=4), got none")
        for part in parts:
            if not isinstance(part, Mechanism):
                raise ParameterError(f"`disjoint` needs parts that are mechanisms, got {format_value(part)}")
            if part.neighbours == REPLACE_ONE:
                raise NeighbourError(f"`disjoint` needs parts stated for {ADD_REMOVE}, as a replaced record may change parts, got {part}")
        object.__setattr__(self, "parts", parts)
        Mechanism.__post_init__(self)

    @property
    def neighbours(self) -> str:
        """Adding or removing one record, which lies in one part."""
        return ADD_REMOVE

    @property
    def cases(self) -> tuple[Mechanism, ...]:
        """The record that the neighbours differ in lies in one of the parts."""
        return tuple(case for part in self.parts for case in part.cases)

    def _make_brackets(self, accuracy: float, /) -> tuple[Bracket, ...]:
        return tuple(bracket for part in self.parts for bracket in part.brackets_within(accuracy))

    def delta_at(self, epsilon: ArrayLike) -> Interval:
        """The greatest of the parts."""
        return _greatest_of(part.delta_at(epsilon) for part in self.parts)

    def _epsilon_within(self, delta: Floats, accuracy: float) -> Interval:
        return _greatest_of(part._epsilon_within(delta, accuracy) for part in self.parts)  # noqa: SLF001 - parts are mechanisms too

    def renyi_at(self, alpha: ArrayLike) -> Floats:
        """The greatest of the parts."""
        return np.asarray(np.maximum.reduce([part.renyi_at(alpha) for part in self.parts]))


def _greatest_of(intervals: Iterable[Interval]) -> Interval:
    found = list(intervals)
    # A lower end of one part is one of the whole, whatever is known of the others.
    lowers = [np.asarray(interval.lower) for interval in found if interval.lower is not None]
    return interval_of_maxima([np.asarray(interval.upper) for interval in found], lowers)
