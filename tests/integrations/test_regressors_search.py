"""Private regressions under a private search: the ridge is tuned, each trial has noise of its own, and the budget is that of the whole."""

import pickle
import warnings

import numpy as np
import pytest
from scipy.stats import loguniform
from sklearn.linear_model import Ridge
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import Normalizer

import privselect as ps
from privselect.errors import ParameterError
from privselect.integrations import AdaSSPRegressor, HoldOut, OPSPTRRegressor, OPSRegressor, PrivateSearch, SSPRegressor
from privselect.integrations.sklearn.seeds import dump_estimator, get_seeds, own_seed_names, set_fresh_seeds, smallest_seed_bits
from privselect.tuning.randomness import Randomness

RNG = np.random.default_rng(2)
X = RNG.normal(size=(2100, 3))
X /= np.linalg.norm(X, axis=1)[:, None]
Y = np.clip(X @ [0.7, -0.2, 0.1] + 0.05 * RNG.normal(size=2100), -1, 1)
PUBLIC, X, Y = (X[:100], Y[:100]), X[100:], Y[100:]
RIDGES = {"ridge": loguniform(2.5, 2.5**10)}


def search(estimator, **given):
    usual = {"count": ps.Geometric(mean=5), "validation": PUBLIC, "delta": 1e-6, "ledger": None}
    return PrivateSearch(estimator, RIDGES, **{**usual, **given})


@pytest.mark.parametrize("mean", [40, pytest.param(600, marks=pytest.mark.slow)])
def test_the_ridge_is_tuned_within_the_budget_of_the_search(mean):
    model = OPSPTRRegressor(epsilon=None, records=2000)
    found = search(model, count=ps.Geometric(mean=mean), epsilon=3.0, random_state=1).fit(X, Y)
    assert found.best_estimator_.delta == pytest.approx(1e-6 / mean)
    assert 2.999 < found.certificate_.total.upper <= 3.0
    assert ps.verify(found.certificate_.to_json()).holds
    assert found.certificate_.neighbours == "add_remove"
    said = "\n".join(found.certificate_.run.notes)
    assert "floating point" in said
    assert "are clipped to these bounds" in said
    assert "at most 2000 records" in said
    winner = found.best_estimator_
    assert winner.answered_
    assert winner.ridge == found.best_params_["ridge"]
    assert winner.mechanism_ == found.plan_.mechanism
    assert found.score(*PUBLIC) > 0.5


def test_a_certificate_says_where_its_notes_are_not_those_of_every_candidate():
    searched = PrivateSearch(
        Pipeline([("rows", Normalizer()), ("model", SSPRegressor())]),
        {"model__row_bound": [1.0, 2.0], "model__beyond": ["count"], "model__ridge": [1.0]},
        count=ps.Geometric(mean=5),
        validation=PUBLIC,
        delta=1e-6,
        ledger=None,
    ).fit(X, Y)
    varied = (
        "candidates differ in beyond, row_bound: the notes on these parameters state the values of the given estimator, not of the winner"
    )
    assert varied in searched.certificate_.run.notes
    assert "candidates differ" not in "\n".join(search(SSPRegressor()).fit(X, Y).certificate_.run.notes)


@pytest.mark.parametrize("estimator", [SSPRegressor(), OPSRegressor(ridge=50.0)])
def test_others_are_tuned_too(estimator):
    found = search(estimator, random_state=1).fit(X, Y)
    assert ps.verify(found.certificate_.to_json()).holds
    alone = ps.Selection(estimator.mechanism, ps.Geometric(mean=5)).epsilon_at(1e-6).upper
    assert found.certificate_.total.upper == pytest.approx(alone, rel=1e-6)


