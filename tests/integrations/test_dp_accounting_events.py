"""Events of dp-accounting: conversion in both directions, errors, and equal epsilons."""

import math
from fractions import Fraction

import attr
import mpmath
import numpy as np
import pytest
from dp_accounting import NeighboringRelation, dp_event, pld, rdp
from dp_accounting.rdp.rdp_privacy_accountant import _gamma_truncated_negative_binomial

import privselect as ps
from privselect._util.rounding import inverse_down, inverse_up, log_up
from privselect.errors import NotCoveredError, ParameterError
from privselect.integrations import event_from_mechanism, mechanism_from_event
from privselect.mechanisms.neighbours import ADD_REMOVE, REPLACE_ONE

Gaussian, Laplace = dp_event.GaussianDpEvent, dp_event.LaplaceDpEvent
Sampled, Composed, Again = dp_event.PoissonSampledDpEvent, dp_event.ComposedDpEvent, dp_event.SelfComposedDpEvent
Select, Discrete, Response = dp_event.RepeatAndSelectDpEvent, dp_event.DiscreteLaplaceDpEvent, dp_event.RandomizedResponseDpEvent
Fixed, Concentrated = dp_event.SampledWithoutReplacementDpEvent, dp_event.ZCDpEvent
NOTHING = dp_event.NoOpDpEvent()
STEP = Sampled(0.01, Gaussian(1.1))


def composed(*parts, times=1):
    return ps.Composed(parts, times=times)


def gaussian(sigma, neighbours=ADD_REMOVE):
    return ps.Gaussian(sigma=sigma, neighbours=neighbours)


def laplace(scale, neighbours=ADD_REMOVE):
    return ps.Laplace(scale=scale, neighbours=neighbours)


def dpsgd(steps):
    return ps.DPSGD(noise_multiplier=1.1, sampling_probability=0.01, steps=steps)


def pure(epsilon, neighbours=ADD_REMOVE):
    return ps.Pure(epsilon=epsilon, neighbours=neighbours)


# -- both ways -------------------------------------------------------------------------------------------------------------

SAME = [  # an event, its relation, its mechanism: either gives the other
    (NOTHING, ADD_REMOVE, lambda: pure(0)),
    (NOTHING, REPLACE_ONE, lambda: pure(0, REPLACE_ONE)),
    (Gaussian(4.0), ADD_REMOVE, lambda: gaussian(4)),
    (Gaussian(4.0), REPLACE_ONE, lambda: gaussian(2, REPLACE_ONE)),
    (Laplace(4.0), ADD_REMOVE, lambda: laplace(4)),
    (Laplace(4.0), REPLACE_ONE, lambda: laplace(2, REPLACE_ONE)),
    (STEP, ADD_REMOVE, lambda: dpsgd(1)),
    (Sampled(1.0, Gaussian(2.0)), ADD_REMOVE, lambda: ps.DPSGD(noise_multiplier=2, sampling_probability=1, steps=1)),
    (Again(STEP, 1000), ADD_REMOVE, lambda: dpsgd(1000)),
    (Fixed(60_000, 256, Gaussian(1.1)), REPLACE_ONE, lambda: ps.SampledGaussian(noise_multiplier=1.1, batch_size=256, records=60_000)),
    (Select(Gaussian(4.0), 30.0, 1.0), ADD_REMOVE, lambda: ps.Selection(gaussian(4), ps.Geometric(mean=30))),
    (Select(Gaussian(4.0), 30.0, 0.0), ADD_REMOVE, lambda: ps.Selection(gaussian(4), ps.Logarithmic(mean=30))),
    (Select(Gaussian(4.0), 10.0, math.inf), REPLACE_ONE, lambda: ps.Selection(gaussian(2, REPLACE_ONE), ps.Poisson(mean=10))),
    (Select(Laplace(4.0), 9.0, 0.5), ADD_REMOVE, lambda: ps.Selection(laplace(4), ps.NegativeBinomial(eta=0.5, mean=9))),
    (Select(Again(STEP, 9), 3.0, 1.0), ADD_REMOVE, lambda: ps.Selection(dpsgd(9), ps.Geometric(mean=3))),
    (
        Select(Select(NOTHING, 2.0, 0.0), 5.0, 2.5),
        ADD_REMOVE,
        lambda: ps.Selection(ps.Selection(pure(0), ps.Logarithmic(mean=2)), ps.NegativeBinomial(eta=2.5, mean=5)),
    ),
]
SAME_COMPOSED = [
    (Again(Gaussian(4.0), 10), ADD_REMOVE, lambda: composed(gaussian(4), times=10)),
    (Composed([Gaussian(4.0), Laplace(2.0)]), REPLACE_ONE, lambda: composed(gaussian(2, REPLACE_ONE), laplace(1, REPLACE_ONE))),
    (Again(Composed([Again(STEP, 7), Gaussian(9.0)]), 3), ADD_REMOVE, lambda: composed(dpsgd(7), gaussian(9), times=3)),
    (Composed([Gaussian(4.0), Again(Laplace(2.0), 5)]), ADD_REMOVE, lambda: composed(gaussian(4), composed(laplace(2), times=5))),
]


