"""Properties of every selection, for all bases and laws of K."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference_theorems import pure_ratio_epsilon

import privselect as ps
from closed_forms import gaussian_hockey
from privselect.mechanisms import Mechanism
from privselect.pairs import Bracket, DominatingPair
from privselect.selection.bounds.paper_bounds import cor_binomial_to_poisson, thm_hs_bin, thm_negbin
from privselect.selection.bounds.ratio import log_ratio, ratio_delta

# Exact is bounded on a mesh made to be right to about 1e-3 of delta, a new one for each question.
MESH = 5e-3  # two meshes of tolerance 2e-3, each judged by a sample of its pieces: 3.1e-3 has been seen, for laplace(scale=1.1875)


@dataclass(frozen=True)
class Given(Mechanism):
    """A mechanism given by one pair of distributions, in both orders."""

    pair: DominatingPair

    def _make_brackets(self, _accuracy):
        return Bracket(self.pair, (self.pair,), "remove"), Bracket(self.pair.reverse, (self.pair.reverse,), "add")


PAIRS = (
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=2, max_size=6)
    .filter(lambda w: sum(a * b for a, b in w) > 0)
    .map(lambda w: DominatingPair.from_masses(*(np.array(w, dtype=float) / np.sum(w, axis=0)).T))
)
NEGBINS = st.builds(ps.NegativeBinomial, eta=st.floats(-0.9, 8.0), gamma=st.floats(1e-3, 0.95))
POISSONS = st.builds(ps.Poisson, mean=st.floats(0.05, 10.0))
BINOMIALS = st.builds(ps.Binomial, n=st.integers(1, 40), p=st.floats(0.02, 0.9))
BASES = st.one_of(
    st.builds(ps.Gaussian, sigma=st.floats(0.5, 20.0)),
    st.builds(ps.Laplace, scale=st.floats(0.5, 20.0)),
    st.builds(ps.Pure, epsilon=st.floats(0.01, 3.0)),
    st.builds(ps.Approximate, epsilon=st.floats(0.0, 3.0), delta=st.floats(1e-9, 1e-2)),
    PAIRS.map(Given),
)
FEW = settings(max_examples=8)


def both_ways(pair):
    return lambda epsilon: np.maximum(pair.hockey_stick(epsilon, side=1), pair.reverse.hockey_stick(epsilon, side=1))


def theorem(count):
    return {ps.Poisson: cor_binomial_to_poisson, ps.Binomial: thm_hs_bin}.get(type(count), thm_negbin)


# -- the bounds among each other -----------------------------------------------------------------------------------------


@FEW
@given(PAIRS, st.one_of(NEGBINS, POISSONS, BINOMIALS), st.floats(0.0, 5.0))
def test_exact_is_never_above_ratio(pair, count, epsilon):
    found = ps.Selection(Given(pair), count).delta_at(epsilon)
    ratio = max(float(ratio_delta(way, count, epsilon)) for way in (pair, pair.reverse))
    assert found.lower <= found.upper <= ratio


@settings(max_examples=100)
@given(PAIRS, st.one_of(NEGBINS, POISSONS, BINOMIALS))
def test_ratio_is_never_above_the_paper(pair, count):
    epsilon = np.linspace(0.0, 12.0, 49)
    # For Poisson and binomial laws the two are one number, found in two ways and rounded up in each, by less than 1e-9 in
    # epsilon; delta falls by at most m times that.
    rounding = 1e-9
    paper = theorem(count)(both_ways(pair), count, np.maximum(epsilon - rounding, 0.0)) + rounding * count.expected()
    for way in (pair, pair.reverse):
        assert np.all(ratio_delta(way, count, epsilon) <= paper)


@pytest.mark.parametrize(
    "count", [ps.Geometric(mean=30), ps.NegativeBinomial(eta=-0.5, mean=30), ps.NegativeBinomial(eta=5, mean=30)], ids=str
)
def test_ratio_is_strictly_below_the_paper_for_a_gaussian(count):
    pair = ps.Gaussian(sigma=4).brackets[0].upper
    epsilon = np.linspace(1.0, 6.0, 26)
    paper = thm_negbin(both_ways(pair), count, epsilon)
    assert np.all((ratio_delta(pair, count, epsilon) < paper)[paper < 1.0])
    assert np.any(paper < 1.0)


# -- known answers -------------------------------------------------------------------------------------------------------


@FEW
@given(BASES, st.sampled_from([ps.Fixed(k=1), ps.Geometric(mean=1), ps.Binomial(n=1, p=1)]), st.floats(1e-9, 1e-2), st.floats(-1.0, 2.0))
def test_one_trial_gives_the_base_back(base, count, delta, epsilon):
    chosen = ps.Selection(base, count)
    for ours, alone in ((chosen.epsilon_at(delta), base.epsilon_at(delta)), (chosen.delta_at(epsilon), base.delta_at(epsilon))):
        assert ours.lower <= alone.upper
        assert alone.lower <= ours.upper
    assert ours.upper == pytest.approx(alone.upper, rel=1e-3, abs=1e-9)
    assert ours.lower == pytest.approx(alone.lower, rel=1e-3, abs=1e-9)
    # Epsilon jumps where delta meets the mass of infinite loss: there only deltas can be compared.
    leak = max(bracket.upper.p_only for bracket in base.brackets)
    if abs(delta - leak) > 0.1 * delta:
        ours, alone = chosen.epsilon_at(delta), base.epsilon_at(delta)
        assert ours.upper == pytest.approx(alone.upper, rel=1e-3, abs=1e-9)
        assert ours.lower == pytest.approx(alone.lower, rel=1e-3, abs=1e-9)


@pytest.mark.parametrize("sigma", [1, 4])
@pytest.mark.parametrize("k", [2, pytest.param(3, marks=pytest.mark.slow), 8])
def test_a_fixed_number_of_trials_never_costs_more_than_releasing_them_all(k, sigma):
    base = ps.Gaussian(sigma=sigma)
    chosen = ps.Selection(base, ps.Fixed(k=k))
    found = chosen.epsilon_at(1e-6)
    (released,) = base.composed_pairs(k)
    assert found.upper <= released.epsilon_at(1e-6, side=1)
    # The truth is at most the closed form of the release of all; whatever claims to be below the truth must be below that.
    assert chosen.delta_at(found.upper).lower <= gaussian_hockey(math.sqrt(k) / sigma, found.upper)


@pytest.mark.parametrize("mean", [1, 10])
@pytest.mark.parametrize("base", [ps.Gaussian(sigma=4), ps.Pure(epsilon=0.7)], ids=str)
def test_a_binomial_law_tends_to_poisson(base, mean):
    limit = ps.Selection(base, ps.Poisson(mean=mean)).epsilon_at(1e-6)
    near = ps.Selection(base, ps.Binomial(n=10**5, p=mean / 10**5)).epsilon_at(1e-6)
    assert near.upper == pytest.approx(limit.upper, rel=1e-3)
    assert near.lower == pytest.approx(limit.lower, rel=1e-3)


@settings(max_examples=100)
@given(st.floats(0.0, 8.0), st.one_of(NEGBINS, POISSONS, BINOMIALS))
def test_ratio_meets_its_closed_forms_for_a_pure_base(epsilon, count):
    pair = ps.Pure(epsilon=epsilon).brackets[0].upper
    assert epsilon + log_ratio(pair, count) == pytest.approx(pure_ratio_epsilon(epsilon, count), rel=1e-9, abs=1e-9)


PURE_LAWS = [
    ps.Geometric(mean=30),
    ps.NegativeBinomial(eta=-0.5, mean=30),
    ps.NegativeBinomial(eta=5, mean=30),
    ps.Poisson(mean=10),
    ps.Binomial(n=20, p=0.5),
]


def check_closed_form(epsilon, count):
    """At a delta of 1e-100 epsilon equals that of pure DP in floats; the closed form has a rounding error of 1e-12."""
    found = ps.Selection(ps.Pure(epsilon=epsilon), count).epsilon_at(1e-100)
    closed = pure_ratio_epsilon(epsilon, count)
    assert found.lower <= closed <= found.upper * (1.0 + 1e-12)
    assert found.upper == pytest.approx(closed, rel=1e-7)  # where the search stops


@pytest.mark.parametrize("count", PURE_LAWS, ids=str)
def test_the_closed_form_lies_inside_the_interval(count):
    check_closed_form(3.0, count)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.01, 0.1, 0.7, 10.0])
@pytest.mark.parametrize("count", PURE_LAWS, ids=str)
def test_the_closed_forms_lie_inside_the_interval(epsilon, count):
    check_closed_form(epsilon, count)


# -- shape ---------------------------------------------------------------------------------------------------------------


@FEW
@given(BASES, st.one_of(NEGBINS, POISSONS))
def test_delta_falls_over_the_whole_line(base, count):
    epsilon = np.array([-30.0, -2.0, -0.5, -1e-3, 0.0, 1e-3, 0.4, 1.0, 2.5, 8.0, 600.0])
    found = ps.Selection(base, count).delta_at(epsilon)
    assert np.all(found.lower >= 0.0)
    assert np.all(found.upper <= 1.0)
    assert np.all(found.lower <= found.upper)
    # The truth falls: no lower bound lies above an upper one to its left.
    assert np.all(found.lower <= np.minimum.accumulate(found.upper))
    assert np.all(np.diff(found.upper) <= MESH * found.upper[:-1])


@FEW
@given(BASES, st.one_of(NEGBINS, POISSONS), st.floats(1e-4, 5.0))
def test_both_directions_are_one_curve(base, count, epsilon):
    chosen = ps.Selection(base, count)
    there, back = chosen.delta_at(epsilon), chosen.delta_at(-epsilon)
    # delta_{P||P'}(-e) = 1 - e^-e + e^-e delta_{P'||P}(e); the greater of both orders is its own reverse.
    for one, other in ((there.lower, back.lower), (there.upper, back.upper)):
        # In floats, each side rounded outward.
        assert other == pytest.approx(-math.expm1(-epsilon) + math.exp(-epsilon) * one, rel=1e-14, abs=3e-15)


@FEW
@given(BASES, st.one_of(NEGBINS, POISSONS))
def test_epsilon_falls_with_delta(base, count):
    delta = np.array([1e-10, 1e-6, 1e-2])
    found = ps.Selection(base, count).epsilon_at(delta)
    assert np.all(found.lower >= 0.0)
    assert np.all(found.lower <= found.upper)
    assert np.all(found.lower <= np.minimum.accumulate(found.upper))


@FEW
@given(BASES, st.one_of(NEGBINS, POISSONS), st.floats(-10.0, -1.0))
def test_epsilon_and_delta_agree(base, count, log_delta):
    chosen, delta = ps.Selection(base, count), 10.0**log_delta
    found = chosen.epsilon_at(delta)
    if math.isfinite(found.upper):
        at_upper = chosen.delta_at(found.upper)
        assert at_upper.lower <= delta
        assert at_upper.upper <= delta * (1.0 + MESH)
    if 0.0 < found.lower < math.inf:
        at_lower = chosen.delta_at(found.lower)
        assert at_lower.upper >= delta
        assert at_lower.lower >= delta * (1.0 - MESH)


@pytest.mark.parametrize("count", [ps.Geometric(mean=30), ps.Poisson(mean=3), ps.Finite({0: 1, 1: 2})], ids=str)
def test_many_questions_are_answered_as_each_alone(count):
    chosen = ps.Selection(ps.Gaussian(sigma=2), count)
    delta, epsilon = np.array([[1e-3, 1e-5], [1e-9, 0.2]]), np.array([-0.5, 0.0, 1.0, 2.5])
    together, apart = chosen.epsilon_at(delta), [chosen.epsilon_at(float(d)) for d in delta.flat]
    assert together.upper.shape == together.lower.shape == delta.shape
    assert together.upper.ravel().tolist() == [one.upper for one in apart]
    assert together.lower.ravel().tolist() == [one.lower for one in apart]
    together, apart = chosen.delta_at(epsilon), [chosen.delta_at(float(e)) for e in epsilon]
    assert together.upper.tolist() == [one.upper for one in apart]
    assert together.lower.tolist() == [one.lower for one in apart]
    assert isinstance(apart[0].upper, float)
    assert chosen.delta_at([]).upper.shape == (0,)


def test_an_answer_does_not_depend_on_what_was_asked_before():
    first = ps.Selection(ps.Gaussian(sigma=4), ps.Geometric(mean=30))
    alone = first.epsilon_at(1e-6), first.delta_at(1.5)
    for delta in (1e-2, 1e-12):
        first.epsilon_at(delta)
    assert (first.epsilon_at(1e-6), first.delta_at(1.5)) == alone


def test_a_base_that_leaks_nothing_or_everything():
    nothing = ps.Selection(ps.Pure(epsilon=0), ps.Geometric(mean=30))
    assert nothing.epsilon_at(1e-9).upper <= 1e-9
    assert nothing.delta_at(0.0).upper <= 1e-9
    everything = ps.Selection(Given(DominatingPair.from_masses([1.0, 0.0], [0.0, 1.0])), ps.Geometric(mean=3))
    assert everything.delta_at(1.0).upper == 1.0
    assert math.isinf(everything.epsilon_at(0.5).upper)
