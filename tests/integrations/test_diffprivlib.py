"""What the estimators of diffprivlib leak, and why some are refused: by diffprivlib itself."""

import pickle
import warnings
from dataclasses import dataclass

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone

import privselect as ps
from privselect.errors import NotCoveredError, ParameterError
from privselect.integrations import PrivateSearch, diffprivlib_mechanism, mechanism_from_estimator
from privselect.integrations.diffprivlib import _REFUSED, _SUPPORTED, NOTES
from privselect.mechanisms.neighbours import REPLACE_ONE

pytestmark = pytest.mark.diffprivlib

RNG = np.random.default_rng(5)
X = RNG.random((60, 2))
Y = (X.sum(axis=1) > 1.0).astype(int)


@pytest.fixture(scope="module")
def models():
    return pytest.importorskip("diffprivlib.models")


def pure(epsilon):
    return ps.Pure(epsilon=epsilon, neighbours=REPLACE_ONE)


# -- the mechanism of one fit ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bounds", "times"),
    [((0, 1), 2), ((-1, 1), 5 / 3), (([0, 0], [1, 5]), 2), (([0, -1], [1, 1]), 11 / 6), ((5, 6), 16 / 3), ((-6, -5), 16 / 3)],
)
def test_naive_bayes_counts_both_classes_of_a_record_that_changes_its_own(models, bounds, times):
    for epsilon in (0.1, 1, np.float64(3.0)):
        found = mechanism_from_estimator(models.GaussianNB(epsilon=epsilon, bounds=bounds))
        assert found.neighbours == REPLACE_ONE
        assert epsilon * times * (1 - 1e-15) <= found.epsilon == pytest.approx(epsilon * times, rel=1e-15)


def test_the_others_that_are_known_leak_their_epsilon(models):
    assert mechanism_from_estimator(models.StandardScaler(epsilon=0.3, bounds=(0, 1))) == pure(0.3)
    assert mechanism_from_estimator(models.LogisticRegression(epsilon=0.3, n_jobs=1, data_norm=1, fit_intercept=False)) == pure(0.3)


def test_which_accountant_it_has_makes_no_difference(models):
    accountant = pytest.importorskip("diffprivlib").BudgetAccountant(epsilon=9)
    assert mechanism_from_estimator(models.GaussianNB(bounds=(0, 1), accountant=accountant)) == pure(2)


def test_every_model_of_diffprivlib_is_judged(models):
    judged = {name.rpartition(".")[2] for name in _SUPPORTED} | set(_REFUSED)
    assert judged == {name for name, kind in vars(models).items() if isinstance(kind, type)}


def test_a_function_of_the_parameters(models):
    mechanism = diffprivlib_mechanism(models.GaussianNB(bounds=(0, 1), random_state=np.random.RandomState()))
    again = pickle.loads(pickle.dumps(mechanism))  # noqa: S301 - our own
    assert again({"epsilon": 0.25}) == mechanism({"epsilon": 0.25}) == pure(0.5)
    assert mechanism({}) == pure(2)
    assert mechanism({"bounds": (-1, 1), "epsilon": 3, "var_smoothing": 1e-3}) == pure(5)
    assert set(NOTES) < set(mechanism.notes)
    assert any("labels" in note for note in mechanism.notes)
    with pytest.raises(NotCoveredError, match="`bounds` must be given"):
        mechanism({"bounds": None})


def test_what_is_done_to_the_estimator_later_is_nothing_to_the_function(models):
    estimator = models.GaussianNB(bounds=(0, 1))
    mechanism = diffprivlib_mechanism(estimator)
    estimator.set_params(epsilon=0.1).fit(X, Y)
    assert mechanism({}) == pure(2)
    assert set(NOTES) < set(mechanism.notes)


# -- refusals --------------------------------------------------------------------------------------------------------------

