"""The visible search behind a private study: a real Optuna study chooses the trials, and the ledger counts them."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, ClassVar

import optuna
from optuna.trial import TrialState

from privselect._util.validation import check_number, format_value, integer_range
from privselect.errors import ParameterError
from privselect.integrations.optuna.distributions import lists_to_tuples, to_optuna
from privselect.integrations.optuna.live_trial import PRUNED, Current, VisibleObjective
from privselect.tuning.run_spec import objective_name
from privselect.tuning.space import DefineByRunSpace
from privselect.tuning.visible_search import VisibleSearch
from privselect.tuning.visible_trial import run_begun_trial

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from privselect.tuning.release import Release
    from privselect.tuning.space import Candidate
    from privselect.tuning.visible_ledger import VisibleRow

_MARK = "privselect_trial"  # the user attribute of a trial that says which one of the search it is
_FIRST_RANDOM = 2  # trials before the default sampler uses earlier results; Optuna's own default is 10, more than most searches have

_NONE_SUCCEEDED = (
    "no trial has succeeded, so there is nothing to train with: test the objective on synthetic data with "
    "optuna.trial.FixedTrial({...}), or use a larger `timeout` if no trial has ended"
)


class FailedTrialError(Exception):
    """Raised in Optuna's loop for a trial that failed, without the reason, which may contain records."""


class StudySearch(VisibleSearch):
    """A visible search whose trials are suggested by Optuna while they run."""

    _finishes_begun_trial: ClassVar[bool] = False

    @property
    def rows(self) -> list[VisibleRow]:
        """All trials that were begun."""
        return self._ledger.visible_trials()

    @property
    def begun(self) -> VisibleRow | None:
        """The trial that was begun and is not done."""
        return self._begun

    def run_next(self, current: Current, trial: optuna.Trial) -> VisibleRow:
        """Run the next trial, connected to a trial of Optuna."""
        row = self._begun or self._begin({})
        current.begin(trial, lambda candidate: self._ledger.set_candidate(row.slot, candidate))
        trial.set_user_attr(_MARK, self.mark(row.slot))
        return self._run_row(row, current)

    def run_again(self, current: Current, row: VisibleRow, fixed: Candidate) -> VisibleRow:
        """Finish a trial that was interrupted, with the values that were suggested before."""
        current.begin(None, lambda candidate: self._ledger.set_candidate(row.slot, candidate))
        self._ledger.set_candidate(row.slot, {**fixed, **row.candidate})
        return self._run_row(self.rows[row.slot], current)

    def mark(self, slot: int) -> str:
        """Return the name of a trial of this search."""
        return f"{self.certificate.hash}:{slot}"

    def _run_row(self, row: VisibleRow, current: Current) -> VisibleRow:
        try:
            run_begun_trial(self._run, self._open, row, current.facts)
        finally:
            current.begin(None, None)
        return self.rows[row.slot]


