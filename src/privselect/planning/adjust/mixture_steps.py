"""**Mixture**: numbers of steps that spend the whole budget of the selection, and not more."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

from privselect.errors import ParameterError
from privselect.mechanisms import Gaussian
from privselect.mechanisms.base import MOST_RUNS
from privselect.planning.adjust.step_search import LOG_DELTA, LOG_EPSILON, Steps
from privselect.planning.adjust.thresholds import gaussian_mu
from privselect.selection import Selection

if TYPE_CHECKING:
    from fractions import Fraction

    from privselect.planning.adjust.dpsgd_candidates import Price

_CLOSE = 0.03  # values this near, relative in steps, are interpolated: a share of delta is then kept to about 1e-3
_MOST_DELTA = math.log(0.5)  # a candidate so rare that its share is above this has more than it can use
_GUESS = 0.6  # of the total, about what one trial may spend
_ROUNDS = 4


def mixture_steps(price: Price, epsilon: float) -> tuple[int, ...]:
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

    low, high = Steps(excess, family.first, LOG_EPSILON).around(0.0)
    if high > MOST_RUNS:
        raise _unlimited(price, family.reference, epsilon)
    found = family.steps_beside(low) if low else (1,) * len(price.candidates.probabilities)
    if price.upper(found) > epsilon:
        cost = f"even with steps = 1 for every candidate the selection costs {price.upper(found):.6g} at delta {price.delta:g}"
        raise ParameterError(f"`epsilon` must be at least what one step costs, got {epsilon:g}: {cost}")
    return _filled(price, epsilon, found)


class _Family:
    """Numbers of steps for all candidates from that of one of them, the reference, so that each spends its share."""

    def __init__(self, price: Price, epsilon: float) -> None:
        candidates = price.candidates
        self._weights = [share / weight for share, weight in zip(candidates.shares, candidates.probabilities, strict=True)]
        # The one that may spend least, alone: its delta is furthest from 1. Among equals the one with the most steps, the finest scale.
        self.reference = min(range(len(self._weights)), key=lambda place: (self._weights[place], -candidates.noise_multipliers[place]))
        mu = _usual_mu(price, epsilon)
        firsts = [candidates.usual_steps(place, mu) for place in range(len(self._weights))]
        self.first = firsts[self.reference]
        self._alone = [Steps(partial(_log_delta, price, epsilon, place), first, LOG_DELTA) for place, first in enumerate(firsts)]
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


def _usual_mu(price: Price, epsilon: float) -> float:
    """About that of the Gaussian trials for which the selection costs epsilon, which grows about as mu does: where to look first."""
    mu = gaussian_mu(_GUESS * epsilon, price.delta)
    for _ in range(_ROUNDS):
        spent = float(Selection(Gaussian(sigma=1.0 / mu), price.count).epsilon_at(price.delta).upper)
        if not 0.0 < spent < math.inf:
            break
        mu *= min(max(epsilon / spent, 0.1), 10.0)
    return mu


def _log_delta(price: Price, epsilon: float, place: int, steps: int) -> float:
    spent = float(Selection(price.candidates.candidate(place, steps), price.count).delta_at(epsilon).upper)
    return math.log(spent) if spent > 0.0 else -math.inf


def _filled(price: Price, epsilon: float, steps: tuple[int, ...]) -> tuple[int, ...]:
    """Steps added to each candidate in turn, twice as many after each success, until none can take one more."""
    taken, stuck = list(steps), 0
    while stuck < len(taken):
        for place in range(len(taken)):
            stuck, more = stuck + 1, 1
            while price.upper([*taken[:place], min(taken[place] + more, MOST_RUNS), *taken[place + 1 :]]) <= epsilon:
                if taken[place] == MOST_RUNS:
                    raise _unlimited(price, place, epsilon)
                taken[place] = min(taken[place] + more, MOST_RUNS)
                stuck, more = 0, 2 * more
    return tuple(taken)


def _unlimited(price: Price, place: int, epsilon: float) -> ParameterError:
    noise = price.candidates.noise_multipliers[place]
    met = f"even {MOST_RUNS} steps at noise multiplier {noise:g} meet it"
    return ParameterError(f"`epsilon` must be small enough to limit the steps, got {epsilon:g}: {met}")
