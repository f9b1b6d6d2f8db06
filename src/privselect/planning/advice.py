"""Recommend a way to tune from public knowledge alone, with the noise of each way in one table."""

from __future__ import annotations

import math
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from privselect._util.rounding import format_digits_up, format_down
from privselect._util.validation import check_bool, check_number, format_value, integer_range
from privselect.errors import ParameterError
from privselect.mechanisms import DPSGD, DiscreteGaussian, Disjoint
from privselect.mechanisms.neighbours import ADD_REMOVE
from privselect.open_spec import UNKNOWN, OpenSpec
from privselect.planning.default_law import default_count
from privselect.planning.plan import plan
from privselect.planning.search_range import FastOptions
from privselect.planning.solve import NOISES
from privselect.planning.split import AUTO
from privselect.planning.stages import read_mechanism
from privselect.text_forms import write_value

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from privselect.planning.plan_result import Plan

SHORTER = 10  # a search trial has this many times fewer steps than the final training
VISIBLE_TRIALS = 6
MUCH_NOISIER = 3.0  # from this ratio of the search noise to the final one, the advice says to check the scores
_TAU = 0.1  # the table shows the probability of a candidate in this best fraction
_DEFAULTS = integer_range(0, 1000)

NO_TUNING, ONE_SHOT, SECRET, VISIBLE = "no tuning", "one shot", "secret search", "visible search"


@dataclass(frozen=True, slots=True)
class Advice:
    """The plan of each way to tune for one budget, the recommended way, the reason, and what to check before (None: nothing)."""

    plans: Mapping[str, Plan]
    recommended: str
    reason: str
    caution: str | None = None

    @property
    def plan(self) -> Plan:
        """The plan of the recommended way."""
        return self.plans[self.recommended]

    def as_dict(self) -> dict[str, object]:
        """Return the advice as JSON data."""
        return {
            "recommended": self.recommended,
            "reason": self.reason,
            "caution": self.caution,
            "command": self.command,
            "ways": [{"way": way, "released_noise": released_noise(found), **found.as_dict()} for way, found in self.plans.items()],
        }

    def summary(self) -> str:
        """Return the comparison and the command of the recommended way as lines of text."""
        return f"{self.comparison()}\ncommand      {self.command}"

    def comparison(self) -> str:
        """Return the table of all ways and the recommendation as lines of text."""
        rows = [("way", "search noise", "final noise", "vs. no tuning", "P(best 10%)", "trials"), *self._rows()]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        table = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        caution = [] if self.caution is None else [f"caution      {self.caution}"]
        return "\n".join([*table, "", f"recommended  {self.recommended}", f"reason       {self.reason}", *caution])

    @property
    def command(self) -> str:
        """The command that solves the recommended plan with full accuracy."""
        problem = self.plan.problem
        if problem is None:
            raise TypeError("a recommended plan has a problem")  # it was solved for an open noise
        words = ["privselect", "plan", "--mechanism", problem.mechanism]
        words += ["--count", problem.count] if problem.count is not None else []
        words += ["--visible", str(self.plan.visible)] if self.plan.visible is not None else []
        words += ["--final", problem.final, "--split", AUTO] if problem.final is not None else []
        words += ["--epsilon", write_value(self.plan.epsilon), "--delta", write_value(self.plan.delta)]
        return shlex.join(words)

    def _rows(self) -> Iterator[tuple[str, ...]]:
        alone = released_noise(self.plans[NO_TUNING])
        for way, found in self.plans.items():
            noise = released_noise(found)
            training, *count = (format_digits_up(one.value, 4) for one in found.solved if one.stage == "search")
            search = f"{training} (count: {count[0]})" if count else training  # the noisy count of a private score
            trials = "-" if found.law is None else str(found.count) if found.visible is None else f"{found.visible}, each seen"
            good = "-" if found.law is None else f"{format_down(100.0 * found.success_probability(_TAU), 1)}%"
            yield (
                way,
                search if found.law is not None else "-",
                format_digits_up(noise, 4) if found.count is None or found.final is not None else "as in the search",
                f"{100.0 * (noise / alone - 1.0):+.0f}%",
                good,
                trials,
            )


