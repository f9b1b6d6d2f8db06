"""A study with Optuna's interface and a private result: it runs an objective and releases only the winner."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from privselect._util.validation import check_number, format_value, integer_range
from privselect.certificates.certificate import parse_time
from privselect.errors import MissingExtraError, ParameterError
from privselect.integrations.optuna.objective import OptunaObjective, unavailable_attribute
from privselect.tuning.isolation import suppress_output
from privselect.tuning.run_spec import objective_name
from privselect.tuning.space import DefineByRunSpace
from privselect.tuning.tune import tune

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import optuna

    from privselect.certificates.certificate import Certificate
    from privselect.counts import Count
    from privselect.mechanisms import Mechanism
    from privselect.tuning.release import Release

_SIGNS = {"minimize": -1, "maximize": 1}
_SCORES = ("public", "covered")

_INDEPENDENT = "candidates must be drawn independently of all scores, from a distribution that is fixed beforehand"
_PRUNER = "stopping a trial on its intermediate scores uses the data in a way that the guarantee does not cover"
_STORAGE = "a storage keeps every trial, but only the winner may be kept; resume a run from the ledger (`ledger`)"
_REVEALS = "it would reveal the number of trials and the losing scores, which stay secret"
_RELEASE_ONLY = "the study keeps nothing except its release"

# Arguments of optuna.create_study, and options of tune, that a private study does not have.
UNAVAILABLE_STUDY_ARGUMENTS = {
    "sampler": _INDEPENDENT,
    "pruner": _PRUNER,
    "storage": _STORAGE,
    "study_name": _STORAGE,
    "load_if_exists": _STORAGE,
    "directions": "several objectives have no single winner, and only one trial may be released; use `direction`",
    "data": "pass it to `optimize`, with the objective that reads it",
    "workers": "use `n_jobs` of `optimize` for the number of trials at a time",
    "synthetic": "an Optuna objective holds its data itself, so synthetic data would not reach it; test an objective that holds synthetic "
    "data with objective(optuna.trial.FixedTrial({...}))",
}

# Arguments of optuna.Study.optimize.
UNAVAILABLE_OPTIMIZE_ARGUMENTS = {
    "n_trials": "the number of trials K is secret and drawn from the law of K, `count` of the study, such as Geometric(mean=100)",
    "timeout": "releasing the best trial so far would be another mechanism; use `deadline` of the study to end the run without a release, "
    "or `timeout` of the study to end a single trial, which then counts as failed",
    "catch": "every exception of a trial counts as a failed trial",
    "callbacks": "a callback would see every trial, including the losing ones",
    "gc_after_trial": "call gc.collect() in the objective instead",
    "show_progress_bar": "progress reveals the number of trials, which is secret",
}

# Attributes of optuna.Study.
UNAVAILABLE_STUDY_ATTRIBUTES = {
    **dict.fromkeys(("trials", "get_trials", "trials_dataframe", "best_trials"), _REVEALS),
    **dict.fromkeys(("ask", "tell", "enqueue_trial", "add_trial", "add_trials"), f"it would influence the draws, but {_INDEPENDENT}"),
    "stop": "stopping early because of a score would be another mechanism; use `deadline` to end a run without a release",
    "sampler": _INDEPENDENT,
    "pruner": _PRUNER,
    **dict.fromkeys(("user_attrs", "set_user_attr", "system_attrs", "set_system_attr"), _RELEASE_ONLY),
    **dict.fromkeys(("metric_names", "set_metric_names"), _RELEASE_ONLY),
}


class PrivateStudy:
    """Run an unmodified Optuna objective by private selection.

    ``count`` is the law of K, the number of trials, and ``mechanism`` is what one trial leaks. ``delta`` and ``epsilon`` are the
    budget of the whole procedure. ``score`` states how the objective's value is private: "public" (computed from the trial's private
    output and public data) or "covered" (you declare that the mechanism covers it). ``artifact`` names the user attribute of the
    winner that is released in the format ``export``; without it only the parameters and the value are released. Further options are
    those of ``tune``: declared, mechanism_of, fallback, out, ledger, again, insecure_seed, executor, timeout, deadline and so on.

    Holds under two conditions:

    - The names, ranges and branches by which the objective draws depend on no private record.
    - All its randomness comes from ``trial.randomness``, the global generators of Python, numpy and torch, or the operating system.
    """

    def __init__(  # noqa: PLR0913 - the options of a run
        self,
        *study: Any,
        count: Count | str,
        delta: float,
        mechanism: Mechanism | str | None = None,
        score: str | None = None,
        direction: Any = "minimize",
        artifact: str | None = None,
        **options: Any,
    ) -> None:
        _check_installed()
        if study:
            raise ParameterError(
                "a study of Optuna cannot be made private afterwards, because it has a sampler and keeps every trial; make a new one: "
                "PrivateStudy(count=..., mechanism=..., delta=..., score=...)"
            )
        _reject(options, UNAVAILABLE_STUDY_ARGUMENTS)
        if score not in _SCORES:
            raise ParameterError(
                "`score` must be 'public' (the objective's value comes from its private output and public data) or 'covered' (you declare "
                f"that the mechanism covers it), got {'none' if score is None else format_value(score)}"
            )
        if artifact is not None and not (isinstance(artifact, str) and artifact):
            raise ParameterError(f"`artifact` must be the name of a user attribute, got {format_value(artifact)}")
        if (artifact is None) != (options.get("export") is None):
            raise ParameterError(
                "`artifact` (the released user attribute) and `export` (its format, such as 'arrays') must be given together, got one"
            )
        self._direction, self._artifact = _parse_direction(direction), artifact
        self._options = {
            "count": count,
            "delta": delta,
            "mechanism": mechanism,
            "score": score,
            **{name: value for name, value in options.items() if name not in UNAVAILABLE_STUDY_ARGUMENTS},
        }
        self._release: Release | None = None

    def __repr__(self) -> str:
        return f"PrivateStudy(direction={self._direction!r}, {'not yet run' if self._release is None else 'released'})"

    def __getattr__(self, name: str) -> Any:
        raise unavailable_attribute(name, UNAVAILABLE_STUDY_ATTRIBUTES, "a private study")

    def optimize(self, objective: Callable[[Any], Any], *n_trials: Any, data: Any = None, n_jobs: int = 1, **unavailable: Any) -> None:
        """Draw K, run ``objective(trial)`` K times, and release only the best trial.

        ``data`` is the data that the objective reads. It is used to recognise the data when a killed run is resumed by the same call.
        With ``n_jobs`` above 1, or -1 for one per core, the trials run in processes.
        """
        _reject({"n_trials": n_trials[0] if n_trials else None, **unavailable}, UNAVAILABLE_OPTIMIZE_ARGUMENTS)
        if unknown := [name for name in unavailable if name not in UNAVAILABLE_OPTIMIZE_ARGUMENTS]:
            raise ParameterError(f"`{unknown[0]}` is not an option of optimize; its options are data, n_jobs")
        if self._release is not None:
            raise ParameterError("a private study runs once: make another PrivateStudy for a second run, which has its own privacy cost")
        if not callable(objective):
            raise ParameterError(f"`objective` must be a function of Optuna's trial, got a {type(objective).__name__}")
        adapted = OptunaObjective(objective, _SIGNS[self._direction], self._artifact)
        released = "" if self._artifact is None else f", {self._artifact}"
        space = DefineByRunSpace(f"{objective_name(objective)}, {self._direction}{released}")
        self._release = tune(adapted, space, data=data, **{**_executor_options(n_jobs), **self._options})

    # -- the result -----------------------------------------------------------------------------------------------------------

    @property
    def release(self) -> Release:
        """The winner or the fallback, with the certificate."""
        if self._release is None:
            raise ValueError("nothing is released yet: optimize has not finished")
        return self._release

    @property
    def certificate(self) -> Certificate:
        """The certificate of the release."""
        return self.release.certificate

    @property
    def direction(self) -> optuna.study.StudyDirection:
        """The direction, in Optuna's enumeration."""
        from optuna.study import StudyDirection

        return StudyDirection[self._direction.upper()]

    @property
    def directions(self) -> list[optuna.study.StudyDirection]:
        """A list of the only direction."""
        return [self.direction]

    @property
    def best_params(self) -> dict[str, Any]:
        """The winner's parameters."""
        return self.best_trial.params

    @property
    def best_value(self) -> float:
        """The winner's value, as the objective returned it."""
        return float(self.best_trial.value or 0.0)

    @property
    def best_trial(self) -> optuna.trial.FrozenTrial:
        """The winner as an Optuna trial: its number is 0, and its start and end are the time of the certificate, before K was drawn."""
        from optuna.trial import FrozenTrial, TrialState

        from privselect.integrations.optuna.distributions import lists_to_tuples, to_optuna

        release = self.release
        if release.candidate is None or release.score is None:
            unset = "" if self._artifact is None else f"; a trial that does not set the user attribute {self._artifact!r} fails"
            raise ValueError(f"no trial is released: none was drawn or all failed, and it stays secret which{unset}")
        issued = parse_time(release.certificate.issued_at).replace(tzinfo=None)
        return FrozenTrial(
            number=0,
            state=TrialState.COMPLETE,
            value=_SIGNS[self._direction] * release.score + 0.0,  # no -0.0
            datetime_start=issued,
            datetime_complete=issued,
            params={name: lists_to_tuples(value) for name, value in release.candidate.items()},
            distributions={name: to_optuna(fields) for name, fields in (release.distributions or {}).items()},
            user_attrs={} if self._artifact is None else {self._artifact: release.artifact},
            system_attrs={},
            intermediate_values={},
            trial_id=0,
        )

    def to_optuna_study(self) -> optuna.Study:
        """Return an in-memory Optuna study with only the released trial, and the public facts of the run as its user attribute."""
        import optuna

        release = self.release
        with suppress_output():  # Optuna would log the new study
            study = optuna.create_study(study_name="privselect", direction=self.direction)
            study.set_user_attr("privselect", release.public_facts())
            if not release.is_fallback:
                study.add_trial(self.best_trial)
        return study


