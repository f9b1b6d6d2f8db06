import itertools
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import privselect as ps
from closed_forms import DIGITS, discrete_hockey, gaussian_hockey
from privselect.errors import ParameterError
from privselect.mechanisms.gaussian import gaussian_bracket
from privselect.pairs import DominatingPair
from privselect.pairs.compose import CompositionStep, compose
from privselect.pairs.dominating_pair import Bracket
from privselect.pairs.subnormal_masses import union_lower, union_upper
from small_pairs import SHARES, pair_of, shares

EPSILONS = [-720.0, -50.0, -3.0, -1.0, -0.1, 0.0, 1e-9, 0.1, 0.7, 1.0, 3.0, 50.0, 720.0]


@given(SHARES, st.lists(st.floats(-20.0, 20.0), max_size=4))
def test_the_hockey_stick_lies_between_its_two_roundings(laws, more):
    pair = pair_of(*laws)
    exact_losses = [float(mpmath.log(a / b)) for a, b in zip(*laws, strict=True) if a and b]
    epsilon = np.array(EPSILONS + more + exact_losses)
    below, plain, above = (pair.hockey_stick(epsilon, side=side) for side in (-1, 0, 1))
    assert np.all(below <= plain)
    assert np.all(plain <= above)
    for e, low, high in zip(epsilon.tolist(), below.tolist(), above.tolist(), strict=True):
        assert low <= discrete_hockey(*laws, e) <= high
    np.testing.assert_allclose(below, above, rtol=0.0, atol=1e-11)  # the allowance for rounding, (4 n + 64) units and the loss's own


@given(SHARES)
def test_the_reverse_is_the_reversal_identity(laws):
    p, q = laws
    pair, reverse = pair_of(p, q), pair_of(p, q).reverse
    for e in (-2.0, -0.3, 0.0, 0.3, 2.0):
        assert float(reverse.hockey_stick(e, side=-1)) <= discrete_hockey(q, p, e) <= float(reverse.hockey_stick(e, side=1))
        identity = 1.0 - np.exp(e) + np.exp(e) * float(pair.hockey_stick(-e))
        assert float(reverse.hockey_stick(e)) == pytest.approx(identity, abs=1e-14 * (1.0 + np.exp(e)))  # units of each term
    assert reverse.reverse.p_only == pair.p_only
    np.testing.assert_array_equal(reverse.reverse.p, pair.p)


def test_one_number_or_many():
    pair = pair_of([Fraction(1, 3), Fraction(2, 3)], [Fraction(1, 2), Fraction(1, 2)])
    grid = np.array([[0.0, 0.1], [-1.0, 5.0]])
    together = pair.hockey_stick(grid)
    assert together.shape == (2, 2)
    assert together.ravel().tolist() == [float(pair.hockey_stick(e)) for e in grid.flat]


def greatest(p, q, x, *, sign):
    """Return ``max sign * Q(T)`` over randomised sets T with P(T) = x: a subset and part of one more outcome."""
    best = None
    n = len(p)
    for chosen in itertools.product((False, True), repeat=n):
        mass = sum((a for a, one in zip(p, chosen, strict=True) if one), Fraction(0))
        other = sum((b for b, one in zip(q, chosen, strict=True) if one), Fraction(0))
        for j in range(n):
            share = Fraction(0) if chosen[j] or p[j] == 0 else (x - mass) / p[j]
            if 0 <= share <= 1 and mass + share * (p[j] if not chosen[j] else 0) == x:
                value = other + (share * q[j] if not chosen[j] else 0)
                best = value if best is None or sign * value > sign * best else best
    return best


@settings(max_examples=60)
@given(SHARES.filter(lambda laws: len(laws[0]) <= 5), st.fractions(0, 1, max_denominator=64))
def test_g_and_k_by_their_definition(laws, x):
    p, q = laws
    pair = pair_of(p, q)
    # Prefix sums have rounding errors of units of 1, amplified by the slope of the pieces.
    units = 1e-15 * (1.0 + (np.exp(-pair.losses[0]) if len(pair.losses) else 0.0))
    assert float(pair.g(float(x))) == pytest.approx(float(greatest(p, q, x, sign=1)), abs=units)
    assert float(pair.k(float(x))) == pytest.approx(float(greatest(p, q, x, sign=-1)), abs=units)
    assert float(pair.k(float(x))) == pytest.approx(1.0 - float(pair.g(1.0 - float(x))), abs=units)


@given(SHARES)
def test_g_and_k_have_their_shapes(laws):
    pair = pair_of(*laws)
    x = np.linspace(0.0, 1.0, 201)
    g, k = pair.g(x), pair.k(x)
    steepest = np.exp(-pair.losses[0]) if len(pair.losses) else 1.0
    units = 1e-15 * (1.0 + steepest)  # a prefix sum is off by a unit of 1, and a piece this steep
    assert np.all(np.diff(g, 2) <= units)
    assert np.all(np.diff(k, 2) >= -units)
    assert np.all(g >= x - units)
    assert np.all(k <= x + units)
    assert g[-1] == pytest.approx(1.0, abs=units)
    assert g[0] == pytest.approx(pair.q_only, abs=units)
    assert k[0] == 0.0
    assert k[-1] == pytest.approx(1.0 - pair.q_only, abs=units)


