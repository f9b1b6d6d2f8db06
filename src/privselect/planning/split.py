"""The split of one budget between a search and a final training: a public rule, fixed before the data is touched."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from privselect._util.rounding import format_digits_up
from privselect._util.validation import Range, check_number, format_value
from privselect.errors import ParameterError
from privselect.planning.open_problem import problem_of
from privselect.planning.search_range import FastOptions
from privselect.planning.solve import NOISES, Budget, solve
from privselect.planning.stages import OpenStages

if TYPE_CHECKING:
    from privselect.mechanisms.base import Mechanism
    from privselect.open_spec import OpenSpec

FINAL_NOISE = 1.07
"""The rule `split="auto"`: the final training gets 7% more noise than it would need alone.

Near the whole budget, epsilon of a training falls about as fast as its noise grows. So 7% more noise costs the released model little,
and frees a share of the budget that pays for the best of about 20 trials with a tenth of the steps of the final training.
"""

AUTO = "auto"
_FACTORS = Range(1.0, float("inf"), low_open=True)
_MUCH_MORE = 10.0  # factors from here on are not written in percent
_ALONE_ACCURACY = 3e-4  # for the noise of the final training alone, which is not certified but sets the split


@dataclass(frozen=True, slots=True)
class FinalNoise:
    """The noise of the final training by the rule, and the noise that it would need alone."""

    mechanism: Mechanism
    parameter: str
    value: float
    alone: float


def read_split(final_noise: object, split: object, stages: OpenStages) -> float | None:
    """Return the factor on the noise of the final training, or None if at most one stage is open. Check both arguments."""
    if final_noise is not None and split is not None:
        raise ParameterError(f"pass either `final_noise` or `split`, got {format_value(final_noise)} and {format_value(split)}")
    factor = None if final_noise is None else check_number("final_noise", final_noise, _FACTORS)
    if split is not None and split != AUTO:
        raise ParameterError(f'`split` must be "auto", got {format_value(split)}')
    given = "`split`" if split is not None else None if factor is None else "`final_noise`"
    if stages.open_in_final and stages.open_in_search:
        if given is None:
            raise ParameterError(
                'search and final training are both open: pass final_noise=1.07 or split="auto" to divide the budget, '
                f"got {format_value(stages.describe())}"
            )
        return FINAL_NOISE if factor is None else factor
    if given is not None:
        if stages.final is None:
            raise ParameterError(f"{given} divides the budget between two stages, got no final training: pass `final` too")
        missing = "search" if stages.open_in_final else "final training"
        raise ParameterError(f"{given} needs an open number in both stages, got none in the {missing}")
    return None


def apply_split(final: OpenSpec, factor: float, budget: Budget) -> FinalNoise:
    """Return the final training with ``factor`` times the noise that it would need alone with the whole budget."""
    problem = problem_of(OpenStages(final))
    name = problem.unknown.parameter
    if name not in NOISES:
        raise ParameterError(f"a split needs an open noise such as noise_multiplier or sigma in the final training, got {name}")
    quick = FastOptions(_ALONE_ACCURACY if budget.fast is None else budget.fast.accuracy)
    alone = solve(problem, Budget(budget.epsilon, budget.delta, quick)).value
    value = problem.search_range().round_safely(factor * alone)
    return FinalNoise(problem.fill(value).mechanism, name, value, alone)  # type: ignore[arg-type]  # nothing is open


def describe_final_noise(found: FinalNoise, factor: float, *, auto: bool) -> str:
    """Return the reason for the noise of the final training as a sentence."""
    more = f"{100.0 * (factor - 1.0):.4g}% more than alone" if factor < _MUCH_MORE else f"{factor:.4g} times the noise alone"
    rule = ' by the rule split="auto"' if auto else ""
    return f"final training: {found.parameter} {format_digits_up(found.value, 4)}, {more} ({format_digits_up(found.alone, 4)}){rule}"
