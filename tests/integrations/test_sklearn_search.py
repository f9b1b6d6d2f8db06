"""What a search takes, what it refuses and why, and what it releases."""

import pickle
import random
import re
import traceback
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import BaggingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.metrics import make_scorer, roc_auc_score
from sklearn.model_selection import KFold, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, Normalizer, StandardScaler
from sklearn.utils import check_random_state

import privselect as ps
from privselect._util.rounding import round_up
from privselect.errors import AbortedError, LedgerError, ParameterError
from privselect.integrations import HoldOut, PrivateSearch, PrivateSoftmax
from privselect.integrations.sklearn import distributions
from privselect.integrations.sklearn.input_checks import check_training_records
from privselect.integrations.sklearn.seeds import dump_estimator, load_estimator
from privselect.integrations.sklearn.validation import record_ids
from privselect.tuning.randomness import Stream, derive_key

pytestmark = pytest.mark.usefixtures("once")
RNG = np.random.default_rng(11)
X = RNG.normal(size=(200, 3))
Y = (X.sum(axis=1) > 0).astype(int)
Y3 = np.arange(200) % 3
SOFTMAX = PrivateSoftmax(noise_multiplier=4.0, sampling_probability=1.0, steps=4, records=200)
SPACE = {"learning_rate": stats.loguniform(0.1, 10)}
GIVEN = {"count": ps.Geometric(mean=2), "delta": 1e-5, "validation": (X, Y), "ledger": None}


def search(estimator=SOFTMAX, space=SPACE, **given):
    return PrivateSearch(estimator, space, **{**GIVEN, **given})


def refused(match, *args, **given):
    with pytest.raises(ParameterError, match=match):
        search(*args, **given).fit(X, Y)


def notes_of(fitted):
    return " ".join(fitted.certificate_.run.notes)


# -- what is drawn --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "law"),
    [
        (stats.uniform(2, 3), ps.Uniform(2.0, 5.0)),
        (stats.uniform(loc=-1), ps.Uniform(-1.0, 0.0)),
        (stats.loguniform(1e-3, 1e2), ps.LogUniform(1e-3, 1e2)),
        (stats.reciprocal(a=1, b=8, scale=2), ps.LogUniform(2.0, 16.0)),
        (stats.randint(1, 10), ps.Integer(1, 9)),
        (stats.randint(low=1, high=10, loc=5), ps.Integer(6, 14)),
        (["l1", "l2", None], ps.Choice(["l1", "l2", None])),
        (np.array([1, 2]), ps.Choice([1, 2])),
        (range(3), ps.Choice([0, 1, 2])),
        ([(1, 2), (3,)], ps.Choice([(1, 2), (3,)])),
        (ps.Choice([1, 2], weights=[1, 2]), ps.Choice([1, 2], weights=[1, 2])),
    ],
)
def test_a_distribution_is_privselects_own_where_there_is_one(given, law):
    assert distributions.read_distribution("rate", given) == law


@pytest.mark.parametrize("given", [stats.norm(3, 2), stats.expon(scale=5.0), stats.poisson(mu=4), stats.loguniform(1, 2, loc=3)])
def test_any_other_frozen_distribution_is_drawn_from_all_bits(given):
    law = distributions.read_distribution("rate", given)
    drawn = [law.draw(Stream(derive_key(bytes(32), "look", number))) for number in range(2000)]
    assert drawn[:5] == [law.draw(Stream(derive_key(bytes(32), "look", number))) for number in range(5)]
    assert {type(value) for value in drawn} <= {int, float}
    # The mean within 6 standard errors; false alarm 2e-9.
    assert abs(np.mean(drawn) - given.mean()) < 6 * given.std() / 2000**0.5


def test_what_is_drawn_is_told_in_full():
    said = distributions.read_distribution("rate", stats.norm(3, scale=2)).as_dict()["frozen"]
    assert (said["name"], said["arguments"], said["named"]) == ("norm", [3], {"scale": 2})
    table = stats.rv_discrete(values=([1, 2], [0.25, 0.75]))()
    assert distributions.read_distribution("rate", table).as_dict()["frozen"]["values"] == [[1, 2], [0.25, 0.75]]


