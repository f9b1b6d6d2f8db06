"""A private study: it runs Optuna objectives, releases only the winner, and rejects what would break the guarantee, with the reason."""

import json
import subprocess
import sys

import numpy as np
import optuna
import pytest

import privselect as ps
from privselect.errors import AbortedError, LedgerError, ParameterError
from privselect.integrations import PrivateStudy
from privselect.integrations.optuna.objective import INVALID_DISTRIBUTION, SEVERAL_VALUES, OptunaObjective
from privselect.integrations.optuna.trial import PrivateTrial
from privselect.integrations.optuna.unavailable import (
    UNAVAILABLE_IN_TRIAL,
    UNAVAILABLE_OPTIMIZE_ARGUMENTS,
    UNAVAILABLE_STUDY_ATTRIBUTES,
    UnavailableError,
)
from privselect.tuning.told import Told
from privselect.tuning.trial import TrialSetup, run_trial

SETTING = {"count": ps.Geometric(mean=12), "mechanism": ps.Gaussian(sigma=4), "delta": 1e-6, "score": "public"}


def a_study(**options):
    return PrivateStudy(**{**SETTING, "ledger": None, "insecure_seed": 7, **options})


def parabola(trial):
    x = trial.suggest_float("x", -10, 10)
    return (x - 2) ** 2


def run(objective, **options):
    study = a_study(**options)
    study.optimize(objective)
    return study


@pytest.fixture(scope="module")
def released():
    return run(parabola)


# -- what comes out ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("direction", "seed"), [("minimize", 0), ("maximize", 1)])
def test_the_release_is_that_of_a_plain_run_with_the_same_secret(direction, seed):
    sign = 1 if direction == "maximize" else -1

    def value(candidate, randomness):
        noise = randomness.numpy().normal()
        return np.log10(candidate["rate"]) + candidate["depth"] * noise + {"a": 0, "b": 1}[candidate["kind"]]

    def plain(candidate, _data, randomness):
        return sign * value(candidate, randomness), {"rate": np.array(candidate["rate"])}

    def stock(trial):
        rate = trial.suggest_float("rate", 1e-5, 1e-1, log=True)
        asked = {"rate": rate, "depth": trial.suggest_int("depth", 1, 9), "kind": trial.suggest_categorical("kind", ["a", "b"])}
        trial.set_user_attr("model", {"rate": np.array(rate)})
        return value({**asked, "clip": trial.suggest_float("clip", 0, 1)}, trial.randomness)

    laws = {"rate": ps.LogUniform(1e-5, 1e-1), "depth": ps.Integer(1, 9), "kind": ps.Choice(["a", "b"]), "clip": ps.Uniform(0, 1)}
    expected = ps.tune(plain, laws, **SETTING, export="arrays", executor="serial", ledger=None, insecure_seed=seed)
    study = run(stock, direction=direction, artifact="model", export="arrays", insecure_seed=seed)
    assert study.best_params == expected.candidate
    assert study.best_value == sign * expected.score
    assert study.best_trial.user_attrs["model"] == expected.artifact
    assert study.release.distributions == {name: law.as_dict() for name, law in laws.items()}
    assert study.certificate.total == expected.certificate.total


def test_the_plan_names_the_objective_and_the_direction(tmp_path):
    run(parabola, out=tmp_path / "released")
    plan = json.loads((tmp_path / "released" / "plan.json").read_text())
    assert plan["objective"] == f"privselect:optuna_objective({__name__}:parabola)"
    assert plan["space"] == {"suggested": f"{__name__}:parabola, minimize"}
    assert json.loads((tmp_path / "released" / "release.json").read_text())["distributions"] == {"x": {"uniform": [-10.0, 10.0]}}


def test_the_plan_names_what_is_released(tmp_path):
    def objective(trial):
        trial.set_user_attr("model", {"w": np.zeros(2)})
        return trial.suggest_float("x", 0, 1)

    run(objective, artifact="model", export="arrays", out=tmp_path / "released")
    plan = json.loads((tmp_path / "released" / "plan.json").read_text())
    assert plan["space"]["suggested"].endswith("objective, minimize, model")


