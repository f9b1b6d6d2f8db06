"""diffprivlib integration: what one fit of its estimators leaks, determined by their parameters alone.

The mechanisms below follow from the code of diffprivlib 0.6.6, model by model. The accepted models use the exact number of records: as a
bound for truncation, in a mean, or in the weight of a penalty. So none of them is private for adding or removing a record. They are private
for replacing one record, and the number of records is public. docs/tutorials/diffprivlib.md gives the reasons in detail.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

import numpy as np

from privselect._util.rounding import float_up
from privselect._util.validation import POSITIVE, PROBABILITY, check_number, format_value
from privselect.errors import MissingExtraError, NotCoveredError, ParameterError
from privselect.mechanisms import Pure
from privselect.mechanisms.neighbours import REPLACE_ONE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from privselect.mechanisms import Mechanism

    Floats = NDArray[np.float64]

_VERSION = "0.6.6"  # other versions may scale noise differently
_PACKAGE = "diffprivlib.models."

NOTES = (
    f"the guarantee of a fit, for replacing one record, was derived by reading the code of diffprivlib {_VERSION}; no program checks it",
    "the number of records is public",
    "diffprivlib draws noise in floating point: leakage through the last bits of released numbers is not covered",
)
_LABELS_NOTE = "the labels are read from the data and assumed public: no record may be the only one with its label"
_MINIMUM_NOTE = (
    "the model is assumed to be the exact minimum of its noisy objective; leakage through the error that `tol` and `max_iter` leave, and "
    "through `n_iter_`, is not covered"
)
_FLOAT64_NOTE = (
    "the features are assumed to be 64-bit floats: with one pair of bounds per feature, integers are clipped to fractional bounds and then "
    "rounded past them, and a sum of shorter floats changes by more than one record"
)
_SCALE_NOTE = "the scale of the noise on variances is found in floating point, and is too small for epsilon below about 1e-6 per feature"


@dataclass(frozen=True, slots=True)
class _Model:
    """A supported diffprivlib class: one fit leaks its `epsilon` times ``epsilon_factor``."""

    epsilon_factor: Callable[[Any], Fraction]
    allowed: Mapping[str, tuple[object, ...]]  # parameter values
    notes: tuple[str, ...] = ()
    uncovered: tuple[str, ...] = ()  # fitted attributes that the guarantee does not cover


def mechanism_from_estimator(estimator: Any) -> Mechanism:
    """Return what one ``fit`` of a diffprivlib estimator leaks with its current parameters: ``Pure`` for replacing one record.

    The estimator must not be fitted yet, because a fit may write bounds of the data into the parameters. Missing parameters that
    diffprivlib would read from the data are refused by name, and so are models whose guarantee does not hold. The estimator's accountant
    has no influence.
    """
    model = _supported_model(estimator)
    epsilon = check_number("epsilon", estimator.epsilon, POSITIVE)
    if not (estimator.random_state is None or isinstance(estimator.random_state, np.random.RandomState)):
        raise ParameterError(
            f"`random_state` must be None or a RandomState, got {format_value(estimator.random_state)}: a known seed reveals the noise"
        )
    for name, options in model.allowed.items():
        value = getattr(estimator, name)
        if not any(value is option for option in options):
            raise NotCoveredError(
                f"`{name}` must be {' or '.join(map(str, options))}, got {format_value(value)}: {_REASON_FOR_ALLOWED[name]}"
            )
    return Pure(epsilon=float_up(Fraction(epsilon) * model.epsilon_factor(estimator)), neighbours=REPLACE_ONE)


def diffprivlib_mechanism(estimator: Any) -> DiffprivlibMechanism:
    """Return the mechanism as a function of searched parameters: ``mechanism=diffprivlib_mechanism(GaussianNB(bounds=(0, 1)))``."""
    _supported_model(estimator)  # check the original: a clone does not show whether it was fitted
    from sklearn.base import clone

    return DiffprivlibMechanism(clone(estimator))  # later changes to the original have no effect


@dataclass(frozen=True, slots=True)
class DiffprivlibMechanism:
    """``mechanism_from_estimator`` of a clone of the estimator with other parameters; ``notes`` are for the certificate."""

    estimator: Any

    def __call__(self, parameters: Mapping[str, Any]) -> Mechanism:
        """Return what one fit leaks with these parameters; the others keep the values of the estimator."""
        from sklearn.base import clone

        return mechanism_from_estimator(clone(self.estimator).set_params(**parameters))

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for the certificate."""
        return (*NOTES, *_supported_model(self.estimator).notes)


