"""A mechanism known by Renyi divergences: no pair of distributions that keeps them leaks more, and some leaks as much."""

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privselect as ps
from privselect.errors import ParameterError
from privselect.mechanisms.renyi import lem_rdp_to_dp, renyi_to_delta

DIGITS = 40
SENTENCE = "`orders` must be pairs (alpha, epsilon) such as ((2, 0.1), (10, 0.6))"
ORDERS = [(2.0, 0.1), (2.0, 1e-4), (1.5, 0.3), (10.0, 0.6), (64.0, 0.01), (3.0, 5.0)]


def moment(alpha, p, q):
    return p**alpha * q ** (1 - alpha) + (1 - p) ** alpha * (1 - q) ** (1 - alpha)


def greatest(alpha, divergence, epsilon):
    """``max p - e^epsilon q`` over distributions (p, 1-p), (q, 1-q) with that divergence, by search: a real pair, so never too large."""
    with mpmath.workdps(DIGITS):
        alpha, a, limit = mpmath.mpf(alpha), mpmath.exp(mpmath.mpf(epsilon)), mpmath.exp((mpmath.mpf(alpha) - 1) * divergence)

        def gain(log_q):
            q = mpmath.exp(log_q)
            low, high = q, mpmath.mpf(1)
            if q ** (1 - alpha) <= limit:
                return high - a * q
            for _ in range(110):
                middle = (low + high) / 2
                low, high = (middle, high) if moment(alpha, middle, q) <= limit else (low, middle)
            return low - a * q

        places = [-(mpmath.mpf(40) ** (mpmath.mpf(k) / 20)) for k in range(-60, 21)]  # from just below 0 to -40
        best = max(range(81), key=lambda k: gain(places[k]))
        low, high = places[min(best + 1, 80)], places[max(best - 1, 0)]
        for _ in range(42):
            left, right = low + (high - low) * mpmath.mpf("0.382"), low + (high - low) * mpmath.mpf("0.618")
            low, high = (low, right) if gain(left) > gain(right) else (left, high)
        return gain(low)


@pytest.mark.parametrize(("alpha", "divergence"), ORDERS)
@pytest.mark.parametrize("epsilon", [-0.7, 0.0, 0.05, 0.9])
def test_one_order_gives_the_largest_delta(alpha, divergence, epsilon):
    true = greatest(alpha, divergence, epsilon)
    found = float(renyi_to_delta(alpha, divergence, np.array(epsilon)))
    assert true <= found
    assert found == pytest.approx(float(true), rel=1e-8)
    # Never above the closed form of one touching point.
    closed = mpmath.exp((alpha - 1) * (divergence - epsilon + mpmath.log1p(-1 / mpmath.mpf(alpha)))) / alpha
    assert found <= closed * (1 + 1e-12)


def touching(alpha, divergence, epsilon):
    """``E(X - a)_+`` of the distribution on {x0, x1} that has mean 1 and the moment allowed: found by bisection, in very many digits."""
    with mpmath.workdps(150):
        alpha, divergence, a = mpmath.mpf(alpha), mpmath.mpf(divergence), mpmath.exp(mpmath.mpf(epsilon))
        b, limit = alpha / (alpha - 1), mpmath.exp((alpha - 1) * divergence)

        def points(log_s):
            s = mpmath.exp(log_s)
            root = ((1 + s) ** b - s**b) / (a * b)
            return s ** (1 / (alpha - 1)) / root, (1 + s) ** (1 / (alpha - 1)) / root

        low, high = mpmath.mpf(-700), mpmath.mpf(60)
        for _ in range(420):
            middle = (low + high) / 2
            x0, x1 = points(middle)
            allowed = x0**alpha + (x1**alpha - x0**alpha) * (1 - x0) / (x1 - x0) <= limit
            low, high = (low, middle) if allowed else (middle, high)
        x0, x1 = points(high)
        return (1 - x0) / (x1 - x0) * (x1 - a)


@pytest.mark.parametrize(
    ("alpha", "divergence", "epsilon"), [(64.0, 0.01, 1.0), (64.0, 0.01, 2.5), (10.0, 0.6, 7.0), (17.7, 0.005, 4.5), (300.0, 0.3, 0.7)]
)
def test_tiny_deltas_keep_their_digits(alpha, divergence, epsilon):
    true = touching(alpha, divergence, epsilon)
    found = float(renyi_to_delta(alpha, divergence, np.array(epsilon)))
    assert true < 1e-24
    assert true <= found
    assert found == pytest.approx(float(true), rel=1e-9)


@pytest.mark.parametrize("alpha", [1.0 + 1e-9, 1.001, 1.1, 2.0, 7.5, 300.0, 1e6, 1e12, 1e300])
@pytest.mark.parametrize("divergence", [1e-300, 1e-12, 1e-3, 0.5, 30.0, 1e4, 1e300])
def test_no_order_is_too_extreme(alpha, divergence):
    epsilon = np.array([-700.0, -1.0, 0.0, 1e-9, 0.5, 29.9, 30.1, 700.0])
    found = renyi_to_delta(alpha, divergence, epsilon)
    assert np.all((found >= -np.expm1(np.minimum(epsilon, 0.0)) * (1.0 - 1e-12)) & (found <= 1.0))
    # Odds of e^divergence keep every order: randomised response is one of the pairs.
    with np.errstate(over="ignore"):
        odds = np.exp(-np.minimum(divergence, 600.0))
        response = np.maximum(1.0 - np.exp(np.minimum(epsilon, 600.0)) * odds, 0.0) / (1.0 + odds)
    assert np.all(found[epsilon < 600.0] >= response[epsilon < 600.0] * (1.0 - 1e-12))
    mechanism = ps.Renyi(((alpha, divergence),))
    assert mechanism.epsilon_at(1e-6).upper >= 0.0
    assert mechanism.delta_at(0.0).upper <= 1.0


