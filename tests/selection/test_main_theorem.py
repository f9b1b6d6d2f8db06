import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference_theorems import lemma_7, selected_masses, selection_divergence
from scipy.special import ndtr

from privselect.counts import Binomial, Finite, Fixed, Geometric, Logarithmic, NegativeBinomial, Poisson
from privselect.errors import ParameterError
from privselect.pairs import DominatingPair
from privselect.pairs.dominating_pair import renyi_of_pair
from privselect.selection.bounds.ratio import ratio_delta
from research.theorems.main_theorem import (
    HockeyStick,
    Power,
    ScoreDistribution,
    main_thm,
    main_thm_continuous,
)

LAWS = [
    Geometric(mean=5),
    Logarithmic(mean=5),
    NegativeBinomial(eta=-0.5, mean=8),
    NegativeBinomial(eta=5, mean=6),
    Poisson(mean=3),
    Binomial(n=6, p=0.4),
    Fixed(k=1),
    Fixed(k=3),
    Finite({0: 1, 2: 1, 7: 2}),
    Geometric(mean=5, cap=12),
]
NEVER_NONE = [law for law in LAWS if not isinstance(law, (Poisson, Binomial)) and not str(law).startswith("finite")]
WEIGHTS = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), min_size=2, max_size=6).filter(
    lambda w: sum(a for a, _ in w) > 0 and sum(b for _, b in w) > 0
)
# For z^alpha every outcome needs mass on both sides, or the divergence is infinite.
FULL_WEIGHTS = st.lists(st.tuples(st.integers(1, 20), st.integers(1, 20)), min_size=2, max_size=6)

# The exact values come by quadrature, right to about 1e-12 and rounded to neither side.
ROUNDING = 1.0 + 1e-10


def masses(weights):
    p, q = np.array(weights, dtype=float).T
    return p / p.sum(), q / q.sum()


@given(st.lists(st.integers(0, 20), min_size=1, max_size=6).filter(any), st.integers(1, 5))
def test_the_winner_of_k_trials_by_counting(weights, k):
    p = np.array(weights) / sum(weights)
    wins = np.zeros(len(p))
    for outcomes in itertools.product(range(len(p)), repeat=min(k, 3)):
        wins[min(outcomes)] += math.prod(p[list(outcomes)])
    assert selected_masses(p, Fixed(k=min(k, 3))) == pytest.approx(wins, abs=1e-13)


def test_the_winner_by_generating_function():
    p = np.array([0.1, 0.0, 0.25, 0.65])
    edges = 1.0 - np.concatenate([[0.0], np.cumsum(p)])
    gamma, mean = 0.02, 3.5
    assert selected_masses(p, Geometric(gamma=gamma)) == pytest.approx(-np.diff(gamma * edges / (1.0 - (1.0 - gamma) * edges)), abs=1e-13)
    assert selected_masses(p, Poisson(mean=mean)) == pytest.approx(-np.diff(np.exp(mean * (edges - 1.0))), abs=1e-13)
    assert 1.0 - selected_masses(p, Poisson(mean=mean)).sum() == pytest.approx(math.exp(-mean), abs=1e-13)


@settings(max_examples=40)
@given(WEIGHTS, st.sampled_from(LAWS), st.floats(-1.0, 4.0))
def test_the_theorem_for_the_hockey_stick(weights, count, epsilon):
    p, q = masses(weights)
    f = HockeyStick(epsilon)
    assert selection_divergence(f, p, q, count) <= main_thm(f, p, q, count) * ROUNDING + 1e-13


@settings(max_examples=40)
@given(WEIGHTS, st.sampled_from(LAWS), st.floats(0.0, 4.0))
def test_its_maximum_over_postprocessings_is_bounded_and_met(weights, count, epsilon):
    """Compared with a scan over (y', t): never below it, and above it by at most the scan's resolution."""
    p, q = masses(weights)
    place, vertex = np.linspace(0.0, len(p), 1000 * len(p) + 1), np.arange(len(p) + 1)
    u = np.interp(place, vertex, np.concatenate([[0.0], np.cumsum(p)]))
    v = np.interp(place, vertex, np.concatenate([[0.0], np.cumsum(q)]))
    gain, loss = np.exp(count.log_dpgf(np.minimum(u, 1.0))), np.exp(count.log_dpgf(np.minimum(v, 1.0)))
    scan = np.maximum((p[:, None] * gain - math.exp(epsilon) * q[:, None] * loss).max(axis=1), 0.0).sum()
    bound = main_thm(HockeyStick(epsilon), p, q, count)
    assert scan <= bound + 1e-13
    assert bound <= scan + 2e-3 * count.expected()


@settings(max_examples=40)
@given(WEIGHTS, st.sampled_from(LAWS), st.floats(0.0, 4.0))
def test_ratio_is_never_below_it(weights, count, epsilon):
    """Ratio replaces each outcome's best place by one factor for all outcomes, so it bounds the theorem's right-hand side."""
    p, q = masses(weights)
    unclipped = main_thm(HockeyStick(epsilon), p, q, count)
    bound = float(ratio_delta(DominatingPair.from_masses(p, q), count, epsilon))
    # main_thm is rounded up by second-order pieces, of about 1e-4 relative to m.
    assert min(unclipped, 1.0) <= bound + 2e-4 * count.expected()


