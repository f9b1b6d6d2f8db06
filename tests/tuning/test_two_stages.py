"""A search, then a final training with the winner's candidate: what runs, on what, what is released, and how it is resumed."""

import functools
import json
import re
import resource

import numpy as np
import pytest
from two_stage_runs import DATA, FINAL, SEARCH, SPACE, SYNTHETIC, TEST, Recorded, held_out, objective, right, train, tree_of

import privselect as ps
from privselect.errors import AbortedError, ParameterError
from privselect.tuning.executors.processes import Processes
from privselect.tuning.randomness import Randomness, Stream, derive_key
from privselect.tuning.space import DefineByRunSpace
from privselect.tuning.tuning_run import seeded_secret

NOISE_FACTOR = (3.0 * 5**0.5 / 0.1) / (2.0 * 20**0.5 / 0.2)


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


# -- progress and memory ---------------------------------------------------------------------------------------------------


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
