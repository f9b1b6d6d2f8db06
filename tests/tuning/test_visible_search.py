"""A visible search: every result shown, the number of trials enforced, one final training, resumed without a second noise."""

import json
import math

import numpy as np
import pytest

import privselect as ps
from privselect.errors import AbortedError, LedgerError, ParameterError
from privselect.mechanisms import Composed
from privselect.tuning.plan_violation import PlanViolation
from privselect.tuning.space import DefineByRunSpace
from privselect.tuning.suggest import NOT_SEARCHED
from privselect.tuning.visible_search import VisibleSearch

DATA = np.arange(5.0)
SEARCH, FINAL = ps.DPSGD(noise_multiplier=3, sampling_probability=0.01, steps=60), ps.DPSGD(2, sampling_probability=0.01, steps=600)
SPACE = {"learning_rate": ps.LogUniform(1e-3, 1.0), "batch": ps.Choice([1, 2])}
GIVEN = {"visible": 3, "mechanism": SEARCH, "score": "public", "delta": 1e-5, "executor": "serial", "ledger": None, "data": DATA}
TRAIN = {"final": FINAL, "export": "arrays"}
pytestmark = pytest.mark.usefixtures("quick")


class Objective:
    """Peaks at a learning rate of 0.1, and notes what it gets."""

    def __init__(self):
        self.calls = []

    def __call__(self, candidate, data, randomness, mechanism, stage):
        noise = randomness.numpy().normal()
        self.calls.append((stage, mechanism, dict(candidate), noise))
        if candidate.get("batch") == 7:
            raise ValueError("canary 4711")
        return -abs(math.log(candidate["learning_rate"] / 0.1)), {"weights": np.array([data.sum(), noise])}


def search_of(objective=None, space=None, **given):
    return VisibleSearch(objective or Objective(), space, **{**GIVEN, **given})


def at(rate, **others):
    return {"learning_rate": rate, **others}


# -- trials and training ------------------------------------------------------------------------------------------------------------


def test_candidates_are_chosen_from_all_earlier_results_and_the_best_one_is_trained():
    objective = Objective()
    with search_of(objective, **TRAIN) as search:
        rate = 0.01
        while search.left:
            trial = search.run(at(rate))
            assert trial == search.results[-1]
            rate *= 4
        release = search.train()
    assert [trial.number for trial in search.results] == [1, 2, 3]
    assert [trial.candidate for trial in search.results] == [at(0.01), at(0.04), at(0.16)]
    assert release.candidate == release.trained_with == search.best.candidate == at(0.16)
    assert release.score == search.best.score == pytest.approx(-math.log(1.6))
    assert [call[0] for call in objective.calls] == ["search"] * 3 + ["final"]
    assert [call[1] for call in objective.calls] == [SEARCH] * 3 + [FINAL]
    assert len({call[3] for call in objective.calls}) == 4  # every training has its own noise
    assert release.artifact["weights"].tolist() == [10.0, objective.calls[-1][3]]
    assert repr(search) == "VisibleSearch(3 trials, 0 left)"


def test_the_cost_is_that_of_all_trials_and_the_training(monkeypatch):
    monkeypatch.undo()  # real certificates
    with search_of(Objective(), **TRAIN) as search:
        certificate = search.certificate
    assert certificate.plan.whole == ps.search_then_train(SEARCH, None, FINAL, visible=3)
    assert certificate.total.upper == Composed((Composed((SEARCH,), times=3), FINAL)).epsilon_at(delta=1e-5).upper
    assert certificate.plan.count is None
    assert certificate.plan.visible == 3
    assert "composition, adaptive candidates" in certificate.statement
    assert ps.verify(certificate).holds


