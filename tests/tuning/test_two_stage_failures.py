"""Two stages that fail, run out of time or are interrupted: the fallback, and the same release on resume."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from two_stage_runs import SEARCH, Recorded, objective, tree_of

import privselect as ps
from privselect.errors import AbortedError, LedgerError, ParameterError
from privselect.tuning.ledger import Ledger

# -- failures: the fallback, and which it was stays secret --------------------------------------------------------------------


def failing(stage):
    def trial(candidate, data, randomness, mechanism, stage):
        calls.append(stage)
        if stage in failures:
            raise ValueError("always")
        return objective(candidate, data, randomness, mechanism)

    failures, calls = stage, []
    trial.calls = calls
    return trial


def test_no_trial_all_failed_and_a_failed_training_release_the_same_to_the_byte(tuned, tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    none, three = 8, 1  # by these seeds K is 0 and 3 under poisson(mean=1)
    trees = []
    for number, (seed, stages) in enumerate([(none, ()), (three, ("search",)), (three, ("final",))]):
        trial = failing(stages)
        release = tuned(trial, count=ps.Poisson(mean=1), insecure_seed=seed, out=tmp_path / "out", ledger=tmp_path / f"ledgers {number}")
        assert release.is_fallback
        assert (release.candidate, release.score, release.trained_with) == (None, None, None)
        assert np.array_equal(release.artifact["weights"], np.zeros(3))
        assert trial.calls.count("final") == 1  # a training runs in any case
        assert trial.calls.count("search") == (0 if seed == none else 3)
        trees.append(tree_of(tmp_path / "out"))
        (tmp_path / "out").rename(tmp_path / f"out {number}")
    assert trees[0] == trees[1] == trees[2]
    assert {len(list((tmp_path / f"ledgers {number}").iterdir())) for number in range(3)} == {1}


def test_a_time_limit_of_the_training_is_its_own(tuned):
    def slow(candidate, data, randomness, mechanism, stage):
        while stage == "final":
            pass
        return objective(candidate, data, randomness, mechanism)

    assert tuned(slow, timeout=30.0, final_timeout=0.05).is_fallback
    with pytest.raises(ParameterError, match="`final_timeout` needs a final training"):
        tuned(final=None, final_timeout=5.0, mechanism=SEARCH, ledger=None)


def test_the_largest_number_of_trials_is_run_and_then_the_training(tuned):
    trial = Recorded()
    release = tuned(trial, count=ps.Poisson(mean=3, cap=9), constant_work=True)
    assert [call[0] for call in trial.calls] == ["search"] * 9 + ["final"]
    assert release.trained_with == release.candidate


def test_a_time_of_release_leaves_room_for_both_stages(tuned, tmp_path):
    given = {"count": ps.Poisson(mean=2, cap=4), "timeout": 100.0, "release_at": datetime.now(UTC) + timedelta(seconds=500)}
    with pytest.raises(ParameterError, match="`release_at` needs a `final_timeout`"):
        tuned(**given)
    said = r"must be at least 825 seconds from now, the most that 4 trials and the final training can take"
    with pytest.raises(ParameterError, match=said):
        tuned(final_timeout=300.0, **given)
    assert not list((tmp_path / "ledgers").iterdir())


def test_a_deadline_covers_both_stages(tuned, tmp_path):
    def slow(candidate, data, randomness, mechanism, stage):
        if stage == "final":
            raise KeyboardInterrupt
        return objective(candidate, data, randomness, mechanism)

    with pytest.raises(KeyboardInterrupt):
        tuned(slow, out=tmp_path / "out", deadline=1000.0)
    with pytest.raises(AbortedError, match="missed its deadline"):
        tuned(slow, out=tmp_path / "out", deadline=1e-6)
    assert not (tmp_path / "out").exists()


# -- interrupted and resumed --------------------------------------------------------------------------------------------------


class Interrupted:
    """Ctrl-C in the n-th trial of a stage, once."""

    def __init__(self, stage, number=1):
        self.stage, self.left, self.calls = stage, number, []

    def __call__(self, candidate, data, randomness, mechanism, stage):
        self.left -= stage == self.stage
        if self.left == 0 and stage == self.stage:
            raise KeyboardInterrupt
        self.calls.append((stage, randomness.integer(128)))
        return objective(candidate, data, randomness, mechanism)


@pytest.mark.parametrize(("stage", "number"), [("search", 3), ("final", 1)])
def test_an_interrupted_run_releases_nothing_and_then_what_it_would_have(tuned, tmp_path, monkeypatch, stage, number):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    whole, trial = Interrupted("none"), Interrupted(stage, number)
    tuned(whole, out=tmp_path / "out", ledger=tmp_path / "others")
    expected = tree_of(tmp_path / "out")
    (tmp_path / "out").rename(tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        tuned(trial, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()
    tuned(trial, out=tmp_path / "out")
    assert tree_of(tmp_path / "out") == expected
    assert trial.calls == whole.calls  # each trial once


def test_between_the_stages_the_ledger_holds_the_winner_without_its_model(tuned, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        tuned(Interrupted("final"))
    (path,) = (tmp_path / "ledgers").iterdir()
    ledger = Ledger.open(path)
    assert ledger.best("search").artifact == b""
    assert ledger.best("final") is None
    ledger.close()


@pytest.mark.parametrize("change", [{"final": ps.DPSGD(2.0, 0.2, 21)}, {"transfer": "noise"}, {"subsample": "1/2"}])
def test_another_second_stage_is_another_plan(tuned, tmp_path, change):
    with pytest.raises(KeyboardInterrupt):
        tuned(Interrupted("final"), out=tmp_path / "out")
    with pytest.raises(LedgerError, match="an unfinished run of another plan"):
        tuned(Interrupted("none"), out=tmp_path / "out", **change)


def halved(candidate):
    return {**candidate, "learning_rate": max(candidate["learning_rate"] / 2, 0.1)}


def test_a_changed_transfer_is_found_on_resume(tuned, monkeypatch):
    with pytest.raises(KeyboardInterrupt):
        tuned(Interrupted("final"), transfer=halved)
    monkeypatch.setattr(halved, "__code__", (lambda candidate: {**candidate, "learning_rate": 0.2}).__code__)
    with pytest.raises(LedgerError, match="the data or the objective has changed"):
        tuned(Interrupted("none"), transfer=halved)
