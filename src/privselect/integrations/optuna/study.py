"""A study with Optuna's interface and a private result: it runs an objective and releases only the winner, or trains with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from privselect._util.validation import check_number, format_value, integer_range
from privselect.errors import MissingExtraError, ParameterError
from privselect.integrations.optuna.objective import OptunaObjective
from privselect.integrations.optuna.study_result import SIGNS, StudyResult
from privselect.integrations.optuna.unavailable import (
    UNAVAILABLE_OPTIMIZE_ARGUMENTS,
    UNAVAILABLE_STUDY_ARGUMENTS,
    UNAVAILABLE_STUDY_ATTRIBUTES,
    UNAVAILABLE_VISIBLE_ARGUMENTS,
    UNAVAILABLE_VISIBLE_ATTRIBUTES,
    has_no_effect,
    reject_arguments,
    unavailable_attribute,
)
from privselect.open_spec import OpenSpec
from privselect.planning.stages import read_mechanism
from privselect.tuning.run_spec import objective_name
from privselect.tuning.space import DefineByRunSpace
from privselect.tuning.tune import tune

if TYPE_CHECKING:
    from collections.abc import Callable

    from privselect.counts import Count
    from privselect.integrations.optuna.visible_study import VisibleStudy
    from privselect.mechanisms import Mechanism
    from privselect.tuning.release import Release

_SCORES = ("public", "covered")
_OF_CREATE_STUDY = ("sampler", "pruner", "storage", "study_name", "load_if_exists")
_OF_LOOP = ("timeout", "callbacks", "gc_after_trial", "show_progress_bar")


class PrivateStudy(StudyResult):
    """Run an Optuna objective by private selection, or by a visible search, within one budget.

    ``delta`` and ``epsilon`` are the budget of the whole procedure, ``mechanism`` is what one trial leaks, and ``count`` is the law of
    K, the number of trials. Noise that is left open, ``dpsgd(noise_multiplier=?, ...)``, is solved for from the budget. The objective
    reads what it must run from ``trial.mechanism``.

    - ``final``: what a final training leaks. The same objective trains once more with the best parameters. ``transfer``,
      ``learning_rate``, ``final_noise`` and ``split`` are those of ``tune``.
    - ``visible``: if true, ``optimize(objective, n_trials=6)`` runs a fixed number of trials and shows all of them. Samplers, pruners,
      storages, callbacks and plots of Optuna work; the study is ``optuna_study``. The certificate covers the composition of all trials.
    - ``score``: how the objective's value is private: "public" (computed from the trial's private output and public data) or "covered"
      (you declare that the mechanism covers it).
    - ``artifact``: the user attribute that is released in the format ``export``, of the final training or else of the best trial.
    - ``weight``: the probability that a trial starts from parameters given to :meth:`enqueue_trial`; 1/2 by default.

    Further options are those of ``tune``: declared, mechanism_of, fallback, out, ledger, again, insecure_seed, timeout and so on.

    Holds under two conditions:

    - The names, ranges and branches by which the objective draws depend on no private record.
    - All its randomness comes from ``trial.randomness``, the global generators of Python, numpy and torch, or the operating system.
    """

    def __init__(  # noqa: PLR0913 - the options of a run
        self,
        *study: Any,
        delta: float,
        epsilon: float | None = None,
        mechanism: Mechanism | OpenSpec | str | None = None,
        count: Count | str | None = None,
        final: Mechanism | OpenSpec | str | None = None,
        score: str | None = None,
        direction: Any = "minimize",
        artifact: str | None = None,
        visible: bool = False,
        weight: Any = None,
        **options: Any,
    ) -> None:
        _check_installed()
        if study:
            raise ParameterError(
                "a study of Optuna cannot be made private afterwards, because it has a sampler and keeps every trial; make a new one: "
                "PrivateStudy(epsilon=1, delta=1e-5, mechanism=..., score=...)"
            )
        if not isinstance(visible, bool):
            raise ParameterError(f"`visible` must be true or false, got {format_value(visible)}; the number of trials is for `optimize`")
        refused = UNAVAILABLE_VISIBLE_ARGUMENTS if visible else UNAVAILABLE_STUDY_ARGUMENTS
        reject_arguments({"count": count, "weight": weight, **options}, refused)
        _check_score(score)
        _check_artifact(artifact, options.get("export"), final)
        self._direction, self._artifact = _parse_direction(direction), artifact
        self._stock = {name: options.pop(name, None) for name in _OF_CREATE_STUDY}
        options = {name: value for name, value in options.items() if not (name in refused and has_no_effect(value))}
        self._parts = {"artifact": artifact, "trains": final is not None, "must_read": final is not None or _is_open(mechanism)}
        self._options = {"delta": delta, "epsilon": epsilon, "mechanism": mechanism, "final": final, "score": score, **options}
        self._count, self._weight = count, weight
        self._enqueued: list[dict[str, Any]] = []
        self._visible = self._visible_study() if visible else None
        self._release: Release | None = None

    def __repr__(self) -> str:
        kind = "" if self._visible is None else ", visible"
        return f"PrivateStudy(direction={self._direction!r}{kind}, {'not yet run' if self._release is None else 'released'})"

    def __getattr__(self, name: str) -> Any:
        visible = self.__dict__.get("_visible")
        if visible is None:
            raise unavailable_attribute(name, UNAVAILABLE_STUDY_ATTRIBUTES, "a private study")
        if name == "optuna_study":
            return visible.optuna_study
        if name.startswith("_") or name in UNAVAILABLE_VISIBLE_ATTRIBUTES or not hasattr(visible.optuna_study, name):
            raise unavailable_attribute(name, UNAVAILABLE_VISIBLE_ATTRIBUTES, "a private study")
        return getattr(visible.optuna_study, name)

    def enqueue_trial(self, params: dict[str, Any], user_attrs: dict[str, Any] | None = None, *, skip_if_exists: bool = False) -> None:
        """Lean on known good parameters; others are drawn. The objective's ranges must contain them.

        In a secret search each trial starts from one of the enqueued ones, all equally likely, with the probability ``weight`` of the
        study. In a visible search each of them is run once, before Optuna's sampler suggests others.
        """
        from privselect.integrations.optuna.visible_study import check_enqueued

        given = check_enqueued(params)
        if self._release is not None:
            raise ParameterError("a trial must be enqueued before optimize, got one after the release")
        if skip_if_exists and given in self._enqueued:
            return
        self._enqueued.append(given)
        if self._visible is not None:
            self._visible.enqueue(given, user_attrs)
        elif user_attrs:
            raise ParameterError("`user_attrs` must be None in a secret search, whose trials are not kept, got a dict")

    def optimize(
        self, objective: Callable[[Any], Any], n_trials: int | None = None, *, data: Any = None, n_jobs: int = 1, **arguments: Any
    ) -> None:
        """Run ``objective(trial)`` K times in secret, or ``n_trials`` times in a visible search, and release the best or train with it.

        ``data`` is the data that the objective reads. It is used to recognise the data when a killed run is resumed by the same call.
        With ``n_jobs`` above 1, or -1 for one per core, the trials of a secret search run in processes.
        """
        if unknown := [name for name in arguments if name not in UNAVAILABLE_OPTIMIZE_ARGUMENTS]:
            raise ParameterError(f"`{unknown[0]}` is not an option of optimize; its options are {', '.join(self._loop_options)}")
        if self._visible is None:
            reject_arguments({"n_trials": n_trials, **arguments}, UNAVAILABLE_OPTIMIZE_ARGUMENTS)
        if self._release is not None:
            raise ParameterError("a private study runs once: make another PrivateStudy for a second run, which has its own privacy cost")
        if not callable(objective):
            raise ParameterError(f"`objective` must be a function of Optuna's trial, got a {type(objective).__name__}")
        if self._visible is None:
            self._release = self._run_secretly(objective, data, _executor_options(n_jobs))
        else:
            _check_one_job(n_jobs)
            loop = {name: arguments[name] for name in _OF_LOOP if name in arguments}
            self._release = self._visible.optimize(
                objective, n_trials, name=self._space_name, parts=self._parts, options=self._options, data=data, loop=loop
            )

    # -- parts ----------------------------------------------------------------------------------------------------------------

    def _visible_study(self) -> VisibleStudy:
        from privselect.integrations.optuna.visible_study import VisibleStudy

        given = {name: value for name, value in self._stock.items() if value is not None}
        return VisibleStudy(self._direction, **given)

    def _run_secretly(self, objective: Callable[[Any], Any], data: Any, executor: dict[str, Any]) -> Release:
        adapted = OptunaObjective(objective, SIGNS[self._direction], **self._parts)  # type: ignore[arg-type]  # a dict of several types
        space = DefineByRunSpace(f"{objective_name(objective)}, {self._space_name}", self._enqueued, self._weight)
        return tune(adapted, space, data=data, count=self._count, **{**executor, **self._options})

    def _winner_number(self) -> int:
        return 0 if self._visible is None else self._visible.winner_number(self.certificate.hash)

    @property
    def _space_name(self) -> str:
        released = "" if self._artifact is None else f", {self._artifact}"
        return f"{self._direction}{released}"

    @property
    def _loop_options(self) -> tuple[str, ...]:
        return ("data", "n_jobs") if self._visible is None else ("data", "n_trials", *_OF_LOOP)


def _check_installed() -> None:
    try:
        import optuna  # noqa: F401
    except ImportError:
        raise MissingExtraError("a private study needs Optuna; install it with: pip install 'privselect[optuna]'") from None


def _check_score(score: Any) -> None:
    if score not in _SCORES:
        raise ParameterError(
            "`score` must be 'public' (the objective's value comes from its private output and public data) or 'covered' (you declare "
            f"that the mechanism covers it), got {'none' if score is None else format_value(score)}"
        )


def _check_artifact(artifact: Any, export: Any, final: Any) -> None:
    if artifact is not None and not (isinstance(artifact, str) and artifact):
        raise ParameterError(f"`artifact` must be the name of a user attribute, got {format_value(artifact)}")
    if (artifact is None) != (export is None):
        raise ParameterError(
            "`artifact` (the released user attribute) and `export` (its format, such as 'arrays') must be given together, got one"
        )
    if final is not None and artifact is None:
        raise ParameterError("`final` needs `artifact` and `export`, which say what the final training releases, got none")


def _is_open(mechanism: Any) -> bool:
    return isinstance(read_mechanism(mechanism) if isinstance(mechanism, str) else mechanism, OpenSpec)


def _parse_direction(given: Any) -> str:
    """Return "minimize" or "maximize"; accepts text and Optuna's enumeration."""
    direction = given if isinstance(given, str) else str(getattr(given, "name", given)).lower()
    if direction not in SIGNS:
        raise ParameterError(f"`direction` must be minimize or maximize, got {format_value(given)}")
    return direction


def _check_one_job(n_jobs: Any) -> None:
    if check_number("n_jobs", n_jobs, integer_range(-1)) != 1:
        raise ParameterError(f"`n_jobs` must be 1 in a visible search, whose trials run one after the other, got {format_value(n_jobs)}")


def _executor_options(n_jobs: Any) -> dict[str, Any]:
    jobs = check_number("n_jobs", n_jobs, integer_range(-1))
    if jobs == 0:
        raise ParameterError("`n_jobs` must be an integer >= 1, or -1 for one trial on each core, got 0")
    return {"executor": "serial"} if jobs == 1 else {"executor": "processes", "workers": None if jobs < 0 else int(jobs)}