@pytest.mark.slow
def test_mechanisms_that_depend_on_the_ridge_are_mixed():
    alone = OPSRegressor(ridge=50.0, beyond="refuse")
    given = {"count": ps.Geometric(mean=3), "validation": PUBLIC, "delta": 1e-6, "ledger": None, "random_state": 1}
    found = PrivateSearch(alone, {"ridge": [50.0, 200.0]}, **given).fit(X, Y)
    assert ps.verify(found.certificate_.to_json()).holds
    parts = [alone.set_params(ridge=ridge).mechanism for ridge in (50.0, 200.0)]
    mixed, *ends = (ps.Selection(one, given["count"]).epsilon_at(1e-6) for one in (ps.Mixture([(0.5, part) for part in parts]), *parts))
    assert found.certificate_.total.upper == pytest.approx(mixed.upper, rel=1e-3)
    assert min(end.lower for end in ends) <= found.certificate_.total.upper <= max(end.upper for end in ends)


def test_a_hold_out_is_counted():
    given = {"validation": HoldOut(fraction=0.2, sigma=5), "scoring": near, "random_state": 1}
    found = search(OPSPTRRegressor(epsilon=0.5, records=2000), **given).fit(X, Y)
    assert ps.verify(found.certificate_.to_json()).holds


def near(estimator, rows, targets):
    return np.abs(estimator.predict(rows) - targets) < 0.1


def test_a_pipeline_is_searched():
    steps = Pipeline([("unit", Normalizer()), ("model", AdaSSPRegressor(epsilon=None, records=2000))])
    space = {"model__target_bound": [0.5, 1.0]}
    given = {"count": "geometric(mean=3)", "validation": PUBLIC, "ledger": None, "random_state": 2}
    found = PrivateSearch(steps, space, epsilon=2.0, delta=1e-6, **given).fit(3.0 * X, Y)
    assert found.best_estimator_.get_params()["model__delta"] == pytest.approx(1e-6 / 3)
    assert 1.999 < found.certificate_.total.upper <= 2.0


@pytest.mark.parametrize("given", [None, 5, np.random.RandomState(5)])
def test_each_trial_has_noise_of_its_own_whatever_seed_was_given(given):
    regressor = OPSPTRRegressor(insecure_seed=given)
    runs = [search(regressor, random_state=number).fit(X, Y) for number in (1, 1, 2)]
    first, again, other = (run.best_estimator_.coef_ for run in runs)
    assert np.array_equal(first, again)  # that of the search, which was given one
    assert not np.array_equal(first, other)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert not np.array_equal(first, regressor.set_params(ridge=runs[0].best_params_["ridge"]).fit(X, Y).coef_)
    said = "\n".join(runs[0].certificate_.run.notes)
    assert "seeds of 32 bits" not in said
    assert "generator passed by the caller" not in said


def test_the_seed_of_a_trial_is_a_whole_state_and_does_not_leave():
    regressor = OPSPTRRegressor(insecure_seed=5)
    assert get_seeds(regressor) == {"insecure_seed": 5}
    assert own_seed_names(regressor) == {"insecure_seed"}
    assert smallest_seed_bits(regressor) == smallest_seed_bits(OPSPTRRegressor()) == 128
    source = Randomness(bytes(32))
    states = []
    for _ in range(2):
        trial = OPSPTRRegressor(insecure_seed=5)
        set_fresh_seeds(trial, source)
        assert isinstance(trial.insecure_seed, np.random.RandomState)
        states.append(trial.insecure_seed.get_state()[1])
        released = pickle.loads(dump_estimator(trial.fit(X, Y)))  # noqa: S301
        assert released.insecure_seed is None
    assert not np.array_equal(*states)
    assert pickle.loads(dump_estimator(regressor)).insecure_seed is None  # noqa: S301 - nor a number


def test_a_seed_is_not_searched():
    with pytest.raises(ParameterError, match="must not hold insecure_seed"):
        PrivateSearch(OPSPTRRegressor(), {"insecure_seed": [1, 2]}, count="geometric(mean=3)", validation=PUBLIC, delta=1e-6).fit(X, Y)
    with pytest.raises(ParameterError, match="`insecure_seed` must be None, a RandomState or an integer, got"):
        search(OPSPTRRegressor(insecure_seed=np.random.default_rng(1))).fit(X, Y)


