"""A search that is given a budget and no noise, and a search that is followed by a final fit."""

import pickle
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import Normalizer
from sklearn.utils import check_random_state

import privselect as ps
from privselect.errors import LedgerError, ParameterError
from privselect.integrations import AdaSSPRegressor, HoldOut, PrivateSearch, PrivateSoftmax
from privselect.integrations.sklearn import solve_noise

pytestmark = pytest.mark.usefixtures("once")
RNG = np.random.default_rng(12)
X = RNG.normal(size=(300, 3))
Y = (X.sum(axis=1) > 0).astype(int)
SOFTMAX = PrivateSoftmax(sampling_probability=1.0, steps=20)
RATES = {"learning_rate": stats.loguniform(0.5, 5)}
COUNT = ps.Geometric(mean=3)
GIVEN = {"epsilon": 3.0, "delta": 1e-5, "count": COUNT, "ledger": None, "random_state": 2, "validation": (X[:50], Y[:50])}


def search(estimator=SOFTMAX, space=RATES, **given):
    return PrivateSearch(estimator, space, **{**GIVEN, **given})


def two_stages(estimator=SOFTMAX, space=RATES, **given):
    return search(estimator, space, refit=True, **given)


def refused(match, *args, **given):
    with pytest.raises(ParameterError, match=match):
        search(*args, **given).fit(X, Y)


def refused_in_two(match, *args, **given):
    refused(match, *args, refit=True, **given)


def notes_of(fitted):
    return " ".join(fitted.certificate_.run.notes)


# -- a budget and no noise ------------------------------------------------------------------------------------------------------------


