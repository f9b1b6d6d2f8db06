"""Privacy loss distributions of dp-accounting: reading and writing give upper bounds, and round trips."""

import math

import mpmath
import numpy as np
import pytest
from dp_accounting import NeighboringRelation
from dp_accounting.pld import common, privacy_loss_distribution
from hypothesis import assume, given
from hypothesis import strategies as st

import privselect as ps
from privselect.errors import NotCoveredError, ParameterError
from privselect.integrations import mechanism_from_pld, pld_from_mechanism
from privselect.integrations.dp_accounting.pld import _round_to_lattice
from privselect.mechanisms.neighbours import ANY, REPLACE_ONE
from privselect.pairs import DominatingPair

losses = privacy_loss_distribution
DELTAS = (1e-3, 1e-6, 1e-9)
DRIFT = 1.0 - 1e-9  # dp-accounting walks down a lattice by subtraction, and its losses drift on the way

THEIRS = {
    "gaussian": lambda: losses.from_gaussian_mechanism(1.0),
    "gaussian, replaced": lambda: losses.from_gaussian_mechanism(4.0, neighboring_relation=NeighboringRelation.REPLACE_ONE),
    "sampled gaussian": lambda: losses.from_gaussian_mechanism(1.0, sampling_prob=0.01),
    "laplace": lambda: losses.from_laplace_mechanism(2.0),
    "sampled laplace": lambda: losses.from_laplace_mechanism(0.5, sampling_prob=0.1),
    "discrete laplace": lambda: losses.from_discrete_laplace_mechanism(0.7, sensitivity=3),
    "discrete gaussian": lambda: losses.from_discrete_gaussian_mechanism(3.0, sensitivity=2),
    "randomised response": lambda: losses.from_randomized_response(0.3, 5),
    "mixture of gaussians": lambda: losses.from_mixture_gaussian_mechanism(
        1.0, [0.0, 1.0, 2.0], [0.9, 0.06, 0.04], value_discretization_interval=0.01
    ),
    "truncated sample": lambda: losses.from_truncated_subsampled_gaussian_mechanism(
        1000, 0.01, 20, 1.0, value_discretization_interval=1e-3
    ),
    "parameters": lambda: losses.from_privacy_parameters(common.DifferentialPrivacyParameters(1.0, 1e-7)),
    "nothing": losses.identity,
}


@pytest.mark.parametrize("name", THEIRS)
def test_what_is_read_is_above_and_near(name):
    theirs = THEIRS[name]()
    ours = mechanism_from_pld(theirs)
    assert isinstance(ours, ps.Curve)
    for delta in DELTAS:
        epsilon, found = theirs.get_epsilon_for_delta(delta), ours.epsilon_at(delta)
        assert found.lower is None
        assert epsilon * DRIFT <= found.upper
        assert found.upper <= epsilon * 1.001 + 1e-9 or epsilon == math.inf
    for epsilon in (0.0, 0.3, 1.0, 2.5):
        assert theirs.get_delta_for_epsilon(epsilon) <= ours.delta_at(epsilon).upper


@pytest.mark.parametrize("name", THEIRS)
def test_each_order_of_the_neighbours_is_kept(name):
    theirs = THEIRS[name]()
    brackets = mechanism_from_pld(theirs).brackets
    assert [bracket.direction for bracket in brackets] == (["both"] if theirs._symmetric else ["remove", "add"])
    for bracket, pmf in zip(brackets, (theirs._pmf_remove, theirs._pmf_add), strict=False):
        for epsilon in (0.0, 0.01, 0.1, 1.0, 3.0):
            assert pmf.get_delta_for_epsilon(epsilon) <= float(bracket.upper.hockey_stick(epsilon, side=1))


@pytest.mark.parametrize("name", ["sampled gaussian", "randomised response", "parameters"])
def test_a_mechanism_that_was_read_has_a_text_form_and_is_selected_from(name):
    ours = mechanism_from_pld(THEIRS[name]())
    assert ps.parse(str(ours)) == ours
    assert hash(ps.parse(str(ours))) == hash(ours)
    assert mechanism_from_pld(THEIRS[name]()) == ours
    chosen = ps.Selection(ours, ps.Geometric(mean=5)).epsilon_at(1e-5)
    assert ours.epsilon_at(1e-5).upper < chosen.upper < math.inf


def test_a_composed_loss_distribution_needs_its_number_of_steps():
    theirs = losses.from_gaussian_mechanism(1.0, sampling_prob=0.01).self_compose(300)
    with pytest.raises(ParameterError, match=r"`pld` has a mass of -\S+, a rounding error of its composition: .* `compositions`"):
        mechanism_from_pld(theirs)
    ours = mechanism_from_pld(theirs, compositions=300)
    steps = ps.DPSGD(noise_multiplier=1, sampling_probability=0.01, steps=300)
    for delta in (1e-3, 1e-6):
        epsilon = theirs.get_epsilon_for_delta(delta)
        assert epsilon * DRIFT <= ours.epsilon_at(delta).upper <= epsilon * 1.001
        assert ours.epsilon_at(delta).upper == pytest.approx(steps.epsilon_at(delta).upper, rel=1e-3)


