"""The noise with which a selection meets a budget, by three ways of accounting.

One rule for all three. A trial of OPS-PTR has a leak, split evenly between the failure of the test and the delta of the target, and a
mu for everything else. The leak is half of the largest that the accounting allows at this delta; then mu is the largest that meets the
budget.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from privselect._util.validation import OPEN_UNIT, POSITIVE, check_number, format_value
from privselect.counts.negative_binomial import Geometric
from privselect.errors import ParameterError
from privselect.mechanisms import Gaussian
from privselect.regression.ops.calibration import largest_feasible, largest_mu
from privselect.regression.ptr.ops_ptr import OPSPTR
from privselect.selection.compare import liu_talwar_bound, paper_bound
from privselect.selection.selection import Selection

if TYPE_CHECKING:
    from collections.abc import Callable

    from privselect.counts.base import Count
    from privselect.mechanisms import Mechanism

MEAN = 600.0
COUNT = Geometric(mean=MEAN)
ACCOUNTINGS = ("ours", "paper", "liu_talwar")
_PART = 0.5  # share of the largest leak
_ROOM = 1e-4  # relative margin in epsilon: the accountant's answers vary by less, so a rounded mu still fits


@dataclass(frozen=True, slots=True)
class TrialNoise:
    """What one trial may leak: ``mu``, ``delta`` of its target and ``failure`` of its test; ``score_mu`` is for a noisy score."""

    mu: float
    delta: float
    failure: float
    score_mu: float

    def recipe(self, ridge: float, records: int) -> OPSPTR:
        """Return OPS-PTR with this noise."""
        return OPSPTR(self.mu, self.delta, self.failure, ridge, records)


@lru_cache(maxsize=256)
def trial_noise(accounting: str, epsilon: float, delta: float) -> TrialNoise:
    """Return the largest leak of a trial for which the selection is (epsilon, delta)-DP by this accounting; K is geometric with mean 600.

    A noisy score has Gaussian noise and its own records, so its selection has the whole budget too: the selection over both costs the
    larger of the two (**Disjoint**).
    """
    half = 0.5 * largest_leak(accounting, delta) * _PART
    mu = largest_mu_by(accounting, lambda mu: trial_mechanism(mu, half, half), epsilon, delta)
    return TrialNoise(mu, half, half, gaussian_mu(accounting, epsilon, delta))


@lru_cache(maxsize=256)
def gaussian_mu(accounting: str, epsilon: float, delta: float) -> float:
    """Return the largest mu for trials that are one Gaussian release each."""
    return largest_mu_by(accounting, lambda mu: Gaussian(sigma=1.0 / mu), epsilon, delta)


@lru_cache(maxsize=256)
def single_mu(epsilon: float, delta: float) -> float:
    """Return the largest mu for a single Gaussian release without a selection."""
    return largest_mu(lambda mu: Gaussian(sigma=1.0 / mu), epsilon, delta)


def trial_mechanism(mu: float, delta: float, failure: float) -> Mechanism:
    """Return the mechanism of an OPS-PTR trial, which is the same for every ridge and any number of records."""
    return OPSPTR(mu, delta, failure, 1.0, 1).mechanism


def largest_leak(accounting: str, delta: float) -> float:
    """Return the largest delta that a trial may leak outright; above it no epsilon is finite.

    Exact and the paper's bound: ``delta/m``, because ``m`` trials on average leak ``m`` times as much. Liu and Talwar: the largest d with
    ``sqrt(2 d) log(1/delta_2)/tau + delta_2 <= delta`` for some delta_2.
    """
    wanted = check_number("delta", delta, OPEN_UNIT)
    if _known(accounting) != "liu_talwar":
        return wanted / MEAN
    split = np.linspace(0.01, 40.0, 4000)  # log(delta/delta_2)
    room = wanted * -np.expm1(-split) / (split - math.log(wanted)) / MEAN
    return float(0.5 * np.max(room) ** 2)


def selection_epsilon(accounting: str, trial: Mechanism, count: Count, delta: float) -> float:
    """Return the epsilon of the selection by this accounting."""
    if _known(accounting) == "ours":
        return float(Selection(trial, count).epsilon_at(delta).upper)
    return paper_bound(trial, count, delta) if accounting == "paper" else liu_talwar_bound(trial, count, delta)


def largest_mu_by(accounting: str, make: Callable[[float], Mechanism], epsilon: float, delta: float) -> float:
    """Return the largest mu found for which the selection meets the budget by this accounting, with a relative margin of 1e-4."""
    budget = check_number("epsilon", epsilon, POSITIVE)
    found = largest_feasible(lambda mu: selection_epsilon(accounting, make(mu), COUNT, delta) <= budget * (1.0 - _ROOM), 0.1 * budget)
    if found == 0.0:
        raise ParameterError(f"`epsilon` must leave room for some noise, got {format_value(epsilon)}")
    return found


def _known(accounting: str) -> str:
    if accounting not in ACCOUNTINGS:
        raise ParameterError(f"`accounting` must be one of {', '.join(ACCOUNTINGS)}, got {format_value(accounting)}")
    return accounting
