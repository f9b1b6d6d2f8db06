r"""The results on report noisy max of "Privacy Profiles for Private Selection" (ICML 2024), section 3, each under its label.

A ``profile`` gives upper bounds on delta, at an array of real epsilons, for one noisy score that moves by the *gap*: how far one score
can move against another, which is 2 in units of the sensitivity, and 1 where one record moves all scores the same way. An ``rdp`` curve
gives upper bounds on its Renyi divergence at an array of orders.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from privselect._util.validation import OPEN_UNIT, POSITIVE, REAL, check_array, check_number, integer_range

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]
    Profile = Callable[[Floats], Floats]

_UP = 1.0 + 1e-12  # more than the formulas here can lose
_SCORES, _ROUNDS = integer_range(1), integer_range(1)


def thm_max_sel(profile: Profile, m: int, epsilon: ArrayLike) -> Floats:
    r"""Delta at each epsilon of one round over m scores.

    Claim: ``m delta(e)``, delta the profile of one noisy score that moves by the gap.

    Holds when the noise is additive, independent and of one law; the gap is 2, or 1 for monotone scores. Label: thm:max_sel.
    """
    eps = check_array("epsilon", epsilon, REAL)
    return np.asarray(np.minimum(check_number("m", m, _SCORES) * profile(eps) * _UP, 1.0))


def lem_composition_rnm(log_profile: Profile, m: int, k: int, epsilon: ArrayLike) -> Floats:
    r"""Delta at each epsilon of k rounds over m scores each.

    Claim: ``m^k delta_k(e)``, delta_k the profile of k noisy scores, each of which moves by the gap, given by its logarithm: the factor
    is soon too large for a float, and delta_k too small. (The paper says m of them, which is a slip: docs/errata.md.)

    Holds as ``thm:max_sel`` does, also where a round is chosen after seeing those before. Label: lem:composition_rnm.
    """
    eps = check_array("epsilon", epsilon, REAL)
    log_factor = check_number("k", k, _ROUNDS) * math.log(check_number("m", m, _SCORES))
    return np.asarray(np.exp(np.minimum(log_factor * _UP + log_profile(eps) + 1e-12, 0.0)))


def lem_convert2_eps_delta(sigma: float, m: int, delta: float, gap: float = 2.0) -> float:
    r"""Epsilon at one delta of one round over m scores with Gaussian noise.

    Claim: ``gap^2/(2 sigma^2) + gap/sigma sqrt(2 log(m/delta))``, which with gap 2 is the paper's.

    Holds as ``thm:max_sel`` does, with noise N(0, sigma^2) on scores that one record changes by at most 1. Label: lem:convert2_eps_delta.
    """
    shift = check_number("gap", gap, POSITIVE) / check_number("sigma", sigma, POSITIVE)
    log_ratio = math.log(check_number("m", m, _SCORES)) - math.log(check_number("delta", delta, OPEN_UNIT))
    return (0.5 * shift * shift + shift * math.sqrt(2.0 * log_ratio)) * _UP


def lem_zhu_lemma5(rdp: Profile, m: int, alpha: ArrayLike) -> Floats:
    r"""The Renyi divergence of order alpha of one round over m scores (Zhu and Wang 2022).

    Claim: ``rdp(alpha) + log(m)/(alpha - 1)``.

    Holds as ``thm:max_sel`` does, with ``rdp`` that of one noisy score that moves by the gap. Label: lem:zhu_lemma5.
    """
    orders = np.asarray(alpha, dtype=np.float64)
    return np.asarray((rdp(orders) + math.log(check_number("m", m, _SCORES)) / (orders - 1.0)) * _UP)
