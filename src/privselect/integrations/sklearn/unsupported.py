"""Explain which arguments and attributes of RandomizedSearchCV a private search does not have, and why."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, TypeVar

from sklearn.model_selection import check_cv

from privselect._util.rounding import round_up
from privselect._util.validation import format_value
from privselect.errors import ParameterError
from privselect.mechanisms import Composed
from privselect.selection.two_stages import search_then_train

if TYPE_CHECKING:
    from privselect.tuning.tuning_run import TuningRun

Search = TypeVar("Search", bound=type)

_UNSUPPORTED_ARGUMENTS = {
    "n_iter": "the number of trials is random and secret. Set its distribution with `count`, such as count=Geometric(mean=10)",
    "return_train_score": "scores of losing trials are never released",
    "error_score": "a failed trial counts as the worst, and failures are not reported",
    "pre_dispatch": "`n_jobs` sets how many trials run at a time",
    "verbose": "progress messages would reveal the number of trials",
}
_UNAVAILABLE_ATTRIBUTES = {
    "cv_results_": "it would reveal the number of trials and the scores of losing trials",
    "best_index_": "it would reveal the number of trials",
    "n_splits_": "there are no splits: each candidate is trained once",
    "refit_time_": "times depend on losing trials",
    "multimetric_": "one number decides which trial wins",
    "scorer_": "the score of a trial may be a noisy count, which no scorer computes",
}


def explain_unsupported_arguments(cls: Search) -> Search:
    """Wrap the class's ``__init__``: it explains why it does not take an argument of RandomizedSearchCV. The signature is unchanged."""
    init: Any = vars(cls)["__init__"]

    @functools.wraps(init)
    def checked(*args: Any, **given: Any) -> None:
        for name, value in given.items():
            if name in _UNSUPPORTED_ARGUMENTS:
                raise ParameterError(f"a private search has no `{name}`: {_UNSUPPORTED_ARGUMENTS[name]}; got {name}={format_value(value)}")
        init(*args, **given)

    cls.__init__ = checked  # type: ignore[misc]
    return cls


def unavailable(name: str) -> property:
    """Return a property that raises ``AttributeError`` with the reason why the attribute does not exist."""
    reason = _UNAVAILABLE_ATTRIBUTES[name]

    def missing(search: Any) -> Any:
        raise AttributeError(f"{type(search).__name__} has no attribute {name!r}: {reason}")

    return property(missing, doc=f"Not available: {reason}.")


def check_no_folds(cv: Any, run: TuningRun) -> None:
    """Raise ``ParameterError`` with the privacy cost of cross-validation: each fold is one more training on overlapping records."""
    folds = check_cv(cv).get_n_splits()
    trial = Composed((run.spec.mechanism,), times=folds)
    whole = search_then_train(trial, run.spec.count, run.spec.final_mechanism, subsample=run.spec.subsample)
    epsilon = whole.epsilon_at(delta=run.delta).upper
    raise ParameterError(
        f"`cv` must be None, got {format_value(cv)}: {folds} fits of each candidate on overlapping records are {folds} compositions of the "
        f"mechanism in one trial. They would cost epsilon {round_up(float(epsilon), 4):.4g} at delta {run.delta:g}, plus the cost of the "
        "scores. Use `validation`"
    )
