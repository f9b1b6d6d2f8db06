"""Visible searches: what is tried depends on what was seen, and the final training on the rule of each method."""

import dataclasses

import numpy as np
import pytest
from experiments_made import TINY, UNTUNED, stage_options, stage_tasks

from research.experiments import batch, visible_runs
from research.experiments.settings import DEFAULTS, HARD, PLAIN, training
from research.experiments.stage_bank import transfer_factor
from research.experiments.visible_runs import (
    COPIES,
    METHODS,
    ScalingSearch,
    TPESearch,
    run_visible,
    search_of,
    stored_visible,
    visible_accuracies,
    visible_file,
    visible_options,
)

OPTIONS = stage_options()
VISIBLE = visible_options(OPTIONS, 1.0, "tpe")[0]
SCALING = visible_options(OPTIONS, 1.0, "scaling")[0]
KEY = bytes(range(32))


@pytest.fixture(autouse=True)
def larger_samples(quick, monkeypatch):  # noqa: ARG001 - trainings are quick before their samples grow
    monkeypatch.setattr(batch, "SAMPLING", 0.5)


def tried(search, score, trials=4):
    """The candidates of a search if this function scores them."""
    found = []
    for _ in range(trials):
        found.append(search.ask())
        search.tell(found[-1], score(found[-1]))
    return found


def test_options_are_those_of_the_method_and_epsilon():
    assert {(one.search, one.epsilon) for one in visible_options(OPTIONS, 3.0, "tpe_defaults")} == {("visible", 3.0)}
    assert {(one.search, one.epsilon) for one in visible_options(OPTIONS, 1.0, "scaling")} == {("scaling", 1.0)}


def test_tpe_is_repeatable_stays_in_the_space_and_learns_from_the_scores():
    for space in (PLAIN, HARD):
        small, again = (tried(TPESearch(VISIBLE, space, KEY), lambda one: -np.log(one["learning_rate"]), 40) for _ in range(2))
        large = tried(TPESearch(VISIBLE, space, KEY), lambda one: np.log(one["learning_rate"]), 40)
        assert small == again
        assert small[:3] == large[:3]
        assert np.mean([np.log(one["learning_rate"]) for one in small]) < np.mean([np.log(one["learning_rate"]) for one in large])
        for one in (*small, *large):
            assert set(one) == set(space.distributions)
            for name in ("learning_rate", "clip"):
                assert space.distributions[name].low <= one[name] <= space.distributions[name].high


@pytest.mark.parametrize("space", [PLAIN, HARD])
def test_defaults_come_first_and_then_tpe(space):
    search = search_of("tpe_defaults", VISIBLE, space, KEY)
    found = tried(search, lambda one: one["clip"], 6)
    assert found[:3] == list(DEFAULTS)
    assert set(found[3]) == set(space.distributions)
    assert len(search._study.trials) == 6


def test_the_best_candidate_is_trained_with_the_transferred_learning_rate():
    search = search_of("tpe", VISIBLE, PLAIN, KEY)
    found = tried(search, lambda one: -abs(np.log(one["clip"])))
    best, factor = search.final()
    assert best == min(found, key=lambda one: abs(np.log(one["clip"])))
    assert factor == transfer_factor(VISIBLE.search_noise, VISIBLE.final_noise)


def test_the_scaling_rule_has_short_trials_first_and_a_fixed_clip():
    search, steps = ScalingSearch(SCALING, PLAIN, KEY), []
    for _ in range(4):
        steps.append(search.steps())
        candidate = search.ask()
        assert candidate["clip"] == 1.0
        search.tell(candidate, 0.0)
    assert steps == [2, 2, 4, 4]
    assert len({one["learning_rate"] for one, _ in search.told}) == 4