def test_the_relation_may_be_named():
    theirs = THEIRS["gaussian, replaced"]()
    assert mechanism_from_pld(theirs).neighbours == ANY
    assert mechanism_from_pld(theirs, neighbours=REPLACE_ONE).neighbours == REPLACE_ONE


def test_losses_beyond_700_are_infinite():
    theirs = losses.PrivacyLossDistribution.create_from_rounded_probability({-8000: 0.5, 8000: 0.5}, 0.0, 0.1)
    ours = mechanism_from_pld(theirs)
    assert ours.delta_at(600.0).upper == pytest.approx(0.5)
    assert ours.epsilon_at(0.4).upper == math.inf


def test_missing_mass_is_infinite_loss():
    theirs = losses.PrivacyLossDistribution.create_from_rounded_probability({0: 0.9}, 0.05, 0.1)
    assert mechanism_from_pld(theirs).delta_at(9.0).upper == pytest.approx(0.1)


def test_an_optimistic_loss_distribution_is_refused():
    with pytest.raises(NotCoveredError, match="optimistic loss distribution is not an upper bound"):
        mechanism_from_pld(losses.from_gaussian_mechanism(1.0, pessimistic_estimate=False))


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: mechanism_from_pld(3), "`pld` must be a PrivacyLossDistribution of dp-accounting, got 3"),
        (
            lambda: mechanism_from_pld(losses.identity(), compositions=0),
            "`compositions` must be an integer >= 1 and <= 1000000000, got 0",
        ),
        (
            lambda: mechanism_from_pld(losses.PrivacyLossDistribution.create_from_rounded_probability({0: math.nan}, 0.0, 0.1)),
            "`pld` must hold masses in [0, 1], got an infinite loss of 0.0 and a sum of nan",
        ),
        (lambda: pld_from_mechanism(3), "`mechanism` must be a mechanism such as gaussian(sigma=4), got 3"),
        (lambda: pld_from_mechanism(ps.Pure(epsilon=1), 0), "`value_discretization_interval` must be in (0, inf), got 0"),
        (
            lambda: pld_from_mechanism(ps.Pure(epsilon=100), 1e-9),
            "`value_discretization_interval` must be at least 1e-05 for losses that span 100, got 1e-09",
        ),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_sentence(make, sentence):
    with pytest.raises(ParameterError) as caught:
        make()
    assert str(caught.value) == sentence


# -- written ---------------------------------------------------------------------------------------------------------------

OURS = [
    ps.Gaussian(sigma=1),
    ps.Gaussian(sigma=4),
    ps.Gaussian(sigma=0.2),
    ps.Laplace(scale=2),
    ps.Pure(epsilon=0),
    ps.Pure(epsilon=1),
    ps.Approximate(epsilon=0.4, delta=1e-7),
    ps.GaussianDP(mu=1, delta=1e-8),
    ps.Points(((0.1, 1e-3), (1, 1e-10))),
    ps.Curve(((0, 0.4, 0.3), (1, 1e-2, 1e-3), (3, 0, 0))),
    ps.DPSGD(noise_multiplier=1.1, sampling_probability=0.01, steps=100),
    ps.Mixture(((0.5, ps.Gaussian(sigma=4)), (0.5, ps.Pure(epsilon=1)))),
]


@pytest.mark.parametrize("mechanism", OURS, ids=str)
def test_what_is_written_is_above_and_near_and_can_be_read_again(mechanism):
    theirs = pld_from_mechanism(mechanism)
    again = mechanism_from_pld(theirs)
    for delta in DELTAS:
        ours = mechanism.epsilon_at(delta).upper
        epsilon = theirs.get_epsilon_for_delta(delta)
        # `upper` holds an allowance for rounding that dp-accounting does not make.
        assert ours * DRIFT - 1e-11 <= epsilon
        assert epsilon <= ours * 1.001 + 1e-9 or ours == math.inf
        assert epsilon * DRIFT <= again.epsilon_at(delta).upper
        assert again.epsilon_at(delta).upper <= ours * 1.001 + 1e-9 or ours == math.inf


@pytest.mark.parametrize("mechanism", OURS, ids=str)
def test_what_is_written_is_a_pair_of_laws_on_the_lattice(mechanism):
    theirs = pld_from_mechanism(mechanism, 1e-3)
    for pmf in (theirs._pmf_remove.to_dense_pmf(), theirs._pmf_add.to_dense_pmf()):
        points = (pmf._lower_loss + np.arange(len(pmf._probs))) * pmf._discretization
        assert pmf._pessimistic_estimate
        assert np.all(pmf._probs >= 0.0)
        assert pmf._probs.sum() + pmf._infinity_mass == pytest.approx(1.0, abs=1e-9)
        assert np.sum(pmf._probs * np.exp(-points)) <= 1.0 + 1e-9