@pytest.mark.slow
def test_the_budget_solves_for_the_noise_of_both_stages_and_a_resumed_search_keeps_it(tmp_path, monkeypatch):
    monkeypatch.undo()
    texts = {
        "mechanism": "dpsgd(noise_multiplier=?, sampling_probability=1024/60000, steps=60)",
        "final": "dpsgd(noise_multiplier=?, sampling_probability=1024/60000, steps=600)",
        "split": "auto",
        "visible": 6,
        "epsilon": 1,
        "ledger": tmp_path / "ledger",
        "transfer": "noise",
    }
    objective = Objective()
    with search_of(objective, **texts) as search:
        plan = search.plan
        assert plan.final.noise_multiplier == pytest.approx(1.9, rel=0.003)
        assert plan.mechanism.noise_multiplier == pytest.approx(3.12, rel=0.02)  # with 1.9 exactly, as in the issue
        assert plan.cost.upper <= 1
        search.run(at(0.1))
    monkeypatch.setattr("privselect.tuning.budget.plan", None)  # not solved again
    with search_of(objective, **texts) as search:
        assert len(search.results) == 1
        release = search.train()
    factor = plan.mechanism.noise_multiplier * 60**0.5 / (plan.final.noise_multiplier * 600**0.5)
    assert release.trained_with == at(pytest.approx(0.1 * factor))
    assert release.plan.mechanism == plan.mechanism


def test_without_a_final_training_the_best_trial_itself_is_released():
    with search_of(export="arrays") as search:
        artifacts = [search.run(at(rate)).artifact["weights"].tolist() for rate in (0.5, 0.1, 0.01)]
        release = search.train()
    assert release.candidate == at(0.1)
    assert release.artifact["weights"].tolist() == artifacts[1]
    assert release.trained_with is None
    assert release.certificate.plan.final is None


def test_artifacts_of_search_trials_are_shown_only_if_asked_for():
    with search_of(**TRAIN) as search:
        assert search.run(at(0.1)).artifact is None
    with search_of(**TRAIN, artifacts=True) as search:
        assert search.run(at(0.1)).artifact["weights"][0] == 10.0
        assert search.train().artifact["weights"][0] == 10.0


def test_the_training_may_use_any_candidate_after_all_trials_or_before():
    with search_of(**TRAIN) as search:
        search.run(at(0.5))
        release = search.train(at(0.25))
    assert release.trained_with == at(0.25)
    assert (release.candidate, release.score) == (at(0.5), search.best.score)
    with search_of(**TRAIN) as search:
        release = search.train(at(0.25))
    assert (release.candidate, release.score, release.trained_with) == (at(0.25), None, at(0.25))


def test_a_transfer_changes_the_best_candidate_and_not_a_given_one():
    def halved(candidate):
        return {**candidate, "learning_rate": candidate["learning_rate"] / 2}

    for given, expected in ((None, at(0.25)), (at(0.3), at(0.3))):
        with search_of(**TRAIN, transfer=halved) as search:
            search.run(at(0.5))
            assert search.train(given).trained_with == expected


def test_a_transfer_that_fails_for_the_best_candidate_says_so():
    def strict(candidate):
        return {**candidate, "learning_rate": candidate["learning_rate"] - (candidate["learning_rate"] < 0.2001)}

    with search_of(**TRAIN, transfer=strict, space={"learning_rate": ps.Uniform(0.2, 1)}) as search:
        search.run(at(0.2))
        with pytest.raises(ParameterError, match=r"`learning_rate` of the space must be in \[0.2, 1.0\], got -0.8\. Pass the candidate"):
            search.train()
        assert search.train(at(0.3)).trained_with == at(0.3)
    with pytest.raises(ParameterError, match="`transfer` must return a candidate of the space"):  # for most candidates, so at once
        search_of(**TRAIN, transfer=lambda c: {"learning_rate": c["learning_rate"] / 9}, space={"learning_rate": ps.Uniform(0.2, 1)})


def test_failures_are_shown():
    with search_of(**TRAIN) as search:
        trial = search.run(at(0.1, batch=7))
        assert (trial.score, trial.failed, search.best) == (None, True, None)
        with pytest.raises(ParameterError, match=r"^no trial has succeeded: run more trials, or pass the candidate of the final training"):
            search.train()
        assert not search.run(at(0.5)).failed
        release = search.train(at(0.1, batch=7))
    assert (release.candidate, release.trained_with, release.artifact) == (at(0.5), None, None)  # the training failed