class VisibleStudy:
    """A visible search with an Optuna study."""

    def __init__(  # noqa: PLR0913 - as Optuna's create_study
        self,
        direction: str,
        *,
        sampler: Any = None,
        pruner: Any = None,
        storage: Any = None,
        study_name: str | None = None,
        load_if_exists: bool = False,
    ) -> None:
        self.optuna_study = optuna.create_study(
            direction=direction,  # type: ignore[arg-type]  # one of the two literals
            sampler=optuna.samplers.TPESampler(n_startup_trials=_FIRST_RANDOM) if sampler is None else sampler,
            pruner=optuna.pruners.NopPruner() if pruner is None else pruner,
            storage=storage,
            study_name=study_name,
            load_if_exists=load_if_exists,
        )
        self._sign = 1 if direction == "maximize" else -1
        self._queue: list[tuple[dict[str, Any], dict[str, Any] | None]] = []
        self._lost = False  # whether a search without a ledger was interrupted

    def enqueue(self, params: dict[str, Any], user_attrs: dict[str, Any] | None) -> None:
        """Choose the parameters of one of the next trials."""
        self._queue.append((params, user_attrs))

    def optimize(  # noqa: PLR0913 - as Optuna's optimize
        self,
        objective: Callable[[Any], Any],
        n_trials: Any,
        *,
        name: str,
        parts: Mapping[str, Any],
        options: Mapping[str, Any],
        data: Any,
        loop: Mapping[str, Any],
    ) -> Release:
        """Run the trials that are left, then train once."""
        trials = int(check_number("n_trials", n_trials, integer_range(1, 10**6)))
        if self._lost:
            raise ParameterError("this search was interrupted and cannot be continued, because it keeps no ledger, got ledger=None")
        current = Current(self.optuna_study)
        adapted = VisibleObjective(objective, self._sign, **parts, current=current)
        space = DefineByRunSpace(f"{objective_name(objective)}, {name}")
        with StudySearch(adapted, space, visible=trials, data=data, executor="serial", **options) as search:
            try:
                self._run_trials(search, current, loop)
                _check_some_success(search.rows)
                release = search.train()
            except BaseException:
                self._lost = options.get("ledger", "") is None
                raise
        self.optuna_study.set_user_attr("privselect", release.public_facts())
        return release

    def _run_trials(self, search: StudySearch, current: Current, loop: Mapping[str, Any]) -> None:
        resumed = bool(search.rows)
        self._discard_running(search)
        begun = search.begun
        if begun is not None and begun.candidate:
            chosen, _ = self._queue[begun.slot] if begun.slot < len(self._queue) else ({}, None)
            search.run_again(current, begun, chosen)
        self._add_earlier(search)
        waiting = search.left + (search.begun is not None)
        for params, user_attrs in self._queue[len([row for row in search.rows if row.done]) :]:
            self.optuna_study.enqueue_trial(params, user_attrs, skip_if_exists=resumed)
        if waiting:
            run = functools.partial(self._run_one, search, current)
            self.optuna_study.optimize(run, n_trials=waiting, catch=FailedTrialError, **loop)

    def _run_one(self, search: StudySearch, current: Current, trial: optuna.Trial) -> float:
        row = search.run_next(current, trial)
        if row.facts["state"] == PRUNED:
            raise optuna.TrialPruned
        if row.score is None:
            raise FailedTrialError("the trial failed")
        return self._value(row.score)

    def winner_number(self, certificate_hash: str) -> int:
        """Return the number of the search's best trial, the first of several, in the Optuna study."""
        done = self.optuna_study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        return max(
            (trial for trial in done if str(trial.user_attrs.get(_MARK)).startswith(certificate_hash)),
            key=lambda trial: self._sign * (trial.value or 0.0),
        ).number

    # -- a search that goes on in another process -----------------------------------------------------------------------------

    def _discard_running(self, search: StudySearch) -> None:
        """End trials that a storage still calls running, because their process was killed."""
        marks = {search.mark(row.slot) for row in search.rows}
        for trial in self.optuna_study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
            if trial.user_attrs.get(_MARK) in marks:
                self.optuna_study.tell(trial.number, state=TrialState.FAIL)

    def _add_earlier(self, search: StudySearch) -> None:
        """Add the trials of the ledger that the study does not have."""
        held = {(trial.user_attrs.get(_MARK), trial.state) for trial in self.optuna_study.get_trials(deepcopy=False)}
        for row in search.rows:
            state, mark = _state_of(row), search.mark(row.slot)
            if row.done and (mark, state) not in held:
                self.optuna_study.add_trial(self._frozen(row, state, mark))

    def _frozen(self, row: VisibleRow, state: TrialState, mark: str) -> optuna.trial.FrozenTrial:
        known = row.facts.get("distributions", {})
        intermediate = {int(step): value for step, value in row.facts.get("intermediate", {}).items()}
        value = None if row.score is None else self._value(row.score)
        if state == TrialState.PRUNED and intermediate:
            value = intermediate[max(intermediate)]
        return optuna.create_trial(
            state=state,
            value=value,
            params={name: lists_to_tuples(row.candidate[name]) for name in known},
            distributions={name: to_optuna(fields) for name, fields in known.items()},
            user_attrs={_MARK: mark},
            intermediate_values=intermediate,
        )

    def _value(self, score: float) -> float:
        return self._sign * score + 0.0  # no -0.0


def _state_of(row: VisibleRow) -> TrialState:
    if row.score is not None:
        return TrialState.COMPLETE
    return TrialState.PRUNED if row.facts.get("state") == PRUNED else TrialState.FAIL


def _check_some_success(rows: list[VisibleRow]) -> None:
    if all(row.score is None for row in rows):
        raise ParameterError(_NONE_SUCCEEDED)


def check_enqueued(params: Any) -> dict[str, Any]:
    """Return the parameters of a trial to enqueue."""
    if not isinstance(params, dict) or not params or not all(isinstance(name, str) and name for name in params):
        raise ParameterError(f"`params` must be a dict of parameters and values, got {format_value(params)}")
    return dict(params)