@pytest.mark.parametrize(("event", "neighbours", "make"), SAME)
def test_an_event_and_its_mechanism(event, neighbours, make):
    assert mechanism_from_event(event, neighbours) == make()
    assert event_from_mechanism(make()) == event


@pytest.mark.parametrize(("event", "neighbours", "make"), SAME_COMPOSED)
def test_an_event_of_several_and_its_mechanism(event, neighbours, make):
    assert mechanism_from_event(event, neighbours) == make()
    assert event_from_mechanism(make()) == event


READ = [  # other ways to write the same event
    (Again(NOTHING, 5), pure(0)),
    (Again(Gaussian(4.0), 0), pure(0)),
    (Again(Gaussian(4.0), 1), gaussian(4)),
    (Again(Again(STEP, 10), 10), dpsgd(100)),
    (Again(Composed([STEP]), np.int64(3)), dpsgd(3)),
    (Composed([]), pure(0)),
    (Composed([NOTHING, Gaussian(np.float64(4.0)), Again(Laplace(1.0), 0)]), gaussian(4)),
    (Composed((Gaussian(4),)), gaussian(4)),
    (Sampled(0.0, Gaussian(4.0)), pure(0)),
    (Sampled(0, Laplace(4.0)), pure(0)),
    (Sampled(1.0, Laplace(4.0)), laplace(4)),
    (Sampled(0.3, NOTHING), pure(0)),
    (Select(Gaussian(4.0), 30, np.float32(math.inf)), ps.Selection(gaussian(4), ps.Poisson(mean=30))),
    (Select(Gaussian(4.0), 30, 1), ps.Selection(gaussian(4), ps.Geometric(mean=30))),
]


@pytest.mark.parametrize(("event", "mechanism"), READ)
def test_an_event_in_other_words(event, mechanism):
    assert mechanism_from_event(event) == mechanism


def test_full_batches_of_replaced_records_are_no_sample():
    assert mechanism_from_event(Sampled(1.0, Gaussian(4.0)), REPLACE_ONE) == gaussian(2, REPLACE_ONE)


def test_repetitions_multiply():
    assert mechanism_from_event(Again(Again(Gaussian(4.0), 3), 5)) == composed(gaussian(4), times=15)


def test_a_part_left_to_the_caller_is_written_for_the_relation_of_the_others():
    mixed = composed(ps.Gaussian(sigma=4), laplace(1, REPLACE_ONE))
    assert event_from_mechanism(mixed) == Composed([Gaussian(8.0), Laplace(2.0)])


def test_where_the_relation_is_left_to_the_caller_records_are_added_or_removed():
    assert event_from_mechanism(ps.Gaussian(sigma=4)) == Gaussian(4.0)


def test_a_law_by_gamma_is_written_by_its_mean_rounded_up():
    event = event_from_mechanism(ps.Selection(ps.Gaussian(sigma=4), ps.Geometric(gamma=0.3)))
    assert 1 / 0.3 < event.mean == pytest.approx(1 / 0.3, rel=1e-15)
    assert event.shape == 1.0


