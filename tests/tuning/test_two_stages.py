"""A search, then a final training with the winner's candidate: what runs, on what, what is released, and how it is resumed."""

import functools
import json
import re
import resource
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from two_stage_runs import DATA, FINAL, SEARCH, SPACE, SYNTHETIC, TEST, Recorded, held_out, objective, right, train

import privselect as ps
from privselect.errors import AbortedError, LedgerError, ParameterError, PrivselectError
from privselect.tuning.executors.processes import Processes
from privselect.tuning.ledger import Ledger
from privselect.tuning.randomness import Randomness, Stream, derive_key
from privselect.tuning.space import DefineByRunSpace
from privselect.tuning.tuning_run import seeded_secret

NOISE_FACTOR = (3.0 * 5**0.5 / 0.1) / (2.0 * 20**0.5 / 0.2)


@pytest.fixture
def tuned(quick, tmp_path):  # noqa: ARG001 - certificates at once
    """A run of two stages; what is given takes the place of what is usual."""

    def run(trial=objective, space=SPACE, **given):
        usual = {
            "data": DATA,
            "mechanism": SEARCH,
            "count": ps.Poisson(mean=5),
            "final": FINAL,
            "score": "public",
            "delta": 1e-6,
            "export": "arrays",
            "fallback": {"weights": np.zeros(3)},
            "executor": "serial",
            "ledger": tmp_path / "ledgers",
            "insecure_seed": 3,
        }
        return ps.tune(trial, space, **{**usual, **given})

    return run


