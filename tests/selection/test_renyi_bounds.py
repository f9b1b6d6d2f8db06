import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference_theorems import selection_divergence

import privselect as ps
from privselect.counts import Binomial, Geometric, Logarithmic, NegativeBinomial, Poisson
from privselect.errors import NotCoveredError, ParameterError
from privselect.mechanisms import Gaussian
from privselect.mechanisms.renyi import ORDERS, lem_rdp_to_dp, lem_rdp_to_dp_epsilon
from privselect.pairs import DominatingPair
from privselect.pairs.dominating_pair import renyi_of_pair
from privselect.selection.bounds.renyi_bounds import interpolate_renyi_curve, thm_rdp_negbin, thm_rdp_poisson
from research.theorems.main_theorem import Power

# Epsilon at delta = 1e-6 over a Gaussian base with noise 4, from an independent computation.
GAUSSIAN = [
    (Geometric(mean=30), 2.5551),
    (Geometric(mean=300), 3.0442),
    (Geometric(mean=3000), 3.4536),
    (NegativeBinomial(eta=-0.5, mean=30), 1.8027),
    (Logarithmic(mean=30), 2.0746),
    (NegativeBinomial(eta=5, mean=30), 4.0851),
]
FULL_WEIGHTS = st.lists(st.tuples(st.integers(1, 20), st.integers(1, 20)), min_size=2, max_size=6)


def gaussian_curve(alpha, sigma=4.0):
    return alpha / (2.0 * sigma**2)


def gaussian_profile(epsilon):
    return Gaussian(sigma=4).brackets[0].upper.hockey_stick(epsilon, side=1)


def masses(weights):
    p, q = np.array(weights, dtype=float).T
    return p / p.sum(), q / q.sum()


def curves(p, q):
    pair = DominatingPair.from_masses(p, q)
    return (
        lambda alpha: np.maximum(renyi_of_pair(pair, alpha), renyi_of_pair(pair.reverse, alpha)),
        lambda epsilon: np.maximum(pair.hockey_stick(epsilon, side=1), pair.reverse.hockey_stick(epsilon, side=1)),
    )


@pytest.mark.parametrize(("count", "expected"), GAUSSIAN, ids=str)
def test_the_table_for_a_gaussian_base(count, expected):
    found = lem_rdp_to_dp_epsilon(lambda alpha: thm_rdp_negbin(gaussian_curve, count, alpha), 1e-6)
    assert found == pytest.approx(expected, rel=1e-3)


def test_the_table_for_poisson():
    found = lem_rdp_to_dp_epsilon(lambda alpha: thm_rdp_poisson(gaussian_curve, gaussian_profile, Poisson(mean=10), alpha), 1e-6)
    assert found == pytest.approx(2.0394, rel=1e-3)


def test_never_above_the_public_accountant():
    """dp-accounting, on a coarser grid of orders, gives the same bound or a looser one."""
    from dp_accounting import dp_event
    from dp_accounting.rdp import RdpAccountant

    event = dp_event.RepeatAndSelectDpEvent(dp_event.GaussianDpEvent(4.0), mean=30, shape=1)
    theirs = RdpAccountant().compose(event).get_epsilon(1e-6)
    ours = lem_rdp_to_dp_epsilon(lambda alpha: thm_rdp_negbin(gaussian_curve, Geometric(mean=30), alpha), 1e-6)
    assert theirs * 0.99 <= ours <= theirs * (1.0 + 1e-9)


@settings(max_examples=25)
@given(FULL_WEIGHTS, st.floats(-0.9, 6.0), st.floats(0.01, 0.9), st.floats(1.05, 30.0))
def test_no_order_exceeds_the_bound_for_negative_binomials(weights, eta, gamma, alpha):
    p, q = masses(weights)
    count = NegativeBinomial(eta=eta, gamma=gamma)
    bound = float(thm_rdp_negbin(curves(p, q)[0], count, alpha))
    for order in (np.argsort(np.log(p / q)), np.argsort(np.log(q / p))):
        true = math.log(selection_divergence(Power(alpha), p[order], q[order], count)) / (alpha - 1.0)
        assert true <= bound + 1e-9  # the true value comes by quadrature, unrounded


@settings(max_examples=25)
@given(FULL_WEIGHTS, st.floats(0.01, 20.0), st.floats(1.05, 30.0))
def test_no_order_exceeds_the_bound_for_poisson(weights, mean, alpha):
    p, q = masses(weights)
    count = Poisson(mean=mean)
    bound = float(thm_rdp_poisson(*curves(p, q), count, alpha))
    for order in (np.argsort(np.log(p / q)), np.argsort(np.log(q / p))):
        true = math.log(selection_divergence(Power(alpha), p[order], q[order], count)) / (alpha - 1.0)
        assert true <= bound + 1e-9


def test_the_value_at_a_larger_order_may_stand_in():
    count = Geometric(mean=1000)
    alpha = np.array([1.001, 1.01, 1.1, 2.0, 10.0, 100.0])
    values = thm_rdp_negbin(gaussian_curve, count, alpha)
    assert np.all(np.diff(values) >= 0.0)
    assert values[0] < math.log(1000) / 0.001


