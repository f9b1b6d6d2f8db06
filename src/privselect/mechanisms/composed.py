"""Composition: several mechanisms on the same data, with all outputs released."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from privselect._util.validation import check_sequence, format_value, integer_range, parameter
from privselect.errors import ParameterError
from privselect.mechanisms.base import MAX_RUNS, Mechanism
from privselect.mechanisms.gaussian import Gaussian, cell_width, gaussian_bracket, gaussian_composition_step
from privselect.mechanisms.gaussian_dp import GaussianDP, with_total_leak
from privselect.mechanisms.neighbours import common_relation
from privselect.pairs.compose import compose
from privselect.text_forms import register

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    from privselect.interval import Interval
    from privselect.pairs import Bracket


@register
@dataclass(frozen=True, slots=True)
class Composed(Mechanism):
    """All ``parts`` in sequence, the sequence repeated ``times`` times, with all outputs released.

    The guarantee also holds if a part, or its query, is chosen after seeing earlier outputs, provided that it leaks at most what is stated
    here. Parts may be any mechanisms with compatible neighbouring relations, including selections.
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

    def composition_steps(self) -> tuple[tuple[Mechanism, int], ...]:
        """Return the steps of all parts, each distinct step once."""
        counts: dict[Mechanism, int] = {}
        for part in self.parts:
            for step, count in part.composition_steps():
                counts[step] = counts.get(step, 0) + count * self.times
        return tuple(counts.items())

    def _make_brackets(self, accuracy: float, /) -> tuple[Bracket, ...]:
        return composed_brackets(self.composition_steps(), accuracy)

    def _epsilon_within(self, delta: NDArray[np.float64], accuracy: float) -> Interval:
        parts = self.composition_steps()
        if len(parts) == 1 and parts[0][1] == 1:
            return parts[0][0]._epsilon_within(delta, accuracy)  # noqa: SLF001 - one run of one part is that part
        return Mechanism._epsilon_within(self, delta, accuracy)  # noqa: SLF001

    def renyi_at(self, alpha: ArrayLike) -> NDArray[np.float64]:
        """Compute the sum of the Renyi divergences of all steps."""
        return sum(count * step.renyi_at(alpha) for step, count in self.composition_steps())  # type: ignore[return-value]


def composed_brackets(steps: Sequence[tuple[Mechanism, int]], accuracy: float) -> tuple[Bracket, ...]:
    """Return the brackets of the composition of ``steps``, given as (step, number of runs)."""
    # Gaussians compose to one Gaussian: the values of 1/sigma^2 add up.
    shifts = [math.sqrt(count) / step.sigma for step, count in steps if isinstance(step, Gaussian)]
    parts = [(step.composition_step(), count) for step, count in steps if not isinstance(step, Gaussian)]
    if shifts and not parts:
        return (gaussian_bracket(math.hypot(*shifts), cell_width(accuracy)),)
    gaussian_dp = [(step, count) for step, count in steps if isinstance(step, GaussianDP)]
    if len(gaussian_dp) == len(parts):
        # The values of mu^2 add up too; everything leaks only if it leaks in some step.
        mu = math.hypot(*shifts, *(math.sqrt(count) * step.mu for step, count in gaussian_dp))
        leak = -math.expm1(sum(count * math.log1p(-step.delta) for step, count in gaussian_dp))
        return (with_total_leak(gaussian_bracket(mu, cell_width(accuracy)), leak),)
    if shifts:
        parts.append((gaussian_composition_step(math.hypot(*shifts)), 1))
    both = compose(parts, accuracy)
    return (both,) if both.direction == "both" else (both, both.reverse)