def test_a_noisy_count_on_a_hold_out_is_shown_and_accounted_for():
    def objective(_candidate, data, _randomness):
        return None, {"weights": np.array([len(data["x"])])}

    score = ps.NoisyCount(correct=lambda _, held: np.ones(len(held["x"]), bool), sigma=2, fraction=0.25, ids="id")
    data = {"x": np.zeros(400), "id": np.arange(400)}
    with search_of(objective, score=score, data=data, **TRAIN, mechanism=ps.Disjoint((SEARCH, score.noise))) as search:
        shown = [search.run(at(0.1)).score for _ in range(3)]
        release = search.train()
    assert all(70 < count < 130 for count in shown)
    assert len(set(shown)) > 1  # each with its own noise
    assert release.artifact["weights"].tolist() == [400]  # the held-out records too
    assert release.certificate.plan.whole == ps.search_then_train(ps.Disjoint((SEARCH, score.noise)), None, FINAL, visible=3)


# -- the number of trials -----------------------------------------------------------------------------------------------------------


def test_the_number_of_trials_is_a_limit():
    with search_of(**TRAIN) as search:
        for rate in (0.1, 0.2, 0.3):
            search.run(at(rate))
        with pytest.raises(ParameterError, match=r"^the plan has 3 trials, and all of them are spent: call train\(\)$"):
            search.run(at(0.4))
        search.train()
        with pytest.raises(ParameterError, match=r"^this search has ended: its final training is released$"):
            search.run(at(0.4))
        assert len(search.results) == 3
        assert search.train() is search.train()


def test_the_number_holds_across_restarts(tmp_path):
    objective = Objective()
    for number in range(1, 4):
        with search_of(objective, ledger=tmp_path, **TRAIN) as search:
            assert search.left == 4 - number
            search.run(at(0.1 * number))
    with search_of(objective, ledger=tmp_path, **TRAIN) as search:
        assert [trial.candidate["learning_rate"] for trial in search.results] == pytest.approx([0.1, 0.2, 0.3])
        with pytest.raises(ParameterError, match="all of them are spent"):
            search.run(at(0.4))
        release = search.train()
    assert release.candidate == at(0.1)
    assert len({noise for *_, noise in objective.calls}) == 4
    with pytest.raises(LedgerError, match="was already run and released"):
        search_of(objective, ledger=tmp_path, **TRAIN)
    with search_of(objective, ledger=tmp_path, **TRAIN, again=True) as search:
        assert search.left == 3
        assert search.certificate.run.runs == 2


def test_a_closed_search_says_so_and_goes_on_in_another(tmp_path):
    with search_of(ledger=tmp_path, **TRAIN) as search:
        search.run(at(0.1))
    for use in (lambda: search.run(at(0.2)), search.train, lambda: search.results, lambda: search.left):
        with pytest.raises(ParameterError, match="this search is closed: make the same call of VisibleSearch again to continue it"):
            use()
    assert repr(search) == "VisibleSearch(3 trials, closed)"
    with search_of(ledger=tmp_path, **TRAIN) as search:
        assert search.left == 2
        search.train()
    assert (search.left, len(search.results), repr(search)) == (0, 1, "VisibleSearch(3 trials, 0 left)")
    with pytest.raises(ParameterError, match="this search has ended"):
        search.run(at(0.2))


def interrupted_at(number):
    """An objective that is interrupted in one of its calls."""
    objective = Objective()

    def call(candidate, data, randomness, mechanism, stage):
        returned = objective(candidate, data, randomness, mechanism, stage)
        if len(objective.calls) == number:
            raise KeyboardInterrupt
        return returned

    return objective, call