def _reject(given: Mapping[str, Any], reasons: Mapping[str, str]) -> None:
    """Raise an error for the first unavailable argument; None, False and empty lists have no effect and are accepted."""
    for name, value in given.items():
        has_no_effect = value is None or value is False or (isinstance(value, list | tuple) and not value)
        if name in reasons and not has_no_effect:
            # Show the type only, unless it is a number: a storage address may contain a password, and `data` is private.
            got = format_value(value) if isinstance(value, bool | int | float) else f"a {type(value).__name__}"
            raise ParameterError(f"`{name}` is not available in a private study, got {got}: {reasons[name]}")


def _check_installed() -> None:
    try:
        import optuna  # noqa: F401
    except ImportError:
        raise MissingExtraError("a private study needs Optuna; install it with: pip install 'privselect[optuna]'") from None


def _parse_direction(given: Any) -> str:
    """Return "minimize" or "maximize"; accepts text and Optuna's enumeration."""
    direction = given if isinstance(given, str) else str(getattr(given, "name", given)).lower()
    if direction not in _SIGNS:
        raise ParameterError(f"`direction` must be minimize or maximize, got {format_value(given)}")
    return direction


def _executor_options(n_jobs: Any) -> dict[str, Any]:
    jobs = check_number("n_jobs", n_jobs, integer_range(-1))
    if jobs == 0:
        raise ParameterError("`n_jobs` must be an integer >= 1, or -1 for one trial on each core, got 0")
    return {"executor": "serial"} if jobs == 1 else {"executor": "processes", "workers": None if jobs < 0 else int(jobs)}
