"""Every mechanism: its intervals hold the closed form, its text form loses nothing, its parts agree on the neighbours."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privselect as ps
from closed_forms import DIGITS, approximate_hockey, gaussian_hockey, laplace_hockey
from privselect.errors import NeighbourError, ParameterError
from privselect.mechanisms.neighbours import ADD_REMOVE, ANY, REPLACE_ONE
from privselect.selection.bounds.ratio import ratio_epsilon

MNIST = ps.DPSGD(noise_multiplier=1.1, sampling_probability=256 / 60_000, steps=14_063)
SMALL = ps.DPSGD(noise_multiplier=2, sampling_probability=0.1, steps=10)
PAIRS = "`points` must be pairs (epsilon, delta) such as ((0.1, 1e-3), (1, 1e-9))"


def leaking_gaussian(mu, delta, epsilon):
    with mpmath.workdps(DIGITS):
        leak = mpmath.mpf(delta)
        return leak + (1 - leak) * gaussian_hockey(mu, epsilon)


def mixed(epsilon):
    with mpmath.workdps(DIGITS):
        return gaussian_hockey(0.25, epsilon) / 3 + laplace_hockey(2.0, epsilon) * 2 / 3


# The mechanism, its hockey stick (one for both orders), and whether it is one discrete pair, known to all digits.
KNOWN = [
    (ps.Gaussian(sigma=4), lambda e: gaussian_hockey(0.25, e), False),
    (ps.Gaussian(sigma=0.5), lambda e: gaussian_hockey(2.0, e), False),
    (ps.Gaussian(sigma=100), lambda e: gaussian_hockey(1 / mpmath.mpf(100), e), False),
    (ps.Laplace(scale=4), lambda e: laplace_hockey(4.0, e), False),
    (ps.Laplace(scale=0.25), lambda e: laplace_hockey(0.25, e), False),
    (ps.Pure(epsilon=0.7), lambda e: approximate_hockey(0.7, 0.0, e), True),
    (ps.Approximate(epsilon=0.4, delta=1e-9), lambda e: approximate_hockey(0.4, 1e-9, e), True),
    (ps.Points(((0.4, 1e-9),)), lambda e: approximate_hockey(0.4, 1e-9, e), True),
    (ps.GaussianDP(mu=1), lambda e: gaussian_hockey(1.0, e), False),
    (ps.GaussianDP(mu=1, delta=1e-9), lambda e: leaking_gaussian(1.0, 1e-9, e), False),
    (ps.Mixture(((Fraction(1, 3), ps.Gaussian(sigma=4)), (Fraction(2, 3), ps.Laplace(scale=2)))), mixed, False),
]
LINE = [-5.0, -1.0, -0.3, -0.01, 0.0, 0.01, 0.2, 0.45, 0.9, 1.7, 3.1, 5.0]


@pytest.mark.parametrize(
    ("mechanism", "hockey", "discrete"), KNOWN, ids=lambda value: str(value) if isinstance(value, ps.Mechanism) else ""
)
def test_delta_holds_the_closed_form(mechanism, hockey, discrete):
    found = mechanism.delta_at(LINE)
    for e, low, high in zip(LINE, found.lower.tolist(), found.upper.tolist(), strict=True):
        true = hockey(e)
        assert low <= true <= high
        # Cells of 1/100 deviation, or none.
        assert low == pytest.approx(high, rel=1e-11 if discrete else 5e-3, abs=1e-11 if discrete else 1e-6)


@pytest.mark.parametrize(
    ("mechanism", "hockey", "discrete"), KNOWN, ids=lambda value: str(value) if isinstance(value, ps.Mechanism) else ""
)
def test_epsilon_holds_the_closed_form(mechanism, hockey, discrete):
    delta = np.array([0.3, 1e-2, 1e-4, 1e-6, 1e-8])
    found = mechanism.epsilon_at(delta)
    for d, low, high in zip(delta.tolist(), found.lower.tolist(), found.upper.tolist(), strict=True):
        assert 0.0 <= low <= high
        assert hockey(high) <= d
        if low > 0.0:
            assert d <= hockey(low)
        assert low == pytest.approx(high, rel=1e-9 if discrete else 1e-3, abs=1e-12)


@settings(max_examples=30)
@given(st.floats(0.05, 200.0), st.floats(-20.0, 20.0))
def test_a_gaussian_of_any_size(sigma, epsilon):
    found = ps.Gaussian(sigma=sigma).delta_at(epsilon)
    with mpmath.workdps(DIGITS):
        true = gaussian_hockey(1 / mpmath.mpf(sigma), epsilon)
    assert found.lower <= true <= found.upper


@settings(max_examples=30)
@given(st.floats(0.02, 200.0), st.floats(-20.0, 20.0))
def test_a_laplace_of_any_size(scale, epsilon):
    found = ps.Laplace(scale=scale).delta_at(epsilon)
    assert found.lower <= laplace_hockey(scale, epsilon) <= found.upper


# -- mixtures and neighbours ---------------------------------------------------------------------------------------------


def test_a_mixture_lies_between_its_parts_and_is_their_mean():
    parts = ps.Gaussian(sigma=2), ps.Gaussian(sigma=8)
    mixture = ps.Mixture(((0.25, parts[0]), (0.75, parts[1])))
    epsilon = np.linspace(-1.0, 3.0, 21)
    mean = 0.25 * parts[0].delta_at(epsilon).upper + 0.75 * parts[1].delta_at(epsilon).upper
    found = mixture.delta_at(epsilon)
    np.testing.assert_allclose(found.upper, mean, rtol=1e-9)
    # Cheaper than declaring its worst part for all.
    assert np.all(found.upper <= np.maximum(*(part.delta_at(epsilon).upper for part in parts)))
    assert mixture.epsilon_at(1e-6).upper < parts[0].epsilon_at(1e-6).upper


def test_a_mixture_with_dpsgd_keeps_each_order_separate():
    mixture = ps.Mixture(((0.5, SMALL), (0.5, ps.Gaussian(sigma=4))))
    assert mixture.neighbours == ADD_REMOVE
    assert [bracket.direction for bracket in mixture.brackets] == ["remove", "add"]
    found = mixture.delta_at(0.2)
    assert 0.0 < found.lower <= found.upper
    for ours, theirs in zip(mixture.brackets, SMALL.brackets, strict=True):
        both = 0.5 * theirs.upper.hockey_stick(0.2) + 0.5 * ps.Gaussian(sigma=4).brackets[0].upper.hockey_stick(0.2)
        assert float(ours.upper.hockey_stick(0.2)) == pytest.approx(float(both), rel=1e-10)


def test_parts_that_disagree_on_the_neighbours_are_rejected():
    replacing = ps.Gaussian(sigma=4, neighbours=REPLACE_ONE)
    with pytest.raises(NeighbourError, match="replace_one"):
        ps.Mixture(((0.5, replacing), (0.5, SMALL)))
    with pytest.raises(NeighbourError, match="add_remove"):
        ps.parse(
            "mixture(0.5*gaussian(sigma=4, neighbours=replace_one), 0.5*selection(laplace(scale=1, neighbours=add_remove), fixed(k=2)))"
        )
    assert ps.Mixture(((0.5, ps.Gaussian(sigma=4, neighbours=ADD_REMOVE)), (0.5, SMALL))).neighbours == ADD_REMOVE
    assert ps.Mixture(((0.5, ps.Gaussian(sigma=4)), (0.5, ps.Pure(epsilon=1)))).neighbours == ANY
    assert ps.Selection(replacing, ps.Fixed(k=2)).neighbours == REPLACE_ONE
    with pytest.raises(ParameterError, match="neighbours"):
        ps.Gaussian(sigma=4, neighbours="nearby")


@pytest.mark.parametrize("weights", [(0.5, 0.4), (0.5, 0.6), (1.5, -0.5), (1, 0)])
def test_weights_that_are_not_a_distribution_are_rejected(weights):
    with pytest.raises(ParameterError, match="mixture"):
        ps.Mixture(tuple((weight, ps.Gaussian(sigma=4)) for weight in weights))


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: ps.Mixture(()), "`mixture` needs at least one part such as 1*gaussian(sigma=4), got none"),
        (lambda: ps.Mixture(None), "`parts` must be pairs (weight, mechanism), got None"),
        (lambda: ps.Mixture(3), "`parts` must be pairs (weight, mechanism), got 3"),
        (lambda: ps.Mixture(ps.Gaussian(sigma=4)), "`parts` must be pairs (weight, mechanism), got gaussian(sigma=4)"),
        (lambda: ps.Mixture((1, 2)), "`mixture` needs parts of the form weight * mechanism, got 1"),
        (lambda: ps.Mixture(((1, 10**5000),)), "`mixture` needs parts that are mechanisms, got 1e+5000"),
        (lambda: ps.Mixture(((10**5000, SMALL),)), "`mixture` needs weights in (0, 1], got 1e+5000"),
        (
            lambda: ps.Mixture(((Fraction(1, 10**5000), SMALL), (1 - Fraction(1, 10**5000), SMALL))),
            "`mixture` needs weights with a denominator of at most 1e300, got 1e-5000",
        ),
        (
            lambda: ps.Mixture(((Fraction(1, 10**300), SMALL), (1, SMALL))),
            "`mixture` needs weights that sum to 1, got 1 + 1e-300",
        ),
        (lambda: ps.Points(()), "`points` needs at least one (epsilon, delta), got none"),
        (lambda: ps.Points(None), f"{PAIRS}, got None"),
        (lambda: ps.Points(3), f"{PAIRS}, got 3"),
        (lambda: ps.Points((3,)), "each point must be a pair (epsilon, delta), got 3"),
        (lambda: ps.Gaussian(sigma=4, neighbours=np.zeros(2)), "`neighbours` must be one of any, add_remove, replace_one, got [0. 0.]"),
    ],
)
def test_invalid_input_is_rejected_in_one_sentence(make, sentence):
    with pytest.raises(ParameterError) as caught:
        make()
    assert str(caught.value) == sentence


def test_the_finest_weights_are_written_and_read():
    finest = Fraction(1, 10**300)
    mixture = ps.Mixture(((finest, ps.Gaussian(sigma=4)), (1 - finest, ps.Laplace(scale=2))))
    assert ps.parse(str(mixture)) == mixture


def test_weights_are_exact():
    tenths = tuple((0.1, ps.Gaussian(sigma=s)) for s in range(1, 11))
    assert ps.Mixture(tenths).parts[0].weight == Fraction(1, 10)
    thirds = ps.parse("mixture(1/3*gaussian(sigma=1), 1/3*gaussian(sigma=2), 1/3*gaussian(sigma=3))")
    assert [part.weight for part in thirds.parts] == [Fraction(1, 3)] * 3


# -- text ----------------------------------------------------------------------------------------------------------------

TEXTS = {
    "gaussian(sigma=4)": ps.Gaussian(sigma=4),
    "gaussian(sigma=4, neighbours=replace_one)": ps.Gaussian(sigma=4, neighbours=REPLACE_ONE),
    "laplace(scale=4)": ps.Laplace(scale=4),
    "pure(epsilon=0.7)": ps.Pure(epsilon=0.7),
    "approximate(epsilon=0.4, delta=1e-09)": ps.Approximate(epsilon=0.4, delta=1e-9),
    "points((0.1, 0.001), (1, 1e-09))": ps.Points(((0.1, 1e-3), (1, 1e-9))),
    "points((0.1, 0.001), neighbours=add_remove)": ps.Points(((0.1, 1e-3),), neighbours=ADD_REMOVE),
    "renyi((2, 0.1), (10, 0.6))": ps.Renyi(((2, 0.1), (10, 0.6))),
    "renyi((2, 0.1), neighbours=add_remove)": ps.Renyi(((2, 0.1),), neighbours=ADD_REMOVE),
    "discrete_gaussian(sigma=2)": ps.DiscreteGaussian(sigma=2),
    "discrete_gaussian(sigma=2, neighbours=add_remove)": ps.DiscreteGaussian(sigma=2, neighbours=ADD_REMOVE),
    "discrete_laplace(scale=2)": ps.DiscreteLaplace(scale=2),
    "sampled_gaussian(noise_multiplier=1.1, batch_size=256, records=60000)": ps.SampledGaussian(1.1, 256, 60_000),
    "gdp(mu=1)": ps.GaussianDP(mu=1),
    "gdp(mu=1, delta=1e-09)": ps.GaussianDP(mu=1, delta=1e-9),
    "dpsgd(noise_multiplier=2, sampling_probability=0.1, steps=10)": SMALL,
    "mixture(1/2*gaussian(sigma=4), 1/2*gaussian(sigma=8))": ps.Mixture(((0.5, ps.Gaussian(sigma=4)), (0.5, ps.Gaussian(sigma=8)))),
    "selection(gaussian(sigma=4), geometric(mean=30))": ps.Selection(ps.Gaussian(sigma=4), ps.Geometric(mean=30)),
    "selection(selection(gaussian(sigma=4), geometric(mean=5)), poisson(mean=3, cap=9))": ps.Selection(
        ps.Selection(ps.Gaussian(sigma=4), ps.Geometric(mean=5)), ps.Poisson(mean=3, cap=9)
    ),
    "mixture(1/3*selection(pure(epsilon=1), fixed(k=2)), 2/3*laplace(scale=1))": ps.Mixture(
        ((Fraction(1, 3), ps.Selection(ps.Pure(epsilon=1), ps.Fixed(k=2))), (Fraction(2, 3), ps.Laplace(scale=1)))
    ),
}


@pytest.mark.parametrize("text", TEXTS)
def test_one_text_form_read_and_written(text):
    mechanism = TEXTS[text]
    assert str(mechanism) == text
    assert ps.parse(text) == mechanism
    assert hash(ps.parse(text)) == hash(mechanism)


def test_a_text_form_in_other_words():
    assert ps.parse(" dpsgd( steps=14063 , noise_multiplier=1.1,sampling_probability=256/60000) ") == MNIST
    assert (
        ps.parse("mixture(0.5*gaussian(sigma=4), 0.5*gaussian(sigma=8))") == TEXTS["mixture(1/2*gaussian(sigma=4), 1/2*gaussian(sigma=8))"]
    )


NUMBERS = st.floats(1e-6, 600.0)
SIMPLE = st.one_of(
    st.builds(ps.Gaussian, sigma=st.floats(1e-300, 1e300), neighbours=st.sampled_from([ANY, ADD_REMOVE])),
    st.builds(ps.Laplace, scale=st.floats(1.0 / 700.0, 1e300)),
    st.builds(ps.Pure, epsilon=NUMBERS),
    st.builds(ps.Approximate, epsilon=NUMBERS, delta=st.floats(0.0, 1.0, exclude_max=True)),
    st.builds(ps.GaussianDP, mu=NUMBERS, delta=st.floats(0.0, 1.0, exclude_max=True)),
    st.builds(ps.Points, st.lists(st.tuples(NUMBERS, st.floats(0.0, 1.0, exclude_max=True)), min_size=1, max_size=3).map(tuple)),
    st.builds(ps.DiscreteGaussian, sigma=st.floats(1e-300, 1e6)),
    st.builds(ps.DiscreteLaplace, scale=st.floats(1.0 / 700.0, 1e300)),
    st.builds(
        ps.Renyi, st.lists(st.tuples(st.floats(1.0, 1e300, exclude_min=True), st.floats(0.0, 1e300)), min_size=1, max_size=3).map(tuple)
    ),
    st.builds(ps.DPSGD, noise_multiplier=NUMBERS, sampling_probability=st.floats(1e-300, 1.0), steps=st.integers(1, 10**9)),
)
COUNTS = st.one_of(
    st.builds(ps.Geometric, mean=st.floats(1.0, 1e9)),
    st.builds(ps.Poisson, mean=st.floats(1e-3, 1e9)),
    st.builds(ps.Fixed, k=st.integers(1, 10**6)),
)


def nested(inner):
    pairs = st.tuples(st.fractions(0, 1).filter(lambda w: 0 < w < 1), inner, inner)
    return st.one_of(st.builds(ps.Selection, inner, COUNTS), pairs.map(lambda t: ps.Mixture(((t[0], t[1]), (1 - t[0], t[2])))))


@given(st.recursive(SIMPLE, nested, max_leaves=4))
def test_writing_loses_no_digit(mechanism):
    assert ps.parse(str(mechanism)) == mechanism


# -- selection inside selection ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def inner():
    return ps.Selection(ps.Gaussian(sigma=4), ps.Geometric(mean=5))


def test_a_selection_of_selections(inner):
    outer = ps.Selection(inner, ps.Poisson(mean=3))
    found = outer.epsilon_at(1e-6)
    assert 0.0 < found.lower <= found.upper
    # Never above Ratio over the inner curve as a whole.
    assert found.upper <= max(ratio_epsilon(bracket.upper, outer.count, 1e-6) for bracket in inner.brackets)
    # More leaks than the inner selection, less than one selection by the sum of as many trials and another of the winners.
    assert found.upper > inner.epsilon_at(1e-6).lower
    assert found.upper == pytest.approx(found.lower, rel=0.1)  # fixed orders of the inner selection serve all epsilons from below
    delta = outer.delta_at(np.array([-1.0, 0.0, 1.0, found.lower, found.upper]))
    assert np.all(delta.lower <= delta.upper)
    assert delta.lower[-1] <= 1e-6 <= delta.upper[-2]


@pytest.mark.parametrize("count", [ps.Fixed(k=1), ps.Geometric(mean=1)], ids=str)
def test_one_outer_trial_gives_the_inner_selection_back(inner, count):
    outer = ps.Selection(inner, count)
    for delta, near in ((1e-3, 0.1), (1e-6, 3e-3)):
        ours, alone = outer.epsilon_at(delta), inner.epsilon_at(delta)
        assert ours.lower <= alone.upper
        assert alone.lower <= ours.upper
        assert ours.upper == pytest.approx(alone.upper, rel=3e-3)  # the curve by chords
        assert ours.lower == pytest.approx(alone.lower, rel=near)  # real orders, chosen for a few deltas


def test_the_curve_of_a_selection_is_a_pair_above_it(inner):
    (bracket,) = inner.brackets
    epsilon = np.array([-2.0, -0.7, 0.0, 0.35, 1.1, 2.0, 3.3])
    found = inner.delta_at(epsilon)
    assert np.all(found.lower <= bracket.upper.hockey_stick(epsilon, side=1))
    for order in bracket.lowers:
        assert np.all(order.hockey_stick(epsilon, side=-1) <= found.upper)
        assert order.p.sum() + order.p_only == pytest.approx(1.0, abs=1e-9)
        assert order.q.sum() + order.q_only == pytest.approx(1.0, abs=1e-9)


def test_the_renyi_divergence_of_gaussian_dp():
    orders = np.array([1.01, 2.0, 50.0])
    np.testing.assert_allclose(ps.GaussianDP(mu=0.25).renyi_at(orders), ps.Gaussian(sigma=4).renyi_at(orders), rtol=1e-14)
    assert np.all(np.isinf(ps.GaussianDP(mu=0.25, delta=1e-9).renyi_at(orders)))


def test_one_number_or_many():
    mechanism = ps.Gaussian(sigma=4)
    assert isinstance(mechanism.epsilon_at(1e-6).upper, float)
    assert isinstance(mechanism.delta_at(0).lower, float)
    together = mechanism.delta_at([[0.0, 1.0], [2.0, -1.0]])
    assert together.upper.ravel().tolist() == [mechanism.delta_at(e).upper for e in (0.0, 1.0, 2.0, -1.0)]


@pytest.mark.parametrize("delta", [0.0, 1.0, -1e-9, math.nan, math.inf, "small", "1e-6"])
def test_a_delta_outside_its_range_is_rejected(delta):
    with pytest.raises(ParameterError, match="`delta` must be in"):
        ps.Gaussian(sigma=4).epsilon_at(delta)


@pytest.mark.parametrize(
    ("mechanism", "delta", "epsilon"),
    [
        (ps.Approximate(1.0, 1e-6), 1e-6, 1.0),
        (ps.Approximate(0.0, 1e-6), 1e-6, 0.0),
        (ps.Points(((1.0, 1e-6), (2.0, 1e-9))), 1e-9, 2.0),
        (ps.Points(((1.0, 1e-6), (2.0, 1e-9))), 1e-6, 1.0),
        (ps.Pure(1.0), 1e-300, 1.0),
    ],
)
def test_what_is_stated_is_given_back_to_the_last_digit(mechanism, delta, epsilon):
    found = mechanism.epsilon_at(delta)
    assert found.upper == epsilon
    assert found.lower == pytest.approx(epsilon, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("epsilon", [1e-3, 1e-6, 1e-9])
@pytest.mark.parametrize("alpha", [1.001, 2.0, 50.0])
def test_the_renyi_divergence_of_what_hardly_leaks_is_not_rounded_away(epsilon, alpha):
    """Randomised response in 50 digits; sums near 1 have lost the difference from 1."""
    with mpmath.workdps(50):
        likely, rare = 1 / (1 + mpmath.exp(-mpmath.mpf(epsilon))), 1 / (1 + mpmath.exp(mpmath.mpf(epsilon)))
        a = mpmath.mpf(alpha)
        exact = mpmath.log(likely**a * rare ** (1 - a) + rare**a * likely ** (1 - a)) / (a - 1)
    assert float(ps.Pure(epsilon=epsilon).renyi_at(alpha)) >= exact
