"""A visible study: a real Optuna study chooses a fixed number of trials, all of them are shown, then one training follows."""

import contextlib
import json
import os
import signal
from collections import Counter

import numpy as np
import optuna
import pytest

import privselect as ps
from privselect.errors import AbortedError, LedgerError, ParameterError
from privselect.integrations import PrivateStudy
from privselect.integrations.optuna.objective import PLAN_NOT_READ
from privselect.integrations.optuna.unavailable import UNAVAILABLE_VISIBLE_ATTRIBUTES, UnavailableError
from privselect.tuning.suggest import OUTSIDE_RANGE

DATA = np.arange(4.0)
SETTING = {
    "visible": True,
    "mechanism": ps.Gaussian(sigma=20),
    "final": ps.Gaussian(sigma=5),
    "delta": 1e-6,
    "score": "public",
    "artifact": "model",
    "export": "arrays",
    "direction": "maximize",
    "ledger": None,
}
STATE = optuna.trial.TrialState
pytestmark = pytest.mark.usefixtures("once")


@pytest.fixture(autouse=True)
def quiet():
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.CRITICAL)
    yield
    optuna.logging.set_verbosity(before)


class PruneThird(optuna.pruners.BasePruner):
    def prune(self, _study, trial):
        return trial.number == 2


def a_study(**options):
    return PrivateStudy(**{**SETTING, **options})


class Objective:
    """Peaks at a rate of 0.1, and notes what it gets; ``stop`` interrupts a call, ``fail`` a number of the study."""

    def __init__(self, stop=None, fail=None):
        self.calls, self.stop, self.fail = [], stop, fail

    def __call__(self, trial):
        rate = trial.suggest_float("rate", 1e-3, 1, log=True)
        kind = trial.suggest_categorical("kind", ["a", "b"])
        noise = trial.randomness.numpy().normal()
        self.calls.append((trial.stage, trial.mechanism, rate, kind, noise))
        if len(self.calls) == self.stop:
            raise KeyboardInterrupt
        if trial.number == self.fail:
            raise ValueError("canary 4711")
        for step in range(3):
            trial.report(-abs(np.log(rate / 0.1)) - step, step)
            if trial.should_prune():
                raise optuna.TrialPruned
        trial.set_user_attr("model", {"rate": np.array(rate), "noise": np.array(noise)})
        trial.set_user_attr("public", 3)
        return -abs(np.log(rate / 0.1))


def run(objective=None, n_trials=6, **options):
    study = a_study(**options)
    study.optimize(objective or Objective(), n_trials=n_trials)
    return study


# -- trials and training ----------------------------------------------------------------------------------------------------------


def test_six_trials_are_shown_and_the_best_is_trained():
    objective = Objective()
    study = run(objective)
    stock = study.optuna_study
    assert isinstance(stock, optuna.Study)
    assert isinstance(stock.sampler, optuna.samplers.TPESampler)
    assert [trial.state for trial in stock.trials] == [STATE.COMPLETE] * 6
    assert [call[0] for call in objective.calls] == ["search"] * 6 + ["final"]
    assert [call[1].sigma for call in objective.calls] == [20] * 6 + [5]
    assert len({call[4] for call in objective.calls}) == 7
    assert study.best_params == stock.best_params == study.trained_params
    assert (study.best_value, study.best_trial.number) == (stock.best_value, stock.best_trial.number)
    assert study.best_trial.user_attrs["model"]["noise"] == objective.calls[-1][4]
    assert [trial.params["rate"] for trial in study.trials] == [call[2] for call in objective.calls[:6]]
    assert study.trials[0].user_attrs["public"] == 3
    assert "model" not in study.trials[0].user_attrs


def test_the_certificate_is_that_of_the_composition():
    study = run()
    assert study.certificate.plan.visible == 6
    assert study.certificate.plan.whole == ps.search_then_train(ps.Gaussian(sigma=20), None, ps.Gaussian(sigma=5), visible=6)
    assert "composition, adaptive candidates" in study.certificate.statement
    notes = " ".join(study.certificate.run.notes)
    for said in ("Optuna chose the parameters of each trial from earlier results", "a pruned trial counts in full", "6 search trials"):
        assert said in notes
    assert "discarded" not in notes
    assert study.optuna_study.user_attrs["privselect"] == study.release.public_facts()
    assert repr(study) == "PrivateStudy(direction='maximize', visible, released)"


