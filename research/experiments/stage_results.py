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

WEIGHTS = (0.0, 0.5, 0.9, 1.0)  # probability of a trial to draw one of the defaults
LEAST = 2  # repetitions needed for an interval
REFERENCES = ("exact", "free", *(f"default_{place + 1}" for place in range(len(DEFAULTS))))


def regime_name(weight: float) -> str:
    """Return the name of two-stage tuning with this weight on the defaults."""
    return f"two_stages_{100.0 * weight:.0f}"


@dataclass(frozen=True, slots=True, eq=False)
class StageOutcome:
    """The accuracy of one regime in each repetition, and the options it used; ``option`` is the best one over all repetitions."""

    regime: str
    accuracy: Floats
    chosen: tuple[StageOption, ...]
    option: StageOption


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
    rates linearly in the logarithm of the rate. If no trial is drawn, the most frequent public class is released.
    """
    at = SPLITS.index(option.split)
    low, high = np.log(RATES[option.epsilon][at])
    share = (np.log(transfer_factor(option.search_noise, option.final_noise)) - low) / (high - low)
    accuracy = bank.accuracy[at, 0] + share * (bank.accuracy[at, 1] - bank.accuracy[at, 0])
    noise = np.log(bank.search_noise)
    place = float(np.interp(np.log(option.search_noise), noise, np.arange(len(noise))))
    below = min(int(place), len(noise) - 2)
    sigma = 0.0 if validation == "public" else option.score_noise
    ends = []
    for level in (below, below + 1):
        chances = winning_chances(bank.scores[level], sigma, option.trials, mixture(bank.scores.shape[1], weight))
        ends.append(float(chances @ accuracy + (1.0 - chances.sum()) * bank.trivial))
    return ends[0] + (place - below) * (ends[1] - ends[0])


def mixture(candidates: int, weight: float) -> Floats:
    """Return the probabilities of all candidates in one trial; the last ones are the defaults."""
    drawn = candidates - len(DEFAULTS)
    return np.array([(1.0 - weight) / drawn] * drawn + [weight / len(DEFAULTS)] * len(DEFAULTS))


# -- tables


def references(single: Sequence[dict[str, str]]) -> dict[tuple[str, str, float, str], dict[int, float]]:
    """Return the accuracies of one-shot tuning, free tuning and the defaults in each repetition, from the stored table."""
    found: dict[tuple[str, str, float, str], dict[int, float]] = {}
    for row in single:
        if row["regime"] in REFERENCES:
            names = (row["setting"], row["validation"], float(row["epsilon"]), row["regime"])
            found.setdefault(names, {})[int(row["repetition"])] = float(row["accuracy"])
    return found


def stage_rows(
    outcome: StageOutcome, tasks: Sequence[Task], known: Mapping[tuple[str, str, float, str], Mapping[int, float]]
) -> tuple[Row, list[Row]]:
    """Return the row of one regime and its rows for each repetition; ``tasks`` are its repetitions."""
    task, repetitions = tasks[0], [task.repetition for task in tasks]
    setting, paid = task.setting, task.validation == "paid"
    own = {
        name: np.array([known[setting.name, task.validation, task.epsilon, name][place] for place in repetitions]) for name in REFERENCES
    }
    defaults = np.array([own[name] for name in REFERENCES[2:]])
    luckiest = defaults[defaults.mean(axis=1).argmax()]
    names: Row = {"setting": setting.name, "validation": task.validation, "epsilon": task.epsilon, "regime": outcome.regime}
    option = outcome.option
    row: Row = {
        **names,
        "problem": setting.problem,
        "model": setting.model,
        "space": setting.space,
        "records": setting.records,
        "trials": str(option.trials),
        "split": option.split,
        "search_noise": option.search_noise,
        "final_noise": option.final_noise,
        "score_noise": option.score_noise if paid else "",
        **interval("accuracy", outcome.accuracy),
        **interval("over_exact", outcome.accuracy - own["exact"]),
        **interval("over_free", outcome.accuracy - own["free"]),
        **interval("over_mean_default", outcome.accuracy - defaults.mean(axis=0)),
        **interval("over_best_default", outcome.accuracy - luckiest),
        "repetitions": len(repetitions),
    }
    single: list[Row] = [
        {**names, "repetition": place, "trials": str(used.trials), "split": used.split, "accuracy": float(accuracy)}
        for place, used, accuracy in zip(repetitions, outcome.chosen, outcome.accuracy, strict=True)
    ]
    return row, single