LOGISTIC = {"data_norm": 1.0, "fit_intercept": False, "n_jobs": 1}
WRONG = [
    ("GaussianNB", {}, "`bounds` must be given as (min, max), got none"),
    ("StandardScaler", {}, "`bounds` must be given as (min, max), got none"),
    ("GaussianNB", {"bounds": 3}, "with min < max, numbers or one for each feature, got 3"),
    ("GaussianNB", {"bounds": [0, 1]}, "must be a tuple (min, max) with min < max, numbers or one for each feature, got [0, 1]"),
    ("GaussianNB", {"bounds": ([[0, 0]], [[1, 1]])}, "with min < max, numbers or one for each feature, got ([[0, 0]], [[1, 1]])"),
    ("GaussianNB", {"bounds": (1, 1)}, "with min < max, numbers or one for each feature, got (1, 1)"),
    ("GaussianNB", {"bounds": (0, np.inf)}, "with min < max, numbers or one for each feature, got (0, inf)"),
    ("GaussianNB", {"bounds": ([0, 0], [1])}, "with min < max, numbers or one for each feature, got ([0, 0], [1])"),
    ("GaussianNB", {"bounds": ([0, 0], [1e-9, 5e-9])}, "the same for all features or differ by more"),
    ("GaussianNB", {"bounds": (0, 1), "epsilon": 0}, "`epsilon` must be in (0, inf), got 0"),
    ("GaussianNB", {"bounds": (0, 1), "epsilon": None}, "`epsilon` must be in (0, inf), got None"),
    ("GaussianNB", {"bounds": (0, 1), "epsilon": np.inf}, "`epsilon` must be in (0, inf), got inf"),
    ("GaussianNB", {"bounds": (0, 1), "random_state": 7}, "`random_state` must be None or a RandomState"),
    ("LogisticRegression", {**LOGISTIC, "data_norm": None}, "`data_norm` must be given, got none"),
    ("LogisticRegression", {**LOGISTIC, "data_norm": 2}, "`data_norm` must be in (0, 1], got 2: "),
    ("LogisticRegression", {**LOGISTIC, "fit_intercept": True}, "`fit_intercept` must be False, got True: "),
    ("LogisticRegression", {**LOGISTIC, "warm_start": True}, "`warm_start` must be False, got True: "),
    ("LogisticRegression", {**LOGISTIC, "n_jobs": 2}, "`n_jobs` must be 1, got 2: "),
    ("LogisticRegression", {**LOGISTIC, "n_jobs": None}, "`n_jobs` must be 1, got None: "),
    ("LogisticRegression", {**LOGISTIC, "C": 0}, "`C` must be in (0, inf), got 0"),
]


@pytest.mark.parametrize(("name", "given", "sentence"), WRONG)
def test_parameters_that_leave_a_fit_without_its_guarantee_are_refused_by_name(models, name, given, sentence):
    with pytest.raises((ParameterError, NotCoveredError)) as caught:
        mechanism_from_estimator(getattr(models, name)(**given))
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", _REFUSED)
def test_models_that_are_not_private_as_they_stand_are_refused_with_the_reason(models, name):
    for ask in (mechanism_from_estimator, diffprivlib_mechanism):
        with pytest.raises(NotCoveredError, match=f"^{name} of diffprivlib is refused: "):
            ask(getattr(models, name)())


def test_an_estimator_that_is_fitted_or_of_a_class_of_ones_own_is_refused(models):
    fitted = models.GaussianNB()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted.fit(X, Y)
    assert fitted.bounds is not None  # read from the data
    for ask in (mechanism_from_estimator, diffprivlib_mechanism):
        with pytest.raises(ParameterError, match="`estimator` must not be fitted yet"):
            ask(fitted)

    mine = type("MyNB", (models.GaussianNB,), {})
    with pytest.raises(ParameterError, match=r"must be an estimator of diffprivlib.models, got '.*\.MyNB'"):
        mechanism_from_estimator(mine(bounds=(0, 1)))


# -- what the judgements rest on -------------------------------------------------------------------------------------------