def test_a_budget_alone_solves_for_both_noises():
    study = run(mechanism="gaussian(sigma=?)", final="gaussian(sigma=?)", final_noise=1.07, epsilon=1)
    assert study.certificate.total.upper <= 1
    alone = ps.plan("gaussian(sigma=?)", epsilon=1, delta=1e-6).value
    assert study.plan.final.sigma == pytest.approx(1.07 * alone, rel=1e-3)
    assert study.plan.visible == 6


def test_without_a_final_training_the_best_trial_is_released():
    objective = Objective()
    study = run(objective, final=None)
    assert study.release.trained_with is None
    best = max(objective.calls, key=lambda call: -abs(np.log(call[2] / 0.1)))
    assert study.release.artifact["noise"] == best[4]
    assert run(objective, final=None, artifact=None, export=None).release.artifact is None


def test_a_transfer_applies_to_the_training():
    study = run(transfer=lambda params: {**params, "rate": params["rate"] / 100})
    assert study.trained_params["rate"] == study.best_params["rate"] / 100
    assert study.release.artifact["rate"] == study.trained_params["rate"]


def test_later_trials_learn_from_earlier_ones():
    class Following(optuna.samplers.BaseSampler):
        """Half of the best rate so far."""

        def infer_relative_search_space(self, *_):
            return {}

        def sample_relative(self, *_):
            return {}

        def sample_independent(self, study, _trial, name, _distribution):
            done = study.get_trials(states=(STATE.COMPLETE,))
            return 0.8 if not done else max(done, key=lambda t: t.value).params[name] / 2

    def objective(trial):
        rate = trial.suggest_float("rate", 1e-3, 1)
        trial.set_user_attr("model", {"sigma": np.array(trial.mechanism.sigma)})
        return -rate

    study = run(objective, sampler=Following())
    assert [trial.params["rate"] for trial in study.trials] == pytest.approx([0.8 / 2**k for k in range(6)])


def test_failed_and_pruned_trials_are_shown_and_counted():
    study = run(Objective(fail=1), pruner=PruneThird())
    assert [trial.state for trial in study.trials] == [STATE.COMPLETE, STATE.FAIL, STATE.PRUNED, *[STATE.COMPLETE] * 3]
    assert study.trials[2].value == study.trials[2].intermediate_values[0]
    assert study.certificate.plan.visible == 6


def test_an_infeasible_trial_counts_as_failed():
    def objective(trial):
        trial.set_constraint("c", 1 if trial.number == 0 else -1)
        trial.set_user_attr("model", {"sigma": np.array(trial.mechanism.sigma)})
        return trial.suggest_float("x", 0, 1)

    assert [trial.state for trial in run(objective, n_trials=2).trials] == [STATE.FAIL, STATE.COMPLETE]


def test_no_reason_of_a_failure_is_shown(capfd, caplog):
    optuna.logging.set_verbosity(optuna.logging.DEBUG)
    optuna.logging.enable_propagation()
    run(Objective(fail=1))
    optuna.logging.disable_propagation()
    assert "4711" not in "".join(capfd.readouterr()) + caplog.text
    assert "the trial failed" in caplog.text


def test_if_all_trials_fail_no_training_is_made():
    def objective(trial):
        raise ValueError(trial.mechanism)

    study = a_study()
    with pytest.raises(ParameterError, match=r"^no trial has succeeded, so there is nothing to train with: test the objective"):
        study.optimize(objective, n_trials=2)
    with pytest.raises(ParameterError, match=r"or use a larger `timeout`"):
        a_study().optimize(Objective(), n_trials=2, timeout=0)


class Broken(optuna.samplers.RandomSampler):
    """Fails in its second trial, as Optuna's CmaEsSampler does without the package cmaes."""

    def __init__(self, error):
        super().__init__(seed=1)
        self.error = error

    def sample_independent(self, study, trial, name, distribution):
        if trial.number == 1:
            raise self.error
        return super().sample_independent(study, trial, name, distribution)


