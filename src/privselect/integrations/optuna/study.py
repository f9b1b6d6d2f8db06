"""A study of Optuna's kind whose result is private: one objective in, the winner alone out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from privselect._util.validation import check_number, format_value, integer_range
from privselect.certificates.certificate import parse_time
from privselect.errors import MissingExtraError, ParameterError
from privselect.integrations.optuna.objective import OptunaObjective
from privselect.integrations.optuna.unsupported import OF_OPTIMIZE, OF_RESULT, OF_STUDY, STOCK, refuse, withheld
from privselect.tuning.isolation import suppress_output
from privselect.tuning.run_spec import objective_name
from privselect.tuning.space import DefineByRunSpace
from privselect.tuning.tune import tune

if TYPE_CHECKING:
    from collections.abc import Callable

    import optuna

    from privselect.certificates.certificate import Certificate
    from privselect.counts import Count
    from privselect.mechanisms import Mechanism
    from privselect.tuning.release import Release

_SIGNS = {"minimize": -1, "maximize": 1}
_SCORES = ("public", "covered")


class PrivateStudy:
    """Runs an unmodified Optuna objective by private selection.

    ``count`` is the law of the number of trials, ``mechanism`` what one trial leaks, ``delta`` and ``epsilon`` the budget of the whole
    procedure, and ``score`` says how the objective's value is private: "public" (from the trial's private output and public data) or
    "covered" (you declare that the mechanism covers it). ``artifact`` names the user attribute of the winner that is released, as
    ``export`` says; without it only the parameters and the value are. Further options are those of ``tune``: declared, mechanism_of,
    fallback, out, ledger, again, insecure_seed, executor, timeout, deadline and so on.

    Holds when the names, ranges and branches by which the objective draws depend on no private record, and when all its randomness
    comes from ``trial.randomness``, from the generators of Python, numpy and torch that belong to the process, or from the system.
    """

    def __init__(  # noqa: PLR0913 - as many as a run has
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
            raise ParameterError(STOCK)
        refuse(options, OF_STUDY)
        if score not in _SCORES:
            raise ParameterError(
                "`score` must be 'public' (the objective's value comes from its private output and public data) or 'covered' (you declare "
                f"that the mechanism covers it), got {'none' if score is None else format_value(score)}"
            )
        if artifact is not None and not (isinstance(artifact, str) and artifact):
            raise ParameterError(f"`artifact` must be the name of a user attribute, got {format_value(artifact)}")
        if (artifact is None) != (options.get("export") is None):
            raise ParameterError(
                "`artifact` (the user attribute that is released) and `export` (how, such as 'arrays') must be given together, got one"
            )
        self._direction, self._artifact = _read_direction(direction), artifact
        self._options = {
            "count": count,
            "delta": delta,
            "mechanism": mechanism,
            "score": score,
            **{name: value for name, value in options.items() if name not in OF_STUDY},
        }
        self._release: Release | None = None

    def __repr__(self) -> str:
        return f"PrivateStudy(direction={self._direction!r}, {'not yet run' if self._release is None else 'released'})"

    def __getattr__(self, name: str) -> Any:
        raise withheld(name, OF_RESULT, "a private study")

    def optimize(self, objective: Callable[[Any], Any], *n_trials: Any, data: Any = None, n_jobs: int = 1, **refused: Any) -> None:
        """Draw K, run ``objective(trial)`` so many times, and release the best one alone.

        ``data`` is what the objective reads: it is only looked at to know it again, so that a run that was killed can be resumed by
        the same call. With ``n_jobs`` above 1, or -1 for one on each core, the trials run in processes.
        """
        refuse({"n_trials": n_trials[0] if n_trials else None, **refused}, OF_OPTIMIZE)
        if unknown := [name for name in refused if name not in OF_OPTIMIZE]:
            raise ParameterError(f"`{unknown[0]}` is no option of optimize; options are data, n_jobs")
        if self._release is not None:
            raise ParameterError("a private study is run once: a second run is another release at its own price, and another PrivateStudy")
        if not callable(objective):
            raise ParameterError(f"`objective` must be a function of Optuna's trial, got a {type(objective).__name__}")
        adapted = OptunaObjective(objective, _SIGNS[self._direction], self._artifact)
        released = "" if self._artifact is None else f", {self._artifact}"
        space = DefineByRunSpace(f"{objective_name(objective)}, {self._direction}{released}")
        self._release = tune(adapted, space, data=data, **{**_engine(n_jobs), **self._options})

    # -- the result -----------------------------------------------------------------------------------------------------------

    @property
    def release(self) -> Release:
        """The winner, or the fallback, with the certificate."""
        if self._release is None:
            raise ValueError("nothing is released yet: optimize has not been run to its end")
        return self._release

    @property
    def certificate(self) -> Certificate:
        """What the release costs."""
        return self.release.certificate

    @property
    def direction(self) -> optuna.study.StudyDirection:
        """As Optuna has it."""
        from optuna.study import StudyDirection

        return StudyDirection[self._direction.upper()]

    @property
    def directions(self) -> list[optuna.study.StudyDirection]:
        """The only one."""
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
        """The winner as Optuna has a trial: its number is 0, and it begins and ends when the certificate was made, before K was drawn."""
        from optuna.trial import FrozenTrial, TrialState

        from privselect.integrations.optuna.distributions import as_tuples, distribution_of

        release = self.release
        if release.candidate is None or release.score is None:
            unset = "" if self._artifact is None else f"; one that does not set the user attribute {self._artifact!r} fails"
            raise ValueError(f"no trial is released: none was drawn or all of them failed, and which of the two stays secret{unset}")
        made = parse_time(release.certificate.issued_at).replace(tzinfo=None)
        return FrozenTrial(
            number=0,
            state=TrialState.COMPLETE,
            value=_SIGNS[self._direction] * release.score + 0.0,  # no -0.0
            datetime_start=made,
            datetime_complete=made,
            params={name: as_tuples(value) for name, value in release.candidate.items()},
            distributions={name: distribution_of(plain) for name, plain in (release.distributions or {}).items()},
            user_attrs={} if self._artifact is None else {self._artifact: release.artifact},
            system_attrs={},
            intermediate_values={},
            trial_id=0,
        )

    def to_optuna_study(self) -> optuna.Study:
        """A stock study in memory that holds the released trial alone, and the public facts of the run as its user attribute."""
        import optuna

        release = self.release
        with suppress_output():  # Optuna would announce it
            study = optuna.create_study(study_name="privselect", direction=self.direction)
            study.set_user_attr("privselect", release.public_facts())
            if not release.is_fallback:
                study.add_trial(self.best_trial)
        return study


def _check_installed() -> None:
    try:
        import optuna  # noqa: F401 - this asks whether it is there
    except ImportError:
        raise MissingExtraError("a private study needs Optuna; install it with: pip install 'privselect[optuna]'") from None


def _read_direction(given: Any) -> str:
    """Optuna takes its own enumeration as well as text."""
    direction = given if isinstance(given, str) else str(getattr(given, "name", given)).lower()
    if direction not in _SIGNS:
        raise ParameterError(f"`direction` must be minimize or maximize, got {format_value(given)}")
    return direction


def _engine(n_jobs: Any) -> dict[str, Any]:
    jobs = check_number("n_jobs", n_jobs, integer_range(-1))
    if jobs == 0:
        raise ParameterError("`n_jobs` must be an integer >= 1, or -1 for one trial on each core, got 0")
    return {"executor": "serial"} if jobs == 1 else {"executor": "processes", "workers": None if jobs < 0 else int(jobs)}
