"""Private linear regressions as scikit-learn's: its own checks, the account of one fit, noise, and bad input."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone, is_regressor
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_estimator

import privselect as ps
from privselect.errors import ParameterError
from privselect.integrations import (
    AdaSSPRegressor,
    ClippingWarning,
    NoAnswerWarning,
    OPSPTRRegressor,
    OPSRegressor,
    OutputPerturbationRegressor,
    SSPRegressor,
)
from privselect.regression.ridge_sensitivity import solution_sensitivity

ALL = [OPSRegressor, OPSPTRRegressor, AdaSSPRegressor, SSPRegressor, OutputPerturbationRegressor]
RIDGED = [kind for kind in ALL if kind is not AdaSSPRegressor]
every = pytest.mark.parametrize("kind", ALL)

RNG = np.random.default_rng(1)
X = RNG.normal(size=(3000, 4))
X /= np.linalg.norm(X, axis=1)[:, None]
WEIGHTS = np.array([0.6, -0.3, 0.2, 0.0])
Y = np.clip(X @ WEIGHTS + 0.05 * RNG.normal(size=3000), -1, 1)


def coefficients(kind, rows=X, targets=Y, **given):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ClippingWarning)
        return kind(**given).fit(rows, targets).coef_


@every
@pytest.mark.parametrize("given", [{}, {"fit_intercept": True}, {"epsilon": 0.01}])
def test_every_check_of_scikit_learn_is_passed(kind, given):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ended = {outcome["check_name"]: outcome["status"] for outcome in check_estimator(kind(insecure_seed=0, **given))}
    assert {name for name, status in ended.items() if status != "passed"} <= {
        "check_array_api_input",
        "check_regressor_data_not_an_array",
    }  # without pandas
    assert len(ended) > 40


@every
def test_without_a_seed_no_two_fits_agree_and_the_tags_say_so(kind):
    assert get_tags(kind()).non_deterministic
    assert not get_tags(kind(insecure_seed=0)).non_deterministic


@every
@pytest.mark.parametrize(
    "given", [{}, {"beyond": "refuse"}, {"fit_intercept": True}, {"epsilon": 0.1, "delta": 1e-9}, {"epsilon": 8.0, "delta": 1e-3}]
)
def test_the_mechanism_is_within_the_budget_and_nearly_uses_it_up(kind, given):
    regressor = kind(**given)
    spent = regressor.mechanism.epsilon_at(regressor.delta).upper
    assert 0.999 * regressor.epsilon < spent <= regressor.epsilon


@every
@pytest.mark.parametrize("given", [{}, {"fit_intercept": True}, {"fit_intercept": True, "centre": (0.0, 0.0)}, {"beyond": "refuse"}])
def test_the_mechanism_is_that_of_what_is_run_and_depends_on_no_record(kind, given, monkeypatch):
    ran = []
    monkeypatch.setattr(kind, "_method", lambda self, *args, old=kind._method: ran.append(old(self, *args)) or ran[-1])
    few = np.vstack([X[:40] / 4, np.zeros((3, 4))])
    fitted = kind(insecure_seed=1, **given).fit(0.25 * X, Y / 4), kind(insecure_seed=1, **given).fit(few[:, :2], np.zeros(43))
    assert fitted[0].mechanism_ == fitted[1].mechanism_ == kind(**given).mechanism
    assert fitted[0].mechanism_ == ran[0].mechanism == ran[1].mechanism
    assert fitted[0].mechanism_.neighbours == "add_remove"


@pytest.mark.parametrize("given", [{}, {"fit_intercept": True}, {"beyond": "refuse"}, {"beyond": "refuse", "fit_intercept": True}])
def test_everything_that_is_released_is_in_the_mechanism(given):
    parts = AdaSSPRegressor(**given)._budget()
    assert (parts.count > 0.0) == ("beyond" not in given)
    assert (parts.centre > 0.0) == ("fit_intercept" in given)
    squares = {kind: sum(mu**2 for mu in mus(kind(**given))) for kind in ALL}
    rounded = 1.0 + 1e-15
    assert squares[AdaSSPRegressor] <= AdaSSPRegressor(**given).mechanism.sigma ** -2 * rounded
    assert squares[OPSRegressor] <= OPSRegressor(**given).mechanism.mu ** 2 * rounded
    tested = OPSPTRRegressor(**given).mechanism
    assert squares[OPSPTRRegressor] <= (tested.test.sigma**-2 + tested.target.mu**2) * rounded


def mus(regressor):
    parts = regressor._budget()
    return parts.method, parts.count, parts.centre


def test_a_posterior_sample_alone_is_calibrated_by_its_own_profile():
    alone = OPSRegressor(ridge=50.0, beyond="refuse")
    assert str(alone.mechanism).startswith("ops(leverage=0.02, ")
    assert 0.999 < alone.mechanism.epsilon_at(1e-6).upper <= 1.0
    assert alone.fit(X, Y).mechanism_ == alone.mechanism
    assert alone.facts_["precision"] > OPSRegressor(ridge=50.0, insecure_seed=1).fit(X, Y).facts_["precision"]
    assert str(OPSRegressor(ridge=50.0, beyond="refuse", fit_intercept=True).mechanism).startswith("gdp(")


@pytest.mark.parametrize("kind", [OPSPTRRegressor, SSPRegressor, OutputPerturbationRegressor, OPSRegressor])
def test_every_ridge_costs_the_same(kind):
    assert kind(ridge=2.5).mechanism == kind(ridge=9000.0).mechanism


@every
def test_noise_is_drawn_anew_unless_a_seed_is_given(kind):
    np.random.seed(0)  # noqa: NPY002 - a global generator that is seeded must not make the noise known
    first = coefficients(kind)
    np.random.seed(0)  # noqa: NPY002
    assert not np.array_equal(first, coefficients(kind))
    assert np.array_equal(coefficients(kind, insecure_seed=3), coefficients(kind, insecure_seed=3))
    assert not np.array_equal(coefficients(kind, insecure_seed=3), coefficients(kind, insecure_seed=4))
    state = np.random.RandomState(3)
    assert not np.array_equal(coefficients(kind, insecure_seed=state), coefficients(kind, insecure_seed=state))


@every
def test_with_a_great_epsilon_the_coefficients_are_those_of_ridge_regression(kind):
    ridge = {} if kind in {AdaSSPRegressor, OPSRegressor} else {"ridge": 100.0}
    found = coefficients(kind, epsilon=100.0, insecure_seed=1, **ridge)
    used = kind(epsilon=100.0, insecure_seed=1, **ridge).fit(X, Y).facts_.get("ridge", 100.0)
    assert np.abs(found - np.linalg.solve(X.T @ X + used * np.eye(4), X.T @ Y)).max() < 0.05


@every
def test_bounds_are_units_and_nothing_else(kind):
    ordinary = coefficients(kind, insecure_seed=2)
    scaled = kind(row_bound=4.0, target_bound=10.0, insecure_seed=2).fit(4.0 * X, 10.0 * Y)
    assert np.allclose(scaled.coef_, 2.5 * ordinary, rtol=1e-9)
    assert np.allclose(scaled.predict(4.0 * X[:5]), 10.0 * X[:5] @ ordinary)


@every
def test_a_giant_record_has_the_effect_of_a_bounded_one(kind):
    rows, targets = X.copy(), Y.copy()
    rows[7], targets[8] = 1e200 * X[7], -1e200
    bounded = targets.copy()
    bounded[8] = -1.0
    found = [kind(insecure_seed=5).fit(*records) for records in ((rows, targets), (X, bounded))]
    assert np.allclose(found[0].coef_, found[1].coef_, rtol=1e-9, atol=1e-12)
    assert found[0].clipped_ == found[1].clipped_ + 2  # by the same noise; what is at its bound is not counted


@every
def test_records_beyond_the_bounds_are_told_of_where_they_are_more_than_noise(kind):
    with pytest.warns(ClippingWarning, match=r"^about \d+ records \(noise [\d.]+\) were beyond row_bound=0.5 or target_bound=1 and were"):
        fitted = kind(row_bound=0.5, insecure_seed=1).fit(X, Y)
    assert abs(fitted.clipped_ - 3000) < 300
    assert kind(row_bound=0.5, insecure_seed=1).set_params(row_bound=1.0).fit(X, Y).clipped_ < 300  # without a warning


@every
def test_records_beyond_the_bounds_are_refused_where_that_is_asked_for(kind):
    refusing = kind(beyond="refuse", insecure_seed=1)
    assert refusing.fit(X, Y).clipped_ is None
    rows = X.copy()
    rows[3] *= 1.001
    sentence = r"^rows must have norm at most row_bound=1, and targets absolute value at most target_bound=1, got a record beyond them"
    with pytest.raises(ParameterError, match=sentence):
        refusing.fit(rows, Y)
    with pytest.raises(ParameterError, match=sentence):
        refusing.fit(X, 1.5 * np.sign(Y))
    with pytest.raises(ParameterError, match="after centring, got a record"):
        refusing.set_params(fit_intercept=True, centre=(0.5, 0.0)).fit(X, Y)


@every
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_is_refused(kind, bad):
    rows, targets = X.copy(), Y.copy()
    rows[5, 1] = targets[6] = bad
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        kind().fit(rows, Y)
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        kind().fit(X, targets)


@every
def test_no_number_makes_numpy_speak(kind):
    rows, targets = 0.5 * X, 0.5 * Y
    rows[1], rows[2], rows[3] = [1.7e308, 1e-300, 0.0, -1.7e308], [5e-324, 0.0, -5e-324, 0.0], [-0.0, 1e-200, 1e200, 0.0]
    targets[4:8], targets[8:12] = 1.7e308, -1.7e308
    for state in ("warn", "raise"):
        with warnings.catch_warnings(), np.errstate(all=state):
            warnings.simplefilter("error")
            kind(fit_intercept=True, insecure_seed=1).fit(rows, targets)


@every
@pytest.mark.parametrize("short", [np.float16, np.float32, np.int8, bool, object])
def test_targets_are_summed_as_floats_of_64_bits(kind, short):
    # In 16 bits the sum of 65519 targets of 1 is 65504, and with one record more it is infinite.
    rows = np.zeros((65_520, 1))
    for number in (65_519, 65_520):
        given = {"fit_intercept": True, "records": 10**6, "insecure_seed": 1}
        found = [kind(**given).fit(rows[:number], np.ones(number, dtype)).intercept_ for dtype in (short, np.float64)]
        assert found[0] == found[1]


@every
@pytest.mark.parametrize("targets", [np.array(["a secret"] * 9), np.array(["2020-01-01"] * 9, "M8[D]"), np.full(9, np.longdouble("1e400"))])
def test_targets_of_another_kind_are_refused(kind, targets):
    if targets.dtype == np.longdouble and np.finfo(np.longdouble).max == np.finfo(float).max:
        pytest.skip("no longer floats here")
    with pytest.raises(ValueError, match=r"^`y` must be finite numbers in the range of 64-bit floats, got \S+ that are not$"):
        kind().fit(X[:9], targets)


@every
def test_a_refused_fit_leaves_the_mechanism_of_what_is_there(kind):
    fitted = kind(beyond="refuse", insecure_seed=1).fit(X, Y)
    before = {name: value for name, value in vars(fitted).items() if name.endswith("_")}
    with pytest.raises(ParameterError, match="got a record beyond them"):
        fitted.set_params(epsilon=0.1).fit(2.0 * X, Y)
    assert {name: value for name, value in vars(fitted).items() if name.endswith("_")} == before


@every
def test_a_prediction_depends_on_its_own_record_alone(kind):
    rows = RNG.normal(size=(50, 129))
    fitted = kind(insecure_seed=1, row_bound=20.0).fit(rows, np.zeros(50))
    alone = [fitted.predict(row[None])[0] for row in rows]
    assert fitted.predict(rows).tolist() == fitted.predict(np.asfortranarray(rows)).tolist() == alone


@every
@pytest.mark.parametrize(
    ("rows", "targets"),
    [
        (np.zeros((100, 3)), np.zeros(100)),
        (np.tile([0.5, 0.5, 0.0], (100, 1)), np.full(100, 0.5)),  # constant columns, and equal ones
        (X[:3], Y[:3]),  # fewer records than columns
        (X[:1], Y[:1]),
    ],
)
def test_records_that_determine_no_solution_are_taken(kind, rows, targets):
    for epsilon in (0.1, 1.0, 20.0):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NoAnswerWarning)
            fitted = kind(epsilon=epsilon, insecure_seed=1).fit(rows, targets)
        assert np.isfinite(fitted.coef_).all()
        assert np.isfinite(fitted.predict(rows)).all()


@pytest.mark.parametrize("kind", [OPSRegressor, OutputPerturbationRegressor])
@pytest.mark.parametrize("ridge", [0.0, 1e-7, -1.0, np.nan, np.inf, "none", None])
def test_a_ridge_that_may_leave_equations_unsolved_is_refused(kind, ridge):
    with pytest.raises(ParameterError, match=r"`ridge` must be in \[3e-06, 1e\+09\], got"):
        kind(ridge=ridge).fit(X, Y)


@pytest.mark.parametrize("kind", [OPSPTRRegressor, SSPRegressor])
def test_no_ridge_is_an_answer_or_none(kind):
    fitted = kind(ridge=0.0, epsilon=5.0, insecure_seed=1).fit(X, Y)
    assert fitted.answered_
    assert np.abs(fitted.coef_ - WEIGHTS).max() < 0.2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NoAnswerWarning)
        singular = kind(ridge=0.0, insecure_seed=1).fit(np.tile(X[0], (3000, 1)), Y)
    assert singular.answered_ == (kind is SSPRegressor)
    with pytest.raises(ParameterError, match=r"`ridge` must be in \[0, 1e\+09\], got -1"):
        kind(ridge=-1).fit(X, Y)


@pytest.mark.parametrize(
    "regressor", [OPSRegressor(ridge=5.0, epsilon=0.1), OPSRegressor(ridge=5.0, epsilon=0.1, beyond="refuse"), OPSPTRRegressor(ridge=0.0)]
)
def test_a_budget_too_small_ends_in_no_answer(regressor):
    rows = np.column_stack([X[:, :3], np.zeros(3000)])
    with pytest.warns(NoAnswerWarning, match="^no answer: .*; the coefficients are zeros$"):
        fitted = clone(regressor).set_params(insecure_seed=1).fit(rows, Y)
    assert not fitted.answered_
    assert fitted.coef_.tolist() == [0.0] * 4
    assert fitted.intercept_ == 0.0
    assert fitted.predict(rows).tolist() == [0.0] * 3000
    assert fitted.mechanism_.epsilon_at(fitted.delta).upper <= fitted.epsilon


@every
@pytest.mark.parametrize("budget", [(5e-324, 1e-6), (1e-17, 0.5), (1e-12, 1e-6), (1.0, 1e-250), (1e-12, 1e-250), (100.0, 0.5)])
def test_no_budget_is_an_error(kind, budget):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = kind(epsilon=budget[0], delta=budget[1], insecure_seed=1).fit(X, Y)
    assert np.isfinite(fitted.coef_).all()
    assert fitted.mechanism_.epsilon_at(budget[1]).upper <= budget[0]


@every
@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"epsilon": 0}, r"`epsilon` must be in \(0, 100\], got 0"),
        ({"epsilon": np.nan}, "`epsilon` must be"),
        ({"delta": 0}, r"`delta` must be in \(0, 1\), got 0"),
        ({"delta": 1}, "`delta` must be"),
        ({"row_bound": 0}, "`row_bound` must be"),
        ({"target_bound": -1.0}, "`target_bound` must be"),
        ({"beyond": "ignore"}, "`beyond` must be 'count' or 'refuse', got 'ignore'"),
        ({"records": 0}, "`records` must be an integer >= 1"),
        ({"records": 2.5}, "`records` must be an integer"),
        ({"records": 2999}, "`records` must be at least the number of rows, got 2999 for more rows"),
        ({"fit_intercept": "maybe"}, "`fit_intercept` must be True or False"),
        ({"centre": "private"}, "`centre` must be None if fit_intercept is False, got 'private'"),
        ({"fit_intercept": True, "centre": "public"}, "`centre` must be None, 'private' or a pair"),
        ({"fit_intercept": True, "centre": ([0, np.nan, 0, 0], 0)}, "`centre` must be in"),
        (
            {"fit_intercept": True, "centre": ([0, 0], 0)},
            "`centre` must have 1 or 4 numbers for the row, got 2",
        ),
        ({"insecure_seed": "x"}, "`insecure_seed` must be None"),
    ],
)
def test_bad_parameters_are_told_in_a_sentence(kind, given, sentence):
    with pytest.raises(ParameterError, match=sentence):
        kind(**given).fit(X, Y)


@every
def test_a_public_centre_is_taken_as_it_is(kind):
    rows, targets = 0.4 * X + [0.5, 0.0, -0.5, 0.0], 0.4 * Y + 0.3
    shifted = kind(fit_intercept=True, centre=([0.5, 0.0, -0.5, 0.0], 0.3), insecure_seed=4).fit(rows, targets)
    plain = kind(insecure_seed=4).fit(0.4 * X, 0.4 * Y)
    assert shifted.mechanism_ == plain.mechanism_
    assert np.allclose(shifted.coef_, plain.coef_, rtol=1e-6, atol=1e-9)
    assert shifted.intercept_ == pytest.approx(0.3 - shifted.coef_ @ [0.5, 0.0, -0.5, 0.0])
    assert shifted.clipped_ == plain.clipped_
    one = kind(fit_intercept=True, centre=(0.0, 0.3), insecure_seed=4).fit(0.4 * X, targets)
    assert np.allclose(one.coef_, plain.coef_, rtol=1e-6, atol=1e-9)


@every
def test_a_private_centre_is_paid_for_and_found(kind):
    rows, targets = 0.3 * X + [0.5, 0.0, 0.0, 0.0], 0.3 * Y + 0.5
    fitted = kind(epsilon=20.0, fit_intercept=True, insecure_seed=4).fit(rows, targets)
    assert fitted.predict([[0.5, 0, 0, 0]])[0] == pytest.approx(0.5, abs=0.05)
    assert clone(fitted).set_params(centre="private").fit(rows, targets).coef_.tolist() == fitted.coef_.tolist()
    # A tenth of mu^2 goes into the centre: the noise of what is left is greater, and the total is the same.
    without = kind(epsilon=20.0, insecure_seed=4).fit(rows, targets)
    assert fitted.mechanism_.epsilon_at(1e-6).upper == pytest.approx(without.mechanism_.epsilon_at(1e-6).upper, rel=1e-4)
    assert fitted._budget().method ** 2 == pytest.approx(0.89 / 0.99 * without._budget().method ** 2, rel=0.01)


@every
def test_records_shortened_for_the_centre_are_counted_too(kind):
    rows = np.vstack([np.tile([1.4, 0.0], (2000, 1)), np.zeros((10, 2))])  # beyond 1, but near the centre that is found
    with pytest.warns(ClippingWarning):
        fitted = kind(epsilon=20.0, fit_intercept=True, insecure_seed=4).fit(rows, np.zeros(2010))
    assert abs(fitted.clipped_ - 2000) < 100


@every
def test_what_a_certificate_must_say_is_said(kind):
    said = "\n".join(kind().notes)
    assert "floating point" in said
    assert "rows of norm above 1 and targets beyond 1 are clipped" in said
    assert "the number of records, which the noise depends on, is read from the data and declared public" in said
    assert "centre" not in said
    assert "seed" not in said
    other = "\n".join(kind(beyond="refuse", records=9, fit_intercept=True, centre=(0, 0), insecure_seed=1, row_bound=2).notes)
    assert "rows of norm above 2 and targets beyond 1 are refused" in other
    assert "there are at most 9 records is declared public" in other
    assert "the centre that is subtracted from rows and targets is declared public" in other
    assert "seed" in other


@every
def test_a_greater_limit_on_the_number_of_records_changes_no_mechanism(kind):
    given = {"insecure_seed": 3}
    fitted = [kind(records=records, **given).fit(X, Y) for records in (None, 3000, 300_000)]
    assert np.array_equal(fitted[0].coef_, fitted[1].coef_)
    assert fitted[0].mechanism_ == fitted[2].mechanism_


@every
def test_a_fitted_regressor_holds_no_record(kind):
    rows, targets = X.copy(), Y.copy()
    rows[0], targets[0] = 0.0123456789, 0.0987654321
    fitted = kind(insecure_seed=1).fit(rows, targets)
    content = pickle.dumps(fitted)
    assert len(content) < 3000
    for number in (*rows[0], targets[0], *rows[1], targets[1]):
        assert np.float64(number).tobytes() not in content
        assert np.float64(number).tobytes()[::-1] not in content
    again = pickle.loads(content)  # noqa: S301
    assert np.array_equal(again.predict(rows), fitted.predict(rows))
    assert again.mechanism_ == fitted.mechanism_
    known = {"coef_", "intercept_", "n_features_in_", "mechanism_", "answered_", "clipped_", "facts_"}
    assert set(vars(fitted)) == known | set(fitted.get_params())


@every
def test_it_is_a_regressor_that_says_what_it_takes(kind):
    assert is_regressor(kind())
    assert kind.__doc__.count("ClippingWarning") == 1
    assert ("norm 1" in kind.__doc__) == (kind in RIDGED)
    assert isinstance(kind().mechanism, ps.Mechanism)


def test_noise_is_as_large_as_the_mechanism_says():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ClippingWarning)  # of 2000 counts some are above three deviations
        fits = [OutputPerturbationRegressor(records=50, insecure_seed=number).fit(X[:20], Y[:20]) for number in range(2000)]
    sigma = fits[0].mechanism_.sigma
    # 0.99 of mu^2 is for the solution, 0.01 for the count. A variance of 8000 numbers is within 9.5 %, one of 2000 within 19 %, six
    # standard errors each: false alarm 1e-8 in all. Rounding adds 1/12 to the variance of the count.
    noise = np.array([fit.coef_ for fit in fits]) / (solution_sensitivity(50, 100.0) * sigma / 0.99**0.5)
    assert abs(noise.var(axis=0).mean() - 1.0) < 0.095
    counts = np.array([fit.clipped_ for fit in fits])
    assert abs(counts.var() / ((sigma / 0.1) ** 2 + 1 / 12) - 1.0) < 0.19
    assert abs(counts.mean()) < 6 * sigma / 0.1 / 2000**0.5  # none is beyond: false alarm 2e-9