@settings(max_examples=25)
@given(FULL_WEIGHTS, st.sampled_from(LAWS), st.floats(1.05, 20.0))
def test_the_theorem_for_powers(weights, count, alpha):
    p, q = masses(weights)
    f = Power(alpha)
    assert selection_divergence(f, p, q, count) <= main_thm(f, p, q, count) * ROUNDING


@settings(max_examples=25)
@given(FULL_WEIGHTS, st.sampled_from(NEVER_NONE), st.floats(1.05, 20.0))
def test_for_powers_the_theorem_splits_into_lemma_7(weights, count, alpha):
    """The best place is the same for every outcome, so the sum is a product: an equality."""
    p, q = masses(weights)
    f = Power(alpha)
    whole = math.log(main_thm(f, p, q, count)) / (alpha - 1.0)
    u, v = np.cumsum(p), np.cumsum(q)
    path = (np.concatenate([[0.0], u[:-1], [1.0]]), np.concatenate([[0.0], v[:-1], [1.0]]))
    parts = float(renyi_of_pair(DominatingPair.from_masses(p, q), alpha)) + f.log_penalty(*path, count) / (alpha - 1.0)
    assert whole == pytest.approx(parts, rel=1e-9, abs=1e-9)  # both sides rounded up by about 1e-11
    # The lemma allows every post-processing, the theorem's order only its own upper sets.
    assert whole <= lemma_7(p, q, count, alpha) + 3e-6 / (alpha - 1.0)  # max_along_path stops at 1e-6


@settings(max_examples=25)
@given(FULL_WEIGHTS, st.sampled_from(NEVER_NONE), st.floats(1.05, 20.0))
def test_lemma_7_is_met_when_low_losses_score_best(weights, count, alpha):
    p, q = masses(weights)
    order = np.argsort(np.log(p) - np.log(q), kind="stable")
    whole = math.log(main_thm(Power(alpha), p[order], q[order], count)) / (alpha - 1.0)
    assert whole == pytest.approx(lemma_7(p, q, count, alpha), abs=1e-6 + 3e-6 / (alpha - 1.0))  # as above


def test_a_leak_makes_the_power_divergence_infinite():
    p, q = [0.5, 0.5], [1.0, 0.0]
    assert math.isinf(main_thm(Power(2.0), p, q, Geometric(mean=5)))
    assert math.isinf(selection_divergence(Power(2.0), p, q, Geometric(mean=5)))
    assert math.isinf(lemma_7(p, q, Geometric(mean=5), 2.0))


def normal_score(shift):
    return ScoreDistribution(lambda y: np.exp(-0.5 * (y - shift) ** 2) / math.sqrt(2.0 * math.pi), lambda y: ndtr(shift - y))


KNOTS = np.linspace(-12.0, 13.0, 3001)


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 1.0])
def test_one_trial_of_a_continuous_score_is_the_base(epsilon):
    mu = 0.5
    found = main_thm_continuous(HockeyStick(epsilon), normal_score(mu), normal_score(0.0), Fixed(k=1), KNOTS)
    exact = ndtr(mu / 2 - epsilon / mu) - math.exp(epsilon) * ndtr(-mu / 2 - epsilon / mu)
    assert found == pytest.approx(exact, rel=1e-5)  # the kink of (.)_+ costs Gauss's rule its order


@pytest.mark.parametrize("f", [HockeyStick(0.5), HockeyStick(1.0), Power(2.0), Power(6.0)], ids=str)
@pytest.mark.parametrize("count", [Geometric(mean=30), Poisson(mean=3), Fixed(k=4)], ids=str)
def test_the_continuous_form_is_the_limit_of_the_finite_one(f, count):
    mu = 0.5
    cells = [-np.diff(ndtr(-(KNOTS[::-1] - shift))) * -1.0 for shift in (mu, 0.0)]
    p, q = (np.abs(cell) / np.abs(cell).sum() for cell in cells)
    finite = selection_divergence(f, p, q, count)  # scores grouped into cells: a post-processing
    continuous = main_thm_continuous(f, normal_score(mu), normal_score(0.0), count, KNOTS)
    assert finite == pytest.approx(continuous, rel=1e-4)
    assert finite <= continuous * (1.0 + 1e-5)


def test_masses_that_are_none_are_refused():
    with pytest.raises(ParameterError, match="sum to 1"):
        main_thm(HockeyStick(1.0), [0.5, 0.4], [0.5, 0.5], Fixed(k=1))
    with pytest.raises(ParameterError, match="one length"):
        selection_divergence(HockeyStick(1.0), [1.0], [0.5, 0.5], Fixed(k=1))
    with pytest.raises(ParameterError, match="`alpha`"):
        Power(1.0)
