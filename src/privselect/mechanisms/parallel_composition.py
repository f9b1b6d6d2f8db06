"""**Disjoint**: several mechanisms, each on a separate part of the records, with all outputs released."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from privselect._util.validation import check_sequence, format_value
from privselect.errors import NeighbourError, ParameterError
from privselect.mechanisms.base import Mechanism, interval_of_cases
from privselect.mechanisms.neighbours import ADD_REMOVE, REPLACE_ONE
from privselect.text_forms import register

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from privselect.interval import Interval
    from privselect.pairs import Bracket

    Floats = NDArray[np.float64]


@register
@dataclass(frozen=True, slots=True)
class Disjoint(Mechanism):
    """Each of ``parts`` on a separate part of the records, all outputs released: ``delta = max over the parts of delta_j``.

    An example is a trial that trains on one part and releases a noisy count of correct predictions on a hold-out. Adding or removing one
    record changes one part only. So for any two neighbours the leak is that of one part, and a selection over ``Disjoint`` costs the
    larger of the two selections. Label: **Disjoint**.

    Holds when each record lies in at most one part, and its part depends on that record alone: separate data sets, or a split by a keyed
    hash of a stable record id. A split by shuffled position does not qualify, because one record moves others. All runs in a selection use
    the same split. The query of a part may be chosen after seeing earlier outputs, provided that it leaks at most what is stated here.
    Every split, also one inside a part, is fixed before any output is seen.

    Neighbours differ by adding or removing one record. A replaced record may move between parts, so parts stated for replace_one are
    rejected. Noise stated for any relation must be for a query of sensitivity 1 under adding or removing one record.

    Composed with other mechanisms, or with itself, it counts as the envelope of all its parts, because each run may use another split. If
    the split is fixed, ``disjoint(composed(a, times=10), composed(b, times=10))`` states this and may cost less.
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
                raise NeighbourError(
                    f"`disjoint` needs parts stated for {ADD_REMOVE}, because a replaced record may change parts, got {part}"
                )
        object.__setattr__(self, "parts", parts)
        Mechanism.__post_init__(self)

    @property
    def neighbours(self) -> str:
        """Adding or removing one record, which lies in one part."""
        return ADD_REMOVE

    @property
    def cases(self) -> tuple[Mechanism, ...]:
        """The cases of all parts: the record in which neighbours differ lies in one part."""
        return tuple(case for part in self.parts for case in part.cases)

    def _make_brackets(self, accuracy: float, /) -> tuple[Bracket, ...]:
        return tuple(bracket for part in self.parts for bracket in part.brackets_within(accuracy))

    def delta_at(self, epsilon: ArrayLike) -> Interval:
        """Compute the maximum over the parts."""
        return interval_of_cases(part.delta_at(epsilon) for part in self.parts)

    def _epsilon_within(self, delta: Floats, accuracy: float) -> Interval:
        return interval_of_cases(part._epsilon_within(delta, accuracy) for part in self.parts)  # noqa: SLF001 - parts are mechanisms too

    def renyi_at(self, alpha: ArrayLike) -> Floats:
        """Compute the maximum over the parts."""
        return np.asarray(np.maximum.reduce([part.renyi_at(alpha) for part in self.parts]))
