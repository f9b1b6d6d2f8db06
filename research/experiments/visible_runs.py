"""Visible search, run as a user would: every trial's result is seen, and the next candidate depends on it.

- ``tpe``: the TPE sampler of Optuna.
- ``tpe_defaults``: the same; the first trials are the defaults.
- ``scaling``: the linear scaling rule of Panda et al. (ICML 2024). Half of the trials are shorter. Learning rates are drawn at random, and
  the clipping norm is fixed. The best product of learning rate and steps at each of the two lengths gives a line over epsilon, which
  is extrapolated to the final training.
"""

from __future__ import annotations

import io
import json
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from privselect._util.atomic_files import atomic_write
from privselect.tuning.distributions import Choice, LogUniform
from privselect.tuning.randomness import Stream, derive_key
from research.experiments.bank import repetition_key, repetition_parts
from research.experiments.batch import BATCH_TRAINERS, Runs
from research.experiments.problems import load
from research.experiments.settings import DEFAULTS, DELTA, EPSILONS, SPACES, STEPS, training
from research.experiments.stage_bank import JUDGED, SEARCH_STEPS, TRAINED, Task, generator_of, transfer_factor
from research.experiments.stage_options import SHORT_STEPS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from privselect.tuning.space import Candidate, Space
    from research.experiments.stage_options import StageOption

METHODS = ("tpe", "tpe_defaults", "scaling")
COPIES = 2  # runs of each method and option in a repetition, with independent noise
_RANDOM_TRIALS = 3  # TPE's first trials; its default of ten would leave nothing to learn from
_SCALED_CLIP = 1.0


@dataclass(slots=True)
class Search:
    """One visible search: ``ask`` for the next candidate, ``tell`` its score, then ``final``."""

    option: StageOption
    space: Space
    key: bytes
    told: list[tuple[Candidate, float]] = field(default_factory=list)

    def steps(self) -> int:
        """Return the number of steps of the next trial."""
        return SEARCH_STEPS

    def ask(self) -> Candidate:
        """Return the candidate of the next trial."""
        raise NotImplementedError

    def tell(self, candidate: Candidate, score: float) -> None:
        """Take the score of the last candidate."""
        self.told.append((candidate, score))

    def final(self) -> tuple[Candidate, float]:
        """Return the candidate of the final training and the factor of its learning rate."""
        best, _ = max(self.told, key=lambda one: one[1])
        return best, transfer_factor(self.option.search_noise, self.option.final_noise)


class TPESearch(Search):
    """Optuna's TPE sampler, with some candidates to try first."""

    def __init__(self, option: StageOption, space: Space, key: bytes, first: Sequence[Candidate] = ()) -> None:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        super().__init__(option, space, key)
        seed = Stream(derive_key(key, "tpe")).getrandbits(32)
        self._study = optuna.create_study(
            direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed, n_startup_trials=_RANDOM_TRIALS)
        )
        self._known, self._first = _optuna_distributions(space), list(first)
        self._asked: Any = None

    def ask(self) -> Candidate:
        """Return the next default, or what TPE proposes."""
        if self._first:
            self._asked = None
            return self._first.pop(0)
        self._asked = self._study.ask(self._known)
        return dict(self._asked.params)

    def tell(self, candidate: Candidate, score: float) -> None:
        """Take the score of the last candidate."""
        import optuna

        Search.tell(self, candidate, score)
        if self._asked is not None:
            self._study.tell(self._asked, score)
        else:  # a default need not set every hyperparameter
            known = {name: self._known[name] for name in candidate}
            self._study.add_trial(optuna.trial.create_trial(params=dict(candidate), distributions=known, value=score))


class ScalingSearch(Search):
    """The linear scaling rule; the first half of the trials is shorter."""

    def steps(self) -> int:
        """Return the number of steps of the next trial."""
        return SHORT_STEPS if len(self.told) < self.option.number // 2 else SEARCH_STEPS

    def ask(self) -> Candidate:
        """Return a random learning rate with the fixed clipping norm."""
        rates = (self.space.distributions or {})["learning_rate"]
        return {"learning_rate": rates.draw(Stream(derive_key(self.key, "rate", len(self.told)))), "clip": _SCALED_CLIP}

    def final(self) -> tuple[Candidate, float]:
        """Return the candidate whose learning rate lies on the line through the best ones of both lengths, within the search space."""
        half = self.option.number // 2
        products, epsilons = [], []
        for told, steps in ((self.told[:half], SHORT_STEPS), (self.told[half:], SEARCH_STEPS)):
            best, _ = max(told, key=lambda one: one[1])
            products.append(best["learning_rate"] * steps)
            epsilons.append(_epsilon(self.option.search_noise, steps))
        slope = (products[1] - products[0]) / (epsilons[1] - epsilons[0])
        product = products[0] + slope * (_epsilon(self.option.final_noise, STEPS) - epsilons[0])
        rates: Any = (self.space.distributions or {})["learning_rate"]
        return {"learning_rate": min(max(product / STEPS, rates.low), rates.high), "clip": _SCALED_CLIP}, 1.0


