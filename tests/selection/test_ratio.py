import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference_theorems import pure_ratio_epsilon, selection_divergence

from privselect.counts import Binomial, Finite, Fixed, Geometric, Logarithmic, NegativeBinomial, Poisson
from privselect.errors import NotCoveredError
from privselect.mechanisms import Gaussian
from privselect.pairs import DominatingPair
from privselect.selection.bounds.ratio import log_ratio, ratio_delta, ratio_epsilon
from research.theorems.main_theorem import HockeyStick

# Epsilon at delta = 1e-6 over a Gaussian base with noise 4, from an independent computation.
GAUSSIAN = [
    (Geometric(mean=30), 1.8868),
    (Geometric(mean=300), 2.3773),
    (Geometric(mean=3000), 2.8111),
    (NegativeBinomial(eta=-0.5, mean=30), 1.5830),
    (Logarithmic(mean=30), 1.6990),
    (NegativeBinomial(eta=5, mean=30), 2.3814),
    (Poisson(mean=10), 2.1765),
    (Binomial(n=20, p=0.5), 2.4895),
]

UNCAPPED = st.one_of(
    st.builds(NegativeBinomial, eta=st.floats(-0.95, 20.0), gamma=st.floats(1e-4, 0.999)),
    st.builds(Poisson, mean=st.floats(0.01, 100.0)),
    st.builds(Binomial, n=st.integers(1, 60), p=st.floats(0.01, 0.95)),
)
BOUNDED = st.one_of(
    st.builds(Fixed, k=st.integers(1, 6)),
    st.dictionaries(st.integers(1, 12), st.integers(1, 9), min_size=1, max_size=4).map(Finite),
    st.builds(Geometric, mean=st.floats(1.5, 20.0), cap=st.integers(2, 30)),
)
WEIGHTS = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=2, max_size=6).filter(
    lambda w: sum(a for a, _ in w) > 0 and sum(b for _, b in w) > 0
)


def masses(weights):
    p, q = np.array(weights, dtype=float).T
    return p / p.sum(), q / q.sum()


def randomised_response(epsilon):
    s = 1.0 / (1.0 + math.exp(-epsilon))
    return DominatingPair.from_masses([s, 1.0 - s], [1.0 - s, s])


@pytest.mark.parametrize(("count", "expected"), GAUSSIAN, ids=str)
def test_the_table_for_a_gaussian_base(count, expected):
    pair = Gaussian(sigma=4).brackets[0].upper
    assert ratio_epsilon(pair, count, 1e-6) == pytest.approx(expected, rel=1e-3)


@given(st.floats(0.0, 8.0), UNCAPPED)
def test_closed_forms_for_a_pure_base(epsilon, count):
    general = epsilon + log_ratio(randomised_response(epsilon), count)
    assert general == pytest.approx(pure_ratio_epsilon(epsilon, count), rel=1e-9, abs=1e-9)


def test_closed_forms_at_their_ends():
    assert pure_ratio_epsilon(0.0, Geometric(mean=300)) == 0.0
    assert pure_ratio_epsilon(0.7, Geometric(mean=1)) == pytest.approx(0.7)
    assert pure_ratio_epsilon(0.7, Binomial(n=5, p=1)) == pytest.approx(3.5)  # five runs, all of them
    assert pure_ratio_epsilon(690.0, Geometric(mean=10)) < 3 * 690.0
    assert pure_ratio_epsilon(690.0, Binomial(n=5, p=1)) == pytest.approx(5 * 690.0)


@settings(max_examples=50)
@given(WEIGHTS, st.floats(-0.95, 20.0), st.floats(1e-4, 0.999))
def test_the_root_of_the_theorem_is_the_supremum(weights, eta, gamma):
    """``(eta+1) e*`` with ``delta_{P'||P}(e*) = gamma/(1-gamma) (exp(e*) - 1)``, found by bisection."""
    pair = DominatingPair.from_masses(*masses(weights))
    low, high = 0.0, 60.0
    for _ in range(80):
        middle = 0.5 * (low + high)
        allowed = float(pair.reverse.hockey_stick(middle)) <= gamma / (1.0 - gamma) * math.expm1(middle)
        low, high = (low, middle) if allowed else (middle, high)
    found = log_ratio(pair, NegativeBinomial(eta=eta, gamma=gamma))
    assert found == pytest.approx((eta + 1.0) * high, rel=1e-8, abs=1e-8)  # both right to about 1e-11 relative


@settings(max_examples=40)
@given(WEIGHTS, st.one_of(UNCAPPED, BOUNDED), st.floats(0.0, 4.0))
def test_no_order_of_the_outcomes_exceeds_it(weights, count, epsilon):
    p, q = masses(weights)
    bound = float(ratio_delta(DominatingPair.from_masses(p, q), count, epsilon))
    for order in (np.arange(len(p)), np.argsort(p * (q.max() + 1.0) - q), np.argsort(q - p), np.argsort(p - q)):
        true = selection_divergence(HockeyStick(epsilon), p[order], q[order], count)
        assert true <= bound * (1.0 + 1e-9) + 1e-11  # the exact value comes by quadrature, unrounded


@pytest.mark.parametrize("k", [1, 2, 5])
def test_a_fixed_number_of_pure_trials_costs_their_composition(k):
    assert log_ratio(randomised_response(0.7), Fixed(k=k)) == pytest.approx((k - 1) * 0.7, abs=2e-6)


def test_a_cap_far_out_changes_nothing_and_is_bounded_piece_by_piece():
    pair = randomised_response(1.0)
    free, capped = log_ratio(pair, Geometric(mean=5)), log_ratio(pair, Geometric(mean=5, cap=400))
    assert capped == pytest.approx(free, abs=2e-6)  # greatest_along stops at 1e-6


def test_a_leak_under_a_law_that_needs_every_trial_gives_nothing_but_m_delta():
    pair = DominatingPair.from_masses([0.5, 0.5, 0.0], [0.5, 0.0, 0.5])
    assert math.isinf(log_ratio(pair, Fixed(k=3)))
    assert ratio_delta(pair, Fixed(k=3), [0.0, 5.0]).tolist() == [1.0, 1.0]
    assert math.isinf(ratio_epsilon(pair, Fixed(k=3), 1e-6))


def test_delta_falls_with_epsilon_and_stays_in_the_unit_interval():
    pair = Gaussian(sigma=4).brackets[0].upper
    delta = ratio_delta(pair, Geometric(mean=300), np.linspace(0.0, 20.0, 200))
    assert np.all(np.diff(delta) <= 0.0)
    assert delta[0] == 1.0
    assert delta[-1] >= 0.0


@pytest.mark.parametrize("count", [Geometric(mean=5, cap=20), Fixed(k=3), Finite({1: 1, 4: 1})], ids=str)
def test_no_closed_form(count):
    with pytest.raises(NotCoveredError, match="closed form"):
        pure_ratio_epsilon(1.0, count)
