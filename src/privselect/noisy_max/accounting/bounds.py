"""Every proved upper bound on the epsilon of noisy max, by name."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import erfcx

from privselect._util.safe_search import smallest_epsilon_where
from privselect.mechanisms.composed import Composed
from privselect.mechanisms.gaussian import Gaussian
from privselect.mechanisms.renyi_to_dp import lem_rdp_to_dp_epsilon
from privselect.noisy_max.accounting.paper_bounds import lem_composition_rnm, lem_convert2_eps_delta, lem_zhu_lemma5
from privselect.pairs.compose import Step, compose

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from privselect.mechanisms.base import Mechanism
    from privselect.noisy_max.noisy_max import NoisyMax
    from privselect.pairs import DominatingPair

    Floats = NDArray[np.float64]

_CLOSE = 1e-12  # of an epsilon
_LARGEST_EPSILON = 1e15  # what is beyond says nothing
_MOST_RUNS, _LARGEST_MEAN_LOSS = 10**6, 100.0  # a release of all noisy scores beyond these is of no use to anyone
_HALF = math.sqrt(0.5)
_LEAST = 1e-300  # of a delta that a pair can tell from none


def paper(choice: NoisyMax, delta: float) -> float | None:
    """The paper's ``m^k delta_k``."""
    noise, rounds = choice.noise, choice.rounds
    if isinstance(noise, Gaussian):
        mu = choice.gap / noise.sigma * math.sqrt(rounds) * (1.0 + 1e-15)

        def profile(epsilon: Floats) -> Floats:
            return _log_gaussian_delta(mu, epsilon)

        return _finite(least_epsilon(lambda e: lem_composition_rnm(profile, choice.m, rounds, e), delta))
    moved, target = choice.account.shifted(choice.gap), math.exp(math.log(delta) - rounds * math.log(choice.m)) * (1.0 - 1e-12)
    if target < _LEAST or not _is_worth_composing(moved.upper, rounds):
        return None
    return _finite(float(compose([(Step(moved), rounds)]).upper.epsilon_at(target, side=1)))


def closed_form(choice: NoisyMax, delta: float) -> float | None:
    """The paper's closed form for Gaussian noise."""
    if not isinstance(choice.noise, Gaussian) or choice.rounds > 1:
        return None
    return lem_convert2_eps_delta(choice.noise.sigma, choice.m, delta, choice.gap)


def renyi(choice: NoisyMax, delta: float) -> float | None:
    """The Renyi bound of each round, added up."""
    curve = choice.account.renyi

    def total(alpha: Floats) -> Floats:
        return choice.rounds * lem_zhu_lemma5(lambda a: curve(choice.gap, a), choice.m, alpha)

    return _finite(lem_rdp_to_dp_epsilon(total, delta))


def full_release(choice: NoisyMax, delta: float) -> float | None:
    """All noisy scores that a record can change, released in all rounds."""
    released = released_scores(choice)
    if released is None:
        return None
    bound = float(np.asarray(released.epsilon_at(delta).upper))
    if isinstance(released, Gaussian) and math.isinf(bound):  # of a loss too large for a float
        bound = least_epsilon(lambda e: np.exp(_log_gaussian_delta(1.0 / released.sigma * (1.0 + 1e-15), e)), delta)
    return _finite(bound)


def curve(choice: NoisyMax, delta: float) -> float | None:
    """The least curve known of one round, as a pair, composed over all rounds."""
    return _finite(max(float(bracket.upper.epsilon_at(delta, side=1)) for bracket in choice.brackets))


BOUNDS: dict[str, Callable[[NoisyMax, float], float | None]] = {
    "curve": curve,
    "full_release": full_release,
    "renyi": renyi,
    "paper": paper,
    "closed_form": closed_form,
}


def released_scores(choice: NoisyMax) -> Mechanism | None:
    """The release of every noisy score that a record can change; None where the noise is not fit for it, or it would tell too much."""
    alone, times = choice.account.alone, choice.rounds * choice.changed
    if isinstance(alone, Gaussian):
        return Gaussian(sigma=math.nextafter(alone.sigma / math.sqrt(times) * (1.0 - 4e-16), 0.0), neighbours=alone.neighbours)
    if alone is None or not _is_worth_composing(alone.brackets[0].upper, times):
        return None
    return alone if times == 1 else Composed((alone,), times=times)


def _is_worth_composing(pair: DominatingPair, times: int) -> bool:
    return times <= _MOST_RUNS and pair.p_only < 1.0 and times * float(pair.p @ pair.losses) <= _LARGEST_MEAN_LOSS


def _finite(epsilon: float) -> float | None:
    return epsilon if math.isfinite(epsilon) else None


def _log_gaussian_delta(mu: float, epsilon: Floats) -> Floats:
    """The log of the profile of N(mu, 1) against N(0, 1), rounded up, also where it is too small for a float; 0 near the middle."""
    a = 0.5 * mu - epsilon / mu
    far = np.clip(a, -1e100, 0.0)  # further out it is less, and its square no float
    first = erfcx(-_HALF * far)
    # Of a small mu the two are nearly the same: their difference is off by some units in the last place of the first.
    tails = np.log(0.5 * (np.maximum(first - erfcx(_HALF * (mu - far)), 0.0) + 4e-15 * first))
    return np.asarray(np.where(a < 0.0, -0.5 * far * far + tails + 1e-12 * (1.0 + far * far), 0.0))


def least_epsilon(delta_at: Callable[[Floats], Floats], delta: float) -> float:
    """The least epsilon >= 0 found at which a falling bound is at most delta; infinite where none is."""
    return smallest_epsilon_where(lambda epsilon: float(delta_at(np.array(epsilon))) <= delta, largest=_LARGEST_EPSILON, close=_CLOSE)
