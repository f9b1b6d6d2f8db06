"""A mechanism on a secret Poisson sample of the records: closed forms, brute force over small mechanisms, and what is refused."""

import itertools
from fractions import Fraction

import mpmath
import numpy as np
import pytest

import privselect as ps
from closed_forms import DIGITS, gaussian_hockey, laplace_hockey
from privselect.errors import NeighbourError, ParameterError
from privselect.mechanisms.renyi import lem_rdp_to_dp_epsilon
from privselect.selection.bounds.renyi_bounds import renyi_curve_of
from selection.orders import exact, selected_masses, worst_split
from small_pairs import ORDERS, hockey, mechanism_of, normalized, product, random_weights

RATES = [Fraction(1, 10), Fraction(1, 2), Fraction(99, 100)]


def sampled_hockey(hockey_stick, rate, epsilon):
    """The larger hockey stick of both orders, from that of a mechanism whose two orders are equal."""
    with mpmath.workdps(DIGITS):
        r, factor = exact(rate), mpmath.exp(mpmath.mpf(epsilon))
        ratio = 1 + (factor - 1) / r
        remove = r * hockey_stick(mpmath.log(ratio)) if ratio > 0 else 1 - factor
        rest = 1 - factor * (1 - r)
        add = rest * hockey_stick(mpmath.log(factor * r / rest)) if rest > 0 else 0
        return max(remove, add)


@pytest.mark.parametrize("rate", RATES, ids=str)
@pytest.mark.parametrize(
    ("mechanism", "hockey_stick"),
    [(ps.Gaussian(sigma=2), lambda e: gaussian_hockey(0.5, e)), (ps.Laplace(scale=1.5), lambda e: laplace_hockey(1.5, e))],
    ids=["gaussian", "laplace"],
)
def test_closed_forms_lie_between_the_bounds(mechanism, hockey_stick, rate):
    sampled = ps.Subsampled(mechanism, rate)
    for epsilon in (-0.5, 0.0, 0.05, 0.3, 0.9):
        true, found = sampled_hockey(hockey_stick, rate, epsilon), sampled.delta_at(epsilon)
        assert found.lower <= true <= found.upper
        assert found.upper == pytest.approx(float(true), rel=1e-3, abs=1e-9)


LAWS = [ps.Geometric(mean=3), ps.Poisson(mean=2), ps.Finite({0: 1, 1: 2, 3: 2}), ps.Binomial(n=4, p=0.5)]


def test_a_selection_on_one_sample_by_brute_force():
    """The sample is drawn once for all trials, so the whole selection is amplified: every order of every small pair, both orders of the
    neighbours."""
    rng = np.random.default_rng(11)
    for case in range(24):
        check_amplification(rng, LAWS[case % len(LAWS)])


@pytest.mark.soak
def test_a_selection_on_one_sample_in_a_long_campaign(campaign, fresh_rng):
    for case in range(campaign(1000)):
        check_amplification(fresh_rng, LAWS[case % len(LAWS)])


def check_amplification(rng, count):
    p, q = map(normalized, random_weights(rng))
    rate = Fraction(int(rng.integers(1, 20)), 20)
    epsilon = float(rng.choice([0.0, rng.uniform(0.0, 1.5)]))
    worst = max(hockey(amplified(count, p, q, order, rate), epsilon) for order in ORDERS[len(p)])
    found = ps.Subsampled(ps.Selection(mechanism_of(p, q), count), rate).delta_at(epsilon)
    told = f"{count}, p={p}, q={q}, rate={rate}, epsilon={epsilon!r}"
    assert worst <= found.upper, told
    # The worst order with split outcomes, on a lattice: at least 99% of the truth, which the lower bound cannot exceed.
    assert found.lower <= min(1.01 * split_worst(count, p, q, epsilon, rate) + 1e-9, found.upper), told


def split_worst(count, p, q, epsilon, rate):
    """The largest delta over orders with split outcomes. The amplified order "remove" is ``r H(1 + (e^e - 1)/r)``, "add" is similar."""
    r, factor = float(rate), np.exp(epsilon)
    p, q = (np.array(masses, dtype=float) for masses in (p, q))
    remove = r * worst_split(count, p, q, np.log(1 + (factor - 1) / r), 150)
    rest = 1 - factor * (1 - r)
    add = rest * worst_split(count, q, p, np.log(factor * r / rest), 150) if rest > 0 else 0.0
    return max(remove, add)


