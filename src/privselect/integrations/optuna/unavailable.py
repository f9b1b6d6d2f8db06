"""What a private study does not have, with the reason, and the errors that say so. This module does not import Optuna."""

from __future__ import annotations

from typing import TYPE_CHECKING

from privselect._util.validation import format_value
from privselect.errors import ParameterError, PrivselectError

if TYPE_CHECKING:
    from collections.abc import Mapping

_INDEPENDENT = "candidates must be drawn independently of all scores, from a distribution that is fixed beforehand"
_PRUNER = "stopping a trial on its intermediate scores uses the data in a way that the guarantee does not cover"
_STORAGE = "a storage keeps every trial, but only the winner may be kept; resume a run from the ledger (`ledger`)"
_REVEALS = "it would reveal the number of trials and the losing scores, which stay secret"
_RELEASE_ONLY = "the study keeps nothing except its release"
_OR_VISIBLE = "; a search with visible=True has it"
_HOLDS_DATA = "an Optuna objective holds its data itself"
_RUN_BY_OPTIMIZE = "every trial of a visible search is run and counted by optimize"

# Arguments of optuna.create_study, and options of tune, that a private study does not have.
UNAVAILABLE_STUDY_ARGUMENTS = {
    "sampler": _INDEPENDENT + _OR_VISIBLE,
    "pruner": _PRUNER + _OR_VISIBLE,
    "storage": _STORAGE + _OR_VISIBLE,
    "study_name": _STORAGE + _OR_VISIBLE,
    "load_if_exists": _STORAGE + _OR_VISIBLE,
    "directions": "several objectives have no single winner, and only one trial may be released; use `direction`",
    "data": "pass it to `optimize`, with the objective that reads it",
    "workers": "use `n_jobs` of `optimize` for the number of trials at a time",
    "defaults": "use enqueue_trial({...}) for known good parameters",
    "subsample": f"{_HOLDS_DATA}, so no sample of it can be drawn",
    "synthetic": f"{_HOLDS_DATA}, so synthetic data would not reach it; test an objective that holds synthetic data with "
    "objective(trial) and trial = optuna.trial.FixedTrial({...}), after setting trial.mechanism and trial.stage if it reads them",
}

# The same for a visible search.
_NO_K = "a visible search has a fixed number of trials, `n_trials` of `optimize`, and no law of K"
UNAVAILABLE_VISIBLE_ARGUMENTS = {
    **{name: UNAVAILABLE_STUDY_ARGUMENTS[name] for name in ("directions", "data", "defaults", "subsample", "synthetic")},
    **dict.fromkeys(("count", "constant_work", "release_at", "curator"), _NO_K),
    "fallback": "failed trials and a failed training are shown as failed",
    "weight": "a visible search draws nothing at random; each trial that you enqueue is run once",
    **dict.fromkeys(("workers", "executor"), "the trials of a visible search run one after the other in this process"),
    "deadline": "use `timeout` of `optimize` to begin no more trials",
}

# Arguments of optuna.Study.optimize.
UNAVAILABLE_OPTIMIZE_ARGUMENTS = {
    "n_trials": "the number of trials K is secret and drawn from the law of K, `count` of the study, such as Geometric(mean=100)"
    + _OR_VISIBLE,
    "timeout": "releasing the best trial so far would be another mechanism; use `deadline` of the study to end the run without a release, "
    "or `timeout` of the study to end a single trial, which then counts as failed",
    "catch": "every exception of a trial counts as a failed trial",
    "callbacks": "a callback would see every trial, including the losing ones" + _OR_VISIBLE,
    "gc_after_trial": "call gc.collect() in the objective instead",
    "show_progress_bar": "progress reveals the number of trials, which is secret" + _OR_VISIBLE,
}

# Attributes of optuna.Study.
UNAVAILABLE_STUDY_ATTRIBUTES = {
    **dict.fromkeys(("trials", "get_trials", "trials_dataframe", "best_trials"), _REVEALS + _OR_VISIBLE),
    **dict.fromkeys(("ask", "tell", "add_trial", "add_trials"), f"it would influence the draws, but {_INDEPENDENT}"),
    "stop": "stopping early because of a score would be another mechanism; use `deadline` to end a run without a release",
    "sampler": _INDEPENDENT + _OR_VISIBLE,
    "pruner": _PRUNER + _OR_VISIBLE,
    "optuna_study": "only a visible search has an Optuna study; to_optuna_study() makes one with the released trial",
    **dict.fromkeys(("user_attrs", "set_user_attr", "system_attrs", "set_system_attr"), _RELEASE_ONLY),
    **dict.fromkeys(("metric_names", "set_metric_names"), _RELEASE_ONLY),
}

# Attributes of optuna.Study that a visible search does not pass on to its Optuna study.
UNAVAILABLE_VISIBLE_ATTRIBUTES = dict.fromkeys(("ask", "tell"), _RUN_BY_OPTIMIZE)

# Attributes of optuna.trial.Trial that the trial of a secret search does not have.
UNAVAILABLE_IN_TRIAL = dict.fromkeys(
    ("study", "storage", "relative_search_space", "_trial_id", "_cached_frozen_trial"),
    "it gives access to other trials, which a trial must not see",
)


class UnavailableError(PrivselectError, AttributeError):
    """An attribute that Optuna has, but a private study or its trial does not have."""


def unavailable_attribute(name: str, reasons: Mapping[str, str], owner: str) -> AttributeError:
    """Return the error for a missing attribute, with the reason if it is an attribute of Optuna."""
    if name in reasons:
        return UnavailableError(f"`{name}` is not available in {owner}: {reasons[name]}")
    return AttributeError(f"{owner} has no attribute {name!r}")


def reject_arguments(given: Mapping[str, object], reasons: Mapping[str, str]) -> None:
    """Raise an error for the first unavailable argument; None, False and empty lists have no effect and are accepted."""
    for name, value in given.items():
        if name in reasons and not has_no_effect(value):
            # Show the type only, unless it is a number: a storage address may contain a password, and `data` is private.
            got = format_value(value) if isinstance(value, bool | int | float) else f"a {type(value).__name__}"
            raise ParameterError(f"`{name}` is not available in a private study, got {got}: {reasons[name]}")


def has_no_effect(value: object) -> bool:
    """Return whether an argument asks for nothing."""
    return value is None or value is False or (isinstance(value, list | tuple) and not value)