def advise(  # noqa: PLR0913 - the budget and public knowledge
    mechanism: object,
    *,
    epsilon: float,
    delta: float,
    search: object = None,
    defaults: int = 0,
    interactive: bool = False,
    private_score: bool = False,
) -> Advice:
    """Return the noise of each way to tune under the budget (epsilon, delta), and a recommendation.

    - ``mechanism``: the training whose model is released, with an open noise, such as ``dpsgd(noise_multiplier=?, ...)``.
    - ``search``: one search trial, with an open noise. Default: for DP-SGD a tenth of the steps, otherwise the same mechanism.
    - ``defaults``: the number of settings that are known to be good from public knowledge, such as earlier studies.
    - ``interactive``: whether a person or a sampler such as TPE chooses each candidate after seeing the earlier results.
    - ``private_score``: whether a trial is scored by a noisy count on held-out private records, whose noise is then solved for too.

    The rule uses public knowledge alone; see `recommend`. The ways are no tuning, one shot (release the best of K trainings), a secret
    search followed by the final training, and a visible one.
    """
    training = read_mechanism(mechanism)
    trial = shorter_training(training) if search is None else read_mechanism(search)
    for name, part in (("mechanism", training), ("search", trial)):
        _check_open_noise(name, part)
    known, chosen = int(check_number("defaults", defaults, _DEFAULTS)), check_bool("interactive", interactive)
    if check_bool("private_score", private_score):
        count_noise: Any = DiscreteGaussian(sigma=UNKNOWN, neighbours=ADD_REMOVE)
        scored, shot = Disjoint((trial, count_noise)), Disjoint((training, count_noise))  # type: ignore[arg-type]  # open
    else:
        scored, shot = trial, training  # type: ignore[assignment]  # open
    budget: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "fast": FastOptions()}
    plans = {
        NO_TUNING: plan(training, **budget),
        ONE_SHOT: plan(shot, default_count(), **budget),
        SECRET: plan(scored, default_count(), final=training, split=AUTO, **budget),
        VISIBLE: plan(scored, visible=VISIBLE_TRIALS, final=training, split=AUTO, **budget),
    }
    recommended, reason = recommend(plans, defaults=known, interactive=chosen)
    return Advice(plans, recommended, reason, _caution(plans[recommended]))


def recommend(plans: Mapping[str, Plan], *, defaults: int, interactive: bool) -> tuple[str, str]:
    """Return the recommended way and the reason, by a rule on public numbers.

    1. One known default: no tuning, because there is nothing to choose from.
    2. One shot needs no more noise than the final training after a search: one shot. Its trials are full trainings.
    3. Several known defaults: a secret search, with ``defaults``. It chooses among them with many trials.
    4. Candidates are chosen interactively: a visible search. Few trials suffice if each one is chosen from what was seen.
    5. Otherwise: a secret search.
    """
    alone, one_shot, final = (released_noise(plans[way]) for way in (NO_TUNING, ONE_SHOT, SECRET))
    more, shot_more = (f"{100.0 * (noise / alone - 1.0):.0f}%" for noise in (final, one_shot))
    if defaults == 1:
        return NO_TUNING, "one setting is known to be good, so there is nothing to choose from"
    if one_shot <= final:
        released = f"the released model needs {shot_more} more noise than without tuning"
        return ONE_SHOT, f"{released}, and {more} more after a search; every trial is a full training"
    released = f"the released model needs {more} more noise than without tuning"
    compared = f"{released}; one shot needs {shot_more} more"
    if defaults > 1:
        return SECRET, f"it chooses among the {defaults} known settings if they are its `defaults`; {compared}"
    if interactive:
        return VISIBLE, f"each of {VISIBLE_TRIALS} candidates can be chosen from earlier results; {released}"
    return SECRET, compared


def _caution(plan: Plan) -> str | None:
    """Return what to check if a search trial is so noisy that its score may say little about the candidate."""
    final = next((one for one in plan.solved if one.stage == "final"), None)
    same = (one.value for one in plan.solved if one.stage == "search" and final is not None and one.parameter == final.parameter)
    noise = next(same, None)  # the first one: a private score has its noise after that of the trial
    if final is None or noise is None or noise < MUCH_NOISIER * final.value:
        return None
    return (
        f"a search trial has {noise / final.value:.1f} times the noise of the released model: check on public or synthetic data that "
        "scores still rank candidates. A cheaper `search` trial or a larger `final_noise` lowers the noise of the search"
    )


def released_noise(plan: Plan) -> float:
    """Return the noise of the released model: of the final training if there is one, else of a trial."""
    stage = "search" if plan.final is None else "final"
    return next(one.value for one in plan.solved if one.stage == stage)


def shorter_training(training: object) -> Any:
    """Return a search trial for this training: DP-SGD with a tenth of the steps, any other mechanism unchanged."""
    if not isinstance(training, OpenSpec) or training.spec_class is not DPSGD:
        return training
    arguments = dict(training.arguments)
    if arguments["steps"] is UNKNOWN:
        return training
    steps = check_number("steps", arguments["steps"], integer_range(1))
    return DPSGD(**{**arguments, "steps": math.ceil(steps / SHORTER)})


def _check_open_noise(name: str, part: object) -> None:
    unknowns = part.open_parameters if isinstance(part, OpenSpec) else ()
    if len(unknowns) != 1 or unknowns[0].parameter not in NOISES:
        raise ParameterError(
            f"`{name}` must have exactly one open noise, such as dpsgd(noise_multiplier=?, sampling_probability=0.01, steps=600), "
            f"got {format_value(write_value(part))}"
        )