@pytest.mark.parametrize(
    ("space", "sentence"),
    [
        ({"rate": [1]}, "must name parameters of PrivateSoftmax, got 'rate'. Its parameters are classes, clip, "),
        ({"clip": 3}, "`clip` of `param_distributions` must be a list .* got 3"),
        ({"clip": []}, "`clip` of `param_distributions`: `options` must be"),
        ({"clip": [object]}, "an option must be"),
        ({"clip": stats.norm([1, 2])}, "must have numbers for its arguments, got an array"),
        ({"clip": stats.multivariate_normal([0, 0])}, "must be a list of options or a frozen"),
        ({"random_state": [1, 2]}, "must not hold random_state"),
        ([{"clip": [1]}, {"clip": [2]}], "must be one dict .* got a list"),
        ({}, "must be a dict"),
    ],
)
def test_a_space_that_makes_no_sense_is_refused(space, sentence):
    refused(sentence, space=space)


# -- the mechanism --------------------------------------------------------------------------------------------------------------------


def mechanism_of(fitted):
    return fitted.certificate_.plan.mechanism


def test_the_estimators_own_mechanism_is_accounted_for():
    assert mechanism_of(search().fit(X, Y)) == str(SOFTMAX.mechanism)
    assert mechanism_of(search(make_pipeline(Normalizer(), SOFTMAX), {"privatesoftmax__clip": [1.0]}).fit(X, Y)) == str(SOFTMAX.mechanism)


def test_a_mechanism_that_depends_on_the_parameters_is_mixed():
    fitted = search(space={"steps": [2, 4], **SPACE}).fit(X, Y)
    few, many = (clone(SOFTMAX).set_params(steps=steps).mechanism for steps in (2, 4))
    assert ps.parse(mechanism_of(fitted)) == ps.Mixture(((0.5, few), (0.5, many)))


def test_a_mechanism_that_depends_on_what_cannot_be_listed_is_that_of_the_estimator_or_must_be_given():
    less_noise = {"noise_multiplier": stats.uniform(3, 1)}
    refused("may leak more than the one accounted for", space=less_noise)
    refused("may leak more than the one accounted for", space={**less_noise, "steps": [2, 4]})
    assert mechanism_of(search(space={"noise_multiplier": stats.uniform(4, 1)}).fit(X, Y)) == str(SOFTMAX.mechanism)
    covering = ps.DPSGD(4.0, 1.0, 4)
    fitted = search(space={"noise_multiplier": stats.uniform(4, 1)}, mechanism=covering).fit(X, Y)
    assert mechanism_of(fitted) == str(covering)
    assert "was checked to leak at most" in notes_of(fitted)


def test_a_declared_mechanism_that_is_less_than_the_estimators_is_refused():
    refused("may leak more than the declared 'dpsgd", mechanism=ps.DPSGD(9.0, 1.0, 4))
    refused("must cover the estimator's own mechanism", space={"steps": [2, 4]}, mechanism=lambda _: ps.DPSGD(4.0, 1.0, 2))
    for space in ({"steps": [2, 4]}, {"noise_multiplier": stats.uniform(1, 3)}):
        less = ps.DPSGD(9.0, 1.0, 4)
        refused("must cover the estimator's own mechanism", space=space, mechanism=less, mechanism_of=lambda _, less=less: less)
    refused(
        "every candidate must have a `mechanism`, because the estimator has one, got a str without it",
        make_pipeline(Normalizer(), SOFTMAX),
        {"privatesoftmax": ["passthrough"]},
    )
    sentence = "{} is not differentially private. Use {}, or pass mechanism=... to state what one fit leaks."
    refused(f"^{re.escape(sentence.format('LogisticRegression', 'PrivateSoftmax'))}$", LogisticRegression(), {"C": [1.0]})
    refused(f"^{re.escape(sentence.format('Ridge', 'AdaSSPRegressor'))}$", Ridge(), {"alpha": [1.0]})
    refused("`mechanism` is required: Seeded does not state what one fit leaks. Use PrivateSoftmax, or pass", Seeded(), {"depth": [1]})
    assert mechanism_of(search(mechanism="dpsgd(noise_multiplier=3, sampling_probability=1, steps=4)").fit(X, Y))


