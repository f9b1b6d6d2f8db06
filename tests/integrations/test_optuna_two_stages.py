"""A private study with a budget, known good parameters and a final training."""

import functools
import json

import numpy as np
import optuna
import pytest

import privselect as ps
from privselect.errors import AbortedError, ParameterError
from privselect.integrations import PrivateStudy
from privselect.integrations.optuna.objective import PLAN_NOT_READ, OptunaObjective, reads_plan
from privselect.integrations.optuna.trial import PrivateTrial
from privselect.tuning.randomness import Randomness, Stream
from privselect.tuning.space import DefineByRunSpace
from privselect.tuning.suggest import NOT_SEARCHED, OUTSIDE_RANGE, Suggest

SETTING = {
    "mechanism": ps.Gaussian(sigma=20),
    "final": ps.Gaussian(sigma=5),
    "count": ps.Geometric(mean=6),
    "delta": 1e-6,
    "score": "public",
    "artifact": "model",
    "export": "arrays",
    "direction": "maximize",
    "ledger": None,
    "insecure_seed": 7,
}


def a_study(**options):
    return PrivateStudy(**{**SETTING, **options})


def trainer(trial):
    """Peaks at a rate of 0.1; the model says what was run."""
    rate = trial.suggest_float("rate", 1e-3, 1, log=True)
    kind = trial.suggest_categorical("kind", [["a"], ["b", "c"]])
    trial.set_user_attr("model", {"sigma": np.array(trial.mechanism.sigma), "rate": np.array(rate), "kind": np.array(len(kind))})
    return -abs(np.log(rate / 0.1))


def run(objective=trainer, **options):
    study = a_study(**options)
    study.optimize(objective)
    return study


# -- a final training -------------------------------------------------------------------------------------------------------------


def test_the_winners_parameters_are_trained_once_more_with_the_final_mechanism():
    study = run()
    model = study.best_trial.user_attrs["model"]
    assert model["sigma"] == 5
    assert study.trained_params == study.best_params
    assert model["rate"] == study.best_params["rate"]
    assert model["kind"] == len(study.best_params["kind"])
    assert study.best_value == -abs(np.log(study.best_params["rate"] / 0.1))
    assert study.certificate.plan.whole == ps.search_then_train(ps.Gaussian(sigma=20), ps.Geometric(mean=6), ps.Gaussian(sigma=5))
    assert study.plan.final == ps.Gaussian(sigma=5)


def test_the_search_is_that_of_a_study_without_a_final_training():
    alone = {"final": None, "artifact": None, "export": None}
    assert run().best_params == run(**alone).best_params
    assert run(**alone).trained_params is None


def test_a_transfer_changes_the_parameters_of_the_training():
    study = run(transfer=lambda params: {**params, "rate": params["rate"] / 1e6})  # outside the range of the search
    assert study.trained_params == {**study.best_params, "rate": study.best_params["rate"] / 1e6}
    assert study.release.artifact["rate"] == study.trained_params["rate"]


def test_the_value_of_the_final_training_is_ignored():
    def objective(trial):
        trainer(trial)
        trial.set_constraint("c", 1 if trial.stage == "final" else -1)
        return None if trial.stage == "final" else 1.0

    assert run(objective).release.artifact["sigma"] == 5


def test_the_artifact_of_a_search_trial_is_not_needed():
    def objective(trial):
        rate = trial.suggest_float("rate", 0, 1)
        if trial.stage == "final":
            trial.set_user_attr("model", {"rate": np.array(rate)})
        return rate

    study = run(objective)
    assert study.release.artifact["rate"] == study.best_params["rate"]


def test_a_failed_training_releases_the_fallback():
    def objective(trial):
        if trial.stage == "final":
            raise ValueError("canary 4711")
        return trial.suggest_float("x", 0, 1)

    study = run(objective, fallback={"w": np.zeros(1)})
    assert study.release.is_fallback
    with pytest.raises(ValueError, match="none was drawn or all failed"):
        _ = study.best_trial


