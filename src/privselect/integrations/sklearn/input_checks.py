"""Check the records of a search as scikit-learn does, before anything is drawn."""

from __future__ import annotations

import re
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
from privselect.integrations.sklearn.pipeline import final_estimator
from privselect.integrations.sklearn.trial_mechanism import is_from_diffprivlib
from privselect.integrations.sklearn.validation import HoldOut, chosen_validation, record_ids

# Where scikit-learn and numpy show values of the data in an error message: a whole array, or a text that is no number.
_VALUES = re.compile(r":\s*array=.*\](?=\.\s*Reshape)|(?<=could not convert string to float): .*", re.DOTALL)


@dataclass(frozen=True, repr=False)
class CheckedRecords:
    """Records of a valid form, and the labels that are declared public."""

    X: Any
    y: Any = None
    weights: Any = None
    ids: Any = None
    classes: Any = None

    def columns(self) -> dict[str, Any]:
        """Return the columns that exist, for a trial."""
        columns = {"X": self.X, "y": self.y, "weights": self.weights, "ids": self.ids}
        return {name: column for name, column in columns.items() if column is not None}


def check_training_records(search: Any, X: Any, y: Any = None, fit_params: Any = None) -> CheckedRecords:  # noqa: N803
    """Check the records to fit; the error messages are scikit-learn's own, without the values of records."""
    for name in fit_params or {}:
        if name != "sample_weight":
            raise ParameterError(f"`fit` of a private search takes no parameter except sample_weight, got {format_value(name)}")
    X, y = _validate(search, X, y, reset=True)  # noqa: N806
    weights = (fit_params or {}).get("sample_weight")
    if weights is not None:
        if not has_fit_parameter(search.estimator, "sample_weight"):
            raise ParameterError(f"`sample_weight` must be None: {type(search.estimator).__name__} does not accept weights")
        weights = _check_sample_weight(weights, X)
    return CheckedRecords(X, y, weights, _ids(search, X, y), _classes(search, y))


def check_validation_records(search: Any, X: Any, y: Any) -> dict[str, Any]:  # noqa: N803
    """Check separate records against the form of the training records."""
    X, y = _validate(search, X, y, reset=False)  # noqa: N806
    return CheckedRecords(X, y).columns()


def check_synthetic_records(search: Any) -> dict[str, Any]:
    """Check the non-private records for a dry run; they get ids if a hold-out is to be split off."""
    given = search.synthetic
    if not isinstance(given, tuple) or len(given) != 2:
        raise ParameterError(f"`synthetic` must be (X, y) of the same form as the records, got {format_value(given)}")
    columns = check_validation_records(search, *given)
    hold_out = chosen_validation(search)
    return columns if not isinstance(hold_out, HoldOut) or hold_out.fraction is None else {**columns, "ids": record_ids(columns)}


def check_labels(name: str, labels: Any) -> None:
    """Refuse a list of labels of several kinds: numpy converts all of them to strings, so one record would change every label."""
    if isinstance(labels, list | tuple) and len({_label_kind(label) for label in labels}) > 1:
        raise ParameterError(f"`{name}` must hold labels of one kind, numbers or strings, got several kinds")


def read_classes(classes: Any, y: Any) -> Any:
    """Return the sorted distinct labels: ``classes``, or those in ``y`` if None."""
    check_labels("classes", classes)
    labels = np.unique(y if classes is None else classes)
    if len(labels) < 2:
        raise ValueError(f"a classifier needs at least 2 classes, got {len(labels)} class in the data or in `classes`")
    return labels


def _validate(search: Any, X: Any, y: Any, *, reset: bool) -> tuple[Any, Any]:  # noqa: N803
    try:
        return _validated(search, X, y, reset=reset)
    except ValueError as error:
        text = _VALUES.sub("", str(error))
        if text == str(error):
            raise
        raise ValueError(text) from None


def _validated(search: Any, X: Any, y: Any, *, reset: bool) -> tuple[Any, Any]:  # noqa: N803
    check_labels("y", y)
    tags = get_tags(search)
    is_frame = hasattr(X, "iloc")
    is_composite = isinstance(search.estimator, Pipeline | ColumnTransformer | FeatureUnion)
    if is_frame and is_composite:  # steps select columns by name, and each checks its own
        validate_data(search, X, reset=reset, skip_check_array=True)
        y = None if y is None else column_or_1d(y, warn=True)
        check_consistent_length(X, y)
        return X, y
    options: dict[str, Any] = {
        "accept_sparse": tags.input_tags.sparse,
        "ensure_all_finite": "allow-nan" if tags.input_tags.allow_nan else True,
        "dtype": None if is_composite else _dtype(search.estimator),
        "ensure_min_samples": 2 if isinstance(chosen_validation(search), HoldOut) else 1,
    }
    if y is None and not tags.target_tags.required:
        checked = validate_data(search, X, reset=reset, **options)
    else:
        numeric = {} if is_classifier(search) else {"y_numeric": True}
        checked, y = validate_data(search, X, y, reset=reset, multi_output=tags.target_tags.multi_output, **numeric, **options)
    if is_classifier(search):
        check_classification_targets(y)
    if not is_frame:
        X = cast("Any", checked).tocsr() if sparse.issparse(checked) else checked  # noqa: N806 - other sparse formats have no row indexing
    return X, y


def _dtype(estimator: Any) -> Any:
    """Return float64 for diffprivlib: it would clip integers to fractional bounds and round them past the bounds."""
    return np.float64 if is_from_diffprivlib(estimator) else "numeric"


def _classes(search: Any, y: Any) -> Any:
    """Return the labels: those given to the search, the estimator's own, or those of the data."""
    if not is_classifier(search) or y is None:
        if search.classes is not None:
            raise ParameterError(f"`classes` must be None if the estimator is not a classifier, got {format_value(search.classes)}")
        return None
    own = getattr(final_estimator(search.estimator), "classes", None)
    return read_classes(own if search.classes is None else search.classes, y)


def _ids(search: Any, X: Any, y: Any) -> Any:  # noqa: N803
    hold_out = chosen_validation(search)
    if not isinstance(hold_out, HoldOut) or hold_out.fraction is None:
        return None
    if hold_out.ids is None:
        return record_ids({"X": X} if y is None else {"X": X, "y": y})
    # Keep a list as given: one string id would make numpy convert all ids to strings, and move the other records.
    ids = list(hold_out.ids) if isinstance(hold_out.ids, list | tuple) else np.asarray(hold_out.ids).tolist()
    check_consistent_length(X, ids)
    return ids


def _label_kind(label: Any) -> str:
    if isinstance(label, Number | np.bool_):
        return "number"
    return "string" if isinstance(label, str) else type(label).__name__
