"""Composition against all combinations with high precision, and beyond the range of floats."""

import itertools
import warnings
from functools import reduce

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import privselect as ps
from privselect.errors import ParameterError
from privselect.mechanisms.gaussian import gaussian_composition_step
from privselect.pairs import Bracket, DominatingPair
from privselect.pairs.compose import ACCURACY, CompositionStep, _compose_once, compose
from privselect.pairs.enumerate_composition import can_enumerate, compose_by_enumeration

EPSILONS = (-1.0, 0.0, 0.3, 1.0, 2.5, 6.0)


def true_hockey_stick(pair, times, epsilon):
    """Return the hockey stick over all sequences of outcomes, with 60 digits."""
    with mpmath.workdps(60):
        p, q = ([mpmath.mpf(float(x)) for x in masses] for masses in (pair.p, pair.q))
        factor = mpmath.exp(mpmath.mpf(epsilon))
        counted = mpmath.mpf(0)
        for way in itertools.product(range(len(p)), repeat=times):
            a, b = mpmath.fprod(p[i] for i in way), mpmath.fprod(q[i] for i in way)
            counted += max(a - factor * b, 0)
        # Float masses may sum to slightly more than 1.
        return min(counted + 1 - (1 - mpmath.mpf(pair.p_only)) ** times, mpmath.mpf(1))


@st.composite
def pairs(draw):
    size = draw(st.integers(1, 3))
    weights = [np.array(draw(st.lists(st.floats(1e-6, 1.0), min_size=size + 1, max_size=size + 1))) for _ in range(2)]
    p, q = (masses / masses.sum() for masses in weights)
    if draw(st.booleans()):
        p, q = np.append(p, 0.0), np.append(q, 0.0)
        q[-1], q[0] = q[0], 0.0
    return DominatingPair.from_masses(p, q)


@given(pairs(), st.integers(2, 4))
def test_few_outcomes_are_composed_exactly(pair, times):
    if not can_enumerate(pair, times):
        return
    composed = compose_by_enumeration(pair, times)
    for epsilon in EPSILONS:
        truth = true_hockey_stick(pair, times, epsilon)
        assert float(composed.hockey_stick(epsilon, side=-1)) <= truth <= float(composed.hockey_stick(epsilon, side=1))
        assert float(composed.hockey_stick(epsilon)) == pytest.approx(float(truth), rel=1e-12, abs=1e-13)


@pytest.mark.parametrize("epsilon", [0.01, 0.7, 20.0])
@pytest.mark.parametrize("times", [2, 3, 8, 32])
def test_pure_runs_never_cost_more_than_their_sum(epsilon, times):
    (pair,) = ps.Pure(epsilon=epsilon).composed_pairs(times)
    assert float(pair.epsilon_at(1e-200, side=1)) <= times * epsilon + 1e-12
    found = ps.Selection(ps.Pure(epsilon=epsilon), ps.Fixed(k=times)).epsilon_at(1e-12)
    assert found.upper <= times * epsilon + 1e-12


LARGE = [
    (ps.Pure(epsilon=30), ps.Geometric(mean=30, cap=30)),
    (ps.Pure(epsilon=30), ps.Fixed(k=32)),
    (ps.Pure(epsilon=100), ps.Fixed(k=8)),
    (ps.Pure(epsilon=300), ps.Fixed(k=3)),
    (ps.Pure(epsilon=5), ps.Poisson(mean=1000)),
    (ps.Pure(epsilon=300), ps.Fixed(k=50)),
    (ps.Laplace(scale=1 / 30), ps.Fixed(k=25)),
    (ps.Laplace(scale=1 / 700), ps.Fixed(k=3)),
    (ps.Approximate(epsilon=30, delta=1e-9), ps.Fixed(k=30)),
    (ps.Approximate(epsilon=1, delta=0.999999), ps.Geometric(mean=10, cap=32)),
    (ps.parse("gdp(mu=10, delta=1e-9)"), ps.Fixed(k=16)),
]


@pytest.mark.parametrize(("base", "count"), LARGE, ids=str)
def test_large_losses_never_pass_for_small_ones(base, count):
    chosen = ps.Selection(base, count)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = chosen.epsilon_at(1e-6)
    # One trial alone leaks this much, and for some score the best of K leaks at least as much.
    assert found.upper >= base.epsilon_at(1e-6).lower
    assert found.lower <= found.upper
    assert chosen.delta_at(1.0).upper > 0.1


@pytest.mark.parametrize(
    ("noise", "rate", "steps", "least"),
    [(1.0, 1.0, 1000, 640.0), (0.03, 1.0, 1, 640.0), (1.0, 0.1, 100_000, 640.0), (0.5, 1.0, 400, 640.0)],
)
def test_dpsgd_of_large_losses(noise, rate, steps, least):
    """Full batches are one Gaussian of mu = sqrt(steps)/sigma, with epsilon near mu^2/2 + 4.75 mu at 1e-6; other batches leak more."""
    base = ps.DPSGD(noise_multiplier=noise, sampling_probability=rate, steps=steps)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert base.epsilon_at(1e-6).upper >= least
        assert base.delta_at(1.0).upper >= 0.99
        assert base.epsilon_at(1e-6).lower >= 100.0  # far less than the truth, but no nonsense
        assert ps.Selection(base, ps.Geometric(mean=30)).epsilon_at(1e-6).upper >= least


def test_a_pair_of_tiny_finite_mass():
    pair = DominatingPair.from_masses([0.0, 1.0], [1.0 - 6e-12, 6e-12])
    for times in (2, 12, 40):
        composed = compose([(CompositionStep(Bracket(pair, (pair,))), times)]).upper
        assert float(composed.hockey_stick(1.0, side=1)) >= 1.0 - 1e-9
        assert float(composed.epsilon_at(1e-6, side=1)) >= 25.0