class BrokenPruner(optuna.pruners.BasePruner):
    def prune(self, _study, _trial):
        raise RuntimeError("password-4711")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"sampler": Broken(ModuleNotFoundError("No module named 'cmaes'"))}, "the sampler .* raised ModuleNotFoundError: No module named"),
        ({"sampler": Broken(ValueError("too few"))}, "the sampler of the Optuna study raised ValueError: too few; nothing is released"),
        ({"sampler": Broken(RuntimeError("password-4711"))}, "the sampler of the Optuna study raised RuntimeError; nothing is released"),
        ({"pruner": BrokenPruner()}, "the pruner of the Optuna study raised RuntimeError; nothing is released"),
    ],
)
def test_a_sampler_or_pruner_that_fails_ends_the_run_with_its_reason(options, said):
    objective = Objective()
    study = a_study(**options)
    with pytest.raises(AbortedError, match=said):
        study.optimize(objective, n_trials=6)
    assert len(objective.calls) == 1


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
def test_callbacks_storages_and_plots_work(tmp_path):
    storage = f"sqlite:///{tmp_path}/study.db"
    seen = []

    def callback(study, trial):
        seen.append((trial.number, trial.state))
        if len(seen) == 4:
            study.stop()

    study = a_study(storage=storage, study_name="mine")
    study.optimize(Objective(), n_trials=6, callbacks=[callback], timeout=600, gc_after_trial=True, show_progress_bar=False)
    assert seen == [(number, STATE.COMPLETE) for number in range(4)]
    assert len(optuna.load_study(study_name="mine", storage=storage).trials) == 4
    assert study.certificate.plan.visible == 6  # all were planned
    assert study.best_params == study.optuna_study.best_params
    pytest.importorskip("matplotlib")
    assert optuna.visualization.matplotlib.plot_optimization_history(study.optuna_study).get_title()


def test_enqueued_trials_come_first():
    study = a_study()
    study.enqueue_trial({"rate": 0.1, "kind": "b"}, user_attrs={"who": "me"})
    study.enqueue_trial({"rate": 0.2})
    study.enqueue_trial({"rate": 0.2}, skip_if_exists=True)
    study.optimize(Objective(), n_trials=4)
    assert [trial.params["rate"] for trial in study.trials[:3]] == [0.1, 0.2, pytest.approx(study.trials[2].params["rate"])]
    assert study.trials[2].params["rate"] != 0.2
    assert study.trials[0].user_attrs["who"] == "me"
    assert study.best_params == {"rate": 0.1, "kind": "b"}


def test_an_enqueued_value_outside_the_range_ends_the_run_before_it_is_used():
    objective = Objective()
    study = a_study()
    study.enqueue_trial({"rate": 5})
    with pytest.raises(AbortedError, match=OUTSIDE_RANGE):
        study.optimize(objective, n_trials=2)
    assert objective.calls == []


def test_an_objective_must_read_what_to_run():
    def deaf(trial):
        trial.set_user_attr("model", {})
        return trial.suggest_float("x", 0, 1)

    with pytest.raises(AbortedError, match=PLAN_NOT_READ):
        run(deaf)


def test_a_trial_sees_the_study():
    def objective(trial):
        trial.set_user_attr("model", {"sigma": np.array(trial.mechanism.sigma)})
        if trial.stage == "search":
            assert len(trial.study.trials) == trial.number + 1
            assert trial.datetime_start is not None
        else:
            assert trial.study.best_trial.number in range(3)
        return trial.suggest_int("n", 1, 4) + trial.suggest_float("x", 0, 1, step=0.25)

    study = run(objective, n_trials=3)
    assert [trial.state for trial in study.trials] == [STATE.COMPLETE] * 3
    assert study.release.distributions == {"n": {"integer": [1, 4]}, "x": {"steps": [0, 1, 0.25]}}


def test_directions_are_respected():
    def objective(trial):
        trial.set_user_attr("model", {"sigma": np.array(trial.mechanism.sigma)})
        return (trial.suggest_float("x", -1, 1)) ** 2

    study = run(objective, direction="minimize")
    assert study.best_value == min(trial.value for trial in study.trials)
    assert study.direction == optuna.study.StudyDirection.MINIMIZE