def test_a_score_on_the_training_data_is_not_covered_by_the_fit_alone():
    given = {"validation": "covered"}
    refused("`mechanism` must cover both the fit and the score if `validation` is 'covered', got none. The fit alone is dpsgd", **given)
    for mechanism in (SOFTMAX.mechanism, str(SOFTMAX.mechanism), ps.DPSGD(9.0, 1.0, 4), lambda _: SOFTMAX.mechanism):
        refused("must cover both the fit and the score", mechanism=mechanism, **given)
    refused("must cover both the fit and the score", mechanism=ps.Composed((ps.DPSGD(9.0, 1.0, 4), ps.Gaussian(sigma=9))), **given)
    both = ps.Composed((SOFTMAX.mechanism, ps.Gaussian(sigma=9)))
    assert mechanism_of(search(mechanism=both, **given).fit(X, Y)) == str(both)
    assert mechanism_of(search(mechanism=lambda _: both, **given).fit(X, Y)) == str(both)


def test_a_hold_out_is_accounted_for_beside_the_training():
    fitted = search(validation=HoldOut(fraction=Fraction(1, 5), sigma=3), mechanism=SOFTMAX.mechanism).fit(X, Y)
    assert ps.parse(mechanism_of(fitted)) == ps.Disjoint((SOFTMAX.mechanism, ps.DiscreteGaussian(sigma=3, neighbours="add_remove")))
    whole = search(validation=HoldOut(fraction=0.2, sigma=3), mechanism=mechanism_of(fitted)).fit(X, Y)
    assert mechanism_of(whole) == mechanism_of(fitted)
    assert mechanism_of(search(validation=HoldOut(fraction=0.2, sigma=3)).fit(X, Y)) == mechanism_of(fitted)
    assert fitted.best_score_ == int(fitted.best_score_)


# -- validation -----------------------------------------------------------------------------------------------------------------------


def test_a_public_validation_takes_any_score():
    fitted = search(validation=(X[:50], Y[:50]), scoring="neg_log_loss").fit(X, Y)
    assert fitted.best_score_ == pytest.approx(fitted.score(X[:50], Y[:50]))
    assert fitted.best_score_ < 0
    assert "public data" in fitted.certificate_.plan.declared.score


def within(estimator, features, targets):
    return np.abs(estimator.predict(features) - targets) < 0.5


def test_a_hold_out_given_apart_is_counted_with_noise():
    fitted = search(validation=HoldOut(X=X[:60], y=Y[:60], sigma=0.05), random_state=3).fit(X[60:], Y[60:])
    # Noise of 0.05 is 0 but for a probability of 1e-86.
    assert fitted.best_score_ == np.count_nonzero(fitted.predict(X[:60]) == Y[:60])
    assert "separate hold-out" in notes_of(fitted)
    counted = search(validation=HoldOut(X=X[:60], y=Y[:60], sigma=0.05), scoring=within, random_state=3).fit(X[60:], Y[60:])
    assert counted.best_score_ == fitted.best_score_


@pytest.mark.parametrize("scoring", ["roc_auc", make_scorer(roc_auc_score), ["accuracy"]])
def test_a_score_that_one_record_may_move_by_more_is_refused_with_a_hold_out(scoring):
    refused("one record must change the score by at most 1", validation=HoldOut(fraction=0.2, sigma=3), scoring=scoring)


@pytest.mark.parametrize(
    ("validation", "sentence"),
    [
        ("public", "^`validation` must be .*, got 'public'$"),
        ([X, Y], "got a list$"),
        ((X, Y + 5), "must have labels that also occur in the records"),
        ((X, np.where(Y, "a", "b")), "must have labels that also occur in the records"),
        (HoldOut(sigma=3), "needs either both `X` and `y`, or `fraction`"),
        (HoldOut(X=X, sigma=3), "needs either both"),
        (HoldOut(X=X, y=Y, fraction=0.2, sigma=3), "needs either both"),
        (HoldOut(X=X, y=Y, ids=Y, sigma=3), "`ids` of a HoldOut must be None"),
        (HoldOut(fraction=0.2), "`epsilon` is required, because `sigma` of the HoldOut is computed from the budget"),
        (None, "`epsilon` is required, because `sigma` of the HoldOut is computed from the budget"),
        (HoldOut(fraction=2, sigma=3), r"`fraction` must be in \(0, 1\)"),
        (HoldOut(fraction=0.2, sigma=-1), "`sigma` must be"),
    ],
)
def test_a_validation_must_be_chosen(validation, sentence):
    refused(sentence, validation=validation)


def test_several_scores_and_a_count_without_a_classifier_are_refused():
    refused("one number decides which trial wins", scoring=["accuracy", "roc_auc"])
    refused(
        r"^`validation` must be \(X, y\) of public records, HoldOut.* or 'covered' .*, got none$",
        LinearRegression(),
        {"positive": [True]},
        validation=None,
    )
    refused(
        "`scoring` must be a function correct.*, got None: LinearRegression is not a classifier",
        LinearRegression(),
        {"positive": [True]},
        validation=HoldOut(fraction=0.2, sigma=3),
    )