# -- randomised response ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("noise", [0.3, 0.5, 1e-9, 1 - 1e-9, 0.9999])
@pytest.mark.parametrize("buckets", [2, 3, 5, 1000, 10**9])
def test_randomised_response_is_exact(noise, buckets):
    mechanism = mechanism_from_event(Response(noise, buckets), REPLACE_ONE)
    assert mechanism.neighbours == REPLACE_ONE
    chance = Fraction(str(noise))
    likely, other = 1 - chance + chance / buckets, chance / buckets
    with mpmath.workdps(60):
        for epsilon in (0.0, 1e-10, 0.1, 1.0, 3.0, 20.0):
            truth = max(mpmath.mpmathify(likely) - mpmath.exp(mpmath.mpf(epsilon)) * mpmath.mpmathify(other), 0)
            found = mechanism.delta_at(epsilon)
            assert found.lower <= truth <= found.upper
            assert found.upper == pytest.approx(float(truth), rel=1e-6, abs=1e-12)


def test_randomised_response_of_two_buckets_is_pure():
    assert mechanism_from_event(Response(0.5, 2), REPLACE_ONE) == pure(log_up(Fraction(3)), REPLACE_ONE)


def test_noise_next_to_1_is_the_lesser_of_what_is_written_and_what_the_float_holds():
    noise, buckets = 1.0 - 2.0**-53, 10**15
    odds = 1 + (1 - Fraction(noise)) * buckets / Fraction(noise)
    mechanism = mechanism_from_event(Response(noise, buckets), REPLACE_ONE)
    assert mechanism.epsilon_at(1e-300).upper >= float(mpmath.log(mpmath.mpf(odds.numerator) / odds.denominator)) * (1.0 - 1e-15)


@pytest.mark.parametrize("event", [Response(0.5, 1), Response(0.0, 1), Response(1.0, 7)], ids=str)
def test_randomised_response_that_says_nothing(event):
    assert mechanism_from_event(event, REPLACE_ONE) == pure(0, REPLACE_ONE)


def test_every_repetition_of_randomised_response_counts():
    accountant = pld.PLDAccountant(NeighboringRelation.REPLACE_ONE).compose(Response(0.5, 2), 5)
    ours = mechanism_from_event(Again(Response(0.5, 2), 5), REPLACE_ONE)
    # dp-accounting 0.6.0 forgets the count.
    assert accountant.get_epsilon(1e-9) == pytest.approx(math.log(3), abs=1e-3)
    assert ours.epsilon_at(1e-9).upper == pytest.approx(5 * math.log(3), rel=1e-6)


# -- discrete Laplace ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", [0.3, 1.0, 0.1, 3.7, 1e-5])
def test_discrete_laplace(rate):
    mechanism = mechanism_from_event(Discrete(rate, 1))
    assert mechanism.scale <= 1 / rate
    back = event_from_mechanism(mechanism)
    assert rate <= back.noise_parameter == pytest.approx(rate, rel=1e-15)
    assert back.sensitivity == 1
    accountant = pld.PLDAccountant().compose(Discrete(rate, 1))
    for delta in (1e-3, 1e-6):
        assert mechanism.epsilon_at(delta).upper <= accountant.get_epsilon(delta) * 1.001


@pytest.mark.parametrize(("event", "neighbours"), [(Discrete(1.0, 2), ADD_REMOVE), (Discrete(1.0, 1), REPLACE_ONE)])
def test_discrete_laplace_of_another_sensitivity(event, neighbours):
    with pytest.raises(NotCoveredError, match=r"a sensitivity of 1 only, not 2; .*from_discrete_laplace_mechanism"):
        mechanism_from_event(event, neighbours)


# -- samples of fixed size, concentrated privacy ---------------------------------------------------------------------------


def test_a_sample_of_fixed_size_measures_noise_as_the_whole_batch_does():
    whole, all_of_it = Gaussian(3.0), Fixed(50, 50, Gaussian(3.0))
    for delta in (1e-3, 1e-6):
        expected = mechanism_from_event(whole, REPLACE_ONE).epsilon_at(delta)
        found = mechanism_from_event(all_of_it, REPLACE_ONE).epsilon_at(delta)
        assert found.upper == pytest.approx(expected.upper, rel=1e-4)


def test_a_sample_of_fixed_size_costs_less_than_its_renyi_bound():
    # dp-accounting's RdpAccountant takes the noise against what a replaced record moves, which is twice one record's norm.
    accountant = rdp.RdpAccountant(neighboring_relation=NeighboringRelation.REPLACE_ONE).compose(Fixed(600, 20, Gaussian(1.1)))
    found = mechanism_from_event(Fixed(600, 20, Gaussian(2.2)), REPLACE_ONE)
    for delta in (1e-3, 1e-6, 1e-9):
        assert found.epsilon_at(delta).upper < accountant.get_epsilon(delta)


