"""Data, model, search space, candidates and noise levels of each point of the experiment."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from privselect.mechanisms import DPSGD
from privselect.open_spec import UNKNOWN
from privselect.planning.plan import plan
from privselect.tuning.distributions import Choice, LogUniform, Uniform
from privselect.tuning.space import Space

if TYPE_CHECKING:
    from privselect.mechanisms import Mechanism
    from privselect.tuning.space import Candidate

DELTA = 1e-5
EPSILONS = (1.0, 3.0)
SAMPLING, STEPS = 1024 / 60_000, 600
REPETITIONS = 10
HELD = 0.25  # held-out records per training record
GREATEST_NOISE = 5.2  # of the banks; options that need more noise are left out, such as the composition of more than ten runs at epsilon 1

PLAIN = Space({"learning_rate": LogUniform(0.03, 100.0), "clip": LogUniform(0.01, 10.0)})
# Hard on purpose: the preprocessing of the pixels is searched too, and most choices destroy the signal.
HARD = Space(
    {
        "learning_rate": LogUniform(1e-3, 1e3),
        "clip": LogUniform(1e-3, 1e3),
        "scale": LogUniform(1e-2, 1e2),
        "shift": Uniform(-3.0, 3.0),
        "exponent": LogUniform(0.1, 10.0),
        "pool": Choice([2, 4, 7]),
    }
)
SPACES = {"plain": PLAIN, "hard": HARD}
# Settings that a user might choose without tuning.
DEFAULTS: tuple[Candidate, ...] = (
    {"learning_rate": 0.5, "clip": 1.0},
    {"learning_rate": 2.0, "clip": 1.0},
    {"learning_rate": 8.0, "clip": 0.1},
)


@dataclass(frozen=True, slots=True)
class Setting:
    """One point of the experiment; it trains on ``records`` records and holds out a quarter as many."""

    name: str
    problem: str
    records: int
    space: str = "plain"
    model: str = "softmax"
    candidates: int = 40
    levels: tuple[int, int] = (2, 5)  # noise levels between the two untuned noises, and from the larger one to the maximum

    @property
    def held(self) -> int:
        """The number of records held out for a noisy score."""
        return round(HELD * self.records)

    @property
    def noise(self) -> tuple[float, ...]:
        """The noise multipliers of the bank; both untuned noises are among them."""
        low, middle = untuned_noise(3.0), untuned_noise(1.0)
        below = np.geomspace(low, middle, self.levels[0] + 1)
        above = np.geomspace(middle, GREATEST_NOISE, self.levels[1] + 1)
        return tuple(float(f"{noise:.7g}") for noise in [*below[:-1], *above])


# Most expensive first, so that two processes finish together.
SETTINGS = (
    Setting("mnist-48000", "mnist", 48_000, candidates=20, levels=(1, 2)),
    Setting("network-2400", "small_mnist", 2400, model="network", candidates=12, levels=(1, 2)),
    Setting("mnist-20000", "mnist", 20_000, candidates=32, levels=(1, 2)),
    Setting("mnist-6000", "mnist", 6000),
    Setting("mnist-hard-6000", "mnist", 6000, space="hard", levels=(1, 3)),
    Setting("mnist-2000", "mnist", 2000),
    Setting("small-mnist-hard-2400", "small_mnist", 2400, space="hard", candidates=64),
    Setting("adult-26000", "adult", 26_000, candidates=32, levels=(1, 2)),
    Setting("adult-6000", "adult", 6000),
    Setting("small-mnist-2400", "small_mnist", 2400),
    Setting("adult-2000", "adult", 2000),
)


def training(noise: float, steps: int | None = None) -> DPSGD:
    """Return the mechanism of one training, by default of full length."""
    return DPSGD(noise_multiplier=noise, sampling_probability=SAMPLING, steps=STEPS if steps is None else steps)


def open_training() -> Any:
    """Return the mechanism of one training with its noise open."""
    return DPSGD(noise_multiplier=UNKNOWN, sampling_probability=SAMPLING, steps=STEPS)


@lru_cache(maxsize=8)
def untuned_noise(epsilon: float) -> float:
    """Return the noise with which a single training meets the budget."""
    mechanism: Mechanism = plan(open_training(), epsilon=epsilon, delta=DELTA).mechanism
    assert isinstance(mechanism, DPSGD)  # noqa: S101 - for type checkers
    return mechanism.noise_multiplier
