r"""Upper bounds on epsilon of noisy max, by name, and the paper's results that they use.

The functions with a label are the results of "Privacy Profiles for Private Selection" (ICML 2024), section 3. A ``profile`` gives upper
bounds on delta, at an array of real epsilons, for one noisy score that moves by the *gap*: how far one score can move against another. The
gap is 2 in units of the sensitivity, or 1 if one record moves all scores the same way. An ``rdp`` curve gives upper bounds on the Renyi
divergence at an array of orders.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import erfcx

from privselect._util.rounding import finite_or_none
from privselect._util.safe_search import smallest_epsilon_where
from privselect._util.validation import OPEN_UNIT, POSITIVE, REAL, check_array, check_number, integer_range
from privselect.mechanisms.composed import Composed
from privselect.mechanisms.gaussian import Gaussian
from privselect.mechanisms.renyi import lem_rdp_to_dp_epsilon
from privselect.pairs.compose import CompositionStep, compose

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

    from privselect.mechanisms.base import Mechanism
    from privselect.noisy_max.noisy_max import NoisyMax
    from privselect.pairs import DominatingPair

    Floats = NDArray[np.float64]
    Profile = Callable[[Floats], Floats]

_TOLERANCE = 1e-12  # of an epsilon, relative
_LARGEST_EPSILON = 1e15  # larger bounds are useless
_MAX_COMPOSED, _LARGEST_MEAN_LOSS = 10**6, 100.0  # beyond these, a release of all noisy scores is useless
_SMALLEST_DELTA = 1e-300  # that a pair can represent
_ROOT_HALF = math.sqrt(0.5)
_UP = 1.0 + 1e-12  # more than the rounding of the paper's formulas
_SCORES, _ROUNDS = integer_range(1), integer_range(1)


def thm_max_sel(profile: Profile, m: int, epsilon: ArrayLike) -> Floats:
    r"""Return delta at each epsilon of one round over m scores.

    Claim: ``m delta(e)``, delta the profile of one noisy score that moves by the gap.

    Holds when the noise is additive, independent and identically distributed; the gap is 2, or 1 for monotone scores.
    Label: thm:max_sel.
    """
    eps = check_array("epsilon", epsilon, REAL)
    return np.asarray(np.minimum(check_number("m", m, _SCORES) * profile(eps) * _UP, 1.0))


def lem_composition_rnm(log_profile: Profile, m: int, k: int, epsilon: ArrayLike) -> Floats:
    r"""Return delta at each epsilon of k rounds over m scores each.

    Claim: ``m^k delta_k(e)``, delta_k the profile of k noisy scores, each of which moves by the gap. The profile is given by its
    logarithm, because the factor is soon too large for a float and delta_k too small. (The paper says m noisy scores: docs/errata.md.)

    Holds when ``thm:max_sel`` does, also if a round is chosen after the results of earlier rounds. Label: lem:composition_rnm.
    """
    eps = check_array("epsilon", epsilon, REAL)
    log_factor = check_number("k", k, _ROUNDS) * math.log(check_number("m", m, _SCORES))
    return np.asarray(np.exp(np.minimum(log_factor * _UP + log_profile(eps) + 1e-12, 0.0)))


def lem_convert2_eps_delta(sigma: float, m: int, delta: float, gap: float = 2.0) -> float:
    r"""Return epsilon at one delta of one round over m scores with Gaussian noise.

    Claim: ``gap^2/(2 sigma^2) + gap/sigma sqrt(2 log(m/delta))``; the paper has gap 2.

    Holds when ``thm:max_sel`` does, with noise N(0, sigma^2) on scores that one record changes by at most 1.
    Label: lem:convert2_eps_delta.
    """
    shift = check_number("gap", gap, POSITIVE) / check_number("sigma", sigma, POSITIVE)
    log_ratio = math.log(check_number("m", m, _SCORES)) - math.log(check_number("delta", delta, OPEN_UNIT))
    return (0.5 * shift * shift + shift * math.sqrt(2.0 * log_ratio)) * _UP


def lem_zhu_lemma5(rdp: Profile, m: int, alpha: ArrayLike) -> Floats:
    r"""Return the Renyi divergence of order alpha of one round over m scores (Zhu and Wang 2022).

    Claim: ``rdp(alpha) + log(m)/(alpha - 1)``.

    Holds when ``thm:max_sel`` does, with ``rdp`` that of one noisy score that moves by the gap. Label: lem:zhu_lemma5.
    """
    orders = np.asarray(alpha, dtype=np.float64)
    return np.asarray((rdp(orders) + math.log(check_number("m", m, _SCORES)) / (orders - 1.0)) * _UP)


def paper(mechanism: NoisyMax, delta: float) -> float | None:
    """Return epsilon by the paper's ``m^k delta_k``."""
    noise, rounds = mechanism.noise, mechanism.rounds
    if isinstance(noise, Gaussian):
        mu = mechanism.gap / noise.sigma * math.sqrt(rounds) * (1.0 + 1e-15)

        def profile(epsilon: Floats) -> Floats:
            return _log_gaussian_delta(mu, epsilon)

        return finite_or_none(_smallest_epsilon(lambda e: lem_composition_rnm(profile, mechanism.m, rounds, e), delta))
    shifted = mechanism.accounting.shift_bracket(mechanism.gap)
    target = math.exp(math.log(delta) - rounds * math.log(mechanism.m)) * (1.0 - 1e-12)
    if target < _SMALLEST_DELTA or not _is_worth_composing(shifted.upper, rounds):
        return None
    return finite_or_none(float(compose([(CompositionStep(shifted), rounds)]).upper.epsilon_at(target, side=1)))


