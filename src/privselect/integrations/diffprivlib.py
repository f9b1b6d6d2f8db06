"""diffprivlib: what one fit of its estimators leaks, by their parameters alone.

What follows was read in the code of diffprivlib 0.6.6, model by model. The models that are accepted use the exact number of records (as
a bound of a truncation, in a mean, in the weight of a penalty), so none is private for adding or removing a record; they are for
replacing one, and the number of records is public. docs/tutorials/diffprivlib.md tells the reasons at length.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

import numpy as np

from privselect._util.validation import POSITIVE, PROBABILITY, check_number, format_value
from privselect.errors import MissingExtraError, NotCoveredError, ParameterError
from privselect.integrations.outward import float_above
from privselect.mechanisms import Pure
from privselect.mechanisms.neighbours import REPLACE_ONE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from privselect.mechanisms import Mechanism

    Floats = NDArray[np.float64]

_READ = "0.6.6"  # another version may scale its noise in another way
_PACKAGE = "diffprivlib.models."

NOTES = (
    f"that a fit leaks no more than stated is read from the code of diffprivlib {_READ}, for replacing one record; no program checks it",
    "the number of records is public",
    "diffprivlib draws its noise in floating point: what the last bits of a released number tell is not covered",
)
_LABELS = "the labels that occur are read from the data and taken as public: no record may be the only one with its label"
_MINIMUM = (
    "the model is taken to be the minimum of its noisy objective; how far `tol` and `max_iter` leave it from there, and what its `n_iter_` "
    "tells, is not covered"
)
_DOUBLES = (
    "the features are taken to be floats of 64 bits: whole numbers are clipped to bounds that are not whole, one for each feature, and "
    "then rounded past them, and a sum of shorter floats moves by more than one record"
)
_SCALE = "the noise on variances has a scale found in floating point, which is too small where epsilon is below about 1e-6 for each feature"


@dataclass(frozen=True, slots=True)
class _Model:
    """One class of diffprivlib: what must be given, and how many times its `epsilon` one fit leaks."""

    times: Callable[[Any], Fraction]
    allowed: Mapping[str, tuple[object, ...]]
    notes: tuple[str, ...] = ()
    outside: tuple[str, ...] = ()  # fitted attributes that the guarantee does not cover


def mechanism_from_estimator(estimator: Any) -> Mechanism:
    """What one ``fit`` of a diffprivlib estimator with its current parameters leaks: ``Pure`` for replacing one record.

    The estimator must not be fitted yet, as a fit may write what it saw into the parameters. A parameter without which the model would
    look at the data on its own is refused by its name, and so is a model whose guarantee does not hold as its code stands. Which
    accountant the estimator has makes no difference.
    """
    model = _model(estimator)
    epsilon = check_number("epsilon", estimator.epsilon, POSITIVE)
    if not (estimator.random_state is None or isinstance(estimator.random_state, np.random.RandomState)):
        raise ParameterError(
            "`random_state` must be None or a RandomState, as noise from a seed that is known hides nothing, "
            f"got {format_value(estimator.random_state)}"
        )
    for name, options in model.allowed.items():
        value = getattr(estimator, name)
        if not any(value is option for option in options):
            raise NotCoveredError(f"`{name}` must be {' or '.join(map(str, options))}, got {format_value(value)}: {_ALLOWED_BECAUSE[name]}")
    return Pure(epsilon=float_above(Fraction(epsilon) * model.times(estimator)), neighbours=REPLACE_ONE)


def diffprivlib_mechanism(estimator: Any) -> DiffprivlibMechanism:
    """The mechanism as a function of the parameters that a search sets: ``mechanism=diffprivlib_mechanism(GaussianNB(bounds=(0, 1)))``."""
    _model(estimator)  # now, as a copy does not tell whether the original was fitted
    from sklearn.base import clone

    return DiffprivlibMechanism(clone(estimator))  # what is done to the original later is nothing to it


@dataclass(frozen=True, slots=True)
class DiffprivlibMechanism:
    """``mechanism_from_estimator`` of a copy of the estimator with other parameters; ``notes`` are for the certificate."""

    estimator: Any

    def __call__(self, parameters: Mapping[str, Any]) -> Mechanism:
        """What one fit leaks with these parameters, the others being those of the estimator."""
        from sklearn.base import clone

        return mechanism_from_estimator(clone(self.estimator).set_params(**parameters))

    @property
    def notes(self) -> tuple[str, ...]:
        """What the certificate must say of these fits."""
        return (*NOTES, *_model(self.estimator).notes)


def strip(estimator: Any) -> None:
    """Take out of a fitted estimator what the guarantee does not cover."""
    for name in _KNOWN[_name(estimator)].outside:
        delattr(estimator, name)


def _name(estimator: Any) -> str:
    return f"{type(estimator).__module__}.{type(estimator).__qualname__}"


def _model(estimator: Any) -> _Model:
    # By the very class: what a subclass changes is not known.
    kind = type(estimator)
    name = _name(estimator)
    if not name.startswith(_PACKAGE):
        raise ParameterError(f"`estimator` must be an estimator of diffprivlib.models, got {format_value(name)}")
    try:
        installed = version("diffprivlib")
    except PackageNotFoundError:
        raise MissingExtraError("its estimators need diffprivlib; install it with: pip install 'privselect[diffprivlib]'") from None
    if installed != _READ:
        raise NotCoveredError(f"what diffprivlib leaks was read in version {_READ}, got {installed}")
    if kind.__qualname__ in _REFUSED:
        raise NotCoveredError(f"{kind.__qualname__} of diffprivlib is refused: {_REFUSED[kind.__qualname__]}")
    if name not in _KNOWN:
        raise NotCoveredError(f"{format_value(name)} is not known; known are {', '.join(known.rpartition('.')[2] for known in _KNOWN)}")
    if "n_features_in_" in vars(estimator):
        raise ParameterError(
            "`estimator` must not be fitted yet: a fit may have written bounds of the data into its parameters; make a new one"
        )
    return _KNOWN[name]


def _bounds(estimator: Any) -> tuple[Floats, Floats]:
    """The least and the greatest value of each feature, or of all."""
    given = estimator.bounds
    if given is None:
        raise NotCoveredError("`bounds` must be given as (min, max), got none: they would be read from the data, which leaks it")
    try:
        lower, upper = (np.atleast_1d(np.asarray(end, dtype=np.float64)) for end in given)
        shaped = isinstance(given, tuple) and lower.ndim == 1 and lower.shape == upper.shape and lower.size > 0
        fits = shaped and bool(np.all(np.isfinite(lower) & np.isfinite(upper) & (lower < upper)))
    except (TypeError, ValueError):
        fits = False
    if not fits:
        raise ParameterError(f"`bounds` must be a tuple (min, max) with min < max, numbers or one for each feature, got {format_value(given)}")
    alike = np.allclose(lower, lower.min()) and np.allclose(upper, upper.max())
    if alike and not (np.all(lower == lower[0]) and np.all(upper == upper[0])):
        # diffprivlib then clips every feature to the widest of them, and scales the noise by each one's own.
        raise NotCoveredError(f"`bounds` must be the same for all features or differ by more than 1e-5 of themselves, got {format_value(given)}")
    return lower, upper


def _scaler(estimator: Any) -> Fraction:
    """Its epsilon.

    The mean of a feature moves by at most (max - min)/n where a record is replaced, its variance by (max - min)^2 (n - 1)/n^2: these
    are the sensitivities in use, and epsilon is split over all.
    """
    _bounds(estimator)
    return Fraction(1)


def _naive_bayes(estimator: Any) -> Fraction:
    """``(2/3) (2 + the mean over the features of max(|min|, |max|)/(max - min))`` times its epsilon: twice it for bounds (0, max).

    A third of epsilon each goes to the counts of the classes, the sums and the squares; all are for one class that gains or loses a
    record. A replaced record may change its class: then two classes are touched. And a sum moves by the whole value of the record,
    up to max(|min|, |max|), where the noise is for max - min, which is right for a record that keeps its class.
    """
    lower, upper = _bounds(estimator)
    ends = [(Fraction(low), Fraction(high)) for low, high in zip(lower.tolist(), upper.tolist(), strict=True)]
    reach = sum((max(abs(low), abs(high)) / (high - low) for low, high in ends), Fraction(0)) / len(ends)
    return Fraction(2, 3) * (2 + reach)


def _logistic(estimator: Any) -> Fraction:
    """Its epsilon, by the theorem of Chaudhuri, Monteleoni and Sarwate (2011) on noisy objectives, in which one record is replaced.

    The theorem is for records of norm at most 1: for greater ones the curvature of one record's loss grows with the square of the norm,
    and the code has the norm itself. It needs a penalty on every coefficient, and the intercept has none.
    """
    if estimator.data_norm is None:
        raise NotCoveredError("`data_norm` must be given, got none: it would be read from the data, which leaks it")
    try:
        check_number("data_norm", estimator.data_norm, PROBABILITY)
    except ParameterError as error:
        raise NotCoveredError(f"{error}: beyond 1 the noise is too small; divide the data by the norm") from None
    check_number("C", estimator.C, POSITIVE)
    return Fraction(1)


_ALLOWED_BECAUSE = {
    "fit_intercept": "the intercept has no penalty, which the proof needs; add a column of a constant, within the norm, instead",
    "warm_start": "a fit must not build on another one",
    "n_jobs": "processes would get copies of one generator, and so the same noise for every class; None leaves it to joblib's context",
}
_KNOWN = {
    f"{_PACKAGE}naive_bayes.GaussianNB": _Model(_naive_bayes, {}, (_LABELS, _DOUBLES, _SCALE)),
    f"{_PACKAGE}standard_scaler.StandardScaler": _Model(_scaler, {}, (_SCALE,)),
    f"{_PACKAGE}logistic_regression.LogisticRegression": _Model(
        _logistic, {"fit_intercept": (False,), "warm_start": (False,), "n_jobs": (1,)}, (_LABELS, _MINIMUM), ("n_iter_",)
    ),
}
_REFUSED = {
    "LinearRegression": (
        "the noise on the squares of a feature is scaled by its lower bound alone, so that without an intercept there is none for bounds "
        "(0, 1), nor is the data clipped to its bounds; and with an intercept the means cost more than is set aside"
    ),
    "KMeans": (
        "the centre of a cluster without records stays exactly where it was, so that one record is seen; and the shares of epsilon for "
        "counts and sums are exchanged, which adds up to more than epsilon from five features on"
    ),
    "PCA": (
        "each eigenvalue gets the noise of a bounded Laplace mechanism for the sensitivity of all together; that their losses add up to no "
        "more than epsilon is not shown"
    ),
    "RandomForestClassifier": (
        "the noise of a tree comes from a seed of 31 bits that is kept in the tree, and its thresholds tell the seed to whoever tries all"
    ),
    "DecisionTreeClassifier": (
        "its thresholds are outputs of the generator that then labels the leaves without records, and with a `random_state` all leaves; "
        "enough of them tell its state, and so which leaves have none"
    ),
}