def remove_uncovered_attributes(estimator: Any) -> None:
    """Delete the fitted attributes of a supported model that the guarantee does not cover; do nothing for other estimators."""
    if _class_name(estimator).startswith(_PACKAGE):
        for name in _SUPPORTED[_class_name(estimator)].uncovered:  # an unknown model fails the trial
            delattr(estimator, name)


def _class_name(estimator: Any) -> str:
    return f"{type(estimator).__module__}.{type(estimator).__qualname__}"


def _supported_model(estimator: Any) -> _Model:
    """Return the entry for this exact class; a subclass may change the fit."""
    kind = type(estimator).__qualname__
    name = _class_name(estimator)
    if not name.startswith(_PACKAGE):
        raise ParameterError(f"`estimator` must be an estimator of diffprivlib.models, got {format_value(name)}")
    try:
        installed = version("diffprivlib")
    except PackageNotFoundError:
        raise MissingExtraError("diffprivlib estimators need diffprivlib; install it with: pip install 'privselect[diffprivlib]'") from None
    if installed != _VERSION:
        raise NotCoveredError(f"diffprivlib must be version {_VERSION}, got {installed}: other versions may scale noise differently")
    if kind in _REFUSED:
        raise NotCoveredError(f"{kind} of diffprivlib is refused: {_REFUSED[kind]}")
    if name not in _SUPPORTED:
        supported = ", ".join(known.rpartition(".")[2] for known in _SUPPORTED)
        raise NotCoveredError(f"{format_value(name)} is not supported. Supported models are {supported}")
    if "n_features_in_" in vars(estimator):
        raise ParameterError(
            "`estimator` must not be fitted yet: a fit may have written bounds of the data into its parameters. Create a new one"
        )
    return _SUPPORTED[name]


def _bounds(estimator: Any) -> tuple[Floats, Floats]:
    """Return the lower and upper bounds of each feature, or of all features."""
    given = estimator.bounds
    if given is None:
        raise NotCoveredError("`bounds` must be given as (min, max), got none: diffprivlib would read them from the data, which leaks")
    try:
        lower, upper = (np.atleast_1d(np.asarray(bound, dtype=np.float64)) for bound in given)
        same_shape = isinstance(given, tuple) and lower.ndim == 1 and lower.shape == upper.shape and lower.size > 0
        valid = same_shape and bool(np.all(np.isfinite(lower) & np.isfinite(upper) & (lower < upper)))
    except (TypeError, ValueError):
        valid = False
    if not valid:
        raise ParameterError(
            f"`bounds` must be a tuple (min, max) with min < max, numbers or one for each feature, got {format_value(given)}"
        )
    nearly_equal = np.allclose(lower, lower.min()) and np.allclose(upper, upper.max())
    if nearly_equal and not (np.all(lower == lower[0]) and np.all(upper == upper[0])):
        # diffprivlib would clip every feature to the widest bounds, but scale the noise by each feature's own.
        raise NotCoveredError(
            f"`bounds` must be the same for all features or differ by more than a relative 1e-5, got {format_value(given)}"
        )
    return lower, upper


