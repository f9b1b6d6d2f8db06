"""A bank of two stages: the candidates and records of the one-shot bank, then the defaults, each stage on its own draws."""

import dataclasses

import numpy as np
import pytest
from experiments_made import TINY, UNTUNED, made_problem, stage_tasks

from privselect.tuning.randomness import Stream, derive_key
from research.experiments import batch
from research.experiments import stage_bank as module
from research.experiments.bank import repetition_key
from research.experiments.settings import DEFAULTS, EPSILONS, SPACES
from research.experiments.stage_bank import (
    RATES,
    SEARCH_LEVELS,
    SPLITS,
    Task,
    candidates_of,
    stored_stage_bank,
    train_stage_bank,
    trained_stage_bank,
    transfer_factor,
)

TASK = stage_tasks(1)[0]
FIELDS = ("search_noise", "scores", "accuracy", "trivial")


@pytest.fixture(autouse=True)
def larger_samples(quick, monkeypatch):  # noqa: ARG001 - trainings are quick before their samples grow
    monkeypatch.setattr(batch, "SAMPLING", 0.5)


class Told:
    """A trainer that trains nothing: its counts tell which run they are of."""

    calls = ()

    def __init__(self, parts, _):
        self.sizes = {name: len(part) for name, part in parts.items()}

    def right(self, runs, steps, generator, trained, judged):
        Told.calls += ((runs, steps, generator.normal(), trained, judged, self.sizes[trained]),)
        return np.arange(runs.rate.size).reshape(runs.rate.shape)


@pytest.fixture
def told(monkeypatch):
    monkeypatch.setitem(module.BATCH_TRAINERS, "softmax", Told)
    Told.calls = ()
    return lambda task: (trained_stage_bank(task, None), Told.calls)


def same(one, other):
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in FIELDS)


def test_its_candidates_are_those_of_the_one_shot_bank_and_then_the_defaults():
    key = repetition_key(TINY, 2)
    drawn = [SPACES["plain"].draw(Stream(derive_key(key, "candidate", place))) for place in range(TINY.candidates)]
    assert candidates_of(TINY, 2) == [*drawn, *DEFAULTS]


def test_learning_rates_accumulate_the_same_noise():
    assert transfer_factor(3.0, 2.0) == pytest.approx(3.0 * np.sqrt(4) / (2.0 * np.sqrt(10)), rel=1e-12)


def test_its_form_and_that_it_is_the_same_to_the_bit():
    bank, again = (trained_stage_bank(TASK, None) for _ in range(2))
    assert same(bank, again)
    assert bank.search_noise == pytest.approx(np.array(SEARCH_LEVELS) * UNTUNED[1.0], rel=1e-12)
    assert bank.scores.shape == (len(SEARCH_LEVELS), TINY.candidates + len(DEFAULTS))
    assert bank.accuracy.shape == (len(SPLITS), 2, TINY.candidates + len(DEFAULTS))
    assert ((bank.scores >= 0.0) & (bank.scores <= 30.0)).all()  # public records
    assert ((bank.accuracy >= 0.0) & (bank.accuracy <= 1.0)).all()
    problem = made_problem(None)
    assert bank.trivial == np.mean(problem.test.labels == np.bincount(problem.public.labels).argmax())
    assert not same(bank, trained_stage_bank(dataclasses.replace(TASK, repetition=1), None))


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_each_stage_has_its_own_noise_steps_and_draws(told, epsilon):
    bank, (search, final) = told(dataclasses.replace(TASK, epsilon=epsilon))
    untuned, rates = UNTUNED[epsilon], np.array([candidate["learning_rate"] for candidate in candidates_of(TINY, 0)])
    assert (search[1], final[1]) == (4, 10)
    assert search[2] != final[2]
    assert search[0].noise == pytest.approx(np.broadcast_to(np.array(SEARCH_LEVELS) * untuned, (6, 4)), rel=1e-12)
    assert np.array_equal(search[0].rate, np.broadcast_to(rates[:, None], (6, 4)))
    for split, multiplier in enumerate(SPLITS):
        for rate, factor in enumerate(RATES[epsilon][split]):
            level = 2 * split + rate
            assert final[0].noise[:, level] == pytest.approx(multiplier * untuned, rel=1e-12)
            assert final[0].rate[:, level] == pytest.approx(factor * rates, rel=1e-12)
            # The counts of the trainer number its runs, candidate by candidate; there are 60 test records.
            assert bank.accuracy[split, rate].tolist() == [(8 * place + level) / 60.0 for place in range(6)]
    assert bank.scores[1].tolist() == [4 * place + 1 for place in range(6)]


def test_a_paid_validation_judges_held_out_records_and_trains_on_them_only_in_the_end(told):
    _, calls = told(TASK)
    assert [call[3:] for call in calls] == [("train", "public", 40), ("train", "test", 40)]
    Told.calls = ()
    _, calls = told(dataclasses.replace(TASK, validation="paid"))
    assert [call[3:] for call in calls] == [("train", "held", 40), ("all", "test", 50)]


def test_what_was_stored_is_what_was_trained_and_nothing_else_is_taken(tmp_path, monkeypatch):
    assert stored_stage_bank(tmp_path, TASK) is None
    train_stage_bank(TASK, None, tmp_path)
    bank = stored_stage_bank(tmp_path, TASK)
    assert same(bank, trained_stage_bank(TASK, None))
    others = [
        Task(TINY, 1, 1.0, "public"),
        Task(TINY, 0, 3.0, "public"),
        Task(TINY, 0, 1.0, "paid"),
        *(Task(dataclasses.replace(TINY, **more), 0, 1.0, "public") for more in ({"records": 41}, {"candidates": 4}, {"space": "hard"})),
    ]
    for other in others:
        TASK.file(tmp_path).replace(other.file(tmp_path))
        assert stored_stage_bank(tmp_path, other) is None
        other.file(tmp_path).replace(TASK.file(tmp_path))
    whole = TASK.file(tmp_path).read_bytes()
    for end in range(0, len(whole), 29):
        TASK.file(tmp_path).write_bytes(whole[:end])
        assert stored_stage_bank(tmp_path, TASK) is None
    TASK.file(tmp_path).write_bytes(whole)
    assert stored_stage_bank(tmp_path, TASK) is not None
    monkeypatch.setattr(module, "SEARCH_LEVELS", (0.5, 1.0, 2.0, 3.0))
    assert stored_stage_bank(tmp_path, TASK) is None
