"""Pair from a profile in both directions: it dominates whatever the values bound, for all real epsilon."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from closed_forms import discrete_hockey, gaussian_hockey
from privselect.pairs import DominatingPair, pair_from_profile

SHARES = (
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), min_size=1, max_size=6)
    .filter(lambda w: sum(a for a, _ in w) > 0 and sum(b for _, b in w) > 0)
    .map(lambda w: tuple([Fraction(weight, sum(side)) for weight in side] for side in zip(*w, strict=True)))
)
KNOTS = st.lists(st.floats(1e-3, 6.0), min_size=1, max_size=12, unique_by=lambda x: round(x, 4)).map(lambda k: np.array([0.0, *sorted(k)]))
NOISE = st.lists(st.floats(0.0, 0.2), min_size=26, max_size=26).map(np.array)
LINE = [*np.linspace(-8.0, 8.0, 33).tolist(), 1e-9, -1e-9, 100.0, -100.0]


def pair_of(p, q):
    return DominatingPair.from_masses([float(x) for x in p], [float(x) for x in q])


def values(pair, knots):
    return pair.hockey_stick(knots, side=1), pair.reverse.hockey_stick(knots, side=1)


def check(laws, built, knots):
    p, q = laws
    for e in LINE + knots.tolist() + (-knots).tolist():
        assert discrete_hockey(p, q, e) <= float(built.hockey_stick(e, side=1)), f"epsilon={e!r}"
        assert discrete_hockey(q, p, e) <= float(built.reverse.hockey_stick(e, side=1)), f"reverse, epsilon={e!r}"
    assert built.p.sum() + built.p_only == pytest.approx(1.0, abs=1e-12)
    assert built.q.sum() + built.q_only == pytest.approx(1.0, abs=1e-12)
    assert min(built.p_only, built.q_only) >= 0.0
    assert np.all(np.diff(built.losses) >= 0.0)


@given(SHARES, KNOTS)
def test_the_pair_through_true_values_lies_above_and_meets_them(laws, knots):
    pair = pair_of(*laws)
    forward, backward = values(pair, knots)
    built = pair_from_profile(knots, forward, backward)
    check(laws, built, knots)
    # Up to the allowance for rounding, true values are convex, so the pair is exact at the knots.
    np.testing.assert_allclose(built.hockey_stick(knots), forward, rtol=0.0, atol=1e-11)
    np.testing.assert_allclose(built.reverse.hockey_stick(knots), backward, rtol=0.0, atol=1e-11)


@given(SHARES, KNOTS, NOISE)
def test_values_that_are_too_high_in_any_way_still_give_a_pair_above(laws, knots, noise):
    """Upper bounds may be not convex, not falling, or different at 0; the pair stays above the truth and below the given values."""
    pair = pair_of(*laws)
    forward, backward = values(pair, knots)
    forward, backward = forward + noise[: len(knots)], backward + noise[13 : 13 + len(knots)]
    built = pair_from_profile(knots, forward, backward)
    check(laws, built, knots)
    for given_values, way in ((forward, built), (backward, built.reverse)):
        assert np.all(way.hockey_stick(knots[1:]) <= np.minimum(given_values[1:], 1.0) + 1e-11)


@settings(max_examples=30)
@given(SHARES, KNOTS, NOISE)
def test_one_direction_much_looser_than_the_other(laws, knots, noise):
    pair = pair_of(*laws)
    forward, backward = values(pair, knots)
    check(laws, pair_from_profile(knots, forward, backward + 5.0 * noise[: len(knots)]), knots)
    check(laws, pair_from_profile(knots, np.ones(len(knots)), backward), knots)


def test_nothing_known_and_nothing_leaked():
    knots = np.array([0.0, 1.0, 2.0])
    everything = pair_from_profile(knots, np.ones(3), np.ones(3))
    assert (everything.p_only, everything.q_only) == (1.0, 1.0)
    nothing = pair_from_profile(knots, np.zeros(3), np.zeros(3))
    np.testing.assert_allclose(nothing.hockey_stick(LINE), np.maximum(-np.expm1(np.array(LINE)), 0.0), rtol=0.0, atol=1e-15)


@pytest.mark.parametrize("mu", [0.1, 1.0, 4.0])
def test_a_gaussian_from_its_curve(mu):
    """Both tails keep their relative precision, down to 1e-60."""
    knots = np.linspace(0.0, mu * (17.0 + 0.5 * mu), 400)
    curve = np.array([float(gaussian_hockey(mu, e)) for e in knots]) * (1.0 + 1e-15)
    built = pair_from_profile(knots, curve, curve)
    for e in np.concatenate([knots[::7], knots[5::31] + 0.01, -knots[::17]]).tolist():
        true = gaussian_hockey(mu, e)
        assert true <= float(built.hockey_stick(e, side=1))
    np.testing.assert_allclose(built.hockey_stick(knots[1:-1]), curve[1:-1], rtol=1e-8)