def test_a_trial_that_was_interrupted_is_finished_with_its_own_candidate_and_noise(tmp_path):
    objective, call = interrupted_at(2)
    search = search_of(call, ledger=tmp_path, **TRAIN)
    search.run(at(0.1))
    with pytest.raises(KeyboardInterrupt):
        search.run(at(0.2, batch=2))
    assert (len(search.results), search.left) == (1, 1)
    with pytest.raises(ParameterError, match=r"trial 2 was begun with .*'learning_rate': 0.2.* and must be finished first: call run\(\)"):
        search.run(at(0.3))
    with pytest.raises(ParameterError, match=r"^trial 2 was begun and must be finished first"):
        search.train()
    search.close()
    with search_of(call, ledger=tmp_path, **TRAIN) as search:
        assert [trial.candidate for trial in search.results] == [at(0.1), at(0.2, batch=2)]
        assert search.left == 1
    first, second = objective.calls[1:]
    assert first == second


def test_a_trial_that_was_interrupted_can_be_finished_in_the_same_process():
    for finish in ({}, at(0.2)):
        objective, call = interrupted_at(1)
        with search_of(call, **TRAIN) as search:
            with pytest.raises(KeyboardInterrupt):
                search.run(at(0.2))
            assert search.run(*([finish] if finish else [])).candidate == at(0.2)
        assert objective.calls[0] == objective.calls[1]


def test_a_final_training_that_was_interrupted_keeps_its_candidate(tmp_path):
    objective, call = interrupted_at(2)
    search = search_of(call, ledger=tmp_path, **TRAIN)
    search.run(at(0.1))
    with pytest.raises(KeyboardInterrupt):
        search.train(at(0.2))
    search.close()
    with search_of(call, ledger=tmp_path, **TRAIN) as search:
        assert search.left == 0
        with pytest.raises(ParameterError, match="the final training was begun: call train"):
            search.run(at(0.3))
        with pytest.raises(ParameterError, match=r"the final training was begun with .*0.2.*: call train\(\) without a candidate"):
            search.train(at(0.3))
        release = search.train()
    assert release.trained_with == at(0.2)
    assert objective.calls[1] == objective.calls[2]


# -- resuming -----------------------------------------------------------------------------------------------------------------------


def test_a_search_is_resumed_on_the_same_data_alone(tmp_path):
    objective = Objective()
    with search_of(objective, ledger=tmp_path, **TRAIN) as search:
        search.run(at(0.1))
    with pytest.raises(LedgerError, match="the data or the objective has changed since it started"):
        search_of(objective, ledger=tmp_path, **TRAIN, data=DATA + 1)
    with pytest.raises(LedgerError, match="it was started without `data`"):
        search_of(objective, ledger=tmp_path, **TRAIN, data=None)
    with pytest.raises(LedgerError, match="its certificate states another budget"):
        search_of(objective, ledger=tmp_path, **TRAIN, epsilon=1.9)
    with search_of(objective, ledger=tmp_path, **TRAIN) as search:
        assert search.left == 2


def test_another_number_of_trials_is_another_plan(tmp_path):
    with search_of(ledger=tmp_path, **TRAIN) as search:
        search.run(at(0.1))
    with search_of(ledger=tmp_path, **TRAIN, visible=4) as search:
        assert search.left == 4


def test_only_one_process_at_a_time_runs_a_search(tmp_path):
    with search_of(ledger=tmp_path, **TRAIN), pytest.raises(LedgerError):
        search_of(ledger=tmp_path, **TRAIN)


def test_the_certificate_is_issued_before_the_data_is_touched(monkeypatch):
    def refused(*_, **__):
        raise ParameterError("over the budget")

    monkeypatch.setattr("privselect.tuning.tuning_run.certify", refused)
    monkeypatch.setattr("privselect.tuning.tuning_run.fingerprint", None)  # which reads the data
    with pytest.raises(ParameterError, match="over the budget"):
        search_of(**TRAIN)


