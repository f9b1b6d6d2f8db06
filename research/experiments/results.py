"""Mean accuracies of the released model for each regime, with confidence intervals over the repetitions.

Repetitions differ in the private subset, the candidates and the noise. Large subsets overlap, and the test part is the same for all, so an
interval describes another repetition of this kind, not other data. A bank has finitely many candidates, so no number of trials finds a
better one than its best.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import t as student

from research.experiments.regimes import REGIMES
from research.experiments.settings import DEFAULTS, EPSILONS, GREATEST_NOISE, untuned_noise
from research.experiments.winner import winning_chances

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from research.csv_io import Row
    from research.experiments.bank import Bank
    from research.experiments.regimes import Option
    from research.experiments.settings import Setting

    Floats = NDArray[np.float64]

VALIDATIONS = ("public", "paid")
_CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """The accuracy of one regime in each repetition, and the options it used; ``option`` is the best one over all repetitions.

    ``at_most`` is the mean of the best option if the options that need more noise than the banks have could use the largest noise of
    the banks.
    """

    regime: str
    accuracy: Floats
    chosen: tuple[str, ...] = ()
    option: Option | None = None
    at_most: float = np.nan


def outcomes(banks: Sequence[Bank], options: Sequence[Option], epsilon: float, validation: str) -> list[Outcome]:
    """Return the accuracy of every regime at its own best law and mean, and of untuned models.

    For each repetition, the option of a regime is the best on average over the *other* repetitions, so no repetition chooses for itself.
    """
    found = []
    for regime in REGIMES:
        asked = [one for one in options if (one.epsilon, one.regime) == (epsilon, regime)]
        own = [one for one in asked if one.noise <= GREATEST_NOISE]
        values = np.array([option_accuracy(banks, one, validation) for one in own])
        left_out = [dataclasses.replace(one, noise=GREATEST_NOISE) for one in asked if one.noise > GREATEST_NOISE]
        others = (values.sum(axis=1, keepdims=True) - values) / (len(banks) - 1)
        best = others.argmax(axis=0)
        accuracy = values[best, np.arange(len(banks))]
        means = values.mean(axis=1)
        at_most = max([float(means.max()), *(float(option_accuracy(banks, one, validation).mean()) for one in left_out)])
        found.append(Outcome(regime, accuracy, tuple(str(own[place].count) for place in best), own[int(means.argmax())], at_most))
    at, more = EPSILONS.index(epsilon), VALIDATIONS.index(validation)
    found += [
        Outcome(f"default_{place + 1}", np.array([bank.defaults[at, more, place] for bank in banks])) for place in range(len(DEFAULTS))
    ]
    return [*found, Outcome("untuned", np.array([untuned_accuracies(bank, epsilon).mean() for bank in banks]))]


def option_accuracy(banks: Sequence[Bank], option: Option, validation: str) -> Floats:
    """Return the mean test accuracy of the released model in each repetition.

    Between the noise levels of a bank, the accuracy is interpolated linearly in the logarithm of the noise. If no trial is drawn, the most
    frequent public class is released.
    """
    found = []
    for bank in banks:
        place = float(np.interp(np.log(option.noise), np.log(bank.noise), np.arange(len(bank.noise))))
        below = min(int(place), len(bank.noise) - 2)
        ends = [_released(bank, level, option, validation) for level in (below, below + 1)]
        found.append(ends[0] + (place - below) * (ends[1] - ends[0]))
    return np.array(found)


def untuned_accuracies(bank: Bank, epsilon: float) -> Floats:
    """Return test accuracies of random candidates, each trained alone with the whole budget."""
    level = int(np.argmin(np.abs(bank.noise - untuned_noise(epsilon))))
    return np.asarray(bank.test_accuracy[level])


def _released(bank: Bank, level: int, option: Option, validation: str) -> float:
    noise, part = (0.0, "public") if validation == "public" else (option.score_noise, "held")
    chances = winning_chances(bank.scores(part)[level], noise, option.count)
    return float(chances @ bank.test_accuracy[level] + (1.0 - chances.sum()) * bank.trivial)


# -- tables


def setting_rows(setting: Setting, banks: Sequence[Bank], options: Sequence[Option]) -> tuple[list[Row], list[Row]]:
    """Return one row for each validation, epsilon and regime, and one for each repetition of these."""
    rows: list[Row] = []
    single: list[Row] = []
    for validation in VALIDATIONS:
        for epsilon in EPSILONS:
            found = outcomes(banks, options, epsilon, validation)
            exact = found[0].accuracy
            for one in found:
                names: Row = {"setting": setting.name, "validation": validation, "epsilon": epsilon, "regime": one.regime}
                shares = [float(np.mean(untuned_accuracies(bank, epsilon) < one.accuracy[place])) for place, bank in enumerate(banks)]
                rows.append(
                    {
                        **names,
                        "problem": setting.problem,
                        "model": setting.model,
                        "space": setting.space,
                        "records": setting.records,
                        "count": "" if one.option is None else str(one.option.count),
                        "noise_multiplier": untuned_noise(epsilon) if one.option is None else one.option.noise,
                        "score_noise": "" if one.option is None or validation == "public" else one.option.score_noise,
                        **interval("accuracy", one.accuracy),
                        "accuracy_at_most": one.at_most,
                        **interval("exact_gains", exact - one.accuracy),
                        "beats_untuned": float(np.mean(shares)),
                        "repetitions": len(banks),
                    }
                )
                chosen = one.chosen or ("",) * len(banks)
                single += [
                    {**names, "repetition": place, "count": chosen[place], "accuracy": float(one.accuracy[place])}
                    for place in range(len(banks))
                ]
    return rows, single


def interval(name: str, values: Floats) -> Row:
    """Return the mean and its 95% confidence interval (Student's t)."""
    half = float(student.ppf(0.5 * (1.0 + _CONFIDENCE), len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values)))
    mean = float(values.mean())
    return {f"{name}_mean": mean, f"{name}_low": mean - half, f"{name}_high": mean + half}