def test_linear_regression_adds_no_noise_to_squares_above_a_lower_bound_of_0(models):
    model = models.LinearRegression(bounds_X=(0, 1), bounds_y=(0, 2), fit_intercept=False, epsilon=1e-6).fit(X, X.sum(axis=1))
    assert np.diag(model._obj_coefs[2]) == pytest.approx((X**2).sum(axis=0), rel=1e-12)


def test_a_tree_takes_its_thresholds_and_empty_leaves_from_the_global_generator_but_not_its_noise(models):
    def tree():
        np.random.seed(5)  # noqa: NPY002 - the global generator is what is asked about
        return models.DecisionTreeClassifier(6, epsilon=1e-9, bounds=(0, 1), classes=[0, 1, 2]).fit(X[:20], Y[:20]).tree_

    first, second = tree(), tree()
    assert np.array_equal(first.threshold, second.threshold)
    leaves = np.flatnonzero(first.children_left < 0)
    full = np.unique(first.apply(X[:20].astype(np.float32)))
    empty = np.setdiff1d(leaves, full)
    assert len(empty) > 10
    assert np.array_equal(first.value[empty], second.value[empty])
    assert not np.array_equal(first.value[full], second.value[full])


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of scipy, for an option that diffprivlib gives it
def test_logistic_regression_in_a_context_of_several_processes_has_one_noise_for_all_classes(models):
    joblib = pytest.importorskip("joblib")
    three = np.digitize(X[:, 0], [1 / 3, 2 / 3])

    def spread(jobs):
        """How far the classes are apart, to how far they are from 0: all is noise at this epsilon."""
        given = LOGISTIC | {"n_jobs": jobs, "random_state": np.random.RandomState(1)}
        model = models.LogisticRegression(epsilon=1e-3, **given)
        with joblib.parallel_config(backend="loky", n_jobs=2):
            coefficients = model.fit(X, three).coef_
        return np.ptp(coefficients, axis=0).max() / np.abs(coefficients).max()

    assert spread(None) < 0.05
    assert spread(1) > 0.5


def test_naive_bayes_rounds_whole_numbers_past_bounds_that_are_not_whole(models):
    lower, upper = [0.9, 0.0], [1.1, 5.0]
    clipped = models.GaussianNB._clip_to_bounds(np.array([[0, 3], [5, 3]]), (lower, upper))
    assert clipped[:, 0].tolist() == [0, 1]
    assert any("64-bit floats" in note for note in diffprivlib_mechanism(models.GaussianNB(bounds=(lower, upper))).notes)


@pytest.mark.parametrize(("epsilon", "holds"), [(1.0, True), (1e-4, True), (1e-9, False)])
def test_the_noise_on_variances_has_the_scale_that_it_needs_but_for_tiny_epsilons(models, epsilon, holds):
    mechanisms = pytest.importorskip("diffprivlib.mechanisms")
    scale = mechanisms.LaplaceBoundedDomain(epsilon=epsilon, sensitivity=1, lower=0, upper=10)._find_scale()

    def inside(value):
        """The chance, times 2, that the noise stays in the domain."""
        return -np.expm1(-value / scale) - np.expm1((value - 10) / scale)

    leaked = 1 / scale + np.log(inside(1) / inside(0))
    assert bool(leaked < epsilon * (1 + 1e-6)) is holds
    assert any("1e-6 per feature" in note for note in diffprivlib_mechanism(models.StandardScaler(bounds=(0, 1))).notes)


def test_k_means_leaves_an_empty_cluster_exactly_where_it_was(models):
    model = models.KMeans(8, epsilon=1.0, bounds=(0, 1), random_state=1)
    model.bounds = model._check_bounds((0, 1), 2)
    first = model._init_centers(2, np.random.RandomState(1))
    fitted = models.KMeans(8, epsilon=1.0, bounds=(0, 1), random_state=1).fit(np.full((50, 2), 0.1))
    assert (fitted.cluster_centers_ == first).all(axis=1).sum() >= 6
    for features, more in ((4, False), (5, True), (100, True)):
        counts, sums = models.KMeans(epsilon=1.0)._split_epsilon(features, 1)
        assert bool(counts + features * sums > 1.0) is more