def test_a_name_that_was_not_drawn_in_the_search_ends_the_run():
    def objective(trial):
        return trial.suggest_float(f"x of {trial.stage}", 0, 1)

    with pytest.raises(AbortedError, match=NOT_SEARCHED):
        run(objective)


# -- what the objective must read -------------------------------------------------------------------------------------------------


def deaf(trial):
    trial.set_user_attr("model", {})
    return trial.suggest_float("x", 0, 1)


def test_an_objective_that_does_not_read_what_to_run_ends_a_run_that_solves_for_it():
    with pytest.raises(AbortedError, match=PLAN_NOT_READ):
        run(deaf)
    alone = {"final": None, "artifact": None, "export": None, "mechanism": "gaussian(sigma=?)", "epsilon": 1}
    with pytest.raises(AbortedError, match=PLAN_NOT_READ):
        run(deaf, **alone)


def test_an_objective_that_states_what_it_runs_need_not_read_it():
    class Stating:
        mechanism = ps.Gaussian(sigma=20)

        def __call__(self, trial):
            return deaf(trial)

    study = run(Stating(), final=ps.Gaussian(sigma=20), mechanism=None)
    assert not study.certificate.run.mechanism_claimed


def test_a_mechanism_that_the_objective_does_not_read_is_the_users_claim():
    alone = {"final": None, "artifact": None, "export": None}
    assert run(deaf, **alone).certificate.run.mechanism_claimed
    assert not run(**alone).certificate.run.mechanism_claimed
    notes = run(**alone).certificate.run.notes
    assert any(note.startswith("the objective is told which mechanism to run") for note in notes)


sigma = ps.Gaussian(sigma=3)


def by_global(trial):
    return trial.suggest_float("x", 0, 1) + sigma.sigma


def nested(trial):
    def train():
        return trial.mechanism.sigma

    return train()


def by_stage(trial):
    return 1.0 if trial.stage == "final" else 2.0


def global_of_that_name(trial):
    return mechanism.sigma + trial.number  # noqa: F821 - only its code is read


class Called:
    def __call__(self, trial):
        return trial.mechanism.sigma


READS = {
    "an attribute": (trainer, True),
    "nothing": (deaf, False),
    "a global": (by_global, False),
    "a global of that name": (global_of_that_name, False),
    "in a nested function": (nested, True),
    "the stage": (by_stage, True),
    "a partial": (functools.partial(trainer), True),
    "a wrapped function": (functools.wraps(trainer)(lambda *given: trainer(*given, *())), True),
    "an object": (Called(), True),
    "a built-in": (print, False),
}


@pytest.mark.parametrize("kind", READS)
def test_whether_an_objective_reads_what_it_must_run(kind):
    objective, reads = READS[kind]
    assert reads_plan(objective) == reads
    assert OptunaObjective(objective, 1).mechanism_claimed is (None if reads else True)


# -- a budget ---------------------------------------------------------------------------------------------------------------------


def test_a_budget_alone_solves_for_both_noises():
    both = {"mechanism": "gaussian(sigma=?)", "final": "gaussian(sigma=?)", "split": "auto", "count": None, "epsilon": 1}
    study = run(**both)
    assert study.certificate.total.upper <= 1
    assert str(study.plan.count) == str(ps.default_count())
    assert study.release.artifact["sigma"] == study.plan.final.sigma
    assert study.plan.final.sigma == pytest.approx(1.07 * ps.plan("gaussian(sigma=?)", epsilon=1, delta=1e-6).value, rel=1e-3)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"mechanism": "gaussian(sigma=?)"}, "`epsilon` is required to solve for a number"),
        ({"mechanism": "gaussian(sigma=?)", "final": "gaussian(sigma=?)", "epsilon": 1}, "search and final training are both open"),
        ({"artifact": None, "export": None}, "`final` needs `artifact` and `export`"),
        ({"final": None, "transfer": "noise"}, "`transfer` is the rule of a final training"),
        ({"transfer": "noise"}, r"the transfer rule 'noise' needs a dpsgd\(...\) in both stages"),
        ({"subsample": 0.1}, "`subsample` is not available in a private study, got 0.1: an Optuna objective holds its data itself"),
        ({"defaults": [{"x": 1}]}, r"`defaults` is not available in a private study, got a list: use enqueue_trial"),
        ({"visible": 6}, "`visible` must be true or false, got 6; the number of trials is for `optimize`"),
        ({"weight": 0.5}, "`weight` is the probability of the defaults and needs `defaults`"),
        ({"epsilon": 0.1}, "epsilon"),
    ],
)
def test_what_cannot_be_planned_is_refused_in_one_sentence(options, said):
    with pytest.raises(ParameterError, match=said) as caught:
        run(**options)
    assert "\n" not in str(caught.value)