def test_a_sample_of_fixed_size_of_nothing_or_of_other_noise():
    assert mechanism_from_event(Fixed(10, 2, NOTHING), REPLACE_ONE) == pure(0, REPLACE_ONE)
    plain = mechanism_from_event(Fixed(10, 2, Gaussian(1.1)), REPLACE_ONE)
    for same in (Composed([Gaussian(1.1)]), Again(Gaussian(1.1), 1), Composed([Gaussian(1.1), NOTHING]), Sampled(1.0, Gaussian(1.1))):
        assert mechanism_from_event(Fixed(10, 2, same), REPLACE_ONE) == plain
    with pytest.raises(NotCoveredError, match="only Gaussian noise is supported on a sample, not LaplaceDpEvent"):
        mechanism_from_event(Fixed(10, 2, Laplace(1.0)), REPLACE_ONE)


@pytest.mark.parametrize("rho", [0.02, *(pytest.param(rho, marks=pytest.mark.slow) for rho in (1e-4, 2.0))])
def test_concentrated_privacy_is_above_the_gaussian_that_has_it_and_near_the_renyi_bound(rho):
    found = mechanism_from_event(Concentrated(rho))
    assert found.neighbours == ADD_REMOVE
    gaussian_with_it = ps.Gaussian(sigma=math.sqrt(0.5 / rho))
    accountant = rdp.RdpAccountant(orders=1 + np.geomspace(0.01, 100, 3000) / math.sqrt(rho)).compose(Concentrated(rho))
    for delta in (1e-4, 1e-8):
        upper = found.epsilon_at(delta).upper
        assert gaussian_with_it.epsilon_at(delta).lower < upper
        assert upper == pytest.approx(accountant.get_epsilon(delta), rel=0.01)


def test_concentrated_privacy_without_rho_is_pure():
    assert mechanism_from_event(Concentrated(0.0, 0.7), REPLACE_ONE) == pure(0.7, REPLACE_ONE)
    assert mechanism_from_event(Concentrated(0)) == pure(0)


def test_every_order_of_concentrated_privacy_is_rounded_up():
    rho, xi = 0.013, 0.1
    for order, bound in mechanism_from_event(Concentrated(rho, xi)).orders:
        assert order > 1.0
        assert 0 <= Fraction(bound) - Fraction(xi) - Fraction(rho) * Fraction(order) <= Fraction(math.ulp(bound))


# -- refusals --------------------------------------------------------------------------------------------------------------


@attr.s(frozen=True)
class MyGaussianDpEvent(Gaussian):
    """A subclass that may do anything."""


REFUSED = [
    (dp_event.NonPrivateDpEvent(), "NonPrivateDpEvent cannot be converted to a mechanism: it has no privacy guarantee"),
    (dp_event.UnsupportedDpEvent(), "UnsupportedDpEvent cannot be converted to a mechanism: it does not state what was done"),
    (dp_event.SampledWithReplacementDpEvent(100, 10, Gaussian(1.0)), "SampledWithReplacementDpEvent cannot be converted to a mechanism: "),
    (Fixed(100, 10, Gaussian(1.0)), "SampledWithoutReplacementDpEvent cannot be converted to a mechanism: .*neighbours='replace_one'"),
    (dp_event.SingleEpochTreeAggregationDpEvent(1.0, 8), "SingleEpochTreeAggregationDpEvent cannot be converted to a mechanism: "),
    (dp_event.MixtureOfGaussiansDpEvent(1.0, [1.0], [1.0]), "from_mixture_gaussian_mechanism and read that with `mechanism_from_pld`"),
    (dp_event.TruncatedSubsampledGaussianDpEvent(9, 0.1, 3, 1.0), "from_truncated_subsampled_gaussian_mechanism"),
    (dp_event.DpEvent(), "DpEvent cannot be converted to a mechanism: privselect does not know this event"),
    (MyGaussianDpEvent(4.0), "MyGaussianDpEvent cannot be converted to a mechanism: privselect does not know this event"),
    (Response(0.5, 2), "RandomizedResponseDpEvent cannot be converted to a mechanism: .*neighbours='replace_one'"),
    (
        Sampled(0.1, Laplace(1.0)),
        "PoissonSampledDpEvent cannot be converted to a mechanism: .*not LaplaceDpEvent; .*from_laplace_mechanism",
    ),
    (Sampled(0.1, STEP), "only Gaussian noise is supported on a sample, not PoissonSampledDpEvent"),
    (
        Again(Composed([Gaussian(1.0), dp_event.UnsupportedDpEvent()]), 3),
        "^UnsupportedDpEvent inside ComposedDpEvent cannot be converted to a mechanism",
    ),
    (Composed([NOTHING, Sampled(0.1, dp_event.NonPrivateDpEvent())]), "^NonPrivateDpEvent inside PoissonSampledDpEvent cannot"),
    (Select(MyGaussianDpEvent(4.0), 3.0, 1.0), "^MyGaussianDpEvent inside RepeatAndSelectDpEvent cannot"),
    (Again(dp_event.NonPrivateDpEvent(), 0), "^NonPrivateDpEvent inside SelfComposedDpEvent cannot"),
]