def test_five_lines_from_a_budget_to_a_model_that_predicts(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # of the ledger
    digits, labels = load_digits(return_X_y=True)
    space = {"learning_rate": ps.LogUniform(0.1, 5)}
    fitted = PrivateSearch(PrivateSoftmax(), space, epsilon=1, delta=1e-5, refit=True).fit(digits, labels)
    assert 0.999 < fitted.certificate_.total.upper <= 1.0
    assert ps.verify(fitted.certificate_.to_json()).holds
    assert fitted.plan_.count == ps.default_count()
    assert fitted.predict(digits).shape == (1797,)
    assert fitted.score(digits, labels) > 0.6  # 0.91 in a usual run
    assert "a count of correct predictions on private records that the trial was not trained on" in fitted.certificate_.statement


def test_the_noise_of_the_trainer_follows_from_the_budget():
    fitted = search().fit(X, Y)
    planned = ps.plan(ps.DPSGD(ps.UNKNOWN, 1.0, 20), COUNT, epsilon=3.0, delta=1e-5)
    assert fitted.plan_ == planned
    assert fitted.release_.plan is fitted.plan_
    assert fitted.best_estimator_.noise_multiplier == planned.value
    assert 2.999 < fitted.certificate_.total.upper <= 3.0
    assert not fitted.certificate_.run.mechanism_claimed
    assert fitted.search_params_ == fitted.best_params_


def test_the_noise_of_the_hold_out_follows_from_the_budget_too():
    for validation in (None, HoldOut(fraction=Fraction(1, 5)), HoldOut(X=X[:60], y=Y[:60])):
        fitted = search(validation=validation).fit(X, Y)
        training, noise = fitted.plan_.mechanism.parts
        assert training.noise_multiplier == fitted.best_estimator_.noise_multiplier
        assert [2.99 < ps.Selection(part, COUNT).epsilon_at(1e-5).upper <= 3.0 for part in (training, noise)] == [True, True]
    stated = search(clone(SOFTMAX).set_params(noise_multiplier=9.0), validation=None).fit(X, Y)
    assert stated.plan_.mechanism.parts == (ps.DPSGD(9.0, 1.0, 20), noise)
    stated = search(validation=HoldOut(fraction=0.2, sigma=7)).fit(X, Y)
    assert stated.plan_.mechanism.parts == (training, ps.DiscreteGaussian(sigma=7, neighbours="add_remove"))


def test_the_law_of_k_may_be_what_follows_from_the_budget():
    fitted = search(clone(SOFTMAX).set_params(noise_multiplier=9.0), count="geometric(mean=?)").fit(X, Y)
    assert fitted.plan_.count.mean > 3
    assert fitted.certificate_.plan.count == str(fitted.plan_.count)


def test_a_search_without_anything_open_has_a_plan_too():
    fitted = search(clone(SOFTMAX).set_params(noise_multiplier=9.0), epsilon=None).fit(X, Y)
    assert fitted.plan_.mechanism == ps.DPSGD(9.0, 1.0, 20)
    assert fitted.plan_.solved == ()
    assert "9" in fitted.plan_.summary()


def test_candidates_that_leak_differently_are_mixed():
    fitted = search(space={"steps": [10, 20], **RATES}).fit(X, Y)
    parts = {part.spec.steps: part.weight for part in fitted.plan_.mechanism.parts}
    assert parts == {10: Fraction(1, 2), 20: Fraction(1, 2)}
    assert 2.99 < fitted.certificate_.total.upper <= 3.0


def test_a_pipeline_has_the_noise_of_its_last_step():
    steps = Pipeline([("rows", Normalizer()), ("model", SOFTMAX)])
    fitted = two_stages(steps, {"model__learning_rate": stats.loguniform(0.5, 5)}).fit(X, Y)
    assert fitted.best_estimator_[-1].noise_multiplier == fitted.plan_.final.noise_multiplier
    assert fitted.search_params_["model__steps"] == 2
    assert fitted.best_params_["model__learning_rate"] != fitted.search_params_["model__learning_rate"]


class OwnNoise(ClassifierMixin, BaseEstimator):
    """A classifier of another library that has a parameter for its noise."""

    def __init__(self, sigma=1.0, depth=1, epochs=40, random_state=None):
        self.sigma = sigma
        self.depth = depth
        self.epochs = epochs
        self.random_state = random_state

    def fit(self, X, y, sample_weight=None):  # noqa: N803
        self.classes_ = np.unique(y)
        self.seen_ = (len(X), None if sample_weight is None else float(np.sum(sample_weight)), self.sigma, self.epochs)
        self.drawn_ = check_random_state(self.random_state).random_sample()
        return self

    def predict(self, X):  # noqa: N803
        return np.zeros(len(X), dtype=int)


class Stating(OwnNoise):
    noise_parameter = "sigma"

    @property
    def mechanism(self):
        return ps.Gaussian(sigma=ps.UNKNOWN if self.sigma is None else self.sigma)


def test_an_estimator_names_the_parameter_of_its_noise():
    fitted = two_stages(Stating(sigma=None), {"depth": [1, 2]}, search_params={"epochs": 5}).fit(X, Y)
    assert fitted.best_estimator_.sigma == fitted.plan_.final.sigma
    assert fitted.plan_.final.sigma < fitted.plan_.mechanism.sigma
    assert fitted.best_estimator_.seen_ == (300, None, fitted.plan_.final.sigma, 40)
    assert fitted.search_params_ == {"epochs": 5, **fitted.best_params_}
    assert not fitted.certificate_.run.mechanism_claimed


def test_a_mechanism_stated_by_hand_may_be_open():
    given = {"mechanism": "gaussian(sigma=?)", "noise_parameter": "sigma", "scoring": "accuracy"}
    fitted = search(OwnNoise(), {"depth": [1, 2]}, **given).fit(X, Y)
    assert fitted.best_estimator_.sigma == fitted.plan_.value
    assert fitted.certificate_.plan.mechanism == f"gaussian(sigma={fitted.plan_.value})"
    assert fitted.certificate_.run.mechanism_claimed
    fitted = two_stages(OwnNoise(), {"depth": [1, 2]}, **given).fit(X, Y)
    assert fitted.best_estimator_.sigma == fitted.plan_.final.sigma
    assert fitted.certificate_.run.mechanism_claimed
    given["final"] = "gaussian(sigma=?)"
    fitted = two_stages(OwnNoise(), {"depth": [1, 2]}, search_params={"epochs": 4}, **given).fit(X, Y)
    assert fitted.best_estimator_.seen_ == (300, None, fitted.plan_.final.sigma, 40)


def test_what_only_the_user_states_is_marked_as_a_claim():
    fitted = search(LogisticRegression(), {"C": [1.0]}, mechanism=ps.Gaussian(sigma=4), epsilon=None).fit(X, Y)
    assert fitted.certificate_.run.mechanism_claimed
    assert "claim" in fitted.certificate_.statement
    covering = search(mechanism=ps.DPSGD(4.0, 1.0, 20), estimator=clone(SOFTMAX).set_params(noise_multiplier=5.0), epsilon=None)
    assert not covering.fit(X, Y).certificate_.run.mechanism_claimed
    by_function = search(
        mechanism=lambda _: ps.DPSGD(4.0, 1.0, 20), estimator=clone(SOFTMAX).set_params(noise_multiplier=5.0), epsilon=None
    )
    assert not by_function.fit(X, Y).certificate_.run.mechanism_claimed
    refused("LogisticRegression is not differentially private. Use PrivateSoftmax, or pass mechanism=", LogisticRegression(), {"C": [1.0]})


# -- a final fit ----------------------------------------------------------------------------------------------------------------------


def test_the_final_fit_is_what_is_released():
    fitted = two_stages().fit(X, Y)
    plan = ps.plan(ps.DPSGD(ps.UNKNOWN, 1.0, 2), COUNT, final=ps.DPSGD(ps.UNKNOWN, 1.0, 20), split="auto", epsilon=3.0, delta=1e-5)
    assert fitted.plan_ == plan
    final, trial = plan.final, plan.mechanism
    assert (fitted.best_estimator_.noise_multiplier, fitted.best_estimator_.steps) == (final.noise_multiplier, 20)
    assert fitted.certificate_.plan.final == str(final)
    assert 2.99 < fitted.certificate_.total.upper <= 3.0
    assert ps.verify(fitted.certificate_.to_json()).holds
    # The accumulated noise is the same in both stages.
    factor = trial.noise_multiplier * 2**0.5 / (final.noise_multiplier * 20**0.5)
    won = fitted.search_params_["learning_rate"]
    assert fitted.best_params_ == {"learning_rate": pytest.approx(won * factor)}
    assert fitted.best_estimator_.learning_rate == fitted.best_params_["learning_rate"]
    assert fitted.search_params_ == {"steps": 2, "learning_rate": won}
    assert fitted.release_.candidate == {"learning_rate": won}
    assert fitted.release_.trained_with == fitted.best_params_
    assert fitted.best_score_ is not None
    assert fitted.score(X, Y) > 0.8


def double(candidate):
    return {**candidate, "learning_rate": min(2 * candidate["learning_rate"], 5.0)}


def test_the_transfer_is_what_was_asked_for():
    same = two_stages(transfer="same").fit(X, Y)
    won = same.search_params_["learning_rate"]
    assert same.best_params_ == {"learning_rate": won}
    # With the same seed the same trials are run.
    assert two_stages(transfer=double).fit(X, Y).best_params_ == {"learning_rate": min(2 * won, 5.0)}
    clipped = two_stages(space={"clip": [0.5, 1.0]}).fit(X, Y)  # no learning rate is searched
    assert clipped.best_params_["clip"] == clipped.search_params_["clip"]
    refused_in_two("needs a hyperparameter 'rate'", learning_rate="rate")
    refused_in_two("`transfer` must be 'same', 'noise' or a function", transfer="larger")
    refused_in_two("must return a candidate of the space", transfer=lambda candidate: {"learning_rate": 100 * candidate["learning_rate"]})


def test_the_budget_is_divided_as_asked():
    less, more = (two_stages(final_noise=factor).fit(X, Y).plan_ for factor in (1.02, 1.3))
    assert less.final.noise_multiplier < more.final.noise_multiplier
    assert less.mechanism.noise_multiplier > more.mechanism.noise_multiplier
    refused_in_two('`split` must be "auto"', split="half")
    refused_in_two("needs an open number in both stages", final_noise=1.1, search_params={"noise_multiplier": 20.0})
    given = two_stages(search_params={"noise_multiplier": 20.0, "steps": 3}).fit(X, Y).plan_
    assert given.mechanism == ps.DPSGD(20.0, 1.0, 3)
    stated = two_stages(clone(SOFTMAX).set_params(noise_multiplier=9.0)).fit(X, Y).plan_
    assert (stated.mechanism, stated.final) == (ps.DPSGD(9.0, 1.0, 2), ps.DPSGD(9.0, 1.0, 20))


def test_defaults_are_where_candidates_start():
    default = {"learning_rate": 1.25}
    always = two_stages(defaults=[default], weight=1).fit(X, Y)
    assert always.release_.candidate == default
    assert "default" in notes_of(always)
    assert always.plan_.final == two_stages().fit(X, Y).plan_.final  # any public distribution costs the same
    drawn = {search(defaults=[default], random_state=seed).fit(X, Y).best_params_["learning_rate"] for seed in range(8)}
    assert len(drawn) > 1
    refused("`learning_rate` of default 1 must be in", defaults=[{"learning_rate": 50.0}])
    refused("`defaults` must use hyperparameters of the space", defaults=[{"steps": 3}])
    refused("`weight` of the defaults must be a probability", defaults=[default], weight=2)


def test_trials_may_run_on_a_sample():
    full, sampled = (two_stages(subsample=share).fit(X, Y) for share in (None, "1/2"))
    assert sampled.plan_.mechanism.noise_multiplier < full.plan_.mechanism.noise_multiplier
    assert sampled.certificate_.plan.subsample == "1/2"
    assert sampled.plan_.final == full.plan_.final


class Counting(PrivateSoftmax):
    """Notes by which number of records the gradients are divided."""

    divided_by = []  # noqa: RUF012

    def fit(self, X, y):  # noqa: N803
        type(self).divided_by.append(len(X) if self.records is None else self.records)
        return super().fit(X, y)


class CountingRegressor(AdaSSPRegressor):
    bounds = []  # noqa: RUF012

    def fit(self, X, y):  # noqa: N803
        type(self).bounds.append(self.records)
        return super().fit(X, y)


@pytest.mark.parametrize(("validation", "expected"), [((X[:50], Y[:50]), 150), (HoldOut(fraction=0.2), 120), (HoldOut(X=X, y=Y), 150)])
def test_no_trial_uses_the_size_of_the_secret_sample(validation, expected):
    Counting.divided_by.clear()
    counting = Counting(sampling_probability=1.0, steps=20)
    fitted = two_stages(counting, subsample="1/2", validation=validation).fit(X, Y)
    *trials, final = Counting.divided_by
    assert set(trials) == {expected}
    assert final == 300
    assert fitted.best_estimator_.records is None
    assert "search trials use the expected number of records in their sample" in notes_of(fitted)
    Counting.divided_by.clear()
    assert "their sample" not in notes_of(two_stages(clone(counting).set_params(records=90), subsample="1/2").fit(X, Y))
    assert set(Counting.divided_by) == {90}


def test_a_searched_number_of_records_may_not_be_that_of_the_sample_either():
    Counting.divided_by.clear()
    search(Counting(sampling_probability=1.0, steps=20), {"records": [None, 140]}, subsample="1/2", count=ps.Fixed(k=8)).fit(X, Y)
    assert set(Counting.divided_by) == {140, 150}


def test_a_regressor_on_a_sample_has_all_records_as_its_bound():
    CountingRegressor.bounds.clear()
    regressor = CountingRegressor(epsilon=None, row_bound=4.0, target_bound=4.0, beyond="refuse")
    sums = X.sum(axis=1).clip(-3, 3)
    given = {"validation": (X[:50], sums[:50]), "subsample": "1/2"}
    fitted = two_stages(regressor, {"row_bound": [4.0, 5.0]}, **given).fit(X, sums)
    *trials, final = CountingRegressor.bounds
    assert (set(trials), final) == ({300}, None)
    assert "as a bound on the number of records in their sample" in notes_of(fitted)


def test_what_another_estimator_does_with_the_size_of_the_sample_is_declared():
    said = "a search trial does not use the number of records in its sample, which is secret"
    assert said in notes_of(two_stages(Stating(sigma=None), {"depth": [1]}, subsample="1/2").fit(X, Y))
    assert said not in notes_of(two_stages(Stating(sigma=None), {"depth": [1]}).fit(X, Y))


def test_the_final_fit_is_on_all_records_with_their_weights():
    weights = np.linspace(1.0, 2.0, 300)
    for validation in (HoldOut(fraction=0.2), (X, Y)):
        fitted = two_stages(Stating(sigma=None), {"depth": [1]}, validation=validation).fit(X, Y, sample_weight=weights)
        assert fitted.best_estimator_.seen_[:2] == (300, pytest.approx(450.0))
    assert "records have weights" in notes_of(fitted)


def test_a_final_fit_of_candidates_that_leak_differently_must_be_stated():
    space = {"steps": [10, 20], **RATES}
    refused_in_two("`final` is required: the candidates differ in what one fit leaks", space=space)
    refused_in_two("`final` is required", clone(SOFTMAX).set_params(noise_multiplier=9.0), space)
    final = ps.DPSGD(9.0, 1.0, 20)
    fitted = two_stages(clone(SOFTMAX).set_params(noise_multiplier=9.0), space, final=final, epsilon=4.0).fit(X, Y)
    assert fitted.plan_.final == final
    assert fitted.best_estimator_.steps == fitted.best_params_["steps"]
    less = ps.DPSGD(9.0, 1.0, 10)
    refused_in_two(
        "final training that may leak more than", clone(SOFTMAX).set_params(noise_multiplier=9.0), space, final=less, epsilon=4.0
    )


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (
            {"epsilon": None},
            "^`refit` needs a budget for the search and the final training together: pass epsilon=..., such as epsilon=1.0$",
        ),
        ({"refit": "accuracy"}, "`refit` must be False or True, got 'accuracy'"),
        ({"search_params": 5}, "`search_params` must be a dict"),
        ({"search_params": {"step": 5}}, "`search_params` must name parameters of PrivateSoftmax, got 'step'"),
        ({"search_params": {"learning_rate": 5}}, "`search_params` must not hold learning_rate, which is searched"),
        ({"search_params": {"random_state": 5}}, "`search_params` must not hold random_state"),
        ({"noise_parameter": "sigma"}, "`noise_parameter` must name a parameter of PrivateSoftmax, got 'sigma'"),
        ({"final": "laplace(scale=2)"}, "`final` must leave its noise open, as in .* if noise_multiplier is None, got 'laplace"),
        ({"mechanism": "dpsgd(noise_multiplier=2, sampling_probability=1, steps=2)"}, "`mechanism` must leave its noise open"),
        ({"mechanism": "composed(gaussian(sigma=?), gaussian(sigma=?))"}, "`mechanism` must have at most one open number"),
        ({"cv": 5}, "`cv` must be None, got 5"),
        ({"split": "auto", "final_noise": 1.1}, "pass either `final_noise` or `split`"),
        ({"epsilon": 1e-9}, "no `noise_multiplier` tried meets|`final` must cost less"),
    ],
)
def test_two_stages_that_make_no_sense_are_refused(given, sentence):
    refused(sentence, **{"refit": True, **given})


