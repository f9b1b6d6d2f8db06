"""The records of a search, checked as scikit-learn does before anything is drawn."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Number
from typing import Any, cast

import numpy as np
from scipy import sparse
from sklearn.base import is_classifier
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils import check_consistent_length, column_or_1d, get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, has_fit_parameter, validate_data

from privselect._util.validation import format_value
from privselect.errors import ParameterError
from privselect.integrations.sklearn.pipeline import private_part
from privselect.integrations.sklearn.trial_mechanism import is_of_diffprivlib
from privselect.integrations.sklearn.validation import HoldOut, record_ids


@dataclass(frozen=True, repr=False)
class Records:
    """Records of a checked form, and the labels that are taken to be public."""

    X: Any
    y: Any = None
    weights: Any = None
    ids: Any = None
    classes: Any = None

    def table(self) -> dict[str, Any]:
        """The columns that there are, for a trial."""
        columns = {"X": self.X, "y": self.y, "weights": self.weights, "ids": self.ids}
        return {name: column for name, column in columns.items() if column is not None}


def read_columns(search: Any, X: Any, y: Any = None, fit_params: Any = None) -> Records:  # noqa: N803
    """The records that are fitted; messages are scikit-learn's own."""
    for name in fit_params or {}:
        if name != "sample_weight":
            raise ParameterError(f"`fit` of a private search takes no parameter but sample_weight, got {format_value(name)}")
    X, y = _validated(search, X, y, reset=True)  # noqa: N806
    weights = (fit_params or {}).get("sample_weight")
    if weights is not None:
        if not has_fit_parameter(search.estimator, "sample_weight"):
            raise ParameterError(f"`sample_weight` must be None, as the fit of {type(search.estimator).__name__} takes none, got weights")
        weights = _check_sample_weight(weights, X)
    return Records(X, y, weights, _ids(search, X, y), _classes(search, y))


def read_held(search: Any, X: Any, y: Any) -> dict[str, Any]:  # noqa: N803
    """Records that are given apart, of the form that the fitted ones have."""
    X, y = _validated(search, X, y, reset=False)  # noqa: N806
    return Records(X, y).table()


def read_synthetic(search: Any) -> dict[str, Any]:
    """Records that are nobody's, for a trial before the draw; with ids where the hold-out is to be split off."""
    given = search.synthetic
    if not isinstance(given, tuple) or len(given) != 2:
        raise ParameterError(f"`synthetic` must be (X, y) of the same form as the records, got {format_value(given)}")
    columns = read_held(search, *given)
    held = search.validation
    return columns if not isinstance(held, HoldOut) or held.fraction is None else {**columns, "ids": record_ids(columns)}


def _validated(search: Any, X: Any, y: Any, *, reset: bool) -> tuple[Any, Any]:  # noqa: N803
    check_labels("y", y)
    tags = get_tags(search)
    is_frame = hasattr(X, "iloc")
    composed = isinstance(search.estimator, Pipeline | ColumnTransformer | FeatureUnion)
    if is_frame and composed:  # steps choose columns by their names, and each checks its own
        validate_data(search, X, reset=reset, skip_check_array=True)
        y = None if y is None else column_or_1d(y, warn=True)
        check_consistent_length(X, y)
        return X, y
    how: dict[str, Any] = {
        "accept_sparse": tags.input_tags.sparse,
        "ensure_all_finite": "allow-nan" if tags.input_tags.allow_nan else True,
        "dtype": None if composed else _dtype(search.estimator),
        "ensure_min_samples": 2 if isinstance(search.validation, HoldOut) else 1,
    }
    if y is None and not tags.target_tags.required:
        checked = validate_data(search, X, reset=reset, **how)
    else:
        numeric = {} if is_classifier(search) else {"y_numeric": True}
        checked, y = validate_data(search, X, y, reset=reset, multi_output=tags.target_tags.multi_output, **numeric, **how)
    if is_classifier(search):
        check_classification_targets(y)
    if not is_frame:
        X = cast("Any", checked).tocsr() if sparse.issparse(checked) else checked  # noqa: N806 - rows of other forms cannot be chosen
    return X, y


def _dtype(estimator: Any) -> Any:
    """For diffprivlib of 64 bits: it clips whole numbers to bounds that are not whole, and rounds them past these."""
    return np.float64 if is_of_diffprivlib(estimator) else "numeric"


def _classes(search: Any, y: Any) -> Any:
    """The labels: given, the estimator's own, or those of the data."""
    if not is_classifier(search) or y is None:
        if search.classes is not None:
            raise ParameterError(f"`classes` must be None where the estimator is no classifier, got {format_value(search.classes)}")
        return None
    own = getattr(private_part(search.estimator), "classes", None)
    known = own if search.classes is None else search.classes
    check_labels("classes", known)
    classes = np.unique(y if known is None else known)
    if len(classes) < 2:
        raise ValueError(f"a classifier needs at least 2 classes; the data, or `classes`, has {len(classes)} class")
    return classes


def _ids(search: Any, X: Any, y: Any) -> Any:  # noqa: N803
    held = search.validation
    if not isinstance(held, HoldOut) or held.fraction is None:
        return None
    if held.ids is None:
        return record_ids({"X": X} if y is None else {"X": X, "y": y})
    # A list as it is: numpy would make texts of all its ids where one is a text, and that record would move all others.
    ids = list(held.ids) if isinstance(held.ids, list | tuple) else np.asarray(held.ids).tolist()
    check_consistent_length(X, ids)
    return ids


def check_labels(name: str, y: Any) -> None:
    """Refuse a list of numbers and texts: numpy makes texts of them all, so that one record would change every label."""
    if isinstance(y, list | tuple) and len({_kind(label) for label in y}) > 1:
        raise ParameterError(f"`{name}` must hold labels of one kind, numbers or texts, got several")


def _kind(label: Any) -> str:
    if isinstance(label, Number | np.bool_):
        return "number"
    return "text" if isinstance(label, str) else type(label).__name__
