"""The ways to spend a budget on tuning, and the noise that each requires for each law of K.

``exact``, ``paper`` and ``renyi`` release the best of K trials and differ only in the accounting. ``composition`` pays for a fixed
number of trials as if all were released. ``free`` ignores the cost of selection: a ceiling, not private.

The noise is found from the safe side: for ``exact`` to a few parts in a million, for ``paper`` and ``renyi`` to one part in a
thousand.
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
    from privselect.counts import Count
    from research.csv_io import Row

MOST_TRIALS = 30  # mean of K in every regime: the same expected compute
_MEANS = (3, 5, 10, 20, 30)
RUNS = (2, 3, 4, 5, 7, 10, 20, 30)
SELECTIONS = ("exact", "paper", "renyi")
REGIMES = (*SELECTIONS, "composition", "free")


@dataclass(frozen=True, slots=True)
class Option:
    """The choice of one regime at one epsilon: a law of K, the noise of a training, and the noise of a count on held-out records."""

    epsilon: float
    regime: str
    count: Count
    noise: float
    score_noise: float

    def as_row(self) -> Row:
        """Return the option as a table row."""
        return {
            "epsilon": self.epsilon,
            "regime": self.regime,
            "count": str(self.count),
            "noise_multiplier": self.noise,
            "score_noise": self.score_noise,
        }

    @classmethod
    def from_row(cls, row: dict[str, str]) -> Option:
        """Read the option from a table row."""
        count: Count = parse(row["count"])
        return cls(float(row["epsilon"]), row["regime"], count, float(row["noise_multiplier"]), float(row["score_noise"]))


def laws() -> tuple[Count, ...]:
    """Return the laws of K that a selection may use, each with a mean of at most ``MOST_TRIALS``."""
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
    """Return the noise that each selection requires for one law of K; a regime without a bound for it is missing.

    The count uses records that no trial trains on, so its selection has the whole budget too: the selection over both costs the larger
    of the two (**Disjoint**).
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
    """Return the noise for a fixed number of trials, accounted for as if all were released.

    Releasing only the winner never costs more than releasing all, so the exact regime may use the same noise. It could use slightly
    less noise, but computing how much takes minutes for each number of trials, and other laws of K are better for it.
    """
    options = []
    for runs in RUNS:
        trained = DPSGD(UNKNOWN, SAMPLING, STEPS * runs)
        noise = cast("float", plan(trained, epsilon=epsilon, delta=DELTA).value)
        score_noise = round_up(_alone(epsilon) * math.sqrt(runs))  # rounded to the digits that the table keeps
        options += [Option(epsilon, regime, Fixed(k=runs), noise, score_noise) for regime in ("exact", "composition")]
        options.append(_free(epsilon, Fixed(k=runs)))
    return options


def _free(epsilon: float, count: Count) -> Option:
    """Return the option without any cost of selection: each training and each count has the noise of a single one."""
    return Option(epsilon, "free", count, untuned_noise(epsilon), _alone(epsilon))


def _alone(epsilon: float) -> float:
    return cast("float", plan(Gaussian(sigma=UNKNOWN), epsilon=epsilon, delta=DELTA).value)