@pytest.mark.parametrize("name", ["search_params", "final", "transfer", "learning_rate", "final_noise", "split"])
def test_what_is_for_a_final_fit_needs_one(name):
    refused(f"`{name}` must be None if refit is False, because no final fit follows, got 'x'", **{name: "x"})


def test_a_noise_that_nothing_determines_is_refused():
    refused("`epsilon` is required, because `noise_multiplier` of a fit is computed from the budget", epsilon=None)
    refused("an open number, so the estimator must have a parameter", OwnNoise(), {"depth": [1]}, mechanism="gaussian(sigma=?)")
    refused_in_two(
        "`final` is required: pass final=... to state what the final fit leaks",
        OwnNoise(),
        {"depth": [1]},
        mechanism=ps.Gaussian(sigma=9),
        search_params={"epochs": 2},
    )
    with pytest.raises(ParameterError, match="`noise_multiplier` must be a positive number to fit alone, got None"):
        PrivateSoftmax().fit(X, Y)


class FailingAtLast(Stating):
    def fit(self, X, y, sample_weight=None):  # noqa: N803
        if self.epochs == 40:
            raise ValueError("canary")
        return super().fit(X, y, sample_weight)


def test_a_final_fit_that_fails_releases_nothing_and_does_not_say_why():
    fitted = two_stages(FailingAtLast(sigma=None), {"depth": [1]}, search_params={"epochs": 1}).fit(X, Y)
    assert [fitted.best_estimator_, fitted.best_params_, fitted.search_params_, fitted.best_score_] == [None] * 4
    reason = "no trial was drawn, all trials failed or the final fit failed, and which one is secret"
    with pytest.raises(NotFittedError, match=f"^the search released no estimator: {reason}"):
        fitted.predict(X)
    synthetic = (X[:20] * 0, np.arange(20) % 2)
    refused_in_two("failed with ValueError", FailingAtLast(sigma=None), {"depth": [1]}, search_params={"epochs": 1}, synthetic=synthetic)