@settings(max_examples=40)
@given(
    st.lists(st.floats(0.01, 1.0), min_size=2, max_size=4),
    st.lists(st.floats(0.01, 1.0), min_size=4, max_size=4),
    st.lists(st.floats(1.05, 40.0), min_size=1, max_size=3, unique=True),
    st.floats(-2.0, 4.0),
)
def test_no_distributions_with_these_divergences_leak_more(first, second, orders, epsilon):
    p, q = np.array(first), np.array(second[: len(first)])
    p, q = p / p.sum(), q / q.sum()

    def divergence(order):
        return max(np.log(np.sum(one**order * other ** (1.0 - order))) / (order - 1.0) for one, other in ((p, q), (q, p)))

    known = tuple((order, max(float(divergence(order)), 0.0) * (1.0 + 1e-12) + 1e-13) for order in orders)
    leaked = max(np.maximum(one - np.exp(epsilon) * other, 0.0).sum() for one, other in ((p, q), (q, p)))
    assert leaked <= ps.Renyi(known).delta_at(epsilon).upper + 1e-13


def test_both_directions_and_several_orders_together_are_less():
    """At epsilon 0 one order alone allows sqrt(M - 1)/2; distributions that keep it in both directions differ by less."""
    two_sided = ps.Renyi(((2, 1.0),)).delta_at(0.0).upper
    alone = float(renyi_to_delta(2.0, 1.0, np.array(0.0)))
    assert two_sided < alone
    # (p - q)^2 = (M - 1) q (1 - q) with p = 1 - q: the worst pair of all, by symmetry and convexity.
    excess = np.expm1(1.0)
    assert two_sided == pytest.approx(np.sqrt(excess / (4.0 + excess)), rel=1e-3)
    assert two_sided >= np.sqrt(excess / (4.0 + excess))


@pytest.mark.parametrize("delta", [1e-2, 1e-6, 1e-12, 1e-30])
def test_all_orders_of_a_gaussian(delta):
    """Above the Gaussian itself, below the closed form over the same orders."""
    orders = tuple((float(a), float(a) / 32.0) for a in (1.5, 2, 3, 5, 8, 16, 32, 64, 128))
    mechanism, gaussian = ps.Renyi(orders), ps.Gaussian(sigma=4)
    found = mechanism.epsilon_at(delta)
    assert found.lower is None
    assert gaussian.epsilon_at(delta).lower <= found.upper
    assert float(lem_rdp_to_dp(mechanism.renyi_at, found.upper)) >= delta


def test_an_order_near_infinity_is_nearly_pure():
    assert ps.Renyi(((1e6, 1.0),)).delta_at(0.5).upper == pytest.approx(ps.Pure(epsilon=1).delta_at(0.5).upper, rel=1e-4)
    assert ps.Renyi(((1e6, 1.0),)).epsilon_at(1e-9).upper == pytest.approx(1.0, rel=1e-4)


def test_a_divergence_of_0_leaks_nothing():
    found = ps.Renyi(((2, 0), (3, 1))).epsilon_at(1e-9)
    assert (found.lower, found.upper) == (0.0, 0.0)


def test_renyi_at_goes_by_chords_and_knows_nothing_beyond():
    mechanism = ps.Renyi(((10, 0.6), (2, 0.1), (5, 0.9)))  # in any order; the divergence at 5 is at most that at 10
    found = mechanism.renyi_at([1.5, 2.0, 3.0, 5.0, 10.0, 10.5])
    np.testing.assert_allclose(found, [0.1, 0.1, (0.1 + (2.4 - 0.1) / 3) / 2, 0.6, 0.6, np.inf], rtol=1e-11)
    curve = ps.Gaussian(sigma=2)
    some = ps.Renyi(tuple((a, float(curve.renyi_at(a))) for a in (1.5, 3.0, 9.0)))
    orders = np.linspace(1.01, 9.0, 50)
    assert np.all(some.renyi_at(orders) >= curve.renyi_at(orders))


def test_a_selection_from_renyi_divergences():
    found = ps.Selection(ps.Renyi(((2, 0.02), (8, 0.1), (32, 0.5))), ps.Geometric(mean=5)).epsilon_at(1e-6)
    assert found.lower is None
    assert 0.0 < found.upper < np.inf


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: ps.Renyi(()), "`renyi` needs at least one (alpha, epsilon), got none"),
        (lambda: ps.Renyi(None), f"{SENTENCE}, got None"),
        (lambda: ps.Renyi(3), f"{SENTENCE}, got 3"),
        (lambda: ps.Renyi((2, 0.1)), "each order must be a pair (alpha, epsilon), got 2"),
        (lambda: ps.Renyi(((1, 0.1),)), "`alpha` must be in (1, inf), got 1"),
        (lambda: ps.Renyi(((float("inf"), 0.1),)), "`alpha` must be in (1, inf), got inf"),
        (lambda: ps.Renyi(((2, -0.1),)), "`epsilon` must be in [0, inf), got -0.1"),
        (lambda: ps.Renyi(((2, float("nan")),)), "`epsilon` must be in [0, inf), got nan"),
        (lambda: ps.Renyi(((2, 0.1),), neighbours="near"), "`neighbours` must be one of any, add_remove, replace_one, got 'near'"),
    ],
)
def test_invalid_input_is_rejected_in_one_sentence(make, sentence):
    with pytest.raises(ParameterError) as caught:
        make()
    assert str(caught.value) == sentence