def test_the_best_trial_is_a_frozen_one_without_a_trace_of_the_others(released):
    study, best = released, released.best_trial
    assert isinstance(best, optuna.trial.FrozenTrial)
    assert (best.number, best.state) == (0, optuna.trial.TrialState.COMPLETE)
    assert best.value == study.best_value == parabola(best) >= 0
    assert best.duration.total_seconds() == 0  # it begins and ends with the certificate
    assert best.datetime_start.isoformat() in study.certificate.issued_at
    assert (best.user_attrs, best.system_attrs, best.intermediate_values) == ({}, {}, {})
    assert best.distributions == {"x": optuna.distributions.FloatDistribution(-10, 10)}
    assert study.direction == optuna.study.StudyDirection.MINIMIZE
    assert study.release.candidate == study.best_params
    assert study.certificate.total.upper > ps.Gaussian(sigma=4).epsilon_at(delta=1e-6).upper


def test_directions_are_taken_as_optuna_takes_them(released):
    assert run(parabola, direction=optuna.study.StudyDirection.MAXIMIZE).best_value > released.best_value
    with pytest.raises(ParameterError, match="`direction` must be minimize or maximize, got 'up'"):
        a_study(direction="up")


def test_a_stock_study_can_be_made_of_the_release(released, capfd):
    optuna.logging.enable_default_handler()
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.DEBUG)
    try:
        stock = released.to_optuna_study()
    finally:
        optuna.logging.set_verbosity(before)
    assert len(stock.trials) == 1
    assert stock.best_params == released.best_params
    assert stock.best_value == released.best_value
    assert stock.trials[0].datetime_start == stock.trials[0].datetime_complete == released.best_trial.datetime_start
    assert stock.user_attrs["privselect"] == released.release.public_facts()
    assert capfd.readouterr() == ("", "")


def test_the_epsilon_of_a_plan_is_a_limit():
    with pytest.raises(ParameterError, match="epsilon"):
        run(parabola, epsilon=0.5)


# -- failures ------------------------------------------------------------------------------------------------------------------


FAILING = {
    "an error": lambda trial: 1 / trial.number,
    "pruned": lambda _: (_ for _ in ()).throw(optuna.TrialPruned),
    "none": lambda _: None,
    "no number": lambda _: float("nan"),
    "text": lambda _: "best",
    "infeasible": lambda trial: trial.set_constraint("c", 1) or 1.0,
    "a constraint that is no number": lambda trial: trial.set_constraint("c", float("nan")) or 1.0,
    "an attribute that is not there": lambda trial: trial.nothing,
}


def one_trial(objective):
    """Run one trial like a worker."""
    told = Told("search", ps.Gaussian(sigma=4), ("mechanism", "stage"))
    setup = TrialSetup(OptunaObjective(objective, -1), None, define_by_run=True, told=told)
    return run_trial(setup, {"stream": bytes(32).hex()}, bytes(32))


@pytest.mark.parametrize("kind", FAILING)
def test_a_trial_fails_where_optunas_would(kind):
    assert one_trial(FAILING[kind]) is None
    assert one_trial(parabola).score <= 0


@pytest.mark.parametrize("kind", ["pruned", "infeasible"])
def test_trials_that_all_fail_release_the_fallback_and_have_no_best_trial(kind):
    study = run(FAILING[kind], artifact="model", export="arrays", fallback={"w": np.zeros(2)})
    assert study.release.is_fallback
    assert study.release.artifact["w"].tolist() == [0, 0]
    for name in ("best_trial", "best_params", "best_value"):
        with pytest.raises(ValueError, match="none was drawn or all failed"):
            getattr(study, name)
    assert study.to_optuna_study().trials == []


def test_a_trial_that_fails_loses_to_any_that_does_not():
    def objective(trial):
        x = trial.suggest_float("x", -1, 1)
        if x < 0:
            raise optuna.TrialPruned
        trial.set_constraint("most", x - 0.5)
        return [x]  # which Optuna takes, too

    best = run(objective, direction="maximize", count=ps.Geometric(mean=100)).best_value
    assert 0.3 < best <= 0.5


VIOLATIONS = {
    "several values": (lambda _: (1.0, 2.0), SEVERAL_VALUES),
    "no value": (lambda _: [], SEVERAL_VALUES),
    "a bad range": (lambda trial: trial.suggest_float("x", 4711, 0), INVALID_DISTRIBUTION),
    "two laws": (lambda trial: trial.suggest_int("x", 0, 4711) + trial.suggest_int("x", 0, 1), INVALID_DISTRIBUTION),
    "the study": (lambda trial: len(trial.study.trials), "`study` is not available in a private trial: it gives access to other trials"),
    "the storage": (lambda trial: trial.storage.get_n_trials(), "`storage` is not available in a private trial"),
}