def test_a_forest_keeps_seeds_of_31_bits_from_which_its_trees_are_made_again(models):
    forest = models.RandomForestClassifier(3, bounds=(0, 1), classes=[0, 1]).fit(X, Y)
    tree = forest.estimators_[0]
    assert 0 <= tree.random_state < 2**31
    rows = np.arange(60) // 20 == 0
    again = models.DecisionTreeClassifier(bounds=(0, 1), classes=[0, 1], random_state=tree.random_state)
    again.fit(X[rows].astype(np.float32), Y[rows])
    assert np.array_equal(again.tree_.value, tree.tree_.value)
    assert np.array_equal(again.tree_.threshold, tree.tree_.threshold)


def test_naive_bayes_gives_the_exact_number_of_records_away(models):
    for size in (40, 41):
        model = models.GaussianNB(bounds=(0, 1)).fit(X[:size], Y[:size])
        assert model.class_count_.sum() == size


def test_naive_bayes_leaks_more_than_its_epsilon_where_a_record_changes_its_class(models):
    epsilon, fits, generator = 3.0, 600, np.random.RandomState(2)
    values, labels = np.full((400, 1), 5.5), np.repeat([0, 1], 200)
    moved = np.where(np.arange(400) == 0, 1, labels)

    def often(y):
        """How often the noisy sum of the first class is the greater one."""
        fitted = (models.GaussianNB(epsilon=epsilon, bounds=(5, 6), random_state=generator).fit(values, y) for _ in range(fits))
        return sum(float(np.diff(model.theta_[:, 0] * model.class_count_)[0]) < 0.0 for model in fitted)

    same = stats.binomtest(often(labels), fits).proportion_ci(0.999).low
    other = stats.binomtest(often(moved), fits).proportion_ci(0.999).high
    assert epsilon < np.log(same / other) < mechanism_from_estimator(models.GaussianNB(epsilon=epsilon, bounds=(5, 6))).epsilon


def test_noise_is_a_function_of_a_random_state_and_of_nothing_without_one(models):
    def means(random_state):
        return models.GaussianNB(bounds=(0, 1), random_state=random_state).fit(X, Y).theta_

    assert np.array_equal(means(np.random.RandomState(3)), means(np.random.RandomState(3)))
    np.random.seed(3)  # noqa: NPY002 - the global generator is what is asked about
    first = means(None)
    np.random.seed(3)  # noqa: NPY002
    assert not np.array_equal(first, means(None))


def test_copies_of_an_estimator_spend_from_copies_of_its_accountant(models):
    accountant = pytest.importorskip("diffprivlib").BudgetAccountant()
    estimator = models.GaussianNB(bounds=(0, 1), accountant=accountant)
    copied = clone(estimator).fit(X, Y)
    assert accountant.total() == (0, 0)
    assert copied.accountant.total() == (1, 0)


# -- in a run --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fit:
    """An objective: one fit with the trial's own generator, judged on public records."""

    estimator: object

    def __call__(self, candidate, data, randomness):
        model = clone(self.estimator).set_params(random_state=randomness.random_state(), **candidate).fit(*data)
        return model.score(X, Y), {"theta": model.theta_}


def tuned(estimator, space, **given):
    mechanism = diffprivlib_mechanism(estimator)
    return ps.tune(
        Fit(estimator),
        space,
        data=(X, Y),
        **({"mechanism": mechanism} | given),
        count=ps.Geometric(mean=3),
        score="public",
        delta=1e-6,
        export="arrays",
        executor="serial",
        ledger=None,
        insecure_seed=4,
    )


