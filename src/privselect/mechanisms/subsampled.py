"""**Subsampled**: a mechanism that sees only a secret Poisson sample of the records, drawn once."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from privselect._util.validation import check_fraction, format_value
from privselect.errors import NeighbourError, ParameterError
from privselect.mechanisms.base import Mechanism
from privselect.mechanisms.neighbours import ADD_REMOVE, REPLACE_ONE
from privselect.pairs import Bracket, DominatingPair
from privselect.text_forms import register


@register
@dataclass(frozen=True, slots=True)
class Subsampled(Mechanism):
    """Draw each record with ``probability`` into one secret sample, and run ``mechanism`` on the sample alone."""

    text_name = "subsampled"

    mechanism: Mechanism = field(metadata={"positional": True})
    probability: Any

    def __post_init__(self) -> None:
        if not isinstance(self.mechanism, Mechanism):
            raise ParameterError(f"`mechanism` must be a mechanism such as gaussian(sigma=4), got {format_value(self.mechanism)}")
        if self.mechanism.neighbours == REPLACE_ONE:
            raise NeighbourError(f"`subsampled` needs a mechanism stated for {ADD_REMOVE}, got {self.mechanism}")
        exact = check_fraction("probability", self.probability)
        if not 0 < exact <= 1:
            raise ParameterError(f"`probability` must be in (0, 1], got {format_value(self.probability)}")
        object.__setattr__(self, "probability", Fraction(exact))

    @property
    def neighbours(self) -> str:
        """Adding or removing one record."""
        return ADD_REMOVE

    @property
    def cases(self) -> tuple[Mechanism, ...]:
        """The subsampled cases of the mechanism."""
        inner = self.mechanism.cases
        return (self,) if inner == (self.mechanism,) else tuple(Subsampled(case, self.probability) for case in inner)

    def _make_brackets(self, accuracy: float, /) -> tuple[Bracket, ...]:
        if self.probability == 1:
            return self.mechanism.brackets_within(accuracy)
        raise NotImplementedError