def tree_of(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def same_arrays(one, other):
    return set(one) == set(other) and all(np.array_equal(one[name], other[name]) for name in one)


# -- a run as a whole ---------------------------------------------------------------------------------------------------------


def test_the_winners_candidate_is_trained_once_more_and_this_model_is_released(tuned, tmp_path):
    trial = Recorded()
    release = tuned(trial, transfer="noise", out=tmp_path / "out")
    trials = ps.Poisson(mean=5).sample(Stream(derive_key(seeded_secret(3, 1), "count")))
    assert [call[0] for call in trial.calls] == ["search"] * trials + ["final"]
    assert {call[1] for call in trial.of("search")} == {SEARCH}
    ((_, mechanism, candidate, size, _),) = trial.of("final")
    assert (mechanism, size) == (FINAL, len(DATA["x"]))
    assert candidate == release.trained_with
    assert release.trained_with["learning_rate"] == pytest.approx(NOISE_FACTOR * release.candidate["learning_rate"], rel=1e-12)
    assert release.trained_with["clip"] == release.candidate["clip"]
    assert release.candidate in [call[2] for call in trial.of("search")]
    # The final training's randomness is derived from the secret alone.
    seed = derive_key(derive_key(seeded_secret(3, 1), "final"), "objective")
    assert same_arrays(release.artifact, train(release.trained_with, DATA, Randomness(seed), FINAL))
    written = json.loads((tmp_path / "out" / "release.json").read_text())
    assert (written["version"], written["trained_with"], written["score"]) == (2, release.trained_with, release.score)
    assert sorted(tree_of(tmp_path / "out")) == ["certificate.json", "model.npz", "plan.json", "release.json"]
    plan = json.loads((tmp_path / "out" / "plan.json").read_text())
    assert (plan["final"], plan["transfer"], plan["subsample"]) == (str(FINAL), "noise(learning_rate)", None)


def test_one_certificate_covers_both_stages_and_verifies(tmp_path):
    release = ps.tune(
        objective,
        SPACE,
        data=DATA,
        mechanism=SEARCH,
        count="geometric(mean=5)",
        final=FINAL,
        score="public",
        delta=1e-5,
        epsilon=3.0,
        export="arrays",
        executor="serial",
        ledger=tmp_path / "ledgers",
        synthetic=SYNTHETIC,
    )
    certificate = release.certificate
    assert ps.verify(certificate).holds
    assert (certificate.plan.mechanism, certificate.plan.final) == (str(SEARCH), str(FINAL))
    whole = ps.search_then_train(SEARCH, ps.Geometric(mean=5), FINAL)
    assert certificate.total.upper == whole.epsilon_at(1e-5).upper
    assert (release.plan.mechanism, release.plan.final, release.plan.cost.upper) == (SEARCH, FINAL, certificate.total.upper)
    assert not certificate.run.mechanism_claimed
    facts = release.public_facts()
    assert (facts["final"], facts["trained_with"], facts["visible"]) == (str(FINAL), release.trained_with, None)
    assert right(release.artifact, TEST).mean() > 0.4


def test_records_of_the_hold_out_are_trained_on_in_the_final_training_alone(tuned):
    trial = Recorded(held_out)
    score = ps.NoisyCount(right, sigma=4.0, fraction=0.25, ids="id")
    release = tuned(trial, score=score, mechanism=ps.Disjoint((SEARCH, score.noise)))
    searched = {frozenset(call[4]) for call in trial.of("search")}
    assert len(searched) == 1
    assert 0 < len(next(iter(searched))) < len(DATA["id"])
    assert {call[1] for call in trial.of("search")} == {SEARCH}  # without the noise of the score, which the runner adds
    assert trial.of("final")[0][4] == set(DATA["id"].tolist())
    assert release.score == round(release.score)


def test_a_hold_out_given_apart_is_not_trained_on(tuned):
    trial = Recorded(held_out)
    score = ps.NoisyCount(right, sigma=4.0, holdout=TEST)
    release = tuned(trial, score=score, mechanism=ps.Disjoint((SEARCH, score.noise)))
    assert trial.of("final")[0][4] == set(DATA["id"].tolist())
    assert any("are not used by the final training" in note for note in release.certificate.run.notes)


def test_a_trial_of_the_search_exports_nothing(tuned):
    exported = []

    def export(model):
        exported.append(model)
        return b"".join(model[name].tobytes() for name in sorted(model))

    release = tuned(export=export, fallback=None)
    assert len(exported) == 1
    assert release.artifact == b"".join(exported[0][name].tobytes() for name in sorted(exported[0]))


def test_nothing_need_be_exported(tuned):
    release = tuned(export=None, fallback=None)
    assert release.artifact is None
    assert release.trained_with == release.candidate


def test_the_score_of_the_final_training_does_not_matter(tuned):
    def trial(candidate, data, randomness, mechanism, stage):
        score, model = objective(candidate, data, randomness, mechanism)
        return score if stage == "search" else float("nan"), model

    release, usual = tuned(trial), tuned(ledger=None)
    assert release.score == usual.score
    assert same_arrays(release.artifact, usual.artifact)


# -- what the objective is told -----------------------------------------------------------------------------------------------


class Method:
    def fit(self, candidate, data, randomness, *, mechanism):
        return objective(candidate, data, randomness, mechanism)


def decorated(function):
    @functools.wraps(function)
    def inner(*arguments, **named):
        return function(*arguments, **named)

    return inner


def test_functions_methods_partials_and_decorated_functions_are_told(tuned):
    expected = tuned(ledger=None)
    for trial in (Method().fit, functools.partial(objective, mechanism=ps.Gaussian(sigma=1)), decorated(objective), Recorded()):
        assert same_arrays(tuned(trial, ledger=None).artifact, expected.artifact)


def test_an_objective_without_the_parameter_is_not_told_and_the_mechanism_is_a_claim(tuned):
    def trial(candidate, data, randomness):
        return objective(candidate, data, randomness, SEARCH)

    def named(candidate, data, randomness, /, mechanism=SEARCH):
        return objective(candidate, data, randomness, mechanism)

    assert tuned(trial, ledger=None).certificate.run.mechanism_claimed
    assert not tuned(named, ledger=None).certificate.run.mechanism_claimed


def test_an_objective_that_cannot_be_called_with_what_it_asks_for_is_refused(tuned):
    def trial(candidate, mechanism, randomness):  # noqa: ARG001 - it is never called
        return 0.0, None

    with pytest.raises(ParameterError, match=r"can be called as objective\(candidate, data, randomness, mechanism=...\)"):
        tuned(trial)


def test_a_mechanism_that_depends_on_the_candidate_is_told_by_candidate(tuned):
    def mechanism(candidate):
        return ps.DPSGD(noise_multiplier=3.0, sampling_probability=0.1, steps=candidate["steps"])

    trial = Recorded()
    tuned(trial, {**SPACE, "steps": ps.Choice([2, 3])}, mechanism=mechanism)
    for stage, told, candidate, _, _ in trial.calls:
        assert told == (mechanism(candidate) if stage == "search" else FINAL)


class Stating:
    """States by itself what it runs, whatever it is told."""

    def __init__(self, **stated):
        for name, value in stated.items():
            setattr(self, name, value)

    def __call__(self, candidate, data, randomness):
        return objective(candidate, data, randomness, FINAL)


def test_what_an_objective_states_is_checked_in_both_stages(tuned, tmp_path):
    strong, weak = ps.DPSGD(9.0, 0.1, 5), ps.DPSGD(0.5, 0.2, 20)
    assert not tuned(Stating(mechanism=strong), ledger=None).certificate.run.mechanism_claimed
    between = ps.DPSGD(2.5, 0.1, 5)  # covered by a search of its own noise, not by a final training of more
    with pytest.raises(ParameterError, match="`final` must cover what the objective states that it runs"):
        tuned(Stating(mechanism=between), mechanism=between, final=ps.DPSGD(4.0, 0.2, 20))
    with pytest.raises(ParameterError, match="a candidate of the space runs a final training that may leak more"):
        tuned(Stating(mechanism_of=lambda _: strong, final_mechanism_of=lambda _: weak))
    with pytest.raises(ParameterError, match=r"`final_mechanism_of` must return the mechanism of every candidate, got KeyError"):
        tuned(Stating(mechanism_of=lambda _: strong, final_mechanism_of=lambda candidate: candidate["nothing"]))
    assert not list((tmp_path / "ledgers").iterdir())
    assert tuned(Stating(mechanism_of=lambda _: strong, final_mechanism_of=lambda _: strong)).candidate is not None


def test_an_objective_may_say_that_its_mechanism_is_a_claim(tuned):
    trial = Recorded()
    trial.mechanism_claimed = True
    release = tuned(trial)
    assert release.certificate.run.mechanism_claimed
    assert not any("is told which mechanism" in note for note in release.certificate.run.notes)


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


# -- candidates that the objective draws itself -------------------------------------------------------------------------------


def asking(suggest, data, randomness, mechanism, stage):
    candidate = {"learning_rate": suggest.log_uniform("learning_rate", 0.1, 10.0), "clip": suggest.choice("clip", [0.5, 1.0])}
    asked.append((stage, candidate))
    return objective(candidate, data, randomness, mechanism)


asked = []


def test_an_objective_that_draws_its_own_candidate_gets_the_winners_in_the_final_training(tuned, tmp_path):
    asked.clear()
    release = tuned(asking, DefineByRunSpace("rates"), transfer="noise", out=tmp_path / "out")
    *searched, (stage, used) = asked
    assert stage == "final"
    assert used == release.trained_with
    assert ("search", release.candidate) in searched
    assert used["learning_rate"] == pytest.approx(NOISE_FACTOR * release.candidate["learning_rate"], rel=1e-12)
    assert set(release.distributions) == {"learning_rate", "clip"}
    seed = derive_key(derive_key(seeded_secret(3, 1), "final"), "objective")
    assert same_arrays(release.artifact, train(used, DATA, Randomness(seed), FINAL))


def test_without_a_winner_such_an_objective_trains_once_too(tuned):
    asked.clear()
    assert tuned(asking, DefineByRunSpace("rates"), count=ps.Poisson(mean=1), insecure_seed=8).is_fallback
    assert [stage for stage, _ in asked] == ["final"]


def test_a_transfer_that_fails_on_the_winner_ends_the_run_without_a_word_of_it(tuned):
    def broken(_candidate):
        return 1 / 0

    with pytest.raises(AbortedError) as caught:
        tuned(asking, DefineByRunSpace("rates"), transfer=broken)
    assert re.fullmatch(r"the transfer rule '[\w.:<>]*broken' does not apply to a candidate; nothing is released", str(caught.value))


# -- bad input ----------------------------------------------------------------------------------------------------------------


OPEN = "dpsgd(noise_multiplier=?, sampling_probability=0.1, steps=5)"
REPLACE = "gaussian(sigma=4, neighbours=replace_one)"
BAD = {
    "both open": ({"mechanism": OPEN, "final": OPEN, "epsilon": 1.0}, "search and final training are both open: pass final_noise=1.07"),
    "a rule too many": ({"mechanism": OPEN, "epsilon": 1.0, "split": "auto"}, "`split` needs an open number in both stages"),
    "open without a budget": ({"mechanism": OPEN}, "`epsilon` is required to solve for a number that is left open as ?, got none"),
    "final above the budget": ({"mechanism": OPEN, "epsilon": 0.1}, "`final` must cost less than the budget, epsilon 0.1"),
    "relations": ({"final": REPLACE}, "must be stated for the same neighbouring relation"),
    "final of no kind": ({"final": 3}, "`final` must be a mechanism such as gaussian(sigma=4), got 3"),
    "weight": ({"defaults": [{"clip": 0.5}], "weight": 2}, "`weight` of the defaults must be a probability in [0, 1]"),
    "default": ({"defaults": [{"clip": 0.7}]}, "`clip` of default 1 must be one of"),
    "transfer without final": ({"final": None, "transfer": "noise"}, "`transfer` is the rule of a final training and needs `final`"),
    "split without final": (
        {"final": None, "final_noise": 1.07},
        "`final_noise` divides the budget between two stages, got no final training: pass `final` too",
    ),
    "transfer": ({"transfer": "halve"}, "`transfer` must be 'same', 'noise' or a function of the candidate, got 'halve'"),
    "subsample": ({"subsample": 0}, "`subsample` must be a probability in (0, 1] such as 1/10, got 0"),
    "subsample of nothing": ({"subsample": "1/2", "data": None}, "`data` is required for a subsampled search, got none"),
}


@pytest.mark.parametrize(("given", "said"), BAD.values(), ids=BAD)
def test_bad_input_is_one_sentence_and_nothing_is_spent(tuned, tmp_path, given, said):
    with pytest.raises(PrivselectError) as caught:
        tuned(**given)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.rglob("*.sqlite"))