def test_a_coarse_lattice_is_above_a_fine_one():
    mechanism = ps.Gaussian(sigma=1)
    for delta in DELTAS:
        found = [pld_from_mechanism(mechanism, spacing).get_epsilon_for_delta(delta) for spacing in (1e-3, 0.03, 1.0, 1000.0)]
        assert found == sorted(found)


def test_a_small_epsilon_needs_a_fine_lattice():
    theirs = pld_from_mechanism(ps.Pure(epsilon=0.00123), 1e-8)
    assert theirs.get_epsilon_for_delta(1e-12) == pytest.approx(0.00123, abs=2e-8)


def test_composed_by_dp_accounting_it_is_what_they_compose_themselves():
    ours = pld_from_mechanism(ps.Gaussian(sigma=4)).self_compose(10).compose(pld_from_mechanism(ps.Laplace(scale=3)))
    theirs = losses.from_gaussian_mechanism(4.0).self_compose(10).compose(losses.from_laplace_mechanism(3.0))
    for delta in (1e-3, 1e-6):
        assert ours.get_epsilon_for_delta(delta) == pytest.approx(theirs.get_epsilon_for_delta(delta), rel=1e-3)


def test_a_selection_goes_over_whole():
    chosen = ps.Selection(ps.Gaussian(sigma=4), ps.Geometric(mean=30))
    theirs = pld_from_mechanism(chosen)
    assert chosen.epsilon_at(1e-6).lower <= theirs.get_epsilon_for_delta(1e-6) <= chosen.epsilon_at(1e-6).upper * 1.003


def test_what_leaks_everything():
    assert pld_from_mechanism(ps.Gaussian(sigma=0.01)).get_epsilon_for_delta(0.1) == math.inf


# -- any pair, any lattice -------------------------------------------------------------------------------------------------

WEIGHTS = st.lists(st.one_of(st.just(0.0), st.floats(1e-12, 1.0)), min_size=2, max_size=6)
ASKED = st.lists(st.floats(0.0, 30.0), min_size=1, max_size=5)


def true_hockey_stick(losses_and_masses, infinite, epsilon):
    """``sum p (1 - e^(epsilon - loss))_+`` in 50 digits."""
    with mpmath.workdps(50):
        counted = [(mpmath.mpf(loss), mpmath.mpf(mass)) for loss, mass in losses_and_masses if loss > epsilon]
        return sum((mass * (1 - mpmath.exp(epsilon - loss)) for loss, mass in counted), mpmath.mpf(infinite))


@given(WEIGHTS, WEIGHTS, st.sampled_from([1e-3, 0.07, 1.0, 13.0]), ASKED)
def test_the_masses_on_the_lattice_dominate_the_pair(first, second, spacing, asked):
    size = min(len(first), len(second))
    p, q = np.array(first[:size]), np.array(second[:size])
    assume(p.sum() > 0.0)
    assume(q.sum() > 0.0)
    pair = DominatingPair.from_masses(p / p.sum(), q / q.sum())
    masses, infinite = _round_to_lattice(pair, spacing)
    with mpmath.workdps(50):
        on_lattice = [(mpmath.mpf(cell) * mpmath.mpf(spacing), mass) for cell, mass in masses.items()]
        outcomes = list(zip(pair.p.tolist(), pair.q.tolist(), strict=True))
        for epsilon in (*asked, 0.0, *(float(loss) for loss in pair.losses)):
            truth = sum((max(a - mpmath.exp(mpmath.mpf(epsilon)) * b, 0) for a, b in outcomes), mpmath.mpf(pair.p_only))
            assert truth <= true_hockey_stick(on_lattice, infinite, epsilon) * (1 + mpmath.mpf(10) ** -15)


@given(st.lists(st.tuples(st.integers(0, 40), st.floats(1e-9, 1.0)), min_size=1, max_size=6), st.floats(0.0, 0.5), ASKED)
def test_the_curve_is_above_any_symmetric_lattice(weights, infinite, asked):
    # A loss and its negative in the ratio of their odds: the reverse pair has the same law.
    halves = [(cell, weight / (1.0 + math.exp(-0.3 * cell))) for cell, weight in weights]
    masses = dict.fromkeys({sign * cell for cell, _ in halves for sign in (-1, 1)}, 0.0)
    total = sum(weight for _, weight in weights)
    for cell, likely in halves:
        masses[cell] += likely / total * (1.0 - infinite)
        masses[-cell] += likely * math.exp(-0.3 * cell) / total * (1.0 - infinite)
    theirs = losses.PrivacyLossDistribution.create_from_rounded_probability(masses, infinite, 0.3)
    (bracket,) = mechanism_from_pld(theirs).brackets
    listed = [(0.3 * cell, mass) for cell, mass in masses.items()]
    for epsilon in (*asked, 0.0, *(0.3 * cell for cell in masses if cell > 0)):
        truth = true_hockey_stick(listed, infinite, epsilon)
        assert truth <= float(bracket.upper.hockey_stick(epsilon, side=1)) <= truth * (1 + 1e-6) + 1e-9