def amplified(count, p, q, order, rate):
    """Both distributions of the winner's outcome in this order of scores, with the record in the sample with this probability."""
    with mpmath.workdps(DIGITS):
        a, b = (selected_masses(count, [exact(masses[i]) for i in order]) for masses in (p, q))
        return [exact(rate) * x + (1 - exact(rate)) * y for x, y in zip(a, b, strict=True)], b


def test_the_bounds_are_close():
    small = mechanism_of(*map(normalized, ((7, 3), (3, 7))))
    found = ps.Subsampled(ps.Selection(small, ps.Geometric(mean=3)), Fraction(1, 4)).delta_at(0.2)
    assert found.lower >= 0.99 * found.upper
    chosen = ps.Subsampled(ps.Selection(ps.Gaussian(sigma=4), ps.Geometric(mean=30)), Fraction(1, 10)).epsilon_at(1e-6)
    assert chosen.lower >= 0.98 * chosen.upper


@pytest.mark.parametrize("rate", RATES, ids=str)
def test_a_search_and_a_training_on_all_records_by_brute_force(rate):
    rng = np.random.default_rng(12)
    for _ in range(6):
        p, q = map(normalized, random_weights(rng))
        final = tuple(map(normalized, (rng.integers(1, 9, 2), rng.integers(1, 9, 2))))
        count = ps.Geometric(mean=2)
        whole = ps.Composed((ps.Subsampled(ps.Selection(mechanism_of(p, q), count), rate), mechanism_of(*final)))
        epsilon = float(rng.uniform(0.0, 1.5))
        last = [[exact(mass) for mass in masses] for masses in final]
        worst = max(hockey(product(amplified(count, p, q, order, rate), last), epsilon) for order in ORDERS[len(p)])
        found = whole.delta_at(epsilon)
        assert worst <= found.upper
        assert found.lower <= found.upper


def test_every_record_is_drawn():
    inner = ps.Selection(ps.Gaussian(sigma=4), ps.Geometric(mean=30))
    all_drawn = ps.Subsampled(inner, 1)
    assert all_drawn.epsilon_at(1e-6) == inner.epsilon_at(1e-6)
    assert all_drawn.delta_at([0.0, 1.0]).upper.tolist() == inner.delta_at([0.0, 1.0]).upper.tolist()
    assert all_drawn.renyi_at([2.0]).tolist() == inner.renyi_at([2.0]).tolist()
    assert ps.Composed((all_drawn, ps.Gaussian(sigma=5))).epsilon_at(1e-6) == ps.Composed((inner, ps.Gaussian(sigma=5))).epsilon_at(1e-6)


def test_losses_that_are_infinite_in_one_order_only_become_finite():
    """The winner may prove that the record is absent, never that it is present: on a sample, nothing is proved."""
    small = mechanism_of(*map(normalized, ((0, 23, 1200), (2, 1570, 4))))
    chosen = ps.Selection(small, ps.Finite({1: 1, 3: 2}))
    assert chosen.epsilon_at(1e-6).upper == np.inf
    for delta in (1e-6, 1e-30):
        found = ps.Subsampled(chosen, Fraction(1, 1000)).epsilon_at(delta)
        assert 0.9 * found.upper <= found.lower <= found.upper < np.inf


def test_fewer_records_leak_less():
    inner = ps.Selection(ps.Gaussian(sigma=4), ps.Geometric(mean=30))
    found = [ps.Subsampled(inner, rate).epsilon_at(1e-6) for rate in (Fraction(1, 1000), Fraction(1, 10), Fraction(1, 2), 1)]
    assert all(less.upper < more.lower for less, more in itertools.pairwise(found))


def test_one_sample_for_two_runs_is_another_mechanism_than_two_samples():
    once = ps.Subsampled(ps.Composed((ps.Laplace(scale=1.0),), times=2), Fraction(1, 10))
    twice = ps.Composed((ps.Subsampled(ps.Laplace(scale=1.0), Fraction(1, 10)),), times=2)
    assert once.composition_steps() == ((once, 1),)
    assert once.delta_at(0.3).lower > twice.delta_at(0.3).upper


