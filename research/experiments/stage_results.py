"""Mean accuracies of two-stage tuning, with confidence intervals over the repetitions.

The gains are differences to the stored one-shot results of the same repetitions, which have the same candidates and records.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from research.experiments.results import interval
from research.experiments.settings import DEFAULTS
from research.experiments.stage_bank import RATES, SPLITS, transfer_factor
from research.experiments.winner import winning_chances

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from research.csv_io import Row
    from research.experiments.stage_bank import StageBank, Task
    from research.experiments.stage_options import StageOption

    Floats = NDArray[np.float64]
    Stored = Mapping[tuple[str, str, float, str], Mapping[int, float]]  # setting, validation, epsilon, regime; repetition

WEIGHTS = (0.0, 0.5, 0.9, 1.0)  # probability of a trial to draw one of the defaults
LEAST = 2  # repetitions needed for an interval
_DEFAULTS = tuple(f"default_{place + 1}" for place in range(len(DEFAULTS)))
_STORED = ("exact", "free", *_DEFAULTS)  # regimes of the one-shot experiment that are compared with
REFERENCES = ("one_shot", "free", "mean_default", "best_default")


def regime_name(weight: float) -> str:
    """Return the name of two-stage tuning with this weight on the defaults."""
    return f"two_stages_{100.0 * weight:.0f}"


@dataclass(frozen=True, slots=True, eq=False)
class StageOutcome:
    """The accuracy of one regime in each repetition, and the options it used; ``option`` is the best one over all repetitions.

    A reference has no options.
    """

    regime: str
    accuracy: Floats
    chosen: tuple[StageOption, ...] = ()
    option: StageOption | None = None


def chosen_by_others(regime: str, options: Sequence[StageOption], values: Floats) -> StageOutcome:
    """Return the outcome if each repetition uses the option that is the best on average over the *other* repetitions."""
    repetitions = values.shape[1]
    others = (values.sum(axis=1, keepdims=True) - values) / (repetitions - 1)
    best = others.argmax(axis=0)
    accuracy = values[best, np.arange(repetitions)]
    return StageOutcome(regime, accuracy, tuple(options[place] for place in best), options[int(values.mean(axis=1).argmax())])


def secret_outcomes(banks: Sequence[StageBank], options: Sequence[StageOption], validation: str) -> list[StageOutcome]:
    """Return the outcome of secret search for each weight on the defaults."""
    found = []
    for weight in WEIGHTS:
        values = np.array([[stage_accuracy(bank, option, weight, validation) for bank in banks] for option in options])
        found.append(chosen_by_others(regime_name(weight), options, values))
    return found


def stage_accuracy(bank: StageBank, option: StageOption, weight: float, validation: str) -> float:
    """Return the mean test accuracy of the final training with the winner's candidate.

    Between the search noises of a bank, the accuracy is interpolated linearly in the logarithm of the noise, and between the learning
    rates linearly in the logarithm of the rate. The same lines continue a little beyond the banks: the largest search noise is 2% above
    that of the banks. If no trial is drawn, the most frequent public class is released.
    """
    at = SPLITS.index(option.split)
    low, high = np.log(RATES[option.epsilon][at])
    share = (np.log(transfer_factor(option.search_noise, option.final_noise)) - low) / (high - low)
    accuracy = bank.accuracy[at, 0] + share * (bank.accuracy[at, 1] - bank.accuracy[at, 0])
    noise = np.log(bank.search_noise)
    below = int(np.clip(np.searchsorted(noise, np.log(option.search_noise)) - 1, 0, len(noise) - 2))
    above = (np.log(option.search_noise) - noise[below]) / (noise[below + 1] - noise[below])
    sigma = 0.0 if validation == "public" else option.score_noise
    ends = []
    for level in (below, below + 1):
        chances = winning_chances(bank.scores[level], sigma, option.trials, mixture(bank.scores.shape[1], weight))
        ends.append(float(chances @ accuracy + (1.0 - chances.sum()) * bank.trivial))
    return float(ends[0] + above * (ends[1] - ends[0]))


def mixture(candidates: int, weight: float) -> Floats:
    """Return the probabilities of all candidates in one trial; the last ones are the defaults."""
    drawn = candidates - len(DEFAULTS)
    return np.array([(1.0 - weight) / drawn] * drawn + [weight / len(DEFAULTS)] * len(DEFAULTS))


# -- tables


def stored_references(single: Sequence[dict[str, str]]) -> Stored:
    """Return the accuracies of one-shot tuning, free tuning and the defaults in each repetition, from the stored table."""
    found: dict[tuple[str, str, float, str], dict[int, float]] = {}
    for row in single:
        if row["regime"] in _STORED:
            names = (row["setting"], row["validation"], float(row["epsilon"]), row["regime"])
            found.setdefault(names, {})[int(row["repetition"])] = float(row["accuracy"])
    return found


def reference_outcomes(tasks: Sequence[Task], stored: Stored) -> list[StageOutcome]:
    """Return what two stages are compared with, in the same repetitions; the best default is chosen in hindsight."""
    own = {
        name: np.array([stored[task.setting.name, task.validation, task.epsilon, name][task.repetition] for task in tasks])
        for name in _STORED
    }
    defaults = np.array([own[name] for name in _DEFAULTS])
    values = (own["exact"], own["free"], defaults.mean(axis=0), defaults[defaults.mean(axis=1).argmax()])
    return [StageOutcome(regime, accuracy) for regime, accuracy in zip(REFERENCES, values, strict=True)]


def stage_rows(outcome: StageOutcome, tasks: Sequence[Task], stored: Stored) -> tuple[Row, list[Row]]:
    """Return the row of one regime and its rows for each repetition; ``tasks`` are its repetitions."""
    task, repetitions, option = tasks[0], [task.repetition for task in tasks], outcome.option
    setting = task.setting
    names: Row = {"setting": setting.name, "validation": task.validation, "epsilon": task.epsilon, "regime": outcome.regime}
    row: Row = {
        **names,
        "problem": setting.problem,
        "model": setting.model,
        "space": setting.space,
        "records": setting.records,
        "trials": "" if option is None else str(option.trials),
        "split": "" if option is None else option.split,
        "search_noise": "" if option is None else option.search_noise,
        "final_noise": "" if option is None else option.final_noise,
        "score_noise": "" if option is None or task.validation == "public" else option.score_noise,
        **interval("accuracy", outcome.accuracy),
    }
    for other in reference_outcomes(tasks, stored):
        row |= interval(f"over_{other.regime}", outcome.accuracy - other.accuracy)
    row["repetitions"] = len(repetitions)
    chosen: list[tuple[object, object]] = [(str(used.trials), used.split) for used in outcome.chosen] or [("", "")] * len(repetitions)
    single: list[Row] = [
        {**names, "repetition": place, "trials": trials, "split": split, "accuracy": float(accuracy)}
        for place, (trials, split), accuracy in zip(repetitions, chosen, outcome.accuracy, strict=True)
    ]
    return row, single
