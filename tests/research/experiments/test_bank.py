"""A bank: the same to the bit each time, made of disjoint parts, and taken from a file only where it is the one asked for."""

import dataclasses

import numpy as np
import pytest
from experiments_made import TINY, made_problem

from privselect.tuning.randomness import Randomness, Stream, derive_key
from research.experiments import bank as module
from research.experiments.bank import bank_file, stored_bank, train_bank, trained_bank
from research.experiments.problems import load
from research.experiments.settings import DEFAULTS, SPACES
from research.experiments.trainers import SoftmaxBank

pytestmark = pytest.mark.usefixtures("quick")
FIELDS = ("noise", "right", "sizes", "defaults", "trivial")


def same(one, other):
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in FIELDS)


def parts_of(setting, repetition):
    return module.repetition_parts(setting, repetition, None)


class Told:
    """A trainer that trains nothing and remembers what it was told."""

    calls = ()

    def __init__(self, parts, _):
        self.parts = parts

    def right(self, candidate, noise, randomness, trained, judged):
        draws = randomness.numpy().normal(size=3).tolist()
        Told.calls += ((tuple(candidate.items()), noise, tuple(draws), trained, tuple(judged)),)
        return [0] * len(judged)


@pytest.fixture
def told(quick, monkeypatch):  # noqa: ARG001 - trainings are quick before this one is begun
    monkeypatch.setitem(module.TRAINERS, "softmax", Told)
    Told.calls = ()
    trained_bank(TINY, 0, None)
    return Told.calls


def test_trained_twice_it_is_the_same_to_the_bit():
    one, other = (trained_bank(TINY, 1, None) for _ in range(2))
    assert same(one, other)
    assert not same(one, trained_bank(TINY, 2, None))


def test_its_form():
    bank = trained_bank(TINY, 0, None)
    assert bank.noise.tolist() == list(TINY.noise)
    assert bank.right.shape == (3, 3, 3)
    assert bank.sizes.tolist() == [30.0, 10.0, 60.0]
    assert (bank.right <= bank.sizes[:, None, None]).all()
    assert np.array_equal(bank.test_accuracy, bank.right[2] / 60.0)
    assert np.array_equal(bank.scores("public"), bank.right[0])
    assert np.array_equal(bank.scores("held"), bank.right[1])
    assert bank.defaults.shape == (2, 2, len(DEFAULTS))
    problem = made_problem(None)
    assert bank.trivial == np.mean(problem.test.labels == np.bincount(problem.public.labels).argmax())


def test_a_candidate_has_the_same_draws_at_every_noise_and_no_other_has_them(told):
    trials = [call for call in told if call[3] == "train" and call[4] == ("public", "held", "test")]
    assert len(trials) == 3 * 3
    for place in range(3):
        levels = trials[3 * place : 3 * place + 3]
        assert [call[1] for call in levels] == list(TINY.noise)
        assert len({(call[0], call[2]) for call in levels}) == 1
    assert len({call[0] for call in trials}) == len({call[2] for call in trials}) == 3


def test_defaults_are_trained_with_the_untuned_noise_without_the_held_out_records_and_with_them(told):
    defaults = [call for call in told if call[4] == ("test",)]
    candidates = [tuple(one.items()) for one in DEFAULTS]
    wanted = [(one, noise, part) for noise in (1.771926, 0.9282996) for part in ("train", "all") for one in candidates]
    assert [(call[0], call[1], call[3]) for call in defaults] == wanted


def test_a_bank_holds_what_its_trainer_says_of_the_candidates_that_its_space_draws():
    bank, key = trained_bank(TINY, 0, None), module.repetition_key(TINY, 0)
    trainer = SoftmaxBank(parts_of(TINY, 0), 3)
    for place in range(TINY.candidates):
        candidate = SPACES[TINY.space].draw(Stream(derive_key(key, "candidate", place)))
        right = trainer.right(candidate, TINY.noise[1], Randomness(derive_key(key, "trial", place)), "train", ("public", "held", "test"))
        assert bank.right[:, 1, place].tolist() == right


def test_the_parts_of_a_repetition_are_disjoint_and_together_all_that_is_drawn():
    parts = parts_of(TINY, 0)
    assert {name: len(part) for name, part in parts.items()} == {"train": 40, "held": 10, "all": 50, "public": 30, "test": 60}
    assert np.array_equal(np.concatenate([parts["train"].features, parts["held"].features]), parts["all"].features)
    # Every image of the problem is another one, so each row is one record.
    assert len(np.unique(np.concatenate([part.features for name, part in parts.items() if name != "all"]), axis=0)) == 140
    private = {row.tobytes() for row in load("made", None).private.features}
    assert {row.tobytes() for row in parts["all"].features} <= private


def test_repetitions_and_settings_draw_other_records():
    subsets = [parts_of(TINY, repetition)["train"].features for repetition in range(3)]
    subsets.append(parts_of(dataclasses.replace(TINY, name="other"), 0)["train"].features)
    assert len({subset.tobytes() for subset in subsets}) == 4


def test_what_was_stored_is_what_was_trained(tmp_path):
    train_bank(TINY, 0, None, tmp_path)
    assert same(stored_bank(tmp_path, TINY, 0), trained_bank(TINY, 0, None))
    assert [file.name for file in tmp_path.iterdir()] == ["tiny-0.npz"]


def test_a_bank_that_is_not_there_or_another_one_is_none(tmp_path, monkeypatch):
    assert stored_bank(tmp_path, TINY, 0) is None
    train_bank(TINY, 0, None, tmp_path)
    assert stored_bank(tmp_path, TINY, 1) is None
    bank_file(tmp_path, TINY, 0).rename(bank_file(tmp_path, TINY, 1))
    assert stored_bank(tmp_path, TINY, 1) is None  # it says that it is the first
    bank_file(tmp_path, TINY, 1).rename(bank_file(tmp_path, TINY, 0))
    for change in ({"candidates": 4}, {"records": 41}, {"levels": (1, 2)}, {"space": "hard"}):
        assert stored_bank(tmp_path, dataclasses.replace(TINY, **change), 0) is None
    assert stored_bank(tmp_path, TINY, 0) is not None
    monkeypatch.setattr(module, "STEPS", 11)
    assert stored_bank(tmp_path, TINY, 0) is None


def test_a_truncated_bank_is_none_wherever_it_ends(tmp_path):
    train_bank(TINY, 0, None, tmp_path)
    file = bank_file(tmp_path, TINY, 0)
    whole = file.read_bytes()
    for end in range(0, len(whole), 7):
        file.write_bytes(whole[:end])
        assert stored_bank(tmp_path, TINY, 0) is None


def test_a_broken_bank_is_none_or_has_all_its_numbers(tmp_path, fresh_rng):
    train_bank(TINY, 0, None, tmp_path)
    file, bank = bank_file(tmp_path, TINY, 0), stored_bank(tmp_path, TINY, 0)
    whole = np.frombuffer(file.read_bytes(), dtype=np.uint8)
    for place in fresh_rng.choice(len(whole), 300, replace=False):
        broken = whole.copy()
        broken[place] ^= np.uint8(fresh_rng.integers(1, 256))
        file.write_bytes(broken.tobytes())
        found = stored_bank(tmp_path, TINY, 0)
        assert found is None or same(found, bank)  # some bytes of a zip file mean nothing, such as dates
    for content in (b"", b"PK", b"not a bank", np.lib.format.magic(1, 0)):
        file.write_bytes(content)
        assert stored_bank(tmp_path, TINY, 0) is None
    file.unlink()
    file.mkdir()
    assert stored_bank(tmp_path, TINY, 0) is None