def test_the_id_of_a_record_depends_on_that_record_alone():
    ids = record_ids({"X": X, "y": Y})
    assert record_ids({"X": X[50:], "y": Y[50:]}) == ids[50:]
    assert len(set(ids)) == 200
    # Another record may turn whole numbers to floats, numbers to objects, and short texts to long ones.
    whole = np.array([[1, 2], [3, 4]])
    for others in (np.array([[1, 2], [0.5, 4]]), np.array([[1, 2], ["a", 4]], dtype=object), np.array([[1, 2], [None, 4]], dtype=object)):
        assert record_ids({"X": others})[0] == record_ids({"X": whole})[0]
    assert record_ids({"X": np.array([["a"], ["b"]])})[0] == record_ids({"X": np.array([["a"], ["long"]])})[0]


def test_one_id_does_not_change_the_others():
    numbers = list(range(len(X)))
    sides = [
        check_training_records(search(validation=HoldOut(fraction=0.2, sigma=3, ids=ids)), X, Y).ids
        for ids in (numbers, [*numbers[:-1], "a"])
    ]
    assert sides[0][:-1] == sides[1][:-1]


def test_several_outputs_are_counted_where_all_are_right():
    held = HoldOut(fraction=0.2, sigma=3)
    counted = search(
        MultiOutputClassifier(Seeded()), {"estimator__depth": [1]}, mechanism=ps.Gaussian(sigma=4), validation=held, count=ps.Fixed(1)
    )
    assert counted.fit(X, np.column_stack([Y, Y])).best_score_ is not None


def test_ids_that_are_given_decide_the_side():
    seen = []

    def correct(estimator, features, targets):
        seen.append(features[:, 0].tolist())
        return within(estimator, features, targets)

    ids = [f"person {place}" for place in range(200)]
    for rows in (X, X[:, ::-1]):
        held = HoldOut(fraction=0.2, sigma=3, ids=ids)
        search(validation=held, scoring=correct).fit(np.column_stack([np.arange(200), rows]), Y)
    assert all(part == seen[0] for part in seen)
    assert 15 < len(seen[0]) < 75
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        search(validation=HoldOut(fraction=0.2, sigma=3, ids=ids[1:])).fit(X, Y)


# -- what RandomizedSearchCV has ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cv", [5, KFold(5)])
def test_folds_are_refused_with_their_price(cv):
    price = ps.Selection(ps.Composed((SOFTMAX.mechanism,), times=5), GIVEN["count"]).epsilon_at(delta=1e-5).upper
    refused(re.escape(f"5 compositions of the mechanism in one trial. They would cost epsilon {round_up(price, 4):.4g} at"), cv=cv)


@pytest.mark.parametrize("name", ["n_iter", "return_train_score", "error_score", "pre_dispatch", "verbose"])
def test_arguments_without_a_private_meaning_are_explained(name):
    with pytest.raises(ParameterError, match=f"a private search has no `{name}`: .*; got {name}=10"):
        search(**{name: 10})
    with pytest.raises(TypeError, match="nothing"):
        search(nothing=10)


@pytest.mark.parametrize("name", ["cv_results_", "best_index_", "n_splits_", "refit_time_"])
def test_results_that_would_tell_are_not_there(name):
    fitted = search().fit(X, Y)
    assert not hasattr(fitted, name)
    with pytest.raises(AttributeError, match=f"has no attribute '{name}': "):
        getattr(fitted, name)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"n_jobs": 0}, "`n_jobs` must be None, a number of processes, or -1"),
        ({"random_state": np.random.RandomState(0)}, "`random_state` must be an integer"),
        ({"delta": None}, "`delta` must be"),
        ({"count": ps.Gaussian(sigma=4)}, "`count` must be a law of K"),
        ({"count": 10}, "`count` must be a law of K"),
        ({"options": {"insecure_seed": 1}}, "`options` must hold .* got 'insecure_seed'"),
        ({"options": {"nothing": 1}}, "`nothing` is not an option of tune"),
        ({"options": 5}, "`options` must be None or a dict, got 5"),
        ({"covered": "scaler"}, "`covered` must be a tuple of step names"),
        ({"estimator": None}, "`estimator` must be a scikit-learn estimator with a fit method, got None"),
        ({"estimator": search()}, "must not be or hold a PrivateSearch"),
        ({"estimator": clone(SOFTMAX).set_params(random_state="x")}, "`random_state` must be None, a RandomState or an integer"),
        ({"synthetic": X}, r"`synthetic` must be \(X, y\)"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(given, sentence):
    refused(sentence, **given)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (X[:, 0] + 4711, "Expected 2D array, got 1D array instead.\nReshape your data either using"),
        (np.where(X > 2, "patient-4711", X.astype(str)).astype(object), "could not convert string to float"),
    ],
)
def test_errors_of_scikit_learn_show_no_values_of_records(rows, said):
    with pytest.raises(ValueError, match=re.escape(said)) as caught:
        search().fit(rows, Y)
    shown = "".join(traceback.format_exception(caught.value))
    assert "4711" not in shown
    assert "4714" not in shown