@pytest.mark.parametrize(("event", "sentence"), REFUSED)
def test_what_cannot_be_described_is_refused_by_name(event, sentence):
    with pytest.raises(NotCoveredError, match=sentence) as caught:
        mechanism_from_event(event)
    assert "\n" not in str(caught.value)


def test_samples_are_for_added_or_removed_records():
    with pytest.raises(NotCoveredError, match="Poisson sampling needs neighbours='add_remove'"):
        mechanism_from_event(STEP, REPLACE_ONE)


def test_no_noise_in_a_randomised_response():
    with pytest.raises(NotCoveredError, match="without noise it has no privacy guarantee"):
        mechanism_from_event(Response(0.0, 2), REPLACE_ONE)


def test_too_deep_a_nest_of_events():
    event = Gaussian(4.0)
    for _ in range(5000):
        event = Again(event, 1)
    with pytest.raises(NotCoveredError, match="be nested at most 40 deep"):
        mechanism_from_event(event)


WRONG = [
    (None, "`event` must be a DpEvent of dp-accounting, got None"),
    (Gaussian, "`event` must be a DpEvent of dp-accounting, got <class 'dp_accounting.dp_event.GaussianDpEvent'>"),
    (Gaussian(0.0), "GaussianDpEvent: `noise_multiplier` must be in (0, inf), got 0.0"),
    (Gaussian(math.nan), "GaussianDpEvent: `noise_multiplier` must be in (0, inf), got nan"),
    (Gaussian(-1), "GaussianDpEvent: `noise_multiplier` must be in (0, inf), got -1"),
    (Gaussian("4"), "GaussianDpEvent: `noise_multiplier` must be in (0, inf), got '4'"),
    (Laplace(0.0), "LaplaceDpEvent: `noise_multiplier` must be in (0, inf), got 0.0"),
    (Laplace(1e-9), "LaplaceDpEvent: `scale` must be in [0.00142857, inf), got 1e-09"),
    (Sampled(1.5, Gaussian(1.0)), "PoissonSampledDpEvent: `sampling_probability` must be in [0, 1], got 1.5"),
    (Sampled(0.1, Gaussian(0.0)), "GaussianDpEvent: `noise_multiplier` must be in (0, inf), got 0.0"),
    (Sampled(0.1, None), "PoissonSampledDpEvent: the inner event must be a DpEvent of dp-accounting, got None"),
    (Again(STEP, -1), "SelfComposedDpEvent: `count` must be an integer >= 0 and <= 1000000000, got -1"),
    (Again(STEP, 2.5), "SelfComposedDpEvent: `count` must be an integer >= 0 and <= 1000000000, got 2.5"),
    (Again(Again(STEP, 10**9), 10), "SelfComposedDpEvent: `steps` must be an integer >= 1 and <= 1000000000, got 10000000000"),
    (Composed(None), "ComposedDpEvent: `events` must be a list of DpEvents of dp-accounting, got None"),
    (Composed([4]), "ComposedDpEvent: the inner event must be a DpEvent of dp-accounting, got 4"),
    (Discrete(0.0, 1), "DiscreteLaplaceDpEvent: `noise_parameter` must be in (0, inf), got 0.0"),
    (Discrete(1.0, 0), "DiscreteLaplaceDpEvent: `sensitivity` must be an integer >= 1 and <= 1000000000000000, got 0"),
    (Response(1.5, 2), "RandomizedResponseDpEvent: `noise_parameter` must be in [0, 1], got 1.5"),
    (Response(0.5, 0), "RandomizedResponseDpEvent: `num_buckets` must be an integer >= 1 and <= 1000000000000000, got 0"),
    (Fixed(10, 11, Gaussian(1.0)), "SampledWithoutReplacementDpEvent: `sample_size` must be an integer >= 1 and <= 10, got 11"),
    (Concentrated(-1.0), "ZCDpEvent: `rho` must be in [0, inf), got -1.0"),
    (Concentrated(0.1, math.inf), "ZCDpEvent: `xi` must be in [0, inf), got inf"),
    (Select(Gaussian(4.0), 0.5, 1.0), "RepeatAndSelectDpEvent: `mean` must be in [1, 1e+15], got 0.5"),
    (Select(Gaussian(4.0), math.nan, math.inf), "RepeatAndSelectDpEvent: `mean` must be in (0, 1e+15], got nan"),
    (Select(Gaussian(4.0), 3.0, -0.5), "RepeatAndSelectDpEvent: `shape` must be in [0, 1e+06] or inf, got -0.5"),
    (Select(Gaussian(4.0), 3.0, "1"), "RepeatAndSelectDpEvent: `shape` must be in [0, 1e+06] or inf, got '1'"),
    (Select(Gaussian(4.0), 3.0, math.nan), "RepeatAndSelectDpEvent: `shape` must be in [0, 1e+06] or inf, got nan"),
]