@pytest.mark.parametrize("masses", [[0.5, np.nan], [0.5, -0.1], [0.5, np.inf], [0.5, 0.0]])
def test_a_pair_refuses_invalid_masses(masses):
    with pytest.raises(ParameterError, match="must hold positive masses"):
        DominatingPair(np.array(masses), np.array([0.5, 0.5]))
    with pytest.raises(ParameterError, match=r"`p_only` must be in \[0, 1\]"):
        DominatingPair(np.array([0.5]), np.array([0.5]), p_only=masses[1] or 1.5)


# -- on the lattice ----------------------------------------------------------------------------------------------------------


def on_lattice(parts):
    """Compose on the lattice, without any shortcut."""
    return _compose_once(parts, ACCURACY)[1]


def gaussian_delta(mu, epsilon):
    """Return the profile in closed form."""
    mu, epsilon = mpmath.mpf(mu), mpmath.mpf(epsilon)
    return mpmath.ncdf(mu / 2 - epsilon / mu) - mpmath.exp(epsilon) * mpmath.ncdf(-mu / 2 - epsilon / mu)


@pytest.mark.parametrize("times", [1, 2, 7, 100, 3000, 100_000])
@pytest.mark.parametrize("mu", [1e-3, 0.02, 0.25, 2.0])
def test_a_gaussian_on_the_lattice_against_the_closed_form(mu, times):
    if mu * times**0.5 > 20.0:
        return  # an epsilon beyond 520 at the smallest delta
    found = on_lattice([(gaussian_composition_step(mu), times)])
    with mpmath.workdps(50):
        total = mpmath.mpf(mu) * mpmath.sqrt(times)
        for delta in (1e-3, 1e-6, 1e-12, 1e-20, 1e-30):
            upper = float(found.upper.epsilon_at(delta, side=1))
            lower = float(found.lowers[0].epsilon_at(delta, side=-1))
            assert gaussian_delta(total, upper) <= delta
            assert lower == 0.0 or gaussian_delta(total, lower) >= delta
            if lower > 0.1 * float(total):
                assert upper / lower - 1.0 < 3e-4
        for epsilon in np.linspace(-3.0, 3.0, 13) * float(total):
            truth = gaussian_delta(total, float(epsilon))
            assert float(found.lowers[0].hockey_stick(epsilon, side=-1)) <= truth <= float(found.upper.hockey_stick(epsilon, side=1))


@pytest.mark.parametrize(("inner", "outer"), [(10, 30), (300, 20)])
def test_composing_twice_is_composing_once(inner, outer):
    """Composing in two stages: both intervals contain the same true value, so they overlap."""
    step = ps.DPSGD(noise_multiplier=1.2, sampling_probability=0.02, steps=1).composition_step()
    at_once = on_lattice([(step, inner * outer)])
    in_turn = on_lattice([(CompositionStep(on_lattice([(step, inner)])), outer)])
    for delta in (1e-3, 1e-8, 1e-15, 1e-30):
        once, twice = (
            (float(found.lowers[0].epsilon_at(delta, side=-1)), float(found.upper.epsilon_at(delta, side=1)))
            for found in (at_once, in_turn)
        )
        assert once[0] <= twice[1]
        assert twice[0] <= once[1]
        assert twice[1] / once[1] == pytest.approx(1.0, abs=5e-4)


def test_the_order_of_the_parts_does_not_matter():
    parts = [
        (ps.DPSGD(noise_multiplier=1.2, sampling_probability=0.02, steps=1).composition_step(), 100),
        (ps.Laplace(scale=5).composition_step(), 3),
        (ps.Approximate(epsilon=0.2, delta=1e-12).composition_step(), 2),
    ]
    found = [on_lattice(list(order)) for order in itertools.permutations(parts)]
    for delta in (1e-3, 1e-8):
        uppers = [float(one.upper.epsilon_at(delta, side=1)) for one in found]
        lowers = [float(one.lowers[0].epsilon_at(delta, side=-1)) for one in found]
        assert max(lowers) <= min(uppers)
        assert max(uppers) / min(uppers) - 1.0 < 1e-6


def test_infinite_losses_add_up_over_runs():
    pair = ps.Approximate(epsilon=0.1, delta=1e-4).brackets[0].upper
    found = on_lattice([(CompositionStep(Bracket(pair, (pair,))), 1000)])
    leak = -np.expm1(1000 * np.log1p(-1e-4))
    assert found.upper.p_only >= leak * (1.0 - 1e-12)
    assert found.lowers[0].p_only == pytest.approx(leak, rel=1e-9)
    assert float(found.upper.epsilon_at(0.5 * leak, side=1)) == np.inf


@pytest.mark.parametrize("parts", [(0.4, 0.6), (0.1, 0.7), (1.0, 2.0), (0.3, 0.3, 1.1)])
def test_isolated_outcomes_keep_their_kinks(parts):
    # With few outcomes the true curve is linear in e^epsilon between its kinks; a chord across a kink would be far above it.
    odds = [np.array([1 / (1 + np.exp(-e)), 1 / (1 + np.exp(e))]) for e in parts]
    p = reduce(np.multiply.outer, odds).ravel()
    q = reduce(np.multiply.outer, [chances[::-1] for chances in odds]).ravel()
    epsilon = np.linspace(0, sum(parts), 40)
    truth = np.maximum(p - np.exp(epsilon)[:, None] * q, 0).sum(axis=1)
    found = ps.Composed(tuple(ps.Pure(epsilon=e) for e in parts)).delta_at(epsilon)
    assert np.all(found.lower <= truth * (1 + 1e-12))
    assert np.all(truth <= found.upper + 1e-15)
    assert np.all(found.upper <= truth + 1e-4)