def test_a_cache_and_callbacks_are_refused(tmp_path):
    steps = [("scale", Normalizer()), ("model", SOFTMAX)]
    refused("a cache on disk would keep", Pipeline(steps, memory=str(tmp_path)), {"model__clip": [1.0]})
    watched = LogisticRegression()
    watched._skl_callbacks = [object()]
    refused("callbacks must not be set", watched, {"C": [1.0]}, mechanism=ps.Gaussian(sigma=4))


# -- labels, weights, failures --------------------------------------------------------------------------------------------------------


def test_labels_are_public_by_declaration():
    fitted = search(classes=[0, 1, 2]).fit(X, Y)
    assert fitted.predict_proba(X).shape == (200, 3)
    assert fitted.classes_.tolist() == [0, 1, 2]
    assert "set of labels" not in notes_of(fitted)
    assert "set of labels" in notes_of(search().fit(X, Y))
    refused("has no parameter `classes`", LogisticRegression(), {"C": [1.0]}, classes=[0, 1], mechanism=ps.Gaussian(sigma=4))


def test_one_record_cannot_change_the_kind_of_all_labels():
    mixed = [*Y[:-1].tolist(), "a"]  # of which numpy makes texts, none of them the class 0 or 1
    softmax = clone(SOFTMAX).set_params(classes=[0, 1])
    for fit in (softmax.fit, search(softmax).fit, search(softmax, validation=HoldOut(fraction=0.2, sigma=3)).fit):
        with pytest.raises(ParameterError, match="`y` must hold labels of one kind, numbers or strings, got several kinds"):
            fit(X, mixed)
    refused("`classes` must hold labels of one kind", classes=[0, "a"])
    with pytest.raises(ParameterError, match="`classes` must hold labels of one kind"):
        clone(SOFTMAX).set_params(classes=[0, "a"]).fit(X, Y)
    refused("labels of one kind", softmax, validation=HoldOut(X=X, y=mixed, sigma=3))
    assert softmax.fit(X, [*Y[:-2].tolist(), True, np.float64(1.0)]).classes_.tolist() == [0, 1]


def test_weights_are_passed_on_or_refused():
    with pytest.raises(ParameterError, match="`sample_weight` must be None: PrivateSoftmax does not accept weights"):
        search().fit(X, Y, sample_weight=np.ones(200))
    with pytest.raises(ParameterError, match="takes no parameter except sample_weight, got 'groups'"):
        search().fit(X, Y, groups=Y)
    weighted = search(LogisticRegression(), {"C": [1.0]}, mechanism=ps.Gaussian(sigma=4))
    plain, heavy = (clone(weighted).fit(X, Y, sample_weight=weights) for weights in (None, np.where(Y == 1, 9.0, 1.0)))
    assert "records have weights" in notes_of(heavy)
    assert heavy.best_estimator_.intercept_ > plain.best_estimator_.intercept_


class Failing(ClassifierMixin, BaseEstimator):
    def __init__(self, depth=1, fails=True):
        self.depth = depth
        self.fails = fails

    def fit(self, X, y):  # noqa: ARG002, N803
        if self.fails:
            raise ValueError("canary")
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):  # noqa: N803
        return np.zeros(len(X), dtype=int)