def closed_form(mechanism: NoisyMax, delta: float) -> float | None:
    """Return epsilon by the paper's closed form for one round with Gaussian noise."""
    if not isinstance(mechanism.noise, Gaussian) or mechanism.rounds > 1:
        return None
    return lem_convert2_eps_delta(mechanism.noise.sigma, mechanism.m, delta, mechanism.gap)


def renyi(mechanism: NoisyMax, delta: float) -> float | None:
    """Return epsilon by the Renyi bound of one round, added over the rounds."""
    rdp = mechanism.accounting.renyi

    def total(alpha: Floats) -> Floats:
        return mechanism.rounds * lem_zhu_lemma5(lambda a: rdp(mechanism.gap, a), mechanism.m, alpha)

    return finite_or_none(lem_rdp_to_dp_epsilon(total, delta))


def full_release(mechanism: NoisyMax, delta: float) -> float | None:
    """Return epsilon of releasing, in all rounds, every noisy score that a record can change."""
    released = full_release_mechanism(mechanism)
    if released is None:
        return None
    bound = float(np.asarray(released.epsilon_at(delta).upper))
    if isinstance(released, Gaussian) and math.isinf(bound):  # the loss is too large for a float
        bound = _smallest_epsilon(lambda e: np.exp(_log_gaussian_delta(1.0 / released.sigma * (1.0 + 1e-15), e)), delta)
    return finite_or_none(bound)


def curve(mechanism: NoisyMax, delta: float) -> float | None:
    """Return epsilon by the lowest known profile of one round, composed over all rounds."""
    return finite_or_none(max(float(bracket.upper.epsilon_at(delta, side=1)) for bracket in mechanism.brackets))


BOUNDS: dict[str, Callable[[NoisyMax, float], float | None]] = {
    "curve": curve,
    "full_release": full_release,
    "renyi": renyi,
    "paper": paper,
    "closed_form": closed_form,
}
DESCRIPTIONS = {
    "curve": "lowest profile of one round, composed",
    "full_release": "release of every score that a record changes",
    "renyi": "Renyi divergences (Zhu, Wang)",
    "paper": "privacy profiles (Koskela et al.)",
    "closed_form": "the paper's closed form, one round",
}


def full_release_mechanism(mechanism: NoisyMax) -> Mechanism | None:
    """Return the release of every noisy score that a record can change; None if the noise does not allow it or it leaks too much."""
    single, times = mechanism.accounting.single_release, mechanism.rounds * mechanism.changed_scores
    if isinstance(single, Gaussian):
        return Gaussian(sigma=math.nextafter(single.sigma / math.sqrt(times) * (1.0 - 4e-16), 0.0), neighbours=single.neighbours)
    if single is None or not _is_worth_composing(single.brackets[0].upper, times):
        return None
    return single if times == 1 else Composed((single,), times=times)


def _is_worth_composing(pair: DominatingPair, times: int) -> bool:
    return times <= _MAX_COMPOSED and pair.p_only < 1.0 and times * float(pair.p @ pair.losses) <= _LARGEST_MEAN_LOSS


def _log_gaussian_delta(mu: float, epsilon: Floats) -> Floats:
    """Return log delta of N(mu, 1) against N(0, 1), rounded up, even where delta is too small for a float; 0 near the middle."""
    a = 0.5 * mu - epsilon / mu
    far = np.clip(a, -1e100, 0.0)  # further out delta is smaller, and the square overflows
    first = erfcx(-_ROOT_HALF * far)
    # For small mu the two terms are nearly equal: their difference has an error of a few units in the last place of the first.
    tails = np.log(0.5 * (np.maximum(first - erfcx(_ROOT_HALF * (mu - far)), 0.0) + 4e-15 * first))
    return np.asarray(np.where(a < 0.0, -0.5 * far * far + tails + 1e-12 * (1.0 + far * far), 0.0))


def _smallest_epsilon(delta_at: Callable[[Floats], Floats], delta: float) -> float:
    """Return the smallest epsilon >= 0 found at which a decreasing bound is at most delta; infinite if there is none."""
    return smallest_epsilon_where(lambda epsilon: float(delta_at(np.array(epsilon))) <= delta, largest=_LARGEST_EPSILON, close=_TOLERANCE)