@pytest.mark.parametrize(("event", "sentence"), WRONG)
def test_bad_values_are_refused_in_one_sentence(event, sentence):
    with pytest.raises(ParameterError) as caught:
        mechanism_from_event(event)
    assert str(caught.value) == sentence


@pytest.mark.parametrize("neighbours", ["any", "nearby", None, 3])
def test_the_relation_must_be_named(neighbours):
    with pytest.raises(ParameterError, match="`neighbours` must be one of add_remove, replace_one, got"):
        mechanism_from_event(Gaussian(4.0), neighbours)


UNWRITTEN = [
    (ps.Pure(epsilon=1), "pure(epsilon=1) has no event of dp-accounting: dp-accounting has none for it; use `pld_from_mechanism`"),
    (ps.Approximate(epsilon=1, delta=1e-9), "dp-accounting has none for it"),
    (ps.GaussianDP(mu=1), "dp-accounting has none for it"),
    (ps.Points(((1, 1e-6),)), "dp-accounting has none for it"),
    (ps.Mixture(((1, ps.Gaussian(sigma=4)),)), "dp-accounting has none for it"),
    (ps.Selection(ps.Pure(epsilon=1), ps.Geometric(mean=3)), "pure(epsilon=1) has no event"),
    (ps.Selection(ps.Gaussian(sigma=4), ps.Fixed(k=3)), "an event can state Poisson and truncated negative binomial K only"),
    (ps.Selection(ps.Gaussian(sigma=4), ps.Poisson(mean=3, cap=9)), "an event cannot state a cap on K"),
    (ps.Selection(ps.Gaussian(sigma=4), ps.NegativeBinomial(eta=-0.5, mean=9)), "an event's shape is never negative"),
    (gaussian(1.7e308, REPLACE_ONE), "its noise exceeds the largest float"),
]


@pytest.mark.parametrize(("mechanism", "sentence"), UNWRITTEN, ids=str)
def test_what_has_no_event_is_refused(mechanism, sentence):
    with pytest.raises(NotCoveredError) as caught:
        event_from_mechanism(mechanism)
    assert sentence in str(caught.value)


class Laplacian(ps.Laplace):
    """A subclass that may do anything."""


def test_a_subclass_has_no_event():
    with pytest.raises(NotCoveredError, match="dp-accounting has none for it"):
        event_from_mechanism(Laplacian(scale=4))


def test_only_a_mechanism_has_an_event():
    with pytest.raises(ParameterError, match="`mechanism` must be a mechanism such as gaussian"):
        event_from_mechanism(Gaussian(4.0))