def test_the_scaling_rule_draws_a_line_through_the_best_of_both_lengths():
    search = ScalingSearch(SCALING, PLAIN, KEY)
    search.told = [({"learning_rate": rate, "clip": 1.0}, score) for rate, score in ((1.0, 5.0), (2.0, 9.0), (1.5, 7.0), (9.0, 6.0))]
    (candidate, factor), noise = search.final(), SCALING.search_noise
    epsilons = [training(*one).epsilon_fast(1e-5, accuracy=1e-2).upper for one in ((noise, 2), (noise, 4), (SCALING.final_noise, 10))]
    product = 4.0 + (6.0 - 4.0) / (epsilons[1] - epsilons[0]) * (epsilons[2] - epsilons[0])
    assert candidate == {"learning_rate": pytest.approx(product / 10, rel=1e-9), "clip": 1.0}
    assert factor == 1.0
    # A falling line ends at the border of the space.
    search.told = [({"learning_rate": rate, "clip": 1.0}, 0.0) for rate in (50.0, 50.0, 0.1, 0.1)]
    assert search.final()[0]["learning_rate"] == PLAIN.distributions["learning_rate"].low


class Told:
    """A trainer that trains nothing: the score of a candidate is the rounded logarithm of its learning rate."""

    calls = ()

    def __init__(self, *_):
        pass

    def right(self, runs, steps, generator, trained, judged):
        generator.normal()
        Told.calls += ((runs, steps, trained, judged),)
        return np.round(10.0 + np.log(runs.rate))


@pytest.mark.parametrize(("validation", "judged", "final"), [("public", "public", "train"), ("paid", "held", "all")])
def test_all_searches_run_with_their_own_noise_on_the_records_of_their_stage(monkeypatch, validation, judged, final):
    monkeypatch.setitem(visible_runs.BATCH_TRAINERS, "softmax", Told)
    Told.calls = ()
    (task,) = stage_tasks(1, validation=validation)
    found = visible_accuracies(task, None, OPTIONS)
    assert {method: values.shape for method, values in found.items()} == dict.fromkeys(METHODS, (2,))
    *search, last = Told.calls
    assert {call[2:] for call in search} == {("train", judged)}
    assert {call[1] for call in search} == {2, 4}
    assert last[1:] == (10, final, "test")
    splits = [one for method in METHODS for one in visible_options(OPTIONS, 1.0, method) for _ in range(COPIES)]
    assert last[0].noise[:, 0].tolist() == [one.final_noise for one in splits]
    assert set(search[0][0].noise[:, 0]) <= {one.search_noise for one in splits}
    trained = sum(call[0].rate.size for call in search)
    assert trained == sum(one.number for one in splits)


def test_noise_of_paid_scores_changes_what_is_chosen(monkeypatch):
    monkeypatch.setitem(visible_runs.BATCH_TRAINERS, "softmax", Told)
    (task,) = stage_tasks(1, validation="paid")
    loud = [dataclasses.replace(one, score_noise=1e6) for one in OPTIONS]
    quiet = [dataclasses.replace(one, score_noise=1e-9) for one in OPTIONS]
    # The trainer prefers large learning rates: without noise the largest tried wins.
    assert visible_accuracies(task, None, quiet)["tpe"].mean() > visible_accuracies(task, None, loud)["tpe"].mean()
    (public,) = stage_tasks(1)
    one, other = (visible_accuracies(public, None, options)["tpe"] for options in (loud, quiet))
    assert np.array_equal(one, other)


def test_what_was_stored_is_what_was_run_and_nothing_else_is_taken(tmp_path):
    (task,) = stage_tasks(1)
    assert stored_visible(tmp_path, task, OPTIONS) is None
    run_visible(task, None, tmp_path, OPTIONS)
    found, again = stored_visible(tmp_path, task, OPTIONS), visible_accuracies(task, None, OPTIONS)
    for method in METHODS:
        assert np.array_equal(found[method], again[method])
        assert ((found[method] >= 0.0) & (found[method] <= 1.0)).all()
    assert stored_visible(tmp_path, dataclasses.replace(task, repetition=1), OPTIONS) is None
    changed = [dataclasses.replace(one, search_noise=1.01 * one.search_noise) for one in OPTIONS]
    assert stored_visible(tmp_path, task, changed) is None
    file = visible_file(tmp_path, task)
    file.rename(visible_file(tmp_path, dataclasses.replace(task, setting=dataclasses.replace(TINY, name="other"))))
    assert stored_visible(tmp_path, dataclasses.replace(task, setting=dataclasses.replace(TINY, name="other")), OPTIONS) is None
    file.write_bytes(b"PK")
    assert stored_visible(tmp_path, task, OPTIONS) is None
    assert UNTUNED[1.0] < VISIBLE.search_noise