@pytest.mark.parametrize("kind", VIOLATIONS)
def test_an_objective_that_cannot_be_run_so_is_a_breach_in_a_fixed_sentence(kind):
    objective, sentence = VIOLATIONS[kind]
    told = one_trial(objective).message
    assert told.startswith(sentence)
    assert "4711" not in told


@pytest.mark.parametrize("kind", ["several values", "two laws"])
def test_a_breach_gives_the_run_up(kind):
    objective, sentence = VIOLATIONS[kind]
    study = a_study()
    with pytest.raises(AbortedError) as raised:
        study.optimize(objective)
    assert str(raised.value) == f"{sentence}; nothing is released"
    with pytest.raises(ValueError, match="nothing is released yet"):
        _ = study.release


def test_every_attribute_of_a_stock_trial_is_there_or_has_its_reason(released):
    stock = released.to_optuna_study().ask()
    ours = {*dir(PrivateTrial), *UNAVAILABLE_IN_TRIAL, "relative_params"}
    assert {name for name in (*dir(stock), *vars(stock)) if not name.startswith("_")} <= ours


def test_an_objective_may_ask_whether_there_is_a_study():
    assert run(lambda trial: trial.suggest_float("x", 0, 1) + hasattr(trial, "study")).best_value < 1


# -- one trial -----------------------------------------------------------------------------------------------------------------


