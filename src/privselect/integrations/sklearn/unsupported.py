"""What RandomizedSearchCV takes and a private search cannot, each with its reason."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, ParamSpec

from sklearn.model_selection import check_cv

from privselect._util.validation import format_value
from privselect.errors import ParameterError
from privselect.mechanisms import Composed
from privselect.selection import Selection

if TYPE_CHECKING:
    from collections.abc import Callable

    from privselect.tuning.tune import TuningRun

Parameters = ParamSpec("Parameters")

_WITHOUT = {
    "n_iter": "the number of trials is drawn at random and stays secret: give its law, such as count=Geometric(mean=10)",
    "return_train_score": "scores of trials that lost are never released, and there is no table of results",
    "error_score": "a trial that fails counts as the worst, and nobody is told",
    "pre_dispatch": "n_jobs alone says how many trials are run at a time",
    "verbose": "progress would tell how many trials there are",
}
HIDDEN = {
    "cv_results_": "it would hold the scores of trials that lost and tell how many there were",
    "best_index_": "it would tell how many trials there were",
    "n_splits_": "there are no splits: each candidate is trained once",
    "refit_time_": "nothing is fitted again, and times tell of trials that lost",
    "multimetric_": "one number decides which trial wins",
    "scorer_": "the score of a trial may be a noisy count, which no scorer gives",
}


def explained(init: Callable[Parameters, None]) -> Callable[Parameters, None]:
    """An ``__init__`` that says why it does not take what RandomizedSearchCV does; its signature stays as it is."""

    @functools.wraps(init)
    def checked(*args: Parameters.args, **given: Parameters.kwargs) -> None:
        for name, value in given.items():
            if name in _WITHOUT:
                raise ParameterError(f"a private search has no `{name}`: {_WITHOUT[name]}; got {name}={format_value(value)}")
        init(*args, **given)

    return checked


def hidden(name: str) -> property:
    """An attribute that is not there, and says why."""

    def missing(search: Any) -> Any:
        raise AttributeError(f"{type(search).__name__} has no attribute {name!r}: {HIDDEN[name]}")

    return property(missing, doc=f"Not there: {HIDDEN[name]}.")


def check_no_refit(refit: Any, tuning: TuningRun) -> None:
    """The winner is a trained model; one more training on the same data is one more release."""
    if refit is False or refit is None:
        return
    mechanism = tuning.spec.mechanism
    both = Composed((Selection(mechanism, tuning.spec.count), mechanism)).epsilon_at(delta=tuning.delta).upper
    raise ParameterError(
        f"`refit` must be False, got {format_value(refit)}: the winner is a trained model already, and training it once more would cost epsilon "
        f"{both:.4g} in all, at delta {tuning.delta:g}"
    )


def check_no_folds(cv: Any, tuning: TuningRun) -> None:
    """Each fold is one more training on records that the others have seen."""
    if cv is None:
        return
    folds = check_cv(cv).get_n_splits()
    trial = Composed((tuning.spec.mechanism,), times=folds)
    price = Selection(trial, tuning.spec.count).epsilon_at(delta=tuning.delta).upper
    raise ParameterError(
        f"`cv` must be None, got {format_value(cv)}: {folds} fits of each candidate on overlapping records are {folds} compositions of the "
        f"mechanism in one trial, which would cost epsilon {price:.4g} at delta {tuning.delta:g}, and more for the scores on the folds; "
        "give `validation`"
    )
