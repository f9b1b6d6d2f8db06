"""A visible search: a fixed number of trials, every result shown, each candidate chosen freely, then one final training.

The mechanism of a trial and the number of trials are fixed in advance, so exact composition covers any choice of candidates that
depends on earlier results: by a person, by Optuna, or by a rule. Nothing needs to stay secret except the randomness of the trials.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

from privselect._util.validation import check_number, format_value, integer_range
from privselect.certificates.certificate import Certificate
from privselect.errors import ParameterError
from privselect.tuning.budget import plan_of_certificate
from privselect.tuning.executors import read_engine
from privselect.tuning.probe import check_synthetic
from privselect.tuning.randomness import Stream, new_secret
from privselect.tuning.space import DefineByRunSpace
from privselect.tuning.transfer import SAME
from privselect.tuning.tune import configure_run
from privselect.tuning.visible_run import ChosenSpace, VisibleRun, VisibleSpec, check_arguments
from privselect.tuning.visible_training import VisibleTraining
from privselect.tuning.visible_trial import read_trial, run_begun_trial, with_tuples

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from privselect.certificates.model import Declared
    from privselect.planning.plan_result import Plan
    from privselect.tuning.executors import Engine
    from privselect.tuning.release import Release
    from privselect.tuning.space import Candidate
    from privselect.tuning.trial_mechanism import MechanismOf
    from privselect.tuning.visible_ledger import VisibleLedger, VisibleRow
    from privselect.tuning.visible_trial import VisibleTrial

_TRIALS = integer_range(1, 10**6)


class VisibleSearch:
    """Run a fixed number of trials with candidates that you choose from all earlier results, then train once.

    ::

        with VisibleSearch(objective, epsilon=1, delta=1e-5, visible=6, data=data, score="public", mechanism=..., final=...) as search:
            while search.left:
                search.run(choose(search.results))
            release = search.train()

    The objective and the options are those of :func:`tune`, without those about K. ``visible`` is the number of trials. ``space`` is
    optional: candidates outside it are refused, and :meth:`draw` suggests one. ``artifacts`` shows what each search trial trained; by
    default only the final training is exported.

    A trial is spent when it begins. If the process is killed, the same call finishes the trial that was begun, with the same
    candidate and randomness, and shows all earlier results.
    """

    _finishes_begun_trial: ClassVar[bool] = True

    def __init__(  # noqa: PLR0913 - as many as tune has
        self,
        objective: Callable[..., Any],
        space: Any = None,
        *,
        data: Any = None,
        mechanism: Any = None,
        visible: int,
        final: Any = None,
        transfer: Any = SAME,
        learning_rate: str | None = None,
        final_noise: float | None = None,
        split: str | None = None,
        subsample: Any = None,
        score: Any = None,
        delta: float,
        epsilon: float | None = None,
        export: Any = None,
        artifacts: bool = False,
        declared: Declared | None = None,
        executor: Engine | str = "processes",
        mechanism_of: MechanismOf | None = None,
        synthetic: Any = None,
        **options: Any,
    ) -> None:
        space = check_arguments(space, mechanism, options)
        trials = int(check_number("visible", visible, _TRIALS))
        if not isinstance(artifacts, bool) or (artifacts and export is None):
            raise ParameterError(f"`artifacts` must be true or false, and needs `export`, got {format_value(artifacts)}")
        run = configure_run(
            objective,
            space,
            mechanism=mechanism,
            final=final,
            transfer=transfer,
            learning_rate=learning_rate,
            final_noise=final_noise,
            split=split,
            subsample=subsample,
            score=score,
            delta=delta,
            epsilon=epsilon,
            export=export,
            declared=declared,
            engine=read_engine(executor, 1),
            mechanism_of=mechanism_of,
            visible=trials,
            spec_kind=functools.partial(VisibleSpec, shown=trials, artifacts=artifacts),
            run_kind=VisibleRun,
            **options,
        )
        check_synthetic(objective, synthetic)
        if synthetic is not None:
            _try_on_synthetic(run, synthetic)
        self._run, self._synthetic = cast("VisibleRun", run), synthetic
        self._open = self._run.open(None if data is None else lambda: data)
        self._closed = False
        self._release: Release | None = None
        self._results: tuple[VisibleTrial, ...] | None = None  # after the release, when the ledger has forgotten them
        if self._finishes_begun_trial and self._begun is not None:
            try:
                self.run()
            except BaseException:
                self.close()
                raise

    def __repr__(self) -> str:
        state = "closed" if self._closed and self._results is None else f"{self.left} left"
        return f"VisibleSearch({self._spec.visible} trials, {state})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- what is known --------------------------------------------------------------------------------------------------------

    @property
    def results(self) -> tuple[VisibleTrial, ...]:
        """All trials that are done, in order."""
        if self._results is not None:
            return self._results
        return tuple(read_trial(self._run, self._open, row) for row in self._ledger.visible_trials() if row.done)

    @property
    def left(self) -> int:
        """The number of trials that can still begin; 0 from the beginning of the final training on."""
        if self._results is not None or self._ledger.chosen_final() is not None:
            return 0
        return self._spec.shown - len(self._ledger.visible_trials())

    @property
    def best(self) -> VisibleTrial | None:
        """The trial with the best score, the first of several; None if no trial has succeeded."""
        done = [trial for trial in self.results if trial.score is not None]
        return max(done, key=lambda trial: trial.score or 0.0, default=None)

    @property
    def certificate(self) -> Certificate:
        """The certificate of all trials and the final training, issued before the data was touched."""
        return Certificate.from_json(self._open.record.certificate)

    @property
    def plan(self) -> Plan:
        """Which mechanisms are run, and why if they were solved for."""
        return plan_of_certificate(self.certificate) if self._run.plan is None else self._run.plan

    def draw(self) -> Candidate:
        """Return a random candidate of the space, to run or to change."""
        if isinstance(self._spec.space, DefineByRunSpace):
            raise ParameterError("a space that only the objective knows cannot be drawn from, got a DefineByRunSpace")
        return self._spec.space.draw(Stream(new_secret()))

    # -- trials ---------------------------------------------------------------------------------------------------------------

    def run(self, candidate: Mapping[str, Any] | None = None) -> VisibleTrial:
        """Run one trial and return its result. Without a candidate, finish a trial that was interrupted."""
        self._check_open()
        begun = self._begun
        given = None if candidate is None else self._read_candidate(candidate)
        if begun is not None and given is not None and given != with_tuples(begun.candidate):
            raise ParameterError(
                f"trial {begun.slot + 1} was begun with {format_value(begun.candidate)} and must be finished first: call run() without a "
                "candidate"
            )
        if begun is None:
            if given is None and not isinstance(self._spec.space, DefineByRunSpace):
                raise ParameterError("`candidate` must be a dict of hyperparameters and values, got none, and no trial was interrupted")
            begun = self._begin(given or {})
        run_begun_trial(self._run, self._open, begun, dict)
        return self.results[-1]

    def _begin(self, candidate: Candidate) -> VisibleRow:
        if self.left < 1:
            begun = "the final training was begun" if self._ledger.chosen_final() is not None else "all of them are spent"
            raise ParameterError(f"the plan has {self._spec.shown} trials, and {begun}: call train()")
        self._check_candidate(candidate)
        self._ledger.begin_trial(len(self._ledger.visible_trials()), candidate)
        return self._ledger.visible_trials()[-1]

    def _check_candidate(self, candidate: Candidate) -> None:
        """Refuse a candidate outside the space, one that may leak more than declared, or one that fails a probe on synthetic data."""
        spec, setup = self._spec, self._open.setups.search
        fault = spec.space.fault(candidate)
        if fault is None and not spec.define_by_run:
            fault = spec.checks.safe_search_fault(candidate)
        if fault is not None:
            raise ParameterError(fault)
        probe = getattr(spec.objective, "probe", None)
        if self._synthetic is not None and callable(probe) and not spec.define_by_run:
            probe(self._synthetic, dict(candidate), **({} if setup.told is None else setup.told.keywords(candidate)))

    def _read_candidate(self, given: object) -> Candidate:
        named = isinstance(given, dict) and all(isinstance(name, str) and name for name in given)
        requirement = "`candidate` must be a dict of hyperparameters and values"
        if not named or not (given or self._spec.define_by_run):
            raise ParameterError(f"{requirement}, got {format_value(given)}")
        try:
            return with_tuples(cast("dict[str, Any]", given))
        except ParameterError as error:
            raise ParameterError(f"{requirement}: {error}") from None

    # -- the final training ---------------------------------------------------------------------------------------------------

    def train(self, candidate: Mapping[str, Any] | None = None) -> Release:
        """Train once and return the release. Without a candidate, the best trial's is used, changed by the transfer rule.

        A given candidate is used unchanged. Without a final training in the plan, the best trial itself is released. If the training
        fails, ``artifact`` and ``trained_with`` of the release are None.
        """
        if self._release is None:
            if self._begun is not None:
                raise ParameterError(f"trial {self._begun.slot + 1} was begun and must be finished first: call run() without a candidate")
            training = VisibleTraining(self._run, self._open, self.results, self.best)
            choice = training.choose(None if candidate is None else self._read_candidate(candidate))
            release = training.release(choice, training.train(choice), self.certificate, self.plan)
            self._results, self._release = tuple(training.results), release
            self.close()
        return self._release

    def close(self) -> None:
        """Close the ledger. The same call of :class:`VisibleSearch` continues the search later."""
        self._closed = True
        self._open.ledger.close()

    # -- parts ----------------------------------------------------------------------------------------------------------------

    @property
    def _spec(self) -> VisibleSpec:
        return cast("VisibleSpec", self._run.spec)

    @property
    def _ledger(self) -> VisibleLedger:
        if self._closed:
            raise ParameterError("this search is closed: make the same call of VisibleSearch again to continue it")
        return self._open.ledger

    @property
    def _begun(self) -> VisibleRow | None:
        """The trial that was begun and is not done."""
        rows = self._ledger.visible_trials()
        return rows[-1] if rows and not rows[-1].done else None

    def _check_open(self) -> None:
        if self._release is not None:
            raise ParameterError("this search has ended: its final training is released")


def _try_on_synthetic(run: Any, synthetic: Any) -> None:
    from privselect.tuning.dry_run import run_synthetic_trial

    if isinstance(run.spec.space, ChosenSpace) and run.spec.space.inner is None:
        raise ParameterError("`synthetic` needs a `space`, from which the candidate of the trial on synthetic data is drawn, got none")
    run_synthetic_trial(run, lambda: synthetic)