@pytest.mark.parametrize(("fails", "law"), [(True, "geometric(mean=2)"), (False, "finite({0: 99, 1: 1})")])
def test_a_search_without_a_winner_says_so_and_not_why(fails, law):
    # By this seed K is 0 in the second case.
    given = {"mechanism": ps.Gaussian(sigma=4), "count": law, "scoring": "accuracy", "random_state": 1}
    fitted = search(Failing(fails=fails), {"depth": [1]}, **given).fit(X, Y)
    assert (fitted.best_estimator_, fitted.best_params_, fitted.best_score_) == (None, None, None)
    with pytest.raises(
        NotFittedError, match=r"^the search released no estimator: either no trial was drawn or all trials failed, and which one is secret"
    ):
        fitted.predict(X)


def test_a_trial_on_synthetic_data_finds_what_fails():
    given = {"mechanism": ps.Gaussian(sigma=4), "scoring": "accuracy", "synthetic": (X[:20] * 0, np.arange(20) % 2)}
    refused("failed with ValueError before any private data was accessed", Failing(), {"depth": [1]}, **given)
    assert search(synthetic=(X[:20], Y[:20]), validation=HoldOut(fraction=0.2, sigma=3)).fit(X, Y).best_params_


def test_an_estimator_that_changes_the_data_fails():
    given = {"mechanism": ps.Gaussian(sigma=4), "scoring": "accuracy"}
    before = X.copy()
    assert search(Changing(), {"depth": [1]}, **given).fit(X, Y).best_params_ is None
    assert np.array_equal(X, before)


class Changing(Failing):
    def fit(self, X, y):  # noqa: N803
        X[0] = 0.0
        self.classes_ = np.unique(y)
        return self


# -- randomness -----------------------------------------------------------------------------------------------------------------------


class Seeded(ClassifierMixin, BaseEstimator):
    """Shows the randomness that it was handed."""

    def __init__(self, depth=1, random_state=None):
        self.depth = depth
        self.random_state = random_state

    def fit(self, X, y):  # noqa: N803
        self.classes_, self.n_features_in_ = np.unique(y), X.shape[1]
        self.kind_ = type(self.random_state).__name__
        self.random_state_ = check_random_state(self.random_state)
        self.drawn_ = self.random_state_.random_sample()
        self.global_ = np.random.random_sample()  # noqa: NPY002
        return self

    def predict(self, X):  # noqa: N803
        return np.zeros(len(X), dtype=int)

    def predict_proba(self, X):  # noqa: N803
        return np.full((len(X), len(self.classes_)), 1 / len(self.classes_))


@pytest.mark.parametrize(("given", "kind"), [(None, "RandomState"), (np.random.RandomState(3), "RandomState"), (7, "int")])
def test_each_trial_has_randomness_of_its_own_and_none_of_it_leaves(given, kind, tmp_path):
    np.random.seed(4)  # noqa: NPY002
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    runs = [
        search(Seeded(random_state=given), {"depth": [1]}, mechanism=ps.Gaussian(sigma=4), random_state=seed, **where).fit(X, Y)
        for seed, where in ((1, {}), (1, {"out": tmp_path / "out"}), (2, {}))
    ]
    first, same, other = (run.best_estimator_ for run in runs)
    assert (first.drawn_, first.global_) == (same.drawn_, same.global_)
    assert first.drawn_ != other.drawn_
    assert first.kind_ == kind
    assert first.random_state is given or np.array_equal(first.random_state.get_state()[1], given.get_state()[1])
    assert first.random_state_ is None
    assert np.array_equal(np.random.get_state()[1], state)  # noqa: NPY002 - the trial's own state would tell its noise
    assert ("seeds of 32 bits" in notes_of(runs[0])) == (kind == "int")
    assert pickle.loads((tmp_path / "out" / "model.bin").read_bytes()).random_state is None  # noqa: S301


def test_seeds_of_inner_estimators_do_not_leave():
    fitted = BaggingClassifier(Seeded(), n_estimators=3, random_state=1).fit(X, Y)
    assert all(isinstance(inner.random_state, int) for inner in fitted.estimators_)
    released = load_estimator(dump_estimator(fitted))
    assert [inner.random_state for inner in released.estimators_] == [None] * 3
    assert [inner.random_state_ for inner in released.estimators_] == [None] * 3


def drawn_by_parts(estimator, **given):
    fitted = search(estimator, {"estimator__depth": [1]}, mechanism=ps.Gaussian(sigma=4), **given).fit(X, Y3)
    return fitted, [inner.drawn_ for inner in fitted.best_estimator_.estimators_]