@given(SHARES, st.floats(1e-12, 0.999))
def test_epsilon_inverts_the_hockey_stick(laws, delta):
    p, q = laws
    pair = pair_of(p, q)
    low, high = (float(pair.epsilon_at(delta, side=side)) for side in (-1, 1))
    assert 0.0 <= low <= high
    if np.isfinite(high):
        assert discrete_hockey(p, q, high) <= delta
    else:
        assert discrete_hockey(p, q, 700.0) >= delta * (1.0 - 1e-9)
    if 0.0 < low < np.inf:
        assert discrete_hockey(p, q, low) >= delta
    if np.isfinite(high) and low > 0.0:
        # Near its lowest value the hockey stick is flat, so rounding of delta moves epsilon far: compare deltas.
        assert float(discrete_hockey(p, q, low)) == pytest.approx(float(discrete_hockey(p, q, high)), abs=1e-11)


def test_epsilon_of_a_gaussian_and_of_many_deltas():
    bracket = gaussian_bracket(0.25)
    delta = np.array([0.5, 1e-2, 1e-6, 1e-12, 1e-40, 1e-200])
    high, low = bracket.upper.epsilon_at(delta, side=1), bracket.lowers[0].epsilon_at(delta, side=-1)
    assert np.all(np.diff(high) >= 0.0)
    assert high[0] == 0.0
    for d, below, above in zip(delta.tolist()[1:], low.tolist()[1:], high.tolist()[1:], strict=True):
        assert gaussian_hockey(0.25, above) <= d <= gaussian_hockey(0.25, below)
        assert below == pytest.approx(above, rel=1e-3)


@given(SHARES, SHARES, st.integers(1, 9))
def test_a_union_is_the_weighted_sum(one, other, weight):
    share = Fraction(weight, 10)
    parts = [(float(share), pair_of(*one)), (float(1 - share), pair_of(*other))]
    above, below = union_upper(parts), union_lower(parts)
    for e in (-1.0, 0.0, 0.3, 2.0):
        with mpmath.workdps(DIGITS):
            true = mpmath.mpf(weight) / 10 * discrete_hockey(*one, e) + (1 - mpmath.mpf(weight) / 10) * discrete_hockey(*other, e)
        assert float(below.hockey_stick(e, side=-1)) <= true <= float(above.hockey_stick(e, side=1))


# -- composition ---------------------------------------------------------------------------------------------------------


def repeated(pair, times):
    return compose([(CompositionStep(Bracket(pair, (pair,))), times)]).upper


def product(laws, times):
    return tuple([np.prod(np.array(parts, dtype=object)) for parts in itertools.product(masses, repeat=times)] for masses in laws)


@settings(max_examples=12)
@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=2, max_size=4)
    .filter(lambda w: sum(a for a, _ in w) > 0 and sum(b for _, b in w) > 0)
    .map(shares),
    st.sampled_from([1, 2, 3]),
)
@example(shares([(0, 1), (1, 0)]), 2)  # no common outcome
def test_composition_dominates_the_product_of_small_pairs(laws, times):
    composed = repeated(pair_of(*laws), times)
    p, q = product(laws, times)
    for e in (-3.0, -1.0, -0.2, 0.0, 0.1, 0.5, 1.0, 2.0, 4.0):
        true = discrete_hockey(p, q, e)
        found = float(composed.hockey_stick(e, side=1))
        assert true <= found
        assert found == pytest.approx(float(true), abs=2e-3)  # a lattice of losses: tight enough to be of use


@pytest.mark.parametrize("times", [2, 7, 30])
def test_composition_dominates_a_gaussian(times):
    composed = repeated(ps.Gaussian(sigma=4).brackets[0].upper, times)
    for e in np.linspace(-4.0, 6.0, 41).tolist():
        assert gaussian_hockey(np.sqrt(times) / 4, e) <= float(composed.hockey_stick(e, side=1))
    released = ps.Gaussian(sigma=4).composed_pairs(times)[0]
    assert float(composed.epsilon_at(1e-6, side=1)) == pytest.approx(float(released.epsilon_at(1e-6, side=1)), rel=1e-3)


@pytest.mark.parametrize(
    "base", [ps.Pure(epsilon=3), ps.Pure(epsilon=0.01), ps.Approximate(epsilon=1, delta=0.1), ps.Laplace(scale=1)], ids=str
)
@pytest.mark.parametrize("times", [2, 20, 32])
def test_composition_of_pairs_with_infinite_losses_never_fails(base, times):
    (composed,) = base.composed_pairs(times)
    epsilon = base.brackets[0].upper.losses[-1]
    assert float(composed.hockey_stick(0.0, side=1)) >= float(base.brackets[0].upper.hockey_stick(0.0, side=-1))
    # Beyond the sum of the largest losses, plus a margin for the lattice, only infinite losses count.
    leak = 1.0 - (1.0 - base.brackets[0].upper.p_only) ** times
    assert leak * (1.0 - 1e-12) <= float(composed.hockey_stick(1.01 * times * epsilon, side=1)) <= leak + 1e-6


# -- construction --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("p", "q"),
    [([0.5, 0.5], [1.0]), ([[1.0]], [[1.0]]), ([0.5, 0.6], [0.5, 0.5]), ([1.5, -0.5], [0.5, 0.5]), ([np.nan, 1.0], [0.5, 0.5])],
)
def test_invalid_masses_are_refused(p, q):
    with pytest.raises(ParameterError, match=r"`[pq]`"):
        DominatingPair.from_masses(p, q)


def test_outcomes_are_sorted_and_one_sided_mass_is_kept_apart():
    pair = DominatingPair.from_masses([0.1, 0.0, 0.6, 0.3], [0.1, 0.2, 0.7, 0.0])
    assert np.all(np.diff(pair.losses) >= 0.0)
    assert (pair.p_only, pair.q_only) == (0.3, 0.2)
    assert pair.p.tolist() == [0.6, 0.1]