# -- kills ------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stored", [False, True], ids=["in memory", "in a storage"])
@pytest.mark.parametrize("stop", [1, 3, 6, 7], ids=["first", "third", "last", "final training"])
def test_a_search_that_was_interrupted_goes_on(tmp_path, stop, stored):
    where = {"storage": f"sqlite:///{tmp_path}/study.db", "study_name": "mine", "load_if_exists": True} if stored else {}
    objective = Objective(stop=stop)

    def again():
        study = a_study(ledger=tmp_path / "ledger", out=tmp_path / "out", **where)
        study.enqueue_trial({"rate": 0.5, "kind": "a"})
        study.enqueue_trial({"rate": 0.05, "kind": "b"})
        study.optimize(objective, n_trials=6, data=DATA)
        return study

    with pytest.raises(KeyboardInterrupt):
        again()
    study = again()
    calls = objective.calls
    assert calls[stop - 1] == calls[stop]  # the same parameters, the same noise
    assert len(calls) == 8
    assert len({call[4] for call in calls}) == 7
    done = [trial for trial in study.trials if trial.state == STATE.COMPLETE]
    assert len(done) == 6
    assert {trial.params["rate"] for trial in done} == {call[2] for call in calls if call[0] == "search"}
    assert [call[2] for call in calls if call[0] == "search"][:1] == [0.5]
    assert 0.05 in {trial.params["rate"] for trial in done}
    assert study.best_params == study.trained_params
    assert study.best_value == max(trial.value for trial in done)
    told = json.loads((tmp_path / "out" / "release.json").read_text())
    assert len(told["trials"]) == 6
    with pytest.raises(LedgerError, match="was already run and released"):
        again()


class Killing(Objective):
    """Kills its own process in one call; the calls are kept in a file."""

    def __init__(self, folder, kill):
        super().__init__()
        self.folder, self.kill = folder, kill

    def __call__(self, trial):
        value = super().__call__(trial)
        with (self.folder / "calls").open("a") as file:
            file.write(json.dumps([trial.stage, *self.calls[-1][2:]]) + "\n")
        if len((self.folder / "calls").read_text().splitlines()) == self.kill:
            os.kill(os.getpid(), signal.SIGKILL)
        return value


@pytest.mark.parametrize("kill", [2, 4])
def test_a_process_that_was_killed_leaves_no_running_trial_in_a_storage(tmp_path, kill):
    def again():
        where = {"storage": f"sqlite:///{tmp_path}/study.db", "study_name": "mine", "load_if_exists": True}
        study = a_study(ledger=tmp_path / "ledger", **where)
        study.optimize(Killing(tmp_path, kill), n_trials=3, data=DATA)
        return study

    process = os.fork()
    if process == 0:
        with contextlib.suppress(BaseException):
            again()
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == -signal.SIGKILL
    study = again()
    calls = [json.loads(line) for line in (tmp_path / "calls").read_text().splitlines()]
    assert calls[kill - 1] == calls[kill]
    assert len(calls) == 5
    states = Counter(trial.state for trial in study.trials)
    assert states == {STATE.COMPLETE: 3} | ({STATE.FAIL: 1} if kill == 2 else {})
    done = {trial.params["rate"] for trial in study.trials if trial.state == STATE.COMPLETE}
    assert done == {rate for stage, rate, *_ in calls if stage == "search"}


def test_failed_and_pruned_trials_are_known_after_a_restart(tmp_path):
    objective = Objective(stop=5, fail=1)
    study = a_study(ledger=tmp_path, pruner=PruneThird())
    with pytest.raises(KeyboardInterrupt):
        study.optimize(objective, n_trials=6, data=DATA)
    before = study.trials
    study = a_study(ledger=tmp_path, pruner=PruneThird())
    study.optimize(objective, n_trials=6, data=DATA)
    assert [trial.state for trial in study.trials] == [STATE.COMPLETE, STATE.FAIL, STATE.PRUNED, *[STATE.COMPLETE] * 3]
    for old, new in zip(before[:4], study.trials[:4], strict=True):
        assert (old.params, old.value, old.distributions, old.intermediate_values) == (
            new.params,
            new.value,
            new.distributions,
            new.intermediate_values,
        )
    assert len(objective.calls) == 8