# -- as everywhere in scikit-learn ----------------------------------------------------------------------------------------------------


def test_a_fitted_search_is_pickled_and_cloned():
    fitted = two_stages(defaults=[{"learning_rate": 1.0}], validation=HoldOut(X=X[:60] * 1.5, y=Y[:60])).fit(X, Y)
    content = pickle.dumps(fitted)
    assert (X[7] * 1.5).tobytes() not in content
    again = pickle.loads(content)  # noqa: S301
    assert np.array_equal(again.predict(X), fitted.predict(X))
    assert again.plan_ == fitted.plan_
    assert clone(fitted).get_params().keys() == fitted.get_params().keys()


@pytest.mark.slow
@pytest.mark.parametrize("validation", [(X[:20], Y[:20]), HoldOut(fraction=0.2)])
def test_processes_release_what_one_process_does_in_both_stages(validation):
    here, there = (two_stages(validation=validation, n_jobs=jobs).fit(X, Y) for jobs in (None, 2))
    assert here.best_params_ == there.best_params_
    assert np.array_equal(here.best_estimator_.coef_, there.best_estimator_.coef_)


class Interrupted(Stating):
    """Stops the whole run at one of its fits."""

    fits, stop_at = 0, 0

    def fit(self, X, y, sample_weight=None):  # noqa: N803
        type(self).fits += 1
        if type(self).fits == type(self).stop_at:
            raise KeyboardInterrupt
        return super().fit(X, y, sample_weight)

    def score(self, X, y):  # noqa: ARG002, N803
        return self.drawn_