@pytest.mark.parametrize("kind", [OPSPTRRegressor, AdaSSPRegressor, OPSRegressor])
@pytest.mark.parametrize("law", [ps.Geometric(mean=20), ps.Poisson(mean=5), ps.Fixed(k=1)])
def test_a_fit_leaks_as_much_as_the_search_allows(kind, law):
    regressor = kind(epsilon=None, row_bound=7.0)
    space = {"row_bound": [7.0]}  # every regressor has this parameter
    given = {"count": law, "validation": PUBLIC, "ledger": None, "random_state": 3}
    plan = PrivateSearch(regressor, space, epsilon=1.0, delta=1e-5, **given).fit(X, Y).plan_
    assert plan.count == law
    assert 0.9998 < ps.Selection(plan.mechanism, law).epsilon_at(1e-5).upper <= 1.0
    assert regressor.epsilon is None


@pytest.mark.parametrize("kind", [OPSPTRRegressor, SSPRegressor])
def test_a_final_fit_has_the_larger_epsilon(kind):
    found = search(kind(epsilon=None, records=2000), epsilon=3.0, refit=True, random_state=1).fit(X, Y)
    assert found.best_estimator_.delta == pytest.approx(5e-7)
    assert 2.99 < found.certificate_.total.upper <= 3.0
    assert ps.verify(found.certificate_.to_json()).holds
    assert found.best_estimator_.mechanism_ == found.plan_.final
    trial, final = (mechanism.epsilon_at(1e-6).upper for mechanism in (found.plan_.mechanism, found.plan_.final))
    assert trial < final < 3.0
    noises = [found.plan_.solved[0].value, kind(epsilon=3.0, delta=5e-7).epsilon]
    assert 1.0 / noises[0] == found.best_estimator_.epsilon < noises[1]
    assert found.best_params_ == {"ridge": found.search_params_["ridge"]}


@pytest.mark.slow
def test_an_epsilon_that_depends_on_the_ridge_is_that_of_the_mixture():
    alone = OPSRegressor(epsilon=None, ridge=50.0, beyond="refuse")
    given = {"count": ps.Geometric(mean=3), "validation": PUBLIC, "delta": 1e-6, "ledger": None, "random_state": 1}
    found = PrivateSearch(alone, {"ridge": [50.0, 200.0]}, epsilon=2.0, **given).fit(X, Y)
    assert 1.99 < found.certificate_.total.upper <= 2.0
    assert isinstance(found.plan_.mechanism, ps.Mixture)


@pytest.mark.parametrize(
    ("estimator", "given", "sentence"),
    [
        (Ridge(), {}, "Ridge is not differentially private. Use AdaSSPRegressor, or pass mechanism"),
        (AdaSSPRegressor(epsilon=None), {"epsilon": None}, "`epsilon` is required, because `epsilon` of a fit is computed from the budget"),
        (AdaSSPRegressor(epsilon=None), {"epsilon": 0}, "`epsilon` must be in"),
        (AdaSSPRegressor(epsilon=None), {"delta": 1.0}, "`delta` must be in"),
        pytest.param(
            *(AdaSSPRegressor(epsilon=None), {"epsilon": 1e-5}, "`epsilon` must be larger, got 1e-05: no fit leaks little enough"),
            marks=pytest.mark.slow,
        ),
        pytest.param(
            *(OPSRegressor(epsilon=None, ridge=5.0, beyond="refuse"), {"epsilon": 0.1}, "got 0.1: no fit leaks little enough"),
            marks=pytest.mark.slow,
        ),
        (AdaSSPRegressor(), {"epsilon": 1.0}, "`epsilon` must be at least .*, the certified cost"),
    ],
)
def test_what_cannot_be_solved_is_told(estimator, given, sentence):
    space = {"alpha": [1.0]} if isinstance(estimator, Ridge) else {"row_bound": [1.0]}
    usual = {"count": ps.Geometric(mean=3), "validation": PUBLIC, "epsilon": 1.0, "delta": 1e-6, "ledger": None}
    with pytest.raises(ParameterError, match=sentence):
        PrivateSearch(estimator, space, **{**usual, **given}).fit(X, Y)


def test_an_epsilon_that_is_open_is_not_for_a_fit_alone():
    with pytest.raises(ParameterError, match=r"`epsilon` must be in \(0, 100\] to fit alone, got None: PrivateSearch computes it"):
        AdaSSPRegressor(epsilon=None).fit(X, Y)