@pytest.mark.parametrize("given", [None, 7, np.random.RandomState(3)])
def test_clones_inside_an_estimator_do_not_share_their_noise(given):
    fitted, drawn = drawn_by_parts(OneVsRestClassifier(Seeded(random_state=given)), random_state=1)
    assert len(set(drawn)) == 3  # where all clones begin with one state, differences of what is released have no noise
    assert drawn == drawn_by_parts(OneVsRestClassifier(Seeded(random_state=given)), random_state=1)[1]
    assert fitted.best_estimator_.estimator.random_state is given or isinstance(given, np.random.RandomState)


def test_seeds_that_an_ensemble_hands_on_are_short_and_do_not_leave():
    fitted, drawn = drawn_by_parts(BaggingClassifier(Seeded(), n_estimators=3))
    assert len(set(drawn)) == 3
    assert fitted.best_estimator_._seeds is None  # from these the noise of every part can be made again
    assert "seeds of 32 bits" in notes_of(fitted)


class OtherName(Seeded):
    def __init__(self, depth=1, rng=None, seed=None):
        self.depth = depth
        self.rng = rng
        self.seed = seed


@pytest.mark.parametrize("given", [{"rng": np.random.default_rng(1)}, {"rng": random.Random(1)}, {"seed": 5}])  # noqa: S311
def test_randomness_by_another_name_is_refused(given):
    # A clone has a copy of it: the same noise in every trial, and in every run.
    refused("must not hold a seed or generator", OtherName(**given), {"depth": [1]}, mechanism=ps.Gaussian(sigma=4))
    refused(
        "must not hold a seed or generator",
        make_pipeline(Normalizer(), OtherName(**given)),
        {"othername__depth": [1]},
        mechanism="gaussian(sigma=4)",
    )


def test_an_estimator_without_a_name_is_refused():
    nameless = make_pipeline(FunctionTransformer(lambda rows: rows), SOFTMAX)
    refused("cannot pickle this Pipeline: use classes and functions of a module, not lambdas", nameless, {"privatesoftmax__clip": [1.0]})


def test_a_seed_makes_an_insecure_certificate():
    assert search(random_state=3).fit(X, Y).certificate_.run.insecure
    assert not search().fit(X, Y).certificate_.run.insecure


@pytest.mark.slow
def test_processes_release_what_one_process_does():
    here, there = (search(random_state=5, n_jobs=jobs).fit(X, Y) for jobs in (None, 2))
    assert here.best_params_ == there.best_params_
    assert np.array_equal(here.best_estimator_.coef_, there.best_estimator_.coef_)


# -- the ledger -----------------------------------------------------------------------------------------------------------------------


def test_a_pickled_search_leaves_its_private_records_behind():
    canary = 0x4711_4711_4711_0000 + np.arange(len(X))
    for held in (HoldOut(X=X * 1.5, y=Y, sigma=3), HoldOut(fraction=0.2, sigma=3, ids=canary)):
        fitted = search(validation=held, count=ps.Fixed(1)).fit(X, Y)
        content = pickle.dumps(fitted)
        assert (X[7] * 1.5).tobytes() not in content
        assert canary[:2].tobytes() not in content
        assert np.array_equal(pickle.loads(content).predict(X), fitted.predict(X))  # noqa: S301
        assert fitted.validation is held
        assert pickle.dumps(clone(fitted)) != content  # one to be fitted, as workers of a program get it, has all


def test_a_second_fit_of_the_same_plan_must_be_asked_for(tmp_path):
    first = search(ledger=tmp_path / "ledgers").fit(X, Y)
    with pytest.raises(LedgerError, match="already run and released"):
        clone(first).fit(X, Y)
    both = clone(first).set_params(again=True).fit(X, Y)
    assert both.certificate_.run.runs == 2
    assert both.certificate_.total.upper > first.certificate_.total.upper
    # Other parameters of the estimator are another plan.
    clone(first).set_params(estimator__records=300).fit(X, Y)
    with pytest.raises(LedgerError):
        cross_val_score(search(ledger=tmp_path / "more"), X, Y, cv=2, error_score="raise")


class Interrupted(Seeded):
    """Stops the whole run at its third fit."""

    fits = 0

    def fit(self, X, y):  # noqa: N803
        type(self).fits += 1
        if self.fits == 3:
            raise KeyboardInterrupt
        return super().fit(X, y)

    def score(self, X, y):  # noqa: ARG002, N803
        return self.drawn_