def test_a_release_folder_shows_all_trials(tmp_path):
    with search_of(**TRAIN, out=tmp_path / "out", space=SPACE) as search:
        search.run(at(0.5, batch=2))
        search.run(at(0.1, batch=1))
        release = search.train()
    told = json.loads((tmp_path / "out" / "release.json").read_text())
    assert told["trials"] == [{"candidate": trial.candidate, "score": trial.score} for trial in search.results]
    assert told["trained_with"] == release.trained_with == {"learning_rate": 0.1, "batch": 1}
    plan = json.loads((tmp_path / "out" / "plan.json").read_text())
    assert plan["visible"] == 3
    assert "count" not in plan
    assert plan["space"] == {"chosen from": ps.Space(SPACE).as_dict()}
    with np.load(tmp_path / "out" / "model.npz") as arrays:
        assert arrays["weights"].tolist() == release.artifact["weights"].tolist()


def test_the_notes_say_what_is_visible():
    with search_of(**TRAIN) as search:
        notes = " ".join(search.certificate.run.notes)
    for said in ("3 search trials were fixed in advance", "is shown as failed", "counts once", "duration of each trial is visible"):
        assert said in notes
    assert "K" not in notes.split()
    assert "fallback" not in notes


# -- candidates -----------------------------------------------------------------------------------------------------------------------


def test_a_candidate_outside_the_space_is_refused_and_costs_nothing():
    with search_of(space=SPACE, **TRAIN) as search:
        with pytest.raises(ParameterError, match=r"`learning_rate` of the space must be in \[0.001, 1.0\], got 2"):
            search.run(at(2, batch=1))
        with pytest.raises(ParameterError, match="has no value for 'batch'"):
            search.run(at(0.1))
        assert search.left == 3
        assert search.run(search.draw()).candidate["batch"] in {1, 2}


def test_numbers_of_numpy_and_lists_are_taken_as_a_space_draws_them(tmp_path):
    seen = []

    def objective(candidate, *_):
        seen.append(candidate)
        return 1.0, {}

    with search_of(objective, ledger=tmp_path) as search:
        search.run({"layers": [64, 32], "rate": np.float32(0.5), "steps": np.int64(3)})
    with search_of(objective, ledger=tmp_path) as search:
        assert search.results[0].candidate == seen[0] == {"layers": (64, 32), "rate": 0.5, "steps": 3}
        assert type(seen[0]["steps"]) is int


def test_each_candidate_is_checked_against_the_mechanism():
    def mechanism_of(candidate):
        return ps.DPSGD(noise_multiplier=3, sampling_probability=0.01 * candidate["batch"], steps=60)

    told = []

    def objective(_candidate, _data, _randomness, mechanism):
        told.append(mechanism)
        return 1.0, {}

    with search_of(objective, mechanism_of=mechanism_of, final=FINAL) as search:
        search.run(at(0.1, batch=0.5))
        with pytest.raises(ParameterError, match="a candidate of the space runs a mechanism that may leak more than the declared"):
            search.run(at(0.1, batch=2))
        assert search.left == 2
    assert told == [ps.DPSGD(noise_multiplier=3, sampling_probability=0.005, steps=60)]


def test_an_objective_that_breaks_the_plan_stops_the_trial():
    def objective(*_):
        raise PlanViolation("the trainer ran something else")

    with search_of(objective) as search:
        with pytest.raises(AbortedError, match="the trainer ran something else"):
            search.run(at(0.1))
        assert search.left == 2


def test_processes_show_what_one_process_does():
    shown = []
    for executor in ("serial", "processes"):
        with search_of(picklable, executor=executor, insecure_seed=3, **TRAIN) as search:
            search.run(at(0.1))
            shown.append((search.results, search.train().artifact["weights"].tolist()))
    assert shown[0] == shown[1]


def picklable(candidate, _data, randomness):
    return candidate["learning_rate"] + randomness.numpy().normal(), {"weights": randomness.numpy().normal(size=3)}


# -- objectives that draw their own candidate -------------------------------------------------------------------------------------------


