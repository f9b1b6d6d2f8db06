"""DP-SGD candidates with different noise levels, and the **Mixture**: numbers of steps that use the whole budget of the selection."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING

from privselect._util.validation import (
    POSITIVE,
    PROBABILITY,
    check_fraction,
    check_number,
    check_sequence,
    format_sum_near_one,
    format_value,
)
from privselect.errors import ParameterError
from privselect.mechanisms import DPSGD, Gaussian, Mixture
from privselect.mechanisms.base import MAX_RUNS
from privselect.planning.adjust.cor_adjust import gaussian_mu
from privselect.planning.adjust.step_search import LOG_DELTA_SLOPE, LOG_EPSILON_SLOPE, StepSearch
from privselect.selection import Selection
from privselect.text_forms import WeightedSpec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from privselect.counts.base import Count
    from privselect.interval import Interval

_CLOSE = 0.03  # relative width in steps of an interval that is interpolated; shares of delta are then accurate to about 1e-3
_MOST_DELTA = math.log(0.5)  # upper limit for the delta of a rare candidate
_TRIAL_SHARE = 0.6  # first guess of the epsilon of one trial, relative to the total
_ROUNDS = 4


@dataclass(frozen=True, slots=True)
class Candidates:
    """Noise levels, the probability of each in a trial, and the share of delta that each may use."""

    noise_multipliers: tuple[float, ...]
    sampling_probability: float
    probabilities: tuple[Fraction, ...]
    shares: tuple[Fraction, ...]

    def candidate(self, index: int, steps: int) -> DPSGD:
        """Return the mechanism of one candidate."""
        return DPSGD(noise_multiplier=self.noise_multipliers[index], sampling_probability=self.sampling_probability, steps=steps)

    def mixture(self, steps: Sequence[int]) -> Mixture:
        """Return the mechanism of one trial."""
        return Mixture(tuple(WeightedSpec(weight, self.candidate(index, steps[index])) for index, weight in enumerate(self.probabilities)))

    def approximate_steps(self, index: int, mu: float) -> float:
        """Return the number of steps that leaks about as much as N(mu, 1) against N(0, 1), by the central limit theorem."""
        # mu^2 / (q^2 (exp(1/s^2) - 1)), in logs
        squared = min(max(self.noise_multipliers[index], 0.05), 1e100) ** -2.0
        log_steps = 2.0 * (math.log(mu) - math.log(self.sampling_probability)) - math.log(math.expm1(squared))
        return math.exp(min(max(log_steps, 0.0), 100.0))


class SelectionCost:
    """The certified epsilon of the selection by the numbers of steps of all candidates, with a cache."""

    def __init__(self, candidates: Candidates, count: Count, delta: float) -> None:
        self.candidates, self.count, self.delta = candidates, count, delta
        self._known: dict[tuple[int, ...], Interval] = {}

    def epsilon(self, steps: Sequence[int]) -> Interval:
        """Return the certified epsilon."""
        key = tuple(steps)
        if key not in self._known:
            self._known[key] = Selection(self.candidates.mixture(key), self.count).epsilon_at(self.delta)
        return self._known[key]

    def upper_epsilon(self, steps: Sequence[int]) -> float:
        """Return the upper bound on epsilon."""
        return float(self.epsilon(steps).upper)


def check_candidates(noise_multipliers: object, sampling_probability: object, probabilities: object, shares: object) -> Candidates:
    """Return validated candidates."""
    noise = tuple(
        check_number("noise_multipliers", entry, POSITIVE)
        for entry in check_sequence("noise_multipliers", noise_multipliers, "a list of numbers")
    )
    if not noise:
        raise ParameterError("`noise_multipliers` must hold at least one number, got none")
    for value in noise:
        if noise.count(value) > 1:
            raise ParameterError(f"`noise_multipliers` must differ from each other, got {value:g} {noise.count(value)} times")
    rate = check_number("sampling_probability", sampling_probability, PROBABILITY)
    weights, parts = _weights("probabilities", probabilities, len(noise)), _weights("shares", shares, len(noise))
    if sum(weights) != 1:
        raise ParameterError(f"`probabilities` must sum to 1, got {format_sum_near_one(sum(weights, Fraction(0)))}")
    return Candidates(noise, rate, weights, tuple(part / sum(parts) for part in parts))


def _weights(name: str, values: object, number: int) -> tuple[Fraction, ...]:
    if values is None:
        return (Fraction(1, number),) * number
    weights = tuple(check_fraction(name, entry) for entry in check_sequence(name, values, "a list of numbers"))
    if len(weights) != number:
        raise ParameterError(f"`{name}` must hold one number for each of the {number} noise levels, got {len(weights)}")
    for weight in weights:
        if weight <= 0:
            raise ParameterError(f"`{name}` must be positive, got {format_value(weight)}")
    return weights


def mixture_steps(cost: SelectionCost, epsilon: float) -> tuple[int, ...]:
    """Return numbers of steps with a certified epsilon of at most ``epsilon``, such that no candidate can take one more step.

    A trial draws candidate j with probability ``pi_j``, and the part of j in ``sum_j pi_j delta_j`` should be its share. So candidate j
    takes the number of steps at which a selection over j alone has the delta ``s share_j / pi_j`` at this epsilon. The factor s is as
    large as the budget allows. Then single steps are added to one candidate after the other until none can take one more.

    The result is sound whatever the search does: the accountant has certified the mixture with these numbers of steps. Only the
    division of the budget is heuristic. Shares are accurate to about 1e-3. Upper bounds fluctuate by about 1e-4 in epsilon, so a few
    more steps might be provable.
    """
    steps_by_reference = _StepsByReference(cost, epsilon)

    def excess(steps: int) -> float:
        upper = cost.upper_epsilon(steps_by_reference.all_steps(steps))
        if upper > epsilon:
            return max(math.log(upper / epsilon), math.ulp(0.0))
        return min(math.log(upper / epsilon), 0.0) if upper > 0.0 else -math.inf

    low, high = StepSearch(excess, steps_by_reference.first, LOG_EPSILON_SLOPE).bracket(0.0)
    if high > MAX_RUNS:
        raise _unlimited_error(cost, steps_by_reference.reference, epsilon)
    found = steps_by_reference.all_steps(low) if low else (1,) * len(cost.candidates.probabilities)
    if cost.upper_epsilon(found) > epsilon:
        reason = f"even with steps = 1 for every candidate the selection costs {cost.upper_epsilon(found):.6g} at delta {cost.delta:g}"
        raise ParameterError(f"`epsilon` must be at least what one step costs, got {epsilon:g}: {reason}")
    return _add_steps(cost, epsilon, found)


class _StepsByReference:
    """The numbers of steps of all candidates as a function of those of a reference candidate: each uses its share of delta."""

    def __init__(self, cost: SelectionCost, epsilon: float) -> None:
        candidates = cost.candidates
        self._weights = [share / weight for share, weight in zip(candidates.shares, candidates.probabilities, strict=True)]
        # The candidate with the smallest delta, which is furthest from 1; among equals the one with the most steps.
        self.reference = min(range(len(self._weights)), key=lambda index: (self._weights[index], -candidates.noise_multipliers[index]))
        mu = _approximate_mu(cost, epsilon)
        firsts = [candidates.approximate_steps(index, mu) for index in range(len(self._weights))]
        self.first = firsts[self.reference]
        self._searches = [
            StepSearch(partial(_log_delta, cost, epsilon, index), first, LOG_DELTA_SLOPE) for index, first in enumerate(firsts)
        ]
        self._known: dict[int, tuple[int, ...]] = {}

    def all_steps(self, steps: int) -> tuple[int, ...]:
        """Return the steps of every candidate if the reference takes ``steps``."""
        if steps not in self._known:  # cached: interpolation would change with the values found later
            log_delta = self._searches[self.reference].value_at(steps)
            self._known[steps] = tuple(
                steps if index == self.reference else search.interpolate(self._level(log_delta, index), close=_CLOSE)
                for index, search in enumerate(self._searches)
            )
        return self._known[steps]

    def _level(self, log_delta: float, index: int) -> float:
        ratio: Fraction = self._weights[index] / self._weights[self.reference]
        return min(log_delta + math.log(ratio.numerator) - math.log(ratio.denominator), max(_MOST_DELTA, log_delta))


def _approximate_mu(cost: SelectionCost, epsilon: float) -> float:
    """Return the approximate mu of Gaussian trials for which the selection costs epsilon."""
    mu = gaussian_mu(_TRIAL_SHARE * epsilon, cost.delta)
    for _ in range(_ROUNDS):
        upper = float(Selection(Gaussian(sigma=1.0 / mu), cost.count).epsilon_at(cost.delta).upper)
        if not 0.0 < upper < math.inf:
            break
        mu *= min(max(epsilon / upper, 0.1), 10.0)
    return mu


def _log_delta(cost: SelectionCost, epsilon: float, index: int, steps: int) -> float:
    upper = float(Selection(cost.candidates.candidate(index, steps), cost.count).delta_at(epsilon).upper)
    return math.log(upper) if upper > 0.0 else -math.inf


def _add_steps(cost: SelectionCost, epsilon: float, steps: tuple[int, ...]) -> tuple[int, ...]:
    """Add steps to each candidate in turn, doubling after each success, until none can take one more."""
    taken, stuck = list(steps), 0
    while stuck < len(taken):
        for index in range(len(taken)):
            stuck, more = stuck + 1, 1
            while cost.upper_epsilon([*taken[:index], min(taken[index] + more, MAX_RUNS), *taken[index + 1 :]]) <= epsilon:
                if taken[index] == MAX_RUNS:
                    raise _unlimited_error(cost, index, epsilon)
                taken[index] = min(taken[index] + more, MAX_RUNS)
                stuck, more = 0, 2 * more
    return tuple(taken)


def _unlimited_error(cost: SelectionCost, index: int, epsilon: float) -> ParameterError:
    noise = cost.candidates.noise_multipliers[index]
    reason = f"even {MAX_RUNS} steps at noise multiplier {noise:g} meet it"
    return ParameterError(f"`epsilon` must be small enough to limit the steps, got {epsilon:g}: {reason}")