def _scaler_factor(estimator: Any) -> Fraction:
    """Return 1.

    Replacing a record moves the mean of a feature by at most (max - min)/n and its variance by at most (max - min)^2 (n - 1)/n^2. The code
    uses these sensitivities and splits epsilon over all releases.
    """
    _bounds(estimator)
    return Fraction(1)


def _naive_bayes_factor(estimator: Any) -> Fraction:
    """Return ``(2/3) (2 + the mean over the features of max(|min|, |max|)/(max - min))``, which is 2 for bounds (0, max).

    The code spends a third of epsilon each on the class counts, the sums and the squares, all for one class that gains or loses a record.
    A replaced record may change its class, and then two classes change. A sum then moves by the whole value of the record, up to
    max(|min|, |max|). The noise is for max - min, which is right for a record that keeps its class.
    """
    lower, upper = _bounds(estimator)
    bounds = [(Fraction(low), Fraction(high)) for low, high in zip(lower.tolist(), upper.tolist(), strict=True)]
    ratio = sum((max(abs(low), abs(high)) / (high - low) for low, high in bounds), Fraction(0)) / len(bounds)
    return Fraction(2, 3) * (2 + ratio)


def _logistic_factor(estimator: Any) -> Fraction:
    """Return 1, by the theorem of Chaudhuri, Monteleoni and Sarwate (2011) on noisy objectives, for replacing one record.

    The theorem needs records of norm at most 1. The curvature of one record's loss grows with the square of the norm, but the code uses
    the norm itself. The theorem also needs a penalty on every coefficient, and the intercept has none.
    """
    if estimator.data_norm is None:
        raise NotCoveredError("`data_norm` must be given, got none: diffprivlib would read it from the data, which leaks")
    try:
        check_number("data_norm", estimator.data_norm, PROBABILITY)
    except ParameterError as error:
        raise NotCoveredError(f"{error}: the noise is too small for larger norms. Divide the data by its norm") from None
    check_number("C", estimator.C, POSITIVE)
    return Fraction(1)


_REASON_FOR_ALLOWED = {
    "fit_intercept": "the proof needs a penalty on the intercept. Add a constant column within the norm instead",
    "warm_start": "a fit must not start from another fit",
    "n_jobs": "several processes copy one generator and use the same noise for every class; None may use several processes",
}
_SUPPORTED = {
    f"{_PACKAGE}naive_bayes.GaussianNB": _Model(_naive_bayes_factor, {}, (_LABELS_NOTE, _FLOAT64_NOTE, _SCALE_NOTE)),
    f"{_PACKAGE}standard_scaler.StandardScaler": _Model(_scaler_factor, {}, (_SCALE_NOTE,)),
    f"{_PACKAGE}logistic_regression.LogisticRegression": _Model(
        _logistic_factor, {"fit_intercept": (False,), "warm_start": (False,), "n_jobs": (1,)}, (_LABELS_NOTE, _MINIMUM_NOTE), ("n_iter_",)
    ),
}
_REFUSED = {
    "LinearRegression": (
        "the noise on the squares of a feature is scaled by its lower bound alone. So without an intercept there is none for bounds "
        "(0, 1), and the data is not clipped to its bounds; with an intercept the means cost more than their share of epsilon"
    ),
    "KMeans": (
        "the centre of a cluster without records does not move at all, which reveals whether a record is in it. The shares of epsilon for "
        "counts and sums are exchanged, so they add up to more than epsilon from five features on"
    ),
    "PCA": (
        "each eigenvalue gets the noise of a bounded Laplace mechanism for the joint sensitivity of all eigenvalues; there is no proof "
        "that the losses add up to at most epsilon"
    ),
    "RandomForestClassifier": (
        "the noise of a tree comes from a 31-bit seed that is kept in the tree and can be found from its thresholds by search"
    ),
    "DecisionTreeClassifier": (
        "its thresholds are outputs of the generator that also labels the leaves without records, and with a `random_state` all leaves. "
        "Enough thresholds reveal the generator's state, and so which leaves are empty"
    ),
}