# -- the same numbers ------------------------------------------------------------------------------------------------------

COUNTED = [
    (NOTHING, ADD_REMOVE),
    (Gaussian(1.3), ADD_REMOVE),
    (Gaussian(4.0), REPLACE_ONE),
    (Laplace(2.0), ADD_REMOVE),
    (STEP, ADD_REMOVE),
    (Again(STEP, 50), ADD_REMOVE),
    (Sampled(1.0, Gaussian(2.0)), ADD_REMOVE),
    (Response(0.4, 2), REPLACE_ONE),
    (Response(0.4, 12), REPLACE_ONE),
]
COUNTED_COMPOSED = [
    (Again(Gaussian(4.0), 10), ADD_REMOVE),
    (Again(Laplace(9.0), 20), ADD_REMOVE),
    (Composed([Gaussian(2.0), Laplace(2.0)]), ADD_REMOVE),
    (Composed([Again(STEP, 30), Gaussian(3.0)]), ADD_REMOVE),
    (Again(Composed([Gaussian(5.0), Again(Gaussian(7.0), 2)]), 3), REPLACE_ONE),
]
RELATIONS = {ADD_REMOVE: NeighboringRelation.ADD_OR_REMOVE_ONE, REPLACE_ONE: NeighboringRelation.REPLACE_ONE}


def check_against_loss_distributions(event, neighbours):
    accountant = pld.PLDAccountant(RELATIONS[neighbours]).compose(event)
    mechanism = mechanism_from_event(event, neighbours)
    for delta in (1e-3, 1e-6):
        ours, theirs = mechanism.epsilon_at(delta), accountant.get_epsilon(delta)
        assert ours.upper <= theirs * 1.001 + 1e-9
        assert ours.upper >= theirs * 0.999 - 1e-3  # they are upper bounds of the same thing, theirs on a lattice of 1e-4
        if ours.lower is not None:
            assert ours.lower <= theirs


@pytest.mark.parametrize(("event", "neighbours"), COUNTED, ids=str)
def test_the_same_epsilon_as_loss_distributions_say(event, neighbours):
    check_against_loss_distributions(event, neighbours)


@pytest.mark.parametrize(("event", "neighbours"), COUNTED_COMPOSED, ids=str)
def test_the_same_epsilon_of_several_as_loss_distributions_say(event, neighbours):
    check_against_loss_distributions(event, neighbours)


@pytest.mark.parametrize("shape", [0.0, 0.3, 1.0, 2.5, 40.0])
@pytest.mark.parametrize("mean", [1.5, 30.0, 1000.0])
def test_the_shape_is_that_of_the_truncated_negative_binomial(shape, mean):
    count = mechanism_from_event(Select(Gaussian(4.0), mean, shape)).count
    assert count.resolved_gamma == pytest.approx(_gamma_truncated_negative_binomial(shape, mean), rel=1e-6)
    assert count.expected() == pytest.approx(mean, rel=1e-12)


@pytest.mark.parametrize("shape", [0.0, 0.5, 1.0, math.inf])
def test_a_selection_costs_less_than_its_renyi_bound(shape):
    event = Select(Gaussian(4.0), 30.0, shape)
    bound = rdp.RdpAccountant().compose(event).get_epsilon(1e-6)
    found = mechanism_from_event(event).epsilon_at(1e-6)
    assert 0.6 * bound <= found.lower <= found.upper <= bound


# -- rounding --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [0.1, 0.3, 1.0, 3.0, 1e-9, 7e8, 5e-324, 1.7e308])
def test_an_inverse_is_rounded_outward(value):
    below = inverse_down(value)
    assert below * value <= 1.0 + 2.0**-52
    if value > 1e-300:
        assert below <= 1 / value <= inverse_up(value)
        assert inverse_up(value) == pytest.approx(below, rel=1e-15)


def test_a_logarithm_is_rounded_up():
    for odds in (Fraction(3), Fraction(10**16 + 1, 10**16), Fraction(7, 3), Fraction(10**300)):
        with mpmath.workdps(60):
            truth = mpmath.log(mpmath.mpf(odds.numerator)) - mpmath.log(mpmath.mpf(odds.denominator))
            assert truth <= log_up(odds) <= truth * (1 + mpmath.mpf(2) ** -51)
