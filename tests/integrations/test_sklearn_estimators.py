"""The search and the classifier by scikit-learn's own checks."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin, clone, is_classifier, is_regressor
from sklearn.linear_model import LogisticRegression
from sklearn.utils import check_random_state
from sklearn.utils.estimator_checks import check_estimator
from sklearn.utils.validation import check_is_fitted, validate_data

import privselect as ps
from privselect.integrations import HoldOut, PrivateSearch, PrivateSoftmax
from privselect.integrations.sklearn import solve_noise

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")


class NoisyRidge(RegressorMixin, BaseEstimator):
    """Ridge regression from noisy sums: a row with its target is scaled to norm at most ``clip``, so one record moves the sums by clip^2.

    Columns of a clipped record's outer product have a Frobenius norm of at most clip^2, and the noise on each entry is sigma times that.
    """

    def __init__(self, sigma=0.3, clip=6.0, penalty=1.0, random_state=None):
        self.sigma = sigma
        self.clip = clip
        self.penalty = penalty
        self.random_state = random_state

    @property
    def mechanism(self):
        return ps.Gaussian(sigma=self.sigma)

    def fit(self, X, y):  # noqa: N803
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True)  # noqa: N806
        rows = np.column_stack([X, np.ones(len(X)), y])
        rows *= np.minimum(1.0, self.clip / np.linalg.norm(rows, axis=1))[:, None]
        noise = check_random_state(self.random_state).normal(size=(rows.shape[1],) * 2)
        sums = rows.T @ rows + self.sigma * self.clip**2 * noise
        self.coef_ = np.linalg.lstsq(sums[:-1, :-1] + self.penalty * np.eye(len(sums) - 1), sums[:-1, -1])[0]
        return self

    def predict(self, X):  # noqa: N803
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)  # noqa: N806
        return np.sum(X * self.coef_[:-1], axis=1) + self.coef_[-1]


def near(estimator, X, y):  # noqa: N803
    return np.abs(estimator.predict(X) - y) < 1.0


CLASSIFIER = PrivateSoftmax(noise_multiplier=0.5, sampling_probability=1.0, steps=20)


def search(estimator, **given):
    space = {"clip": [5.0, 6.0]} if isinstance(estimator, NoisyRidge) else {"learning_rate": [1.0, 2.0]}
    return PrivateSearch(estimator, space, **{"count": ps.Geometric(mean=2), "delta": 1e-5, "ledger": None, **given})


def passed(estimator):
    ended = {outcome["check_name"]: outcome["status"] for outcome in check_estimator(estimator)}  # raises where one fails
    skipped = {name for name, status in ended.items() if status == "skipped"}
    assert skipped <= {"check_array_api_input", "check_classifier_data_not_an_array", "check_regressor_data_not_an_array"}  # without pandas
    return len(ended)


@pytest.fixture
def planned_once(monkeypatch):
    """Solve for the noise of each plan once: the checks fit the same plan many times."""
    plans = {}

    def plan(*args, **given):
        key = repr((args, given))
        if key not in plans:
            plans[key] = ps.plan(*args, **given)
        return plans[key]

    monkeypatch.setattr(solve_noise, "solve_plan", plan)


def test_the_classifier_passes_every_check():
    assert passed(PrivateSoftmax(noise_multiplier=1.0)) > 40


@pytest.mark.usefixtures("once")
def test_a_search_passes_every_check():
    assert passed(search(CLASSIFIER, validation="covered", mechanism="gdp(mu=20)")) > 40


@pytest.mark.usefixtures("once", "planned_once")
def test_a_search_with_a_budget_and_a_final_fit_passes_every_check():
    # A large budget, because some checks have few records and expect that the model learns from them.
    assert passed(search(clone(CLASSIFIER).set_params(noise_multiplier=None), epsilon=300.0, refit=True)) > 40


@pytest.mark.slow
@pytest.mark.usefixtures("once")
@pytest.mark.parametrize(
    ("estimator", "given"),
    [
        (CLASSIFIER, {"validation": HoldOut(fraction=0.2, sigma=2)}),
        (NoisyRidge(), {"validation": "covered", "mechanism": "gdp(mu=20)"}),
        (NoisyRidge(), {"validation": HoldOut(fraction=0.2, sigma=2), "scoring": near}),
    ],
)
def test_searches_of_other_kinds_pass_every_check(estimator, given):
    assert passed(search(estimator, **given)) > 40


def test_a_search_is_what_its_estimator_is():
    assert is_classifier(search(CLASSIFIER))
    assert is_regressor(search(NoisyRidge()))
    assert hasattr(search(CLASSIFIER), "predict_proba")
    assert not hasattr(search(NoisyRidge()), "predict_proba")
    assert not hasattr(search(CLASSIFIER), "transform")
    assert hasattr(search(LogisticRegression()), "predict_log_proba")


def test_a_search_is_cloned_with_all_its_parameters():
    held = HoldOut(fraction=0.2, sigma=3)
    first = search(CLASSIFIER, validation=held, random_state=5, epsilon=3.0)
    copied = clone(first)
    assert copied.get_params(deep=False).keys() == first.get_params(deep=False).keys()
    assert copied.get_params()["estimator__steps"] == 20
    assert copied.set_params(estimator__steps=7).estimator.steps == 7
    assert first.estimator.steps == 20
    assert repr(held) == "HoldOut(sigma=3)"


DIGITS = np.random.default_rng(3)
X, Y = DIGITS.normal(size=(300, 3)), DIGITS.integers(0, 2, size=300)


def test_what_the_classifier_says_it_leaks_is_what_its_parameters_say():
    assert PrivateSoftmax(2.0, 0.1, 30).mechanism == ps.DPSGD(2.0, 0.1, 30)
    assert str(PrivateSoftmax(None, 0.1, 30).mechanism) == "dpsgd(noise_multiplier=?, sampling_probability=0.1, steps=30)"
    assert any("number of records" in note for note in PrivateSoftmax().notes)
    assert not any("number of records" in note for note in PrivateSoftmax(records=300).notes)


def test_the_classifier_takes_the_operating_systems_entropy_or_a_seed():
    fits = [PrivateSoftmax(1.0, random_state=state).fit(X, Y).coef_ for state in (None, None, 1, 1, 2)]
    np.random.seed(0)  # noqa: NPY002 - a global generator that is seeded must not make the noise known
    fits.append(PrivateSoftmax(1.0).fit(X, Y).coef_)
    np.random.seed(0)  # noqa: NPY002
    fits.append(PrivateSoftmax(1.0).fit(X, Y).coef_)
    assert not np.array_equal(fits[0], fits[1])
    assert np.array_equal(fits[2], fits[3])
    assert not np.array_equal(fits[3], fits[4])
    assert not np.array_equal(fits[5], fits[6])


def test_a_record_whose_label_is_no_class_adds_nothing():
    strange = np.where(Y == 1, "yes", "no").astype(object)
    strange[:5] = "canary"
    fitted = PrivateSoftmax(1.0, classes=["no", "yes"], records=300, sampling_probability=1.0, random_state=1).fit(X, strange)
    assert fitted.classes_.tolist() == ["no", "yes"]
    zeros = X.copy()
    zeros[:5] = 1e6
    again = PrivateSoftmax(1.0, classes=["no", "yes"], records=300, sampling_probability=1.0, random_state=1).fit(zeros, strange)
    assert np.array_equal(fitted.coef_, again.coef_)
    assert set(fitted.predict(X)) <= {"no", "yes"}


def test_one_class_is_refused():
    with pytest.raises(ValueError, match="1 class"):
        PrivateSoftmax(1.0, classes=[1]).fit(X, Y)