def asking(suggest, _data, randomness):
    rate = suggest.log_uniform("rate", 1e-3, 1.0)
    kind = suggest.choice("kind", ["a", "b"])
    return rate + (kind == "b"), {"weights": np.array([randomness.numpy().normal()])}


def test_an_objective_may_draw_what_is_not_chosen():
    with search_of(asking, DefineByRunSpace("asking"), **TRAIN) as search:
        first, second = search.run({"kind": "a"}), search.run()
        assert (first.candidate["kind"], set(second.candidate)) == ("a", {"rate", "kind"})
        assert first.distributions == {"rate": {"log_uniform": [1e-3, 1.0]}, "kind": {"choice": ["a", "b"], "weights": ["1/2", "1/2"]}}
        assert first.candidate["rate"] != second.candidate["rate"]
        release = search.train()
    assert release.trained_with == release.candidate == search.best.candidate
    assert release.distributions == search.best.distributions


def test_the_final_training_draws_no_name_that_it_is_not_given():
    with search_of(asking, DefineByRunSpace("asking"), **TRAIN) as search, pytest.raises(AbortedError, match=NOT_SEARCHED):
        search.train({"kind": "a"})


# -- refusals -------------------------------------------------------------------------------------------------------------------------

REFUSED = [
    ({"visible": 0}, r"^`visible` must be an integer >= 1 and <= 1000000, got 0$"),
    ({"visible": 2.5}, r"^`visible` must be an integer"),
    ({"artifacts": True}, r"^`artifacts` must be true or false, and needs `export`, got True$"),
    ({"deadline": 5}, r"^`deadline` is not an option of a visible search\. Options are again, final_timeout, insecure_seed, ledger"),
    ({"count": "geometric(mean=3)"}, r"^`count` is not an option of a visible search"),
    ({"mechanism": lambda _: SEARCH}, r"^`mechanism` must be one mechanism that covers every candidate, because candidates may depend on"),
    ({"mechanism": None}, r"^`mechanism` is required"),
    ({"transfer": "noise"}, r"^`transfer` is the rule of a final training"),
    ({"space": 3}, r"^`space` must be a dict"),
    ({"space": DefineByRunSpace("s", [{"x": 1}])}, r"^`defaults` are for candidates that are drawn"),
    ({"synthetic": DATA}, r"^`synthetic` needs a `space`"),
    ({"score": None}, r"^`score` must state"),
]


@pytest.mark.parametrize(("given", "said"), REFUSED, ids=[next(iter(given)) + str(i) for i, (given, _) in enumerate(REFUSED)])
def test_what_makes_no_visible_search_is_refused_before_anything_is_spent(given, said, tmp_path):
    with pytest.raises(ParameterError, match=said) as caught:
        search_of(**{"ledger": tmp_path / "ledger", **given})
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "ledger").exists()


@pytest.mark.parametrize("candidate", [None, {}, [("a", 1)], {3: 1}, {"": 1}, {"a": {}}, {"a": math.nan}, 5])
def test_what_is_no_candidate_is_refused_and_costs_nothing(candidate):
    with search_of(**TRAIN) as search:
        with pytest.raises(ParameterError, match=r"^`candidate` must be a dict of hyperparameters and values"):
            search.run(candidate)
        assert search.left == 3


def test_a_plan_without_a_final_training_trains_no_candidate():
    with search_of() as search:
        search.run(at(0.1))
        with pytest.raises(ParameterError, match="`candidate` is for a final training, and the plan has none"):
            search.train(at(0.1))


def test_synthetic_data_finds_an_objective_that_cannot_run():
    def failing(*_):
        raise ValueError("canary")

    with pytest.raises(ParameterError, match="the trial on synthetic data failed with ValueError before any private data was accessed"):
        search_of(failing, SPACE, synthetic=DATA)
    with search_of(Objective(), SPACE, synthetic=DATA, **TRAIN) as search:
        assert search.left == 3
