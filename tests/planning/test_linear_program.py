"""Cuts against exact arithmetic: what an order leaks, law of K by law of K."""

import bisect
import itertools

import mpmath
import numpy as np
import pytest

from privselect.counts import Binomial, Finite, Fixed, Geometric
from privselect.mechanisms import DPSGD, Gaussian, GaussianDP, Pure
from privselect.pairs import DominatingPair
from privselect.planning.design.linear_program import ScoreOrderCut, worst_order
from privselect.selection import Selection
from privselect.selection.exact.engine import ExactUpper

CAP = 12
LAWS = [
    Finite({1: 1, 4: 2, 12: 3}),
    Finite({0: 5, 1: 1, 12: 1}),
    Finite({2: 1, 7: 1}),
    Geometric(mean=5, cap=CAP),
    Binomial(n=12, p=0.4),
    Fixed(k=12),
    Fixed(k=1),
]
PAIRS = {
    "two outcomes": DominatingPair.from_masses([0.75, 0.25], [0.25, 0.75]),
    "leaks": DominatingPair.from_masses([0.5, 0.375, 0.125, 0.0], [0.25, 0.5, 0.0, 0.25]),
    "gaussian": Gaussian(sigma=1).brackets[0].lowers[0],
    "dpsgd": DPSGD(noise_multiplier=1, sampling_probability=0.1, steps=20).brackets[1].lowers[0],
}


def pmf_of(law):
    return np.exp(law.log_pmf(np.arange(CAP + 1.0)))


def exact_masses(pair, order):
    """(u, d, v, e) of each piece, from the pair's floats without further rounding."""
    low = [(mpmath.mpf(0), mpmath.mpf(pair.q_only))]
    low += itertools.accumulate(zip(pair.p.tolist(), pair.q.tolist(), strict=True), _add, initial=low[0])
    high = [(mpmath.mpf(0), mpmath.mpf(0)), (mpmath.mpf(pair.p_only), mpmath.mpf(0))]
    high += itertools.accumulate(zip(pair.p[::-1].tolist(), pair.q[::-1].tolist(), strict=True), _add, initial=high[1])
    for x, y0, y1 in zip(order.x.tolist(), order.y0.tolist(), order.y1.tolist(), strict=True):
        k0, k1 = _between(high, y0), _between(high, y1)
        yield x + mpmath.mpf(y0), mpmath.mpf(y1) - y0, _between(low, x) + k0, k1 - k0


def _add(sums, masses):
    return sums[0] + mpmath.mpf(masses[0]), sums[1] + mpmath.mpf(masses[1])


def _between(corners, x):
    place = bisect.bisect_left(corners, x, lo=1, key=lambda corner: corner[0])
    if place == len(corners):
        return corners[-1][1]
    (x0, v0), (x1, v1) = corners[place - 1], corners[place]
    return v1 if x1 == x0 else v0 + (v1 - v0) * (x - x0) / (x1 - x0)


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("law", LAWS, ids=str)
def test_coefficients_are_below_the_exact_ones_and_close(name, law):
    pair, epsilon = PAIRS[name], 1.5
    order = worst_order(pair, law, epsilon, 0.01)
    if order is None:
        assert ExactUpper(pair, law).delta(epsilon) == 0.0
        return
    found = order.coefficients(pair, epsilon, CAP)
    with mpmath.workdps(40):
        pieces, factor = list(exact_masses(pair, order)), mpmath.exp(mpmath.mpf(epsilon))
        for k in range(1, CAP + 1):
            gain = sum((1 - u) ** k - (1 - u - d) ** k for u, d, _, _ in pieces)
            cost = factor * sum((1 - v) ** k - (1 - v - e) ** k for _, _, v, e in pieces)
            assert found[k - 1] <= gain - cost
            # Thousands of outcomes, each sum rounded outward: about 1e-9 of what is subtracted.
            assert found[k - 1] >= gain - cost - 1e-8 * (gain + cost)


@pytest.mark.parametrize("mechanism", [Gaussian(sigma=1), GaussianDP(mu=0.5, delta=1e-4), Pure(epsilon=0.8)], ids=str)
@pytest.mark.parametrize("epsilon", [0.0, 1.0, 2.5])
def test_no_law_leaks_less_than_a_cut_found_for_another(mechanism, epsilon):
    bracket = mechanism.brackets[0]
    uppers = [Selection(mechanism, law).delta_at(epsilon).upper for law in LAWS]
    for law in LAWS:
        order = worst_order(bracket.upper, law, epsilon, 0.01)
        if order is None:
            continue
        for pair in (bracket.upper, *bracket.lowers):
            cut = order.coefficients(pair, epsilon, CAP)
            for other, upper in zip(LAWS, uppers, strict=True):
                assert float(cut @ pmf_of(other)[1:]) <= upper


def test_the_cut_of_a_law_is_about_what_it_leaks():
    pair = Gaussian(sigma=1).brackets[0].upper
    for law in LAWS:
        cut = worst_order(pair, law, 1.0, 2e-3).coefficients(pair, 1.0, CAP)
        interval = Selection(Gaussian(sigma=1), law).delta_at(1.0)
        # The order is the accountant's own; its two ends are this close, or an infinite loss is at work.
        assert float(cut @ pmf_of(law)[1:]) >= 0.98 * interval.lower


def test_pieces_beyond_all_mass_add_nothing():
    pair = DominatingPair.from_masses([0.5, 0.5], [0.25, 0.75])
    order = ScoreOrderCut(np.array([0.5]), np.array([0.0]), np.array([0.5]))
    cut = order.coefficients(pair, 0.0, 3)
    # x + y1 = 1: everything is ranked, and the last piece ends at mass 1 under both laws.
    assert cut == pytest.approx([0.5 - 0.25, 0.25 - 0.0625, 0.125 - 0.015625], abs=1e-9)
