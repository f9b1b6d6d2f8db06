"""Composition: several mechanisms on the same data, with all outputs released."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from privselect._util.validation import REAL, check_array, check_sequence, format_value, integer_range, parameter
from privselect.errors import ParameterError
from privselect.mechanisms.base import MAX_RUNS, Mechanism, interval_of_cases
from privselect.mechanisms.factors import composed_brackets, composed_factors, factors_of
from privselect.mechanisms.neighbours import common_relation
from privselect.pairs.compose import ACCURACY
from privselect.text_forms import register

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

    from privselect.interval import Interval
    from privselect.pairs import Bracket

    Floats = NDArray[np.float64]

_MAX_CASES = 16  # with more of them, each part counts as the envelope of its cases


@register
@dataclass(frozen=True, slots=True)
class Composed(Mechanism):
    """All ``parts`` in sequence, the sequence repeated ``times`` times, with all outputs released.

    The guarantee also holds if a part, or its query, is chosen after seeing earlier outputs, provided that it leaks at most what is stated
    here. Parts may be any mechanisms with compatible neighbouring relations, including selections.

    A selection, and each DP-SGD training, is composed once and kept, so a composition of two of them is fast if only one changes.
    """

    text_name = "composed"

    parts: tuple[Mechanism, ...] = field(metadata={"variadic": True})
    times: int = parameter(integer_range(1, MAX_RUNS), default=1, kw_only=True, leaks="more")

    def __post_init__(self) -> None:
        parts = (self.parts,) if isinstance(self.parts, Mechanism) else check_sequence("parts", self.parts, "mechanisms")
        if not parts:
            raise ParameterError("`composed` needs at least one part such as gaussian(sigma=4), got none")
        for part in parts:
            if not isinstance(part, Mechanism):
                raise ParameterError(f"`composed` needs parts that are mechanisms, got {format_value(part)}")
        object.__setattr__(self, "parts", parts)
        Mechanism.__post_init__(self)
        common_relation((part.neighbours, part) for part in parts)  # raises if the parts disagree
        runs = sum(count for _, count in self.composition_steps())
        if runs > MAX_RUNS:
            raise ParameterError(f"`composed` takes at most {MAX_RUNS} steps in all, got {format_value(runs)}")

    @property
    def neighbours(self) -> str:
        """The common relation of all parts."""
        return common_relation((part.neighbours, part) for part in self.parts)

    @property
    def cases(self) -> tuple[Mechanism, ...]:
        """The compositions of one case of each part: for given neighbours, one case of each part applies, in any combination.

        A repeated sequence has one case, the envelope of all, because each repetition may split the records in another way.
        """
        by_part = [part.cases for part in self.parts]
        alone = all(cases == (part,) for cases, part in zip(by_part, self.parts, strict=True))
        if alone or self.times > 1 or math.prod(map(len, by_part)) > _MAX_CASES:
            return (self,)
        found = {frozenset(case.composition_steps()): case for case in map(Composed, itertools.product(*by_part))}
        return tuple(found.values())

    def composition_steps(self) -> tuple[tuple[Mechanism, int], ...]:
        """Return the steps of all parts, each distinct step once."""
        counts: dict[Mechanism, int] = {}
        for part in self.parts:
            for step, count in part.composition_steps():
                counts[step] = counts.get(step, 0) + count * self.times
        return tuple(counts.items())

    def _make_brackets(self, accuracy: float, /) -> tuple[Bracket, ...]:
        if self.cases != (self,):
            return tuple(bracket for case in self.cases for bracket in case.brackets_within(accuracy))
        return composed_brackets(self.composition_steps(), accuracy)

    def delta_at(self, epsilon: ArrayLike) -> Interval:
        """Compute delta of (epsilon, delta)-DP for one or many real epsilons."""
        eps = check_array("epsilon", epsilon, REAL)
        if self.cases != (self,):
            return interval_of_cases(case.delta_at(eps) for case in self.cases)
        factors = factors_of(self.composition_steps())
        return Mechanism.delta_at(self, eps) if len(factors) == 1 else composed_factors(factors, ACCURACY).delta_at(eps)

    def upper_curve(self) -> Callable[[float], float]:
        """Return the upper bound of :meth:`delta_at` as a function for many epsilons >= 0."""
        if self.cases != (self,):
            curves = [case.upper_curve() for case in self.cases]
            return lambda epsilon: max(curve(epsilon) for curve in curves)
        factors = factors_of(self.composition_steps())
        return Mechanism.upper_curve(self) if len(factors) == 1 else composed_factors(factors, ACCURACY).upper

    def _epsilon_within(self, delta: Floats, accuracy: float) -> Interval:
        if self.cases != (self,):
            return interval_of_cases(case._epsilon_within(delta, accuracy) for case in self.cases)  # noqa: SLF001 - mechanisms too
        steps = self.composition_steps()
        if len(steps) == 1 and steps[0][1] == 1:
            return steps[0][0]._epsilon_within(delta, accuracy)  # noqa: SLF001 - one run of one part is that part
        factors = factors_of(steps)
        if len(factors) > 1:
            return composed_factors(factors, accuracy).epsilon_at(delta)
        return Mechanism._epsilon_within(self, delta, accuracy)  # noqa: SLF001

    def renyi_at(self, alpha: ArrayLike) -> Floats:
        """Compute the sum of the Renyi divergences of all steps, the maximum over the cases."""
        if self.cases != (self,):
            return np.asarray(np.maximum.reduce([case.renyi_at(alpha) for case in self.cases]))
        return sum(count * step.renyi_at(alpha) for step, count in self.composition_steps())  # type: ignore[return-value]