def test_a_run_over_epsilon_and_a_continuous_parameter_has_the_exact_mixture_and_the_notes(models):
    accountant = pytest.importorskip("diffprivlib").BudgetAccountant()
    estimator = models.GaussianNB(bounds=(0, 1), accountant=accountant)
    space = {"epsilon": ps.Choice([1, 2]), "var_smoothing": ps.LogUniform(1e-6, 1)}
    release = tuned(estimator, space)
    trial = ps.parse("mixture(1/2*pure(epsilon=2, neighbours=replace_one), 1/2*pure(epsilon=4, neighbours=replace_one))")
    assert ps.parse(release.certificate.plan.mechanism) == trial
    assert release.certificate.total.upper == pytest.approx(ps.Selection(trial, ps.Geometric(mean=3)).epsilon_at(1e-6).upper, rel=1e-3)
    assert set(diffprivlib_mechanism(estimator).notes) <= set(release.certificate.run.notes)
    assert accountant.total() == (0, 0)  # another number would tell K
    again = tuned(estimator, space)
    assert np.array_equal(again.artifact["theta"], release.artifact["theta"])  # all noise came from the trial's randomness


def test_a_continuous_epsilon_is_not_taken_for_the_one_of_the_estimator(models):
    estimator = models.GaussianNB(epsilon=0.01, bounds=(0, 1))
    space = {"epsilon": ps.Uniform(0.1, 1), "var_smoothing": ps.Choice([0.1, 1.0])}
    with pytest.raises(ParameterError, match="may leak more than the one accounted for"):
        tuned(estimator, space)
    with pytest.raises(ParameterError, match="may leak more than the declared"):
        tuned(estimator, space, mechanism=pure(1.5), mechanism_of=diffprivlib_mechanism(estimator))
    release = tuned(estimator, space, mechanism=pure(2), mechanism_of=diffprivlib_mechanism(estimator))
    assert ps.parse(release.certificate.plan.mechanism) == pure(2)
    assert set(diffprivlib_mechanism(estimator).notes) <= set(release.certificate.run.notes)


# -- in a search of scikit-learn's ---------------------------------------------------------------------------------------------

SEARCH = {"count": ps.Geometric(mean=3), "validation": (X, Y), "delta": 1e-6, "ledger": None, "random_state": 1}


def test_a_search_knows_what_its_estimator_leaks_and_says_what_that_rests_on(models):
    search = PrivateSearch(models.GaussianNB(epsilon=0.3, bounds=(-1, 1)), {"var_smoothing": [1e-9, 1e-2]}, **SEARCH).fit(X, Y)
    assert ps.parse(search.certificate_.plan.mechanism) == pure(0.5)
    assert set(NOTES) <= set(search.certificate_.run.notes)
    with pytest.raises(ParameterError, match="may leak more than the declared"):
        PrivateSearch(models.GaussianNB(bounds=(0, 1)), {"var_smoothing": [1e-9]}, mechanism=pure(1), **SEARCH).fit(X, Y)
    with pytest.raises(NotCoveredError, match="KMeans of diffprivlib is refused"):
        PrivateSearch(models.KMeans(bounds=(0, 1)), {"n_clusters": [2, 3]}, mechanism=pure(1), scoring=abs, **SEARCH).fit(X)


def test_what_no_guarantee_covers_does_not_leave_a_search(models):
    estimator = models.LogisticRegression(epsilon=3, n_jobs=1, data_norm=1, fit_intercept=False)
    search = PrivateSearch(estimator, {"C": [0.1, 1.0]}, **SEARCH).fit(X / 2, Y)
    assert search.best_estimator_.coef_.shape == (1, 2)
    assert not hasattr(search.best_estimator_, "n_iter_")
    assert search.best_estimator_.random_state is None


def test_a_search_trains_on_floats_of_64_bits(models):
    """diffprivlib would clip whole numbers to 0.9 and round them to 0."""
    bounds = ([0.9, 0.9], [1.1, 1.2])
    whole = np.tile([[0, 3]], (60, 1))
    search = PrivateSearch(models.GaussianNB(epsilon=20, bounds=bounds), {"var_smoothing": [1e-9]}, **SEARCH).fit(whole, Y)
    assert np.allclose(search.best_estimator_.theta_, [0.9, 1.2], atol=0.05)