def search_of(method: str, option: StageOption, space: Space, key: bytes) -> Search:
    """Return a visible search by one of the methods."""
    if method == "scaling":
        return ScalingSearch(option, space, key)
    return TPESearch(option, space, key, DEFAULTS if method == "tpe_defaults" else ())


def visible_options(options: Sequence[StageOption], epsilon: float, method: str) -> list[StageOption]:
    """Return the options of one method."""
    search = "scaling" if method == "scaling" else "visible"
    return [one for one in options if (one.epsilon, one.search) == (epsilon, search)]


def visible_accuracies(task: Task, data: str | None, options: Sequence[StageOption]) -> dict[str, NDArray[np.float64]]:
    """Run every method with each of its options; return mean test accuracies by option."""
    key, problem = repetition_key(task.setting, task.repetition), load(task.setting.problem, data)
    trainer = BATCH_TRAINERS[task.setting.model](repetition_parts(task.setting, task.repetition, data), problem.classes)
    generator = generator_of(key, "visible", EPSILONS.index(task.epsilon))
    own = {method: visible_options(options, task.epsilon, method) for method in METHODS}
    names = [(method, option) for method in METHODS for option in own[method] for _ in range(COPIES)]
    searches = [
        search_of(method, option, SPACES[task.setting.space], derive_key(key, "search " + method[:8], place))
        for place, (method, option) in enumerate(names)
    ]
    while open_ones := [one for one in searches if len(one.told) < one.option.number]:
        for steps in (SHORT_STEPS, SEARCH_STEPS):
            if not (asked := [one for one in open_ones if one.steps() == steps]):
                continue
            candidates = [one.ask() for one in asked]
            runs = Runs.one_each(candidates, [one.option.search_noise for one in asked], [1.0] * len(asked))
            scores = trainer.right(runs, steps, generator, "train", JUDGED[task.validation])[:, 0]
            for one, candidate, score in zip(asked, candidates, scores, strict=True):
                noise = generator.normal(0.0, one.option.score_noise) if task.validation == "paid" else 0.0
                one.tell(candidate, float(score + noise))
    finals = [one.final() for one in searches]
    runs = Runs.one_each([one for one, _ in finals], [one.option.final_noise for one in searches], [factor for _, factor in finals])
    right = trainer.right(runs, STEPS, generator, TRAINED[task.validation], "test")[:, 0] / len(problem.test)
    ends = np.cumsum([COPIES * len(own[method]) for method in METHODS])
    return {method: values.reshape(-1, COPIES).mean(axis=1) for method, values in zip(METHODS, np.split(right, ends[:-1]), strict=True)}


@lru_cache(maxsize=256)
def _epsilon(noise: float, steps: int) -> float:
    """Return the epsilon of one training alone, a public number."""
    return float(training(noise, steps).epsilon_fast(DELTA, accuracy=1e-2).upper)


def _optuna_distributions(space: Space) -> dict[str, Any]:
    from optuna.distributions import CategoricalDistribution, FloatDistribution

    found: dict[str, Any] = {}
    for name, one in (space.distributions or {}).items():
        bounds: Any = one
        if isinstance(one, Choice):
            found[name] = CategoricalDistribution([value for _, value in one.listed() or []])
        else:
            found[name] = FloatDistribution(bounds.low, bounds.high, log=isinstance(one, LogUniform))
    return found


# -- files


def visible_file(folder: Path, task: Task) -> Path:
    """Return the file of the accuracies of one task."""
    return folder / f"visible-{task.setting.name}-{task.epsilon:g}-{task.validation}-{task.repetition}.npz"


def stored_visible(folder: Path, task: Task, options: Sequence[StageOption]) -> dict[str, NDArray[np.float64]] | None:
    """Read accuracies computed earlier with identical settings; return None if they are missing or damaged."""
    try:
        with visible_file(folder, task).open("rb") as file, np.load(file) as stored:
            if str(stored["description"]) != _description(task, options):
                return None
            return {method: stored[method] for method in METHODS}
    except Exception:  # noqa: BLE001 - a file may be broken in any way
        return None


def run_visible(task: Task, data: str | None, folder: Path, options: Sequence[StageOption]) -> None:
    """Run all visible searches of one task and store their accuracies atomically."""
    content, description = io.BytesIO(), np.array(_description(task, options))
    np.savez_compressed(content, allow_pickle=False, description=description, **visible_accuracies(task, data, options))
    atomic_write(visible_file(folder, task), content.getvalue())


def _description(task: Task, options: Sequence[StageOption]) -> str:
    asked = [(method, one) for method in METHODS for one in visible_options(options, task.epsilon, method)]
    written = [f"{method} {one.trials} {one.split} {one.search_noise:.6g} {one.score_noise:.6g}" for method, one in asked]
    return json.dumps({"task": asdict(task), "options": written, "copies": COPIES, "short": SHORT_STEPS}, sort_keys=True)
