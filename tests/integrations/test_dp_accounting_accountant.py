"""Selections composed by dp-accounting: by their loss distributions, and by an accountant that supports the event."""

import math

import pytest
from dp_accounting import NeighboringRelation, UnsupportedEventError, dp_event, pld, rdp

import privselect as ps
from privselect.errors import ParameterError
from privselect.integrations import SelectionPLDAccountant, mechanism_from_event, pld_from_mechanism
from privselect.mechanisms.neighbours import REPLACE_ONE

Gaussian, Laplace, Select = dp_event.GaussianDpEvent, dp_event.LaplaceDpEvent, dp_event.RepeatAndSelectDpEvent
STEP = dp_event.PoissonSampledDpEvent(0.2, Gaussian(1.5))
TUNED = Select(Gaussian(4.0), 30.0, 1.0)
NEAR = 1e-3  # of epsilon: a lattice of 1e-4, and what is cut off its ends


def above_and_near(epsilon, ours):
    return ours.lower <= epsilon and epsilon == pytest.approx(ours.upper, rel=NEAR)


SELECTIONS = {
    "symmetric": ps.Selection(ps.Gaussian(sigma=4), ps.Geometric(mean=30)),
    "asymmetric": ps.Selection(ps.DPSGD(noise_multiplier=1.5, sampling_probability=0.2, steps=1), ps.Poisson(mean=10)),
}


@pytest.mark.parametrize("name", ["symmetric", pytest.param("asymmetric", marks=pytest.mark.slow)])
def test_composed_with_another_mechanism(name):
    selection, other = SELECTIONS[name], ps.Gaussian(sigma=5)
    theirs = pld_from_mechanism(selection)
    assert theirs._symmetric == (name == "symmetric")
    theirs = theirs.compose(pld_from_mechanism(other))
    ours = ps.Composed((selection, other))
    for delta in (1e-2, 1e-6, 1e-12, 1e-14):
        assert above_and_near(theirs.get_epsilon_for_delta(delta), ours.epsilon_at(delta))


@pytest.mark.parametrize("name", SELECTIONS)
def test_composed_with_itself(name):
    theirs = pld_from_mechanism(SELECTIONS[name]).self_compose(3)
    ours = ps.Composed((SELECTIONS[name],), times=3)
    for delta in (1e-2, 1e-6, 1e-12):
        assert above_and_near(theirs.get_epsilon_for_delta(delta), ours.epsilon_at(delta))


# -- the accountant --------------------------------------------------------------------------------------------------------


def test_their_accountant_refuses_the_event_and_this_one_takes_it():
    assert not pld.PLDAccountant().supports(TUNED)
    accountant = SelectionPLDAccountant()
    assert accountant.supports(TUNED)
    assert accountant.compose(TUNED) is accountant
    assert accountant.ledger == TUNED
    for delta in (1e-3, 1e-6, 1e-9):
        epsilon = accountant.get_epsilon(delta)
        assert above_and_near(epsilon, mechanism_from_event(TUNED).epsilon_at(delta))
        assert epsilon < 0.9 * rdp.RdpAccountant().compose(TUNED).get_epsilon(delta)
    assert accountant.get_delta(2.0) == pytest.approx(mechanism_from_event(TUNED).delta_at(2.0).upper, rel=0.01)


def test_selections_count_among_other_events_and_as_often_as_they_are_repeated():
    event = dp_event.ComposedDpEvent([dp_event.SelfComposedDpEvent(TUNED, 2), Laplace(3.0), Select(STEP, 5.0, math.inf)])
    accountant = SelectionPLDAccountant().compose(event).compose(Gaussian(5.0))
    ours = mechanism_from_event(dp_event.ComposedDpEvent([event, Gaussian(5.0)]))
    assert above_and_near(accountant.get_epsilon(1e-6), ours.epsilon_at(1e-6))


def test_replaced_records():
    accountant = SelectionPLDAccountant(NeighboringRelation.REPLACE_ONE).compose(TUNED)
    assert above_and_near(accountant.get_epsilon(1e-6), mechanism_from_event(TUNED, REPLACE_ONE).epsilon_at(1e-6))


def test_every_repetition_of_randomised_response_counts_here():
    response = dp_event.RandomizedResponseDpEvent(0.5, 2)
    relation = NeighboringRelation.REPLACE_ONE
    assert SelectionPLDAccountant(relation).compose(response, 5).get_epsilon(1e-9) == pytest.approx(5 * math.log(3), rel=NEAR)
    assert pld.PLDAccountant(relation).compose(response, 5).get_epsilon(1e-9) == pytest.approx(math.log(3), rel=NEAR)


def test_without_selections_it_is_their_accountant():
    event = dp_event.ComposedDpEvent([STEP, Laplace(3.0)])
    assert SelectionPLDAccountant().compose(event).get_epsilon(1e-6) == pld.PLDAccountant().compose(event).get_epsilon(1e-6)


def test_what_is_not_known_inside_a_selection_is_refused_and_changes_nothing():
    accountant = SelectionPLDAccountant().compose(Gaussian(4.0))
    before = accountant.get_epsilon(1e-6)
    for event in (Select(dp_event.UnsupportedDpEvent(), 3.0, 1.0), Select(Gaussian(4.0), 0.5, 1.0)):
        assert not accountant.supports(event)
        with pytest.raises(UnsupportedEventError, match="RepeatAndSelectDpEvent"):
            accountant.compose(dp_event.ComposedDpEvent([Gaussian(1.0), event]))
    assert accountant.get_epsilon(1e-6) == before


def test_relations_and_lattices_that_are_not_known_are_refused():
    with pytest.raises(ParameterError, match=r"must be one of ADD_OR_REMOVE_ONE, REPLACE_ONE, got NeighboringRelation.REPLACE_SPECIAL"):
        SelectionPLDAccountant(NeighboringRelation.REPLACE_SPECIAL)
    with pytest.raises(ParameterError, match=r"`value_discretization_interval` must be in \(0, inf\), got 0"):
        SelectionPLDAccountant(value_discretization_interval=0)