# -- known good parameters --------------------------------------------------------------------------------------------------------


def test_enqueued_trials_are_defaults_of_the_space(tmp_path):
    study = a_study(weight=1, out=tmp_path / "out")
    study.enqueue_trial({"rate": 0.1})
    study.enqueue_trial({"rate": 0.2, "kind": ["b", "c"]})
    study.enqueue_trial({"rate": 0.1}, skip_if_exists=True)
    study.optimize(trainer)
    assert study.best_params["rate"] == 0.1
    assert isinstance(study.best_params["kind"], tuple | list)
    space = json.loads((tmp_path / "out" / "plan.json").read_text())["space"]
    assert space["defaults"] == [{"rate": 0.1}, {"rate": 0.2, "kind": ["b", "c"]}]
    assert space["weight"] == "1"
    assert any("one of 2 defaults" in note for note in study.certificate.run.notes)


def test_a_trial_starts_from_an_enqueued_one_with_the_weight():
    # A binomial test of 1000 trials at 1/2, false alarm 1e-6; the secret is fixed.
    from scipy import stats

    from privselect.tuning.runner import RunDraws

    draws = RunDraws(bytes(32), 1000, DefineByRunSpace("s", [{"x": 0.5}]))
    suggests = [Suggest.of_candidate(draws.candidate(slot)) for slot in range(1000)]
    values = [PrivateTrial(suggest, Randomness(bytes(32))).suggest_float("x", 0, 1) for suggest in suggests]
    assert stats.binomtest(values.count(0.5), 1000, 0.5).pvalue > 1e-6
    assert stats.kstest([value for value in values if value != 0.5], "uniform").pvalue > 1e-6


def test_an_enqueued_value_outside_the_range_ends_the_run():
    study = a_study(weight=1)
    study.enqueue_trial({"rate": 5})
    with pytest.raises(AbortedError, match=OUTSIDE_RANGE):
        study.optimize(trainer)


@pytest.mark.parametrize("params", [None, {}, {3: 1}, {"": 1}, [("x", 1)]])
def test_what_is_no_trial_is_not_enqueued(params):
    with pytest.raises(ParameterError, match=r"^`params` must be a dict of parameters and values, got "):
        a_study().enqueue_trial(params)


def test_a_trial_is_enqueued_before_the_release():
    study = run()
    with pytest.raises(ParameterError, match="must be enqueued before optimize"):
        study.enqueue_trial({"rate": 0.1})
    with pytest.raises(ParameterError, match="`user_attrs` must be None in a secret search"):
        a_study().enqueue_trial({"rate": 0.1}, {"who": "me"})


def test_values_are_honoured_in_the_objectives_own_types():
    trial = PrivateTrial(Suggest(Stream(bytes(32)), fixed={"x": 0.3, "n": 4, "layers": (64, 32), "flag": False}, in_trial=True), None)
    layers = [[8], [64, 32]]
    assert trial.suggest_float("x", 0, 1, step=0.1) == 3 * 0.1
    assert trial.suggest_int("n", 1, 64, log=True) == 4
    assert trial.suggest_categorical("layers", layers) is layers[1]
    assert trial.suggest_categorical("flag", [True, False]) is False
    assert optuna.distributions.FloatDistribution(0, 1, step=0.1)._contains(trial.params["x"])