@pytest.mark.parametrize("when", [2, -1])
def test_a_search_interrupted_in_either_stage_goes_on(when, tmp_path):
    given = {"count": ps.Geometric(mean=9), "random_state": 1, "search_params": {"epochs": 3}}
    Interrupted.fits, Interrupted.stop_at = 0, 0
    whole = two_stages(Interrupted(sigma=None), {"depth": [1, 2]}, **given).fit(X, Y)
    fits = Interrupted.fits
    assert fits > 3
    Interrupted.fits, Interrupted.stop_at = 0, fits if when < 0 else when
    stopped = two_stages(Interrupted(sigma=None), {"depth": [1, 2]}, ledger=tmp_path / "ledgers", **given)
    with pytest.raises(KeyboardInterrupt):
        stopped.fit(X, Y)
    Interrupted.stop_at = 0
    resumed = clone(stopped).fit(X, Y)
    assert Interrupted.fits == fits + 1
    assert (resumed.best_estimator_.drawn_, resumed.best_params_) == (whole.best_estimator_.drawn_, whole.best_params_)
    with pytest.raises(LedgerError, match="already run and released"):
        clone(stopped).fit(X, Y)


def test_another_solution_of_the_same_search_is_not_another_plan(tmp_path, monkeypatch):
    given = {"ledger": tmp_path / "ledgers"}
    two_stages(**given).fit(X, Y)

    monkeypatch.setattr(solve_noise, "solve_plan", plan_of_another_version)
    with pytest.raises(LedgerError, match="run before with the noise that another version of privselect computed"):
        two_stages(**given).fit(X, Y)
    two_stages(**given, final_noise=1.2).fit(X, Y)  # another problem


def plan_of_another_version(*args, **given):
    plan = ps.plan(*args, **given)
    noise = plan.mechanism.noise_multiplier * 1.01
    solved = tuple(found._replace(value=noise) if found.stage == "search" else found for found in plan.solved)
    return replace(plan, mechanism=replace(plan.mechanism, noise_multiplier=noise), solved=solved)