def test_parts_of_a_split_are_sampled_one_by_one():
    whole = ps.Subsampled(ps.Disjoint((ps.Gaussian(sigma=4), ps.Pure(epsilon=0.8))), Fraction(1, 10))
    parts = [ps.Subsampled(part, Fraction(1, 10)) for part in (ps.Gaussian(sigma=4), ps.Pure(epsilon=0.8))]
    assert whole.cases == tuple(parts)
    found, apart = whole.delta_at([0.0, 0.05]), [part.delta_at([0.0, 0.05]) for part in parts]
    assert found.upper.tolist() == np.maximum(*(one.upper for one in apart)).tolist()


@pytest.mark.parametrize("rate", RATES, ids=str)
@pytest.mark.parametrize("sigma", [0.7, 2.0, 8.0])
def test_renyi_divergences_are_above_the_true_ones(sigma, rate):
    sampled, orders = ps.Subsampled(ps.Gaussian(sigma=sigma), rate), [1.01, 1.5, 2.0, 3.7, 8.0, 40.0, 100.0]
    for order, bound in zip(orders, sampled.renyi_at(orders).tolist(), strict=True):
        assert bound >= _true_renyi(sigma, rate, order)
        assert bound <= ps.Gaussian(sigma=sigma).renyi_at([order])[0] * (1 + 1e-9)


def _true_renyi(sigma, rate, order):
    """The larger divergence of ``r N(1, s^2) + (1-r) N(0, s^2)`` and ``N(0, s^2)``, by quadrature."""
    with mpmath.workdps(25):
        s, r, a = mpmath.mpf(sigma), exact(rate), mpmath.mpf(order)

        def log_ratio(x):
            return mpmath.log(1 - r + r * mpmath.exp((2 * x - 1) / (2 * s**2)))

        def moment(power):
            centre = mpmath.mpf(max(power, 0))
            line = [centre - 60 * s, *(centre + k * s for k in range(-8, 9, 2)), centre + 60 * s, 1 + 80 * s + centre]
            value = mpmath.quad(lambda x: mpmath.npdf(x, 0, s) * mpmath.exp(power * log_ratio(x)), sorted(line))
            return mpmath.log(value) / (a - 1)

        return float(max(moment(a), moment(1 - a)) * (1 - mpmath.mpf(10) ** -9))


def test_the_renyi_bound_is_above_the_exact_one():
    sampled = ps.Subsampled(ps.Gaussian(sigma=2), Fraction(1, 10))
    assert sampled.epsilon_at(1e-6).upper < lem_rdp_to_dp_epsilon(renyi_curve_of(sampled), 1e-6)


def test_its_text_form_is_exact():
    sampled = ps.Subsampled(ps.Selection(ps.Gaussian(sigma=4), ps.Geometric(mean=30)), Fraction(1, 3))
    assert str(sampled) == "subsampled(selection(gaussian(sigma=4), geometric(mean=30)), probability=1/3)"
    assert ps.parse(str(sampled)) == sampled
    assert ps.parse("subsampled(gaussian(sigma=4), probability=0.1)").probability == Fraction(1, 10)


@pytest.mark.parametrize("given", [0, -0.1, 1.5, float("nan"), float("inf"), "a tenth", None])
def test_a_probability_out_of_range_is_refused(given):
    with pytest.raises(ParameterError, match="probability"):
        ps.Subsampled(ps.Gaussian(sigma=4), given)


def test_what_cannot_be_sampled_is_refused():
    with pytest.raises(NeighbourError, match="replaced record may change the size of the sample"):
        ps.Subsampled(ps.Gaussian(sigma=4, neighbours="replace_one"), 0.1)
    with pytest.raises(ParameterError, match="must be a mechanism"):
        ps.Subsampled("gaussian", 0.1)
    with pytest.raises(ParameterError, match="denominator of at most"):
        ps.Subsampled(ps.Gaussian(sigma=4), Fraction(1, 10**301))
    with pytest.raises(NeighbourError):
        ps.Composed((ps.Subsampled(ps.Gaussian(sigma=4), 0.1), ps.Gaussian(sigma=4, neighbours="replace_one")))