def test_a_cost_above_the_budget_is_refused_before_anything_is_drawn(tmp_path):
    with pytest.raises(ParameterError, match="`epsilon` must be at least"):
        ps.tune(
            objective,
            SPACE,
            data=DATA,
            mechanism=SEARCH,
            final=FINAL,
            count="geometric(mean=5)",
            score="public",
            delta=1e-6,
            epsilon=0.8,
            executor="serial",
            ledger=tmp_path,
        )
    assert not list(tmp_path.iterdir())


def test_the_curator_sees_the_stages_and_the_planned_work(tuned, capsys):
    tuned(curator=True, count=ps.Poisson(mean=2, cap=4), timeout=10.0, final_timeout=30.0)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("warning: curator view")
    assert lines[1].startswith("planned: at most 4 search trials, ")
    assert lines[1].endswith(" on average, then one final training; at most 195 seconds")
    assert all(re.fullmatch(r"0:00:[0-9]{2}  .*", line) for line in lines[2:])
    told = [line[9:] for line in lines[2:]]
    assert (told[0], told[-1]) == ("search", "final training")
    assert all(line.startswith("trial ") for line in told[1:-1])
    tuned(curator=True, count=ps.Poisson(mean=2, cap=4), timeout=10.0, ledger=None)
    assert "; no longest time, because a trial or the final training has no time limit, or K has" in capsys.readouterr().err


def memory_of_the_training(_candidate, _data, _randomness, mechanism):  # noqa: ARG001
    return 0.0, {"limit": np.array([resource.getrlimit(resource.RLIMIT_DATA)[0]])}


def test_the_final_training_may_use_the_memory_of_all_workers(tuned):
    usual = {"executor": "processes", "workers": 2, "fallback": None, "ledger": None}
    assert tuned(memory_of_the_training, **usual).artifact["limit"] == Processes(1).memory_share > Processes(2).memory_share
    assert tuned(memory_of_the_training, memory_limit=2**32, **usual).artifact["limit"] == 2**32
