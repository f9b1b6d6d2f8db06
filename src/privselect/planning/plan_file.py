"""The plan file: TOML with a plan, the user's declarations, and the tuning run. All fields are listed in docs/plan.md."""

from __future__ import annotations

import tomllib
from dataclasses import asdict, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from privselect._util.atomic_files import atomic_write, check_output_file, read_limited, write_error
from privselect._util.validation import format_value
from privselect.certificates.model import SCORE_KINDS, Declared, PlanTerms, describe_noisy_count, noise_of_count, with_score_declaration
from privselect.certificates.strict_model import StrictModel
from privselect.errors import ParameterError
from privselect.mechanisms import DiscreteGaussian, Disjoint
from privselect.planning.default_law import default_count
from privselect.planning.plan import plan_or_check
from privselect.planning.plan_result import Problem
from privselect.planning.plan_tables import SAME, ProblemTable, SearchTable, TrainTable, TuneTable
from privselect.planning.plan_toml import plan_text
from privselect.planning.stages import read_mechanism, read_stages

if TYPE_CHECKING:
    from pathlib import Path

    from privselect.planning.plan_result import Plan
    from privselect.planning.stages import OpenStages

VERSION = 2
_MOST_BYTES = 1_000_000


class Candidates(NamedTuple):
    """The entries of ``[space]``: the distributions, the defaults, and their weight (None: the default weight)."""

    distributions: dict[str, Any]
    defaults: tuple[dict[str, Any], ...] | None
    weight: str | float | None


class PlanFile(StrictModel):
    """The fields of a plan file."""

    version: Literal[2]
    epsilon: float
    delta: float
    search: SearchTable
    train: TrainTable | None = None
    problem: ProblemTable | None = None
    declared: Declared = Declared()
    space: dict[str, Any] | None = None  # read by `privselect tune`
    tune: TuneTable | None = None

    @property
    def mechanism(self) -> str:
        """The mechanism of one search trial."""
        return self.search.mechanism

    @property
    def count(self) -> str | None:
        """The law of K; before a final training it has a default."""
        if self.search.count is None and self.search.visible is None and self.train is not None:
            return str(default_count())
        return self.search.count

    @property
    def visible(self) -> int | None:
        """The number of trials of a visible search."""
        return self.search.visible

    @property
    def subsample(self) -> Fraction | None:
        """The probability of each record to be in the sample of the search."""
        return None if self.search.subsample is None else Fraction(self.search.subsample)

    @property
    def final(self) -> str | None:
        """The mechanism of the final training."""
        return None if self.train is None else self.train.mechanism

    @property
    def transfer(self) -> str:
        """The rule that turns the winner's candidate into that of the final training."""
        return SAME if self.train is None else self.train.transfer

    @property
    def learning_rate(self) -> str | None:
        """The name of the learning rate for the transfer rule "noise"."""
        return None if self.train is None else self.train.learning_rate

    @property
    def final_noise(self) -> float | None:
        """The factor on the noise of the final training, while both stages are open."""
        return None if self.train is None else self.train.final_noise

    @property
    def split(self) -> str | None:
        """The rule that divides the budget, while both stages are open."""
        return None if self.train is None else self.train.split

    @property
    def score_sigma(self) -> float | None:
        """The noise of a noisy count: the stated one, or that of the discrete_gaussian in the disjoint(...) of a trial."""
        stated = None if self.tune is None or isinstance(self.tune.score, str) else self.tune.score.sigma
        mechanism = read_mechanism(self.mechanism)
        parts = mechanism.parts if isinstance(mechanism, Disjoint) else ()
        return next((part.sigma for part in parts if isinstance(part, DiscreteGaussian)), None) if stated is None else stated

    def candidates(self) -> Candidates:
        """Return the entries of ``[space]``. A hyperparameter may be called "defaults" or "weight": its entry is a table."""
        entries = dict(self.space or {})
        defaults, weight = entries.get("defaults"), entries.get("weight")
        if not isinstance(defaults, list):
            defaults = None
        if isinstance(weight, dict):
            weight = None
        kept = {name: entry for name, entry in entries.items() if entry is not weight and entry is not defaults}
        return Candidates(kept, None if defaults is None else tuple(defaults), weight)

    def terms(self) -> PlanTerms:
        """Return the part of the plan that certificates contain and that the plan's hash covers."""
        return PlanTerms(
            mechanism=self.mechanism,
            count=self.count,
            visible=self.visible,
            subsample=self.search.subsample,
            final=self.final,
            epsilon=self.epsilon,
            delta=self.delta,
            declared=self.declared if self.tune is None else with_score_declaration(self.declared, self._score_description()),
        )

    def _score_description(self) -> str:
        if self.tune is not None and isinstance(self.tune.score, str):
            return SCORE_KINDS[self.tune.score]
        if self.score_sigma is None:
            raise ParameterError("`sigma` of the score must be given, or be that of a discrete_gaussian(...) in the mechanism, got none")
        return describe_noisy_count(noise_of_count(self.score_sigma))

    @property
    def stages(self) -> OpenStages:
        """Search and final training, possibly with open numbers."""
        return read_stages(self.mechanism, self.count, self.final, visible=self.visible, subsample=self.subsample)

    @property
    def is_open(self) -> bool:
        """Whether a number is still open."""
        return self.stages.is_open

    def plan(self) -> Plan:
        """Solve for the open numbers; without one, check that the plan meets its budget."""
        # The default law of K is left to the planner, which then says that it is the default.
        found = plan_or_check(
            self.mechanism,
            self.search.count,
            final=self.final,
            visible=self.visible,
            subsample=self.subsample,
            final_noise=self.final_noise,
            split=self.split,
            epsilon=self.epsilon,
            delta=self.delta,
        )
        return found if self.is_open or self.problem is None else replace(found, problem=Problem(**self.problem.model_dump()))


