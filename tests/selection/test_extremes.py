"""Near the limits of floats: bounds may become loose but never wrong, and there are no warnings."""

import warnings
from fractions import Fraction

import mpmath
import numpy as np
import pytest

import privselect as ps
from privselect.pairs import DominatingPair
from privselect.selection.exact.engine import ExactLower, ExactUpper


@pytest.fixture(autouse=True)
def _no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def worst_order(a, b, epsilon, mean):
    """P = (a, 1-a), P' = (b, 1-b), Poisson K: the low-loss outcome first, then the counted part of the other one, in 50 digits."""
    with mpmath.workdps(50):
        a, b, mean = mpmath.mpf(a), mpmath.mpf(b), mpmath.mpf(mean)
        slope, factor = (1 - b) / (1 - a), mpmath.exp(mpmath.mpf(epsilon))
        y = (mean * (b - a) - mpmath.log(factor * slope)) / (mean * (1 - slope))

        def wins(above, mass):
            return mpmath.exp(-mean * above) - mpmath.exp(-mean * (above + mass))

        return wins(a, y) - factor * wins(b, slope * y)


@pytest.mark.parametrize(
    ("a", "b", "epsilon"),
    [(0.0465, 0.7434, 698.1126209728588), (0.055, 0.745, 691.0), (0.0465, 0.7436, 698.3934006999939), (0.05, 0.74, 680.0)],
)
def test_weights_that_underflow_stay_on_their_side(a, b, epsilon):
    pair, count = DominatingPair.from_masses([a, 1.0 - a], [b, 1.0 - b]), ps.Poisson(mean=1000)
    worst = worst_order(float(pair.p[0]), float(pair.q[0]), epsilon, 1000)
    assert 0 < worst <= ExactUpper(pair, count).delta(epsilon)
    assert ExactLower(pair, count).delta(epsilon) <= worst


def test_epsilon_of_a_delta_that_hardly_is_one():
    pair = DominatingPair.from_masses([0.69, 0.31], [0.74, 0.26])
    upper, lower = ExactUpper(pair, ps.Poisson(mean=1000)), ExactLower(pair, ps.Poisson(mean=1000))
    assert lower.delta(50.0695) <= 6.1e-302
    assert upper.delta(49.3) >= 1e-297


def test_a_delta_between_an_outcome_and_its_rounding():
    """The mass above a loss is far below the rounding error of the mass at it: the result is that loss, not 0."""
    base = ps.Points([(1.0, 1e-16), (5.0, 1e-22)])
    tiny = Fraction(1, 10**15)
    for one in (base, ps.Mixture(((1 - tiny, ps.Pure(1.0)), (tiny, ps.Pure(3.0))))):
        for delta in (1e-12, 1e-13, 1e-14, 3e-15):
            found = one.epsilon_at(delta)
            assert found.lower == pytest.approx(1.0, rel=1e-9)
            assert found.upper == pytest.approx(1.0, rel=1e-9)
    chosen = ps.Selection(base, ps.Geometric(mean=3))
    assert chosen.delta_at(chosen.epsilon_at(1e-13).upper).lower <= 1e-13


@pytest.mark.parametrize(
    ("base", "count", "lower", "upper"),
    [
        (ps.Pure(epsilon=5), ps.Poisson(mean=1000), 690.0, 991.7),  # 5 + 1000 tanh(2.5)
        (ps.Approximate(epsilon=0.4, delta=1e-5), ps.Geometric(mean=30), np.inf, np.inf),  # the leak alone exceeds delta
        (ps.Approximate(epsilon=0.4, delta=1e-5), ps.Fixed(k=1), np.inf, np.inf),
    ],
    ids=str,
)
def test_what_lies_beyond_the_largest_epsilon(base, count, lower, upper):
    found = ps.Selection(base, count).epsilon_at(1e-6)
    assert lower <= found.lower <= upper
    assert found.upper == pytest.approx(upper, rel=1e-3)


@pytest.mark.parametrize(
    "text",
    [
        "selection(approximate(epsilon=0.4, delta=1e-5), geometric(mean=30))",
        "approximate(epsilon=0.4, delta=1e-5)",
        pytest.param("selection(gaussian(sigma=1), fixed(k=2))", marks=pytest.mark.slow),
        pytest.param("selection(gaussian(sigma=1e200), geometric(mean=30))", marks=pytest.mark.slow),
        "selection(gaussian(sigma=1e-200), geometric(mean=30))",
        pytest.param("selection(gaussian(sigma=1e308), poisson(mean=3))", marks=pytest.mark.slow),
        "selection(laplace(scale=1/700), geometric(mean=1e9))",
        "selection(gaussian(sigma=1), poisson(mean=1e9))",
        "selection(gaussian(sigma=1), poisson(mean=1e-320))",
        "selection(pure(epsilon=700), poisson(mean=10))",
    ],
)
def test_every_bound_of_an_extreme_case_is_compared(text):
    found = ps.compare(ps.parse(text), delta=1e-6)
    assert found.as_dict()
    if "exact" in found.bounds and found.bounds["exact"] is not None:
        assert found.bounds["exact"].upper >= 0.0


@pytest.mark.parametrize(
    ("weight", "loss", "epsilon"),
    [(20, 690, 689.999), (20, 690, 689.99999), (25, 680, 679.999), (18, 690, 689.999), (100, 600, 1.5), (290, 5, 2.0)],
)
def test_a_rare_part_of_a_mixture_keeps_its_leak(weight, loss, epsilon):
    rare = Fraction(1, 10**weight)
    mixed = ps.Mixture(((rare, ps.Pure(epsilon=loss)), (1 - rare, ps.Pure(epsilon=1))))
    with mpmath.workdps(400):
        odds, factor = mpmath.exp(loss), mpmath.exp(mpmath.mpf(epsilon))
        true = mpmath.mpf(10) ** -weight * (odds - factor) / (1 + odds)
    for one in (mixed, ps.Selection(mixed, ps.Fixed(k=1))):
        found = one.delta_at(epsilon)
        assert found.lower <= true <= found.upper
        assert one.epsilon_at(1e-6).upper < 1.1


@pytest.mark.slow
@pytest.mark.parametrize("base", ["approximate(epsilon=0, delta=0.3)", "points((0.1, 0.3), (1, 0.05))"])
def test_a_selection_over_an_outright_leak_is_a_mechanism_like_any_other(base):
    """Below the mass of infinite loss no epsilon suffices; its score orders are searched above that mass, and leak no more than it does."""
    chosen = ps.parse(f"selection({base}, finite({{0: 1, 2: 1}}))")
    (bracket,) = chosen.brackets
    assert bracket.upper.p_only > 0.04
    for epsilon in (-1.0, 0.0, 0.5, 1.0, 3.0):
        most = min(bracket.upper.hockey_stick(epsilon), chosen.delta_at(epsilon).upper)
        assert all(0.0 <= pair.hockey_stick(epsilon) <= most for pair in bracket.lowers)
    composed = ps.Composed((chosen, ps.Gaussian(sigma=5))).delta_at(0.5)
    assert composed.lower <= composed.upper < 1.05 * chosen.delta_at(0.5).upper
    assert composed.upper >= chosen.delta_at(0.5).lower


def test_an_epsilon_of_zero_is_exact():
    chosen = ps.Selection(ps.Gaussian(sigma=4), ps.Finite({0: 999, 1: 1}))
    assert chosen.delta_at(0.0).upper < 1e-3
    assert chosen.epsilon_at(1e-2).upper == 0.0
