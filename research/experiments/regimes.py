"""The ways to spend a budget on tuning, and the noise that each asks for under each law of K.

``exact``, ``paper`` and ``renyi`` release the best of K trials and differ in the accounting alone. ``composition`` pays for a fixed number
of trials as if all were released. ``free`` is a selection that nobody pays for: the ceiling, and not private.

Noise is searched for from the safe side: the exact one to a few parts in a million, those of ``paper`` and ``renyi`` to one in a thousand.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from privselect._util.rounding import round_up
from privselect.counts import Binomial, Fixed, Geometric, Logarithmic, NegativeBinomial, Poisson
from privselect.mechanisms import DPSGD, Gaussian
from privselect.open_spec import UNKNOWN
from privselect.planning.plan import plan
from privselect.text_forms import parse
from research.experiments.settings import DELTA, SAMPLING, STEPS, open_training, untuned_noise

if TYPE_CHECKING:
    from research.csv_io import Row
    from privselect.counts import Count

MOST_TRIALS = 30  # in the mean, for every regime: the same expected compute
_MEANS = (3, 5, 10, 20, 30)
RUNS = (2, 3, 4, 5, 7, 10, 20, 30)
SELECTIONS = ("exact", "paper", "renyi")
REGIMES = (*SELECTIONS, "composition", "free")


@dataclass(frozen=True, slots=True)
class Option:
    """What one regime may do at one epsilon: a law of K, the noise of a training, and that of a count on held-out records."""

    epsilon: float
    regime: str
    count: Count
    noise: float
    score_noise: float

    def as_row(self) -> Row:
        """For a table."""
        return {
            "epsilon": self.epsilon,
            "regime": self.regime,
            "count": str(self.count),
            "noise_multiplier": self.noise,
            "score_noise": self.score_noise,
        }

    @classmethod
    def from_row(cls, row: dict[str, str]) -> Option:
        """From a table."""
        count: Count = parse(row["count"])
        return cls(float(row["epsilon"]), row["regime"], count, float(row["noise_multiplier"]), float(row["score_noise"]))


def laws() -> tuple[Count, ...]:
    """The laws that a selection may choose from, each with at most ``MOST_TRIALS`` trials in the mean."""
    return tuple(
        law
        for mean in _MEANS
        for law in (
            Geometric(mean=mean),
            Logarithmic(mean=mean),
            NegativeBinomial(eta=-0.5, mean=mean),
            NegativeBinomial(eta=5, mean=mean),
            Poisson(mean=mean),
            Binomial(n=2 * mean, p=0.5),
        )
    )


def law_options(epsilon: float, count: Count) -> list[Option]:
    """What each selection asks for under one law; a regime that has no bound for it is missing.

    The count is taken on records that no trial is trained on, so its selection has the whole budget as well: the selection over both costs
    the greater of the two (**Disjoint**).
    """
    trained = plan(open_training(), count, epsilon=epsilon, delta=DELTA)
    counted = plan(Gaussian(sigma=UNKNOWN), count, epsilon=epsilon, delta=DELTA)
    found = [Option(epsilon, "exact", count, cast("float", trained.value), cast("float", counted.value))]
    for regime in ("paper", "renyi"):
        noise, score_noise = trained.baselines[regime], counted.baselines[regime]
        if noise is not None and score_noise is not None:
            found.append(Option(epsilon, regime, count, noise, score_noise))
    return [*found, _free(epsilon, count)]


def fixed_options(epsilon: float) -> list[Option]:
    """A fixed number of trials, paid for as if all were released: trainings of T steps are one of as many times T.

    The winner alone never costs more than all of them, so the exact regime may do the same at that noise. It could do with less, hardly any
    for two trials and the more the more there are; to find out how much takes minutes for each, and other laws serve it better there.
    """
    options = []
    for runs in RUNS:
        trained = DPSGD(UNKNOWN, SAMPLING, STEPS * runs)
        noise = cast("float", plan(trained, epsilon=epsilon, delta=DELTA).value)
        score_noise = round_up(_alone(epsilon) * math.sqrt(runs))  # to the digits that a table keeps
        options += [Option(epsilon, regime, Fixed(k=runs), noise, score_noise) for regime in ("exact", "composition")]
        options.append(_free(epsilon, Fixed(k=runs)))
    return options


def _free(epsilon: float, count: Count) -> Option:
    """Nobody pays for the selection: each training, and each count, has the noise of one alone."""
    return Option(epsilon, "free", count, untuned_noise(epsilon), _alone(epsilon))


def _alone(epsilon: float) -> float:
    return cast("float", plan(Gaussian(sigma=UNKNOWN), epsilon=epsilon, delta=DELTA).value)