@pytest.mark.parametrize("validation", [(X[:20], Y[:20]), HoldOut(fraction=0.2, sigma=3), HoldOut(X=X[:20], y=Y[:20], sigma=3)])
def test_a_search_that_was_interrupted_goes_on(validation, tmp_path):
    Interrupted.fits = 0
    given = {"mechanism": ps.Gaussian(sigma=4), "count": ps.Geometric(mean=9), "random_state": 1, "validation": validation}
    stopped = search(Interrupted(), {"depth": [1, 2]}, ledger=tmp_path / "ledgers", **given)
    with pytest.raises(KeyboardInterrupt):
        stopped.fit(X, Y)
    with pytest.raises(LedgerError, match="the data or the objective has changed since it started"):
        clone(stopped).fit(X + 1, Y)
    resumed = clone(stopped).fit(X, Y)
    assert Interrupted.fits > 3
    whole = search(Interrupted(), {"depth": [1, 2]}, **given).fit(X, Y)
    assert resumed.best_estimator_.drawn_ == whole.best_estimator_.drawn_


# -- pipelines ------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("estimator", "name"),
    [
        (Pipeline([("scaler", StandardScaler()), ("model", SOFTMAX)]), "scaler"),
        (Pipeline([("all", Pipeline([("inner", MinMaxScaler())])), ("model", SOFTMAX)]), "all__inner"),
        (Pipeline([("columns", ColumnTransformer([("some", StandardScaler(), [0])])), ("model", SOFTMAX)]), "columns__some"),
        (Pipeline([("union", FeatureUnion([("some", StandardScaler())])), ("model", SOFTMAX)]), "union__some"),
        (Pipeline([("first", Normalizer()), ("then", Pipeline([("scaler", StandardScaler()), ("model", SOFTMAX)]))]), "then__scaler"),
    ],
)
def test_a_step_that_learns_is_refused_unless_declared(estimator, name):
    space = {"then__model__clip" if name.startswith("then") else "model__clip": [1.0]}
    refused(re.escape(f"step '{name}' learns from the private data, and no mechanism covers it"), estimator, space)
    # The mechanism that the last step declares is not enough then.
    refused("`mechanism` is required if steps are covered", estimator, space, covered=(name,))
    fitted = search(estimator, space, covered=(name,), mechanism=ps.Gaussian(sigma=1)).fit(X, Y)
    assert f"step '{name}' learns from the data" in notes_of(fitted)
    assert fitted.predict(X).shape == (200,)


def test_steps_that_learn_nothing_are_taken():
    public = FrozenEstimator(StandardScaler().fit(X[:20]))
    columns = ColumnTransformer([("rows", Normalizer(), [0, 1])], remainder="passthrough")
    steps = [
        ("a", Normalizer()),
        ("b", FunctionTransformer(np.tanh)),
        ("c", "passthrough"),
        ("d", public),
        ("e", columns),
        ("model", SOFTMAX),
    ]
    fitted = search(Pipeline(steps), {"model__clip": [0.5, 1.0]}).fit(X, Y)
    assert set(fitted.best_params_) == {"model__clip"}
    assert "treat each record by itself" in notes_of(fitted)


def test_a_pipeline_around_the_search_is_seen():
    with pytest.raises(ParameterError, match=r"^step 'scaler' before the search learns from the private data"):
        Pipeline([("scaler", StandardScaler()), ("search", search())]).fit(X, Y)
    with pytest.raises(ParameterError, match="step 'scaler' before the search"):
        Pipeline([("scaler", StandardScaler()), ("rest", Pipeline([("rows", Normalizer()), ("search", search())]))]).fit(X, Y)
    declared = Pipeline([("scaler", StandardScaler()), ("search", search(covered=("scaler",)))]).fit(X, Y)
    # No mechanism of a trial can cover what is done once before: where K is 0 the scaler is there all the same.
    assert "step 'scaler' before the search learns from the data once" in notes_of(declared[-1])
    assert "its privacy cost is not in this certificate" in notes_of(declared[-1])
    plain = Pipeline([("rows", Normalizer()), ("search", search())]).fit(X, Y)
    assert plain.predict(X).shape == (200,)
    assert "processing of the data before the search is not covered" in notes_of(plain[-1])


def test_a_run_that_is_not_covered_releases_nothing():
    with pytest.raises((AbortedError, ParameterError), match="may leak more than the declared"):
        search(mechanism_of=lambda _: ps.DPSGD(1.0, 1.0, 4)).fit(X, Y)