def test_what_was_suggested_before_a_kill_is_kept_and_the_rest_is_drawn(tmp_path):
    calls = []

    def objective(trial):
        first = trial.suggest_float("first", 0, 1)
        calls.append(first)
        if len(calls) == 1:
            raise KeyboardInterrupt
        trial.set_user_attr("model", {"sigma": np.array(trial.mechanism.sigma)})
        return first + trial.suggest_float("second", 0, 1)

    with pytest.raises(KeyboardInterrupt):
        a_study(ledger=tmp_path).optimize(objective, n_trials=2, data=DATA)
    study = a_study(ledger=tmp_path)
    study.optimize(objective, n_trials=2, data=DATA)
    assert calls[0] == calls[1]
    assert study.trials[0].params["first"] == calls[0]
    assert [trial.state for trial in study.trials] == [STATE.COMPLETE] * 2


def test_a_search_without_a_ledger_cannot_go_on():
    study = a_study()
    with pytest.raises(KeyboardInterrupt):
        study.optimize(Objective(stop=2), n_trials=3, data=DATA)
    with pytest.raises(ParameterError, match="cannot be continued, because it keeps no ledger"):
        study.optimize(Objective(), n_trials=3, data=DATA)


def test_a_search_goes_on_on_the_same_data_alone(tmp_path):
    objective = Objective(stop=2)
    with pytest.raises(KeyboardInterrupt):
        a_study(ledger=tmp_path).optimize(objective, n_trials=3, data=DATA)
    with pytest.raises(LedgerError, match="the data or the objective has changed"):
        a_study(ledger=tmp_path).optimize(objective, n_trials=3, data=DATA + 1)


# -- refusals ---------------------------------------------------------------------------------------------------------------------

REFUSED = [
    ({"count": "geometric(mean=3)"}, "`count` is not available in a private study, got a str: a visible search has a fixed number"),
    ({"weight": 0.5}, "`weight` is not available in a private study, got 0.5"),
    ({"fallback": {"w": 0}}, "`fallback` is not available"),
    ({"deadline": 5}, "`deadline` is not available in a private study, got 5: use `timeout` of `optimize`"),
    ({"executor": "ray"}, "`executor` is not available"),
    ({"directions": ["minimize", "maximize"]}, "`directions` is not available"),
    ({"colour": "red"}, "`colour` is not an option of a visible search"),
]


@pytest.mark.parametrize(("options", "said"), REFUSED, ids=[next(iter(options)) for options, _ in REFUSED])
def test_what_a_visible_study_does_not_have_is_refused(options, said):
    with pytest.raises(ParameterError, match=said) as caught:
        run(**options)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("n_trials", [None, 0, 2.5, "six"])
def test_the_number_of_trials_must_be_said(n_trials):
    with pytest.raises(ParameterError, match="`n_trials` must be an integer >= 1"):
        run(n_trials=n_trials)


def test_trials_run_one_after_the_other():
    with pytest.raises(ParameterError, match="`n_jobs` must be 1 in a visible search"):
        a_study().optimize(Objective(), n_trials=2, n_jobs=2)
    with pytest.raises(ParameterError, match="`trials` is not an option of optimize; its options are data, n_trials, timeout"):
        a_study().optimize(Objective(), trials=2)


@pytest.mark.parametrize("name", UNAVAILABLE_VISIBLE_ATTRIBUTES)
def test_trials_cannot_be_run_past_the_ledger(name):
    with pytest.raises(UnavailableError, match="every trial of a visible search is run and counted by optimize"):
        getattr(a_study(), name)


def test_every_public_attribute_of_a_stock_study_is_there_or_has_its_reason():
    study = a_study()
    names = {name for name in dir(optuna.Study) if not name.startswith("_")}
    results = {"best_trial", "best_params", "best_value", *UNAVAILABLE_VISIBLE_ATTRIBUTES}
    assert all(hasattr(study, name) for name in names - results)
    with pytest.raises(AttributeError, match="a private study has no attribute 'nothing'"):
        _ = study.nothing
