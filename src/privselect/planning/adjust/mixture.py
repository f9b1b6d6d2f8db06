"""Candidates of DP-SGD that differ in their noise: what a trial may draw, and what it costs when each takes its steps."""

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
    from fractions import Fraction

    from privselect.counts.base import Count
    from privselect.interval import Interval


@dataclass(frozen=True, slots=True)
class Candidates:
    """Noise levels, the law by which a trial draws one of them, and the part of delta that each may spend."""

    noise_multipliers: tuple[float, ...]
    sampling_probability: float
    probabilities: tuple[Fraction, ...]
    shares: tuple[Fraction, ...]

    def candidate(self, place: int, steps: int) -> DPSGD:
        """One of them, alone."""
        return DPSGD(noise_multiplier=self.noise_multipliers[place], sampling_probability=self.sampling_probability, steps=steps)

    def mixture(self, steps: Sequence[int]) -> Mixture:
        """What one trial leaks."""
        return Mixture(tuple(WeightedSpec(weight, self.candidate(place, steps[place])) for place, weight in enumerate(self.probabilities)))

    def usual_steps(self, place: int, mu: float) -> float:
        """About the number of steps that leak as much as N(mu, 1) against N(0, 1), by the central limit theorem: where to look first."""
        # mu^2 / (q^2 (exp(1/s^2) - 1)), in logs
        squared = min(max(self.noise_multipliers[place], 0.05), 1e100) ** -2.0
        log_steps = 2.0 * (math.log(mu) - math.log(self.sampling_probability)) - math.log(math.expm1(squared))
        return math.exp(min(max(log_steps, 0.0), 100.0))


class SelectionCost:
    """The epsilon of the selection, for numbers of steps of each candidate; each found once."""

    def __init__(self, candidates: Candidates, count: Count, delta: float) -> None:
        self.candidates, self.count, self.delta = candidates, count, delta
        self._known: dict[tuple[int, ...], Interval] = {}

    def of(self, steps: Sequence[int]) -> Interval:
        """By the accountant, as for any other mechanism."""
        key = tuple(steps)
        if key not in self._known:
            self._known[key] = Selection(self.candidates.mixture(key), self.count).epsilon_at(self.delta)
        return self._known[key]

    def upper(self, steps: Sequence[int]) -> float:
        """What is proved."""
        return float(self.of(steps).upper)


def check_candidates(noise_multipliers: object, sampling_probability: object, probabilities: object, shares: object) -> Candidates:
    """Candidates as a user names them, or one clear sentence."""
    noise = tuple(check_number("noise_multipliers", entry, POSITIVE) for entry in _several("noise_multipliers", noise_multipliers))
    if not noise:
        raise ParameterError("`noise_multipliers` must hold at least one number, got none")
    for value in noise:
        if noise.count(value) > 1:
            raise ParameterError(f"`noise_multipliers` must differ from each other, got {value:g} {noise.count(value)} times")
    rate = check_number("sampling_probability", sampling_probability, PROBABILITY)
    law, parts = _weights("probabilities", probabilities, len(noise)), _weights("shares", shares, len(noise))
    if sum(law) != 1:
        raise ParameterError(f"`probabilities` must sum to 1, got {format_sum_near_one(sum(law, Fraction(0)))}")
    return Candidates(noise, rate, law, tuple(part / sum(parts) for part in parts))


def _weights(name: str, values: object, number: int) -> tuple[Fraction, ...]:
    if values is None:
        return (Fraction(1, number),) * number
    weights = tuple(check_fraction(name, entry) for entry in _several(name, values))
    if len(weights) != number:
        raise ParameterError(f"`{name}` must hold one number for each of the {number} noise levels, got {len(weights)}")
    for weight in weights:
        if weight <= 0:
            raise ParameterError(f"`{name}` must be positive, got {format_value(weight)}")
    return weights


def _several(name: str, values: object) -> tuple[object, ...]:
    return check_sequence(name, values, "a list of numbers")


_CLOSE = 0.03  # values this near, relative in steps, are interpolated: a share of delta is then kept to about 1e-3
_MOST_DELTA = math.log(0.5)  # a candidate so rare that its share is above this has more than it can use
_GUESS = 0.6  # of the total, about what one trial may spend
_ROUNDS = 4


