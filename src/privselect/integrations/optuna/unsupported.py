"""What a private study does not do, and why: one sentence each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from privselect._util.validation import format_value
from privselect.errors import ParameterError, PrivselectError

if TYPE_CHECKING:
    from collections.abc import Mapping

_SAMPLER = "candidates must be drawn independently of all scores, from a law that is fixed before"
_PRUNER = "stopping a trial on its intermediate scores looks at the data without being accounted for"
_STORAGE = "a storage keeps every trial, and only the winner may be kept; a run is resumed from the ledger (`ledger`)"
_STEERS = "it would steer the draws, and candidates must be drawn independently of all scores, from a law that is fixed before"
_TELLS = "it would tell the number of trials and the scores that lost, and these stay secret"

# Arguments of optuna.create_study, and options of tune that have no place in a study.
OF_STUDY = {
    "sampler": _SAMPLER,
    "pruner": _PRUNER,
    "storage": _STORAGE,
    "study_name": _STORAGE,
    "load_if_exists": _STORAGE,
    "directions": "several objectives have no single winner, and only one may be released; give `direction`",
    "data": "it is handed to `optimize`, with the objective that reads it",
    "workers": "`n_jobs` of `optimize` says how many trials run at a time",
    "synthetic": "an Optuna objective holds its data itself, so that synthetic data would not reach it; try it out by "
    "objective(optuna.trial.FixedTrial({...})) on an objective that holds synthetic data",
}

# Arguments of optuna.Study.optimize.
OF_OPTIMIZE = {
    "n_trials": "the number of trials K is secret and drawn from the law `count` of the study, such as Geometric(mean=100)",
    "timeout": "the best of what was done by then would be another mechanism; `deadline` of the study gives the whole run up without "
    "a release when the seconds are over, and `timeout` of the study ends a single trial, which then counts as failed",
    "catch": "every exception of a trial counts as a failed trial",
    "callbacks": "a callback would see every trial, those that lost included",
    "gc_after_trial": "a trial may call gc.collect() itself",
    "show_progress_bar": "progress tells the number of trials, which is secret",
}

# Attributes of optuna.Study.
OF_RESULT = {
    **dict.fromkeys(("trials", "get_trials", "trials_dataframe", "best_trials"), _TELLS),
    **dict.fromkeys(("ask", "tell", "enqueue_trial", "add_trial", "add_trials"), _STEERS),
    "stop": "stopping early by what was seen would be another mechanism; `deadline` gives a run up without a release",
    "sampler": _SAMPLER,
    "pruner": _PRUNER,
    **dict.fromkeys(("user_attrs", "set_user_attr", "system_attrs", "set_system_attr"), "it keeps nothing but its release"),
    **dict.fromkeys(("metric_names", "set_metric_names"), "it keeps nothing but its release"),
}

# Attributes of optuna.trial.Trial.
_OTHERS = "it leads to the other trials, and no trial may know of another"
OF_TRIAL = dict.fromkeys(("study", "storage", "relative_search_space", "_trial_id", "_cached_frozen_trial"), _OTHERS)

STOCK = (
    "a study of Optuna cannot be made private afterwards, as it has its sampler and keeps every trial; make a new one: "
    "PrivateStudy(count=..., mechanism=..., delta=..., score=...)"
)
SEVERAL = "the objective returns several values, and several objectives have no single winner"
NO_LAW = (
    "the objective asks for a hyperparameter that cannot be drawn: a range or a step out of bounds, an option that is no text, finite "
    "number, true, false, None or list of these, or another law for a name that has one"
)


class WithheldError(PrivselectError, AttributeError):
    """An attribute that Optuna has, and a private study or its trial has not."""


class NoLawError(ParameterError):
    """A hyperparameter that cannot be drawn."""


def refuse(given: Mapping[str, Any], reasons: Mapping[str, str]) -> None:
    """One sentence for the first argument that cannot be had; those that ask for nothing pass."""
    for name, value in given.items():
        nothing = value is None or value is False or (isinstance(value, list | tuple) and not value)
        if name in reasons and not nothing:
            # Of what is no number only the kind: an address may hold a password, and data is data.
            got = format_value(value) if isinstance(value, bool | int | float) else f"a {type(value).__name__}"
            raise ParameterError(f"`{name}` cannot be had in a private study, got {got}: {reasons[name]}")


def withheld(name: str, reasons: Mapping[str, str], owner: str) -> AttributeError:
    """The error for an attribute that is not there."""
    if name in reasons:
        return WithheldError(f"`{name}` cannot be had of {owner}: {reasons[name]}")
    return AttributeError(f"{owner} has no attribute {name!r}")