def test_a_trial_has_all_that_optuna_gives_an_objective():
    seen = []

    def objective(trial):
        trial.suggest_float("x", 0, 1)
        trial.report(0.5, 1)
        trial.set_user_attr("a", 1)
        trial.set_system_attr("b", 2)
        trial.set_constraint("c", -1)
        seen.append((trial.number, trial.should_prune(), trial.user_attrs, trial.system_attrs, trial.constraints, trial.relative_params))
        seen.append((trial.datetime_start, list(trial.params), list(trial.distributions), isinstance(trial, optuna.trial.BaseTrial)))
        return 1.0

    run(objective)
    assert seen[0::2] == [(0, False, {"a": 1}, {"b": 2}, {"c": -1}, {})] * (len(seen) // 2)
    assert seen[1::2] == [(None, ["x"], ["x"], True)] * (len(seen) // 2)


def test_generators_of_the_process_are_each_trials_own_and_are_given_back():
    import random

    def objective(trial):
        told.append((random.random(), np.random.random(), trial.randomness.numpy().random()))  # noqa: NPY002, S311
        return trial.suggest_float("x", 0, 1)

    random.seed(1)
    np.random.seed(1)  # noqa: NPY002
    before = random.getstate(), np.random.get_state()[1].tolist()  # noqa: NPY002
    runs = []
    for _ in range(2):
        told = []
        run(objective)
        runs.append(told)
    assert runs[0] == runs[1]
    assert len({number for row in runs[0] for number in row}) == 3 * len(runs[0]) > 3
    assert before == (random.getstate(), np.random.get_state()[1].tolist())  # noqa: NPY002


@pytest.mark.opacus  # which torch comes with
def test_torch_must_be_there_before_its_generator_is_seeded():
    script = """
import sys
import privselect as ps
from privselect.integrations import PrivateStudy
def objective(trial):
    import torch
    return float(torch.rand(()))
if sys.argv[1] == "before":
    import torch
study = PrivateStudy(count=ps.Geometric(mean=2), mechanism=ps.Gaussian(sigma=4), delta=1e-6, score="public", ledger=None, insecure_seed=1)
try:
    study.optimize(objective)
    print(study.best_value)
except ps.errors.AbortedError as error:
    print(error)
"""
    said = {}
    for when in ("inside", "before"):
        result = subprocess.run([sys.executable, "-c", script, when], capture_output=True, text=True, check=False)
        said[when] = result.stdout
    assert said["inside"].startswith("torch was first imported inside a trial")
    assert 0 <= float(said["before"]) < 1


def test_what_the_objective_says_of_itself_is_held_against_the_mechanism():
    class Objective:
        mechanism = ps.Gaussian(sigma=2)
        notes = ("a word of the trainer",)

        def __call__(self, trial):
            return trial.suggest_float("x", 0, 1)

    with pytest.raises(ParameterError, match="`mechanism` must cover what the objective states that it runs"):
        run(Objective())
    study = run(Objective(), mechanism=None)
    assert study.certificate.plan.mechanism == "gaussian(sigma=2)"
    assert "a word of the trainer" in study.certificate.run.notes
    assert any("a fixed seed inside the objective" in note for note in study.certificate.run.notes)
    assert any("the objective defines the search space while it runs" in note for note in study.certificate.run.notes)


def test_the_mechanism_of_each_candidate_is_checked():
    def noise(trial):
        return trial.suggest_float("sigma", 3, 5)

    def mechanism_of(candidate):
        return ps.Gaussian(sigma=candidate["sigma"])

    with pytest.raises(AbortedError, match="a candidate of the space runs a mechanism that"):
        run(noise, mechanism_of=mechanism_of)
    assert 3 <= run(noise, mechanism_of=mechanism_of, mechanism=ps.Gaussian(sigma=3)).best_value <= 5


# -- runs ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_processes_release_what_one_process_does():
    shift = np.arange(3.0)

    def objective(trial):
        trial.set_user_attr("model", {"shift": shift})
        return trial.suggest_float("x", 0, 1) + np.random.normal() + shift.sum()  # noqa: NPY002

    studies = []
    for n_jobs in (1, 2, -1):
        study = a_study(artifact="model", export="arrays")
        study.optimize(objective, n_jobs=n_jobs)
        studies.append((study.best_params, study.best_value, study.release.artifact["shift"].tolist()))
    assert studies[0] == studies[1] == studies[2]


def interrupted(records):
    """An objective that holds its records and is interrupted in its third trial."""
    calls = []

    def objective(trial):
        calls.append(trial)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return trial.suggest_float("x", 0, 1) + records.sum()

    return objective


def test_a_run_is_resumed_on_the_same_data_alone_and_is_made_once(tmp_path):
    records = np.arange(4.0)
    study = a_study(ledger=tmp_path / "ledger", count=ps.Geometric(mean=20))
    objective = interrupted(records)
    with pytest.raises(KeyboardInterrupt):
        study.optimize(objective, data=records)
    with pytest.raises(LedgerError, match="the data or the objective has changed since it started"):
        study.optimize(objective, data=records + 1)
    with pytest.raises(LedgerError, match="the data or the objective has changed since it started"):
        study.optimize(interrupted(records + 1), data=records)  # the same name, another closure
    with pytest.raises(LedgerError, match="was started without `data`"):
        study.optimize(objective)
    study.optimize(objective, data=records)
    whole = a_study(count=ps.Geometric(mean=20))
    whole.optimize(lambda trial: trial.suggest_float("x", 0, 1) + records.sum())
    assert (study.best_params, study.best_value) == (whole.best_params, whole.best_value)
    with pytest.raises(ParameterError, match="a private study runs once"):
        study.optimize(objective, data=records)
    with pytest.raises(LedgerError, match="was already run and released"):
        a_study(ledger=tmp_path / "ledger", count=ps.Geometric(mean=20)).optimize(objective, data=records)


# -- refusals ------------------------------------------------------------------------------------------------------------------


REFUSED = {
    "sampler": (optuna.samplers.TPESampler(), "candidates must be drawn independently of all scores"),
    "pruner": (optuna.pruners.MedianPruner(), "in a way that the guarantee does not cover"),
    "storage": ("mysql://me:4711@host/db", "a storage keeps every trial"),
    "study_name": ("mine", "a storage keeps every trial"),
    "load_if_exists": (True, "a storage keeps every trial"),
    "directions": (["minimize", "maximize"], "several objectives have no single winner"),
    "synthetic": (np.ones(3), "synthetic data would not reach it"),
    "workers": (2, "`n_jobs` of `optimize`"),
    "data": (["4711"], "pass it to `optimize`"),
    "artifact": ("model", "must be given together"),
    "export": ("arrays", "must be given together"),
    "colour": ("red", "`colour` is not an option of tune"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_an_argument_that_would_break_the_guarantee_is_refused_with_the_reason(name):
    value, reason = REFUSED[name]
    with pytest.raises(ParameterError) as raised:
        run(parabola, **{name: value})
    assert reason in str(raised.value)
    assert f"`{name}`" in str(raised.value)
    assert "4711" not in str(raised.value)  # neither records nor passwords
    assert "\n" not in str(raised.value)


ASKED = {"n_trials": 100, "timeout": 60, "catch": (ValueError,), "callbacks": [print], "gc_after_trial": True, "show_progress_bar": True}


@pytest.mark.parametrize("name", UNAVAILABLE_OPTIMIZE_ARGUMENTS)
def test_arguments_of_optimize_are_refused_with_the_reason(name):
    with pytest.raises(ParameterError, match=rf"`{name}` is not available in a private study, got .*: \w"):
        a_study().optimize(parabola, **{name: ASKED[name]})


def test_arguments_of_optimize_that_ask_for_nothing_pass():
    study = a_study(sampler=None, pruner=None, storage=None, load_if_exists=False, directions=None)
    study.optimize(parabola, None, timeout=None, catch=(), callbacks=None, gc_after_trial=False, show_progress_bar=False)
    assert study.best_value >= 0


def test_the_number_of_trials_is_refused_by_position_too():
    with pytest.raises(ParameterError, match=r"`n_trials` is not available .* got 100: the number of trials K is secret and drawn from"):
        a_study().optimize(parabola, 100)
    with pytest.raises(ParameterError, match="`trials` is not an option of optimize"):
        a_study().optimize(parabola, trials=100)


@pytest.mark.parametrize(
    "score", [None, "accuracy", ps.NoisyCount(correct=max, sigma=4, holdout=np.ones(3))], ids=["none", "text", "count"]
)
def test_the_kind_of_score_must_be_said(score):
    with pytest.raises(ParameterError, match="`score` must be 'public'"):
        a_study(score=score)


@pytest.mark.parametrize("n_jobs", [0, -2, 1.5, "all"])
def test_a_number_of_jobs_that_is_none_is_refused(n_jobs):
    with pytest.raises(ParameterError, match="`n_jobs` must be an integer"):
        a_study().optimize(parabola, n_jobs=n_jobs)


@pytest.mark.parametrize("name", UNAVAILABLE_STUDY_ATTRIBUTES)
def test_what_would_show_the_losers_or_steer_the_draws_is_not_there(name, released):
    with pytest.raises(UnavailableError, match=rf"`{name}` is not available in a private study: \w"):
        getattr(released, name)
    assert not hasattr(released, name)


def test_every_public_attribute_of_a_stock_study_is_there_or_has_its_reason():
    ours = set(dir(PrivateStudy)) | set(UNAVAILABLE_STUDY_ATTRIBUTES)
    assert {name for name in dir(optuna.Study) if not name.startswith("_")} <= ours


def test_a_stock_study_is_refused(released):
    stock = released.to_optuna_study()
    with pytest.raises(ParameterError, match="a study of Optuna cannot be made private afterwards"):
        PrivateStudy(stock, **SETTING)
    with pytest.raises(ParameterError, match="`objective` must be a function of Optuna's trial"):
        a_study().optimize(stock)


def test_without_optuna_a_study_says_what_to_install():
    script = (
        "import sys; sys.modules['optuna'] = None; import privselect as ps; from privselect.integrations import PrivateStudy; "
        "PrivateStudy(count=ps.Geometric(mean=2), mechanism=ps.Gaussian(sigma=4), delta=1e-6, score='public')"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert result.stderr.splitlines()[-1].endswith("needs Optuna; install it with: pip install 'privselect[optuna]'")


# -- an objective of Optuna's own documentation ------------------------------------------------------------------------------------


def test_the_objective_of_optunas_documentation_runs():
    """A space with branches: the classifier and its parameters. It trains on public data without noise, so nothing is private here."""
    from sklearn.datasets import load_iris
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.model_selection import cross_val_score
    from sklearn.svm import SVC

    features, labels = load_iris(return_X_y=True)

    def objective(trial):
        name = trial.suggest_categorical("classifier", ["SVC", "RandomForest"])
        if name == "SVC":
            classifier = SVC(C=trial.suggest_float("svc_c", 1e-10, 1e10, log=True), gamma="auto")
        else:
            depth = trial.suggest_int("rf_max_depth", 2, 32, log=True)
            classifier = RandomForestClassifier(max_depth=depth, n_estimators=5)
        return cross_val_score(classifier, features, labels, n_jobs=1, cv=3).mean()

    study = run(objective, direction="maximize")
    again = run(objective, direction="maximize")
    assert study.best_value > 0.9
    assert (study.best_value, study.best_params) == (again.best_value, again.best_params)  # the forest draws from numpy's generator
    branches = {"SVC": {"classifier", "svc_c"}, "RandomForest": {"classifier", "rf_max_depth"}}
    assert set(study.best_params) == branches[study.best_params["classifier"]]