def mixture_steps(price: SelectionCost, epsilon: float) -> tuple[int, ...]:
    """A step more for any one candidate and the selection is no longer proved to cost at most epsilon; as it is, it is.

    In a trial that draws candidate j with probability ``pi_j``, its part of the sum ``sum_j pi_j delta_j`` is to be its share. So
    candidate j takes as many steps as a selection over it alone would spend ``s share_j / pi_j`` on, in delta at this epsilon, and
    s is as great as the budget allows. After that, single steps are added in turn until no candidate can take one.

    Sound whatever the search does: the numbers of steps returned were given to the accountant as a mixture, and its upper bound is at
    most epsilon. Heuristic is only how the budget is divided: shares are kept to about 1e-3, and bounds that waver in their
    last digits, by some 1e-4 in epsilon, may leave a few steps more that could be proved.
    """
    family = _Family(price, epsilon)

    def excess(steps: int) -> float:
        upper = price.upper(family.steps_beside(steps))
        if upper > epsilon:
            return max(math.log(upper / epsilon), math.ulp(0.0))
        return min(math.log(upper / epsilon), 0.0) if upper > 0.0 else -math.inf

    low, high = StepSearch(excess, family.first, LOG_EPSILON_SLOPE).around(0.0)
    if high > MAX_RUNS:
        raise _unlimited(price, family.reference, epsilon)
    found = family.steps_beside(low) if low else (1,) * len(price.candidates.probabilities)
    if price.upper(found) > epsilon:
        cost = f"even with steps = 1 for every candidate the selection costs {price.upper(found):.6g} at delta {price.delta:g}"
        raise ParameterError(f"`epsilon` must be at least what one step costs, got {epsilon:g}: {cost}")
    return _filled(price, epsilon, found)


class _Family:
    """Numbers of steps for all candidates from that of one of them, the reference, so that each spends its share."""

    def __init__(self, price: SelectionCost, epsilon: float) -> None:
        candidates = price.candidates
        self._weights = [share / weight for share, weight in zip(candidates.shares, candidates.probabilities, strict=True)]
        # The one that may spend least, alone: its delta is furthest from 1. Among equals the one with the most steps, the finest scale.
        self.reference = min(range(len(self._weights)), key=lambda place: (self._weights[place], -candidates.noise_multipliers[place]))
        mu = _usual_mu(price, epsilon)
        firsts = [candidates.usual_steps(place, mu) for place in range(len(self._weights))]
        self.first = firsts[self.reference]
        self._alone = [StepSearch(partial(_log_delta, price, epsilon, place), first, LOG_DELTA_SLOPE) for place, first in enumerate(firsts)]
        self._known: dict[int, tuple[int, ...]] = {}

    def steps_beside(self, steps: int) -> tuple[int, ...]:
        """Those of every candidate, where the reference takes ``steps``."""
        if steps not in self._known:  # kept: values found since would move what is interpolated
            spent = self._alone[self.reference].at(steps)
            self._known[steps] = tuple(
                steps if place == self.reference else alone.near(self._level(spent, place), close=_CLOSE)
                for place, alone in enumerate(self._alone)
            )
        return self._known[steps]

    def _level(self, spent: float, place: int) -> float:
        ratio: Fraction = self._weights[place] / self._weights[self.reference]
        return min(spent + math.log(ratio.numerator) - math.log(ratio.denominator), max(_MOST_DELTA, spent))


def _usual_mu(price: SelectionCost, epsilon: float) -> float:
    """About that of the Gaussian trials for which the selection costs epsilon, which grows about as mu does: where to look first."""
    mu = gaussian_mu(_GUESS * epsilon, price.delta)
    for _ in range(_ROUNDS):
        spent = float(Selection(Gaussian(sigma=1.0 / mu), price.count).epsilon_at(price.delta).upper)
        if not 0.0 < spent < math.inf:
            break
        mu *= min(max(epsilon / spent, 0.1), 10.0)
    return mu


def _log_delta(price: SelectionCost, epsilon: float, place: int, steps: int) -> float:
    spent = float(Selection(price.candidates.candidate(place, steps), price.count).delta_at(epsilon).upper)
    return math.log(spent) if spent > 0.0 else -math.inf


def _filled(price: SelectionCost, epsilon: float, steps: tuple[int, ...]) -> tuple[int, ...]:
    """Steps added to each candidate in turn, twice as many after each success, until none can take one more."""
    taken, stuck = list(steps), 0
    while stuck < len(taken):
        for place in range(len(taken)):
            stuck, more = stuck + 1, 1
            while price.upper([*taken[:place], min(taken[place] + more, MAX_RUNS), *taken[place + 1 :]]) <= epsilon:
                if taken[place] == MAX_RUNS:
                    raise _unlimited(price, place, epsilon)
                taken[place] = min(taken[place] + more, MAX_RUNS)
                stuck, more = 0, 2 * more
    return tuple(taken)


def _unlimited(price: SelectionCost, place: int, epsilon: float) -> ParameterError:
    noise = price.candidates.noise_multipliers[place]
    met = f"even {MAX_RUNS} steps at noise multiplier {noise:g} meet it"
    return ParameterError(f"`epsilon` must be small enough to limit the steps, got {epsilon:g}: {met}")