def read_plan(path: str | Path) -> PlanFile:
    """Read a plan file, or raise an error of one sentence."""
    shown = format_value(str(path))
    content = read_limited("a plan", path, _MOST_BYTES)
    try:
        fields = tomllib.loads(content.decode("utf-8"))
    except UnicodeDecodeError:
        raise ParameterError(f"a plan must be text in UTF-8, got {shown}") from None
    except (ValueError, RecursionError) as error:  # includes integers of thousands of digits
        raise ParameterError(f"a plan must be TOML, got {shown} ({error})") from None
    version = fields.get("version", VERSION)
    if type(version) is not int or version != VERSION:
        known = type(version) is int
        later = ": a later privselect has written it" if known and version > VERSION else ""
        earlier = ": move `mechanism` and `count` into a table [search]" if known and version == 1 else ""
        raise ParameterError(f"`version` of a plan must be {VERSION}, got {format_value(version)}{later}{earlier}")
    return PlanFile(**fields)


def plan_file_of(solved: Plan, declared: Declared | None = None, run: PlanFile | None = None) -> PlanFile:
    """Return the plan file of a solved plan; what is run is copied from the plan file ``run``: transfer, ``[space]`` and ``[tune]``."""
    train = None
    if solved.final is not None:
        before = None if run is None else run.train
        rule = {"transfer": SAME} if before is None else {"transfer": before.transfer, "learning_rate": before.learning_rate}
        train = TrainTable(mechanism=str(solved.final), **rule)
    return PlanFile(
        version=2,
        epsilon=solved.epsilon,
        delta=solved.delta,
        search=SearchTable(
            mechanism=str(solved.mechanism),
            count=None if solved.count is None else str(solved.count),
            visible=solved.visible,
            subsample=None if solved.subsample is None else str(solved.subsample),
        ),
        train=train,
        problem=None if solved.problem is None else ProblemTable(**asdict(solved.problem)),
        declared=Declared() if declared is None else declared,
        space=None if run is None else run.space,
        tune=None if run is None else run.tune,
    )


def write_plan(solved: Plan, path: str | Path, declared: Declared | None = None, run: PlanFile | None = None) -> None:
    """Write a plan file atomically."""
    file = check_output_file("out", path, (".toml",))
    try:
        atomic_write(file, plan_text(plan_file_of(solved, declared, run)).encode("utf-8"))
    except OSError as error:
        raise write_error("out", file, error) from None