def test_a_curve_known_at_few_orders_only():
    def partial(alpha):
        return np.where(alpha > 40.0, np.inf, gaussian_curve(alpha))

    found = lem_rdp_to_dp_epsilon(lambda alpha: thm_rdp_negbin(partial, Geometric(mean=30), alpha), 1e-6)
    full = lem_rdp_to_dp_epsilon(lambda alpha: thm_rdp_negbin(gaussian_curve, Geometric(mean=30), alpha), 1e-6)
    assert full <= found < 2.0 * full

    def nothing(alpha):
        return np.full_like(alpha, np.inf)

    assert math.isinf(lem_rdp_to_dp_epsilon(nothing, 1e-6))
    assert lem_rdp_to_dp(nothing, [0.0, 1.0]).tolist() == [1.0, 1.0]
    assert np.all(np.isinf(thm_rdp_negbin(nothing, Geometric(mean=30), [2.0, 3.0])))


@given(st.floats(1e-12, 0.3), st.floats(0.5, 50.0))
def test_epsilon_and_delta_by_conversion_agree_and_cover_the_truth(delta, sigma):
    epsilon = lem_rdp_to_dp_epsilon(lambda alpha: gaussian_curve(alpha, sigma), delta)
    assert float(lem_rdp_to_dp(lambda alpha: gaussian_curve(alpha, sigma), epsilon)) <= delta * (1.0 + 1e-9)
    assert Gaussian(sigma=sigma).brackets[0].lowers[0].hockey_stick(epsilon, side=-1) <= delta


@given(FULL_WEIGHTS, st.floats(1.01, 50.0))
def test_renyi_of_a_pair_by_its_definition(weights, alpha):
    p, q = masses(weights)
    plain = math.log(np.sum(p**alpha * q ** (1.0 - alpha))) / (alpha - 1.0)
    found = float(renyi_of_pair(DominatingPair.from_masses(p, q), alpha))
    assert plain - 1e-12 / (alpha - 1.0) <= found
    assert found == pytest.approx(plain, rel=1e-9, abs=1e-9)  # rounded up by at most 1e-12 alpha/(alpha-1)


def test_renyi_of_a_pair_with_a_leak_and_of_extreme_losses():
    assert np.all(np.isinf(renyi_of_pair(DominatingPair.from_masses([0.5, 0.5], [1.0, 0.0]), [2.0, 3.0])))
    assert float(renyi_of_pair(DominatingPair.from_masses([1.0, 0.0], [0.5, 0.5]), 2.0)) == pytest.approx(math.log(2.0))
    steep = DominatingPair.from_masses([1.0 - 1e-200, 1e-200], [1e-200, 1.0 - 1e-200])
    assert float(renyi_of_pair(steep, 1e4)) == pytest.approx(200.0 * math.log(10.0))


def test_renyi_of_the_discrete_gaussian_pair():
    pair = Gaussian(sigma=4).brackets[0].upper
    alpha = np.array([1.1, 2.0, 10.0, 60.0])
    if pair.p_only == 0.0:
        assert renyi_of_pair(pair, alpha) == pytest.approx(gaussian_curve(alpha), rel=1e-3)
    assert len(ORDERS) > 500


@given(FULL_WEIGHTS, st.lists(st.floats(1.01, 64.0), min_size=1, max_size=8, unique=True), st.floats(1.01, 64.0))
def test_a_curve_through_a_few_orders_lies_above_the_truth(weights, orders, alpha):
    pair = DominatingPair.from_masses(*masses(weights))
    orders = np.sort(orders)
    found = float(interpolate_renyi_curve(orders, renyi_of_pair(pair, orders))(np.array(alpha)))
    if alpha > orders[-1]:
        assert math.isinf(found)
    else:
        assert found >= float(renyi_of_pair(pair, alpha)) - 1e-9  # both are rounded up, by up to 1e-10 near order 1


def test_a_curve_through_the_usual_orders_is_as_good_as_the_formula():
    orders = np.concatenate([np.linspace(1.1, 10.9, 99), np.arange(11.0, 64.0)])
    curve = interpolate_renyi_curve(orders, gaussian_curve(orders))
    found = lem_rdp_to_dp_epsilon(lambda alpha: thm_rdp_negbin(curve, Geometric(mean=300), alpha), 1e-6)
    assert found == pytest.approx(3.0442, rel=1e-3)


def test_refusals():
    with pytest.raises(NotCoveredError, match="thm:rdp_negbin"):
        thm_rdp_negbin(gaussian_curve, Poisson(mean=3), 2.0)
    with pytest.raises(NotCoveredError, match="thm:rdp_poisson"):
        thm_rdp_poisson(gaussian_curve, gaussian_profile, Binomial(n=3, p=0.5), 2.0)
    with pytest.raises(NotCoveredError, match="thm:rdp_negbin"):
        thm_rdp_negbin(gaussian_curve, Geometric(mean=30, cap=60), 2.0)
    with pytest.raises(ParameterError, match="`alpha`"):
        renyi_of_pair(DominatingPair.from_masses([1.0], [1.0]), 1.0)


def test_small_orders_that_do_not_converge_do_not_hide_the_larger_ones():
    found = ps.compare(
        ps.Selection(ps.parse("dpsgd(noise_multiplier=1.812, sampling_probability=0.39578, steps=4)"), ps.Geometric(64)), delta=1e-6
    )
    assert found.bounds["exact"].upper < found.bounds["renyi"] < 10.0
