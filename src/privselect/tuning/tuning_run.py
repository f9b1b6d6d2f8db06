"""One run: issue the certificate, draw K, run the search and the final training, release. A stopped run resumes from its ledger."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple

from privselect._util.validation import format_value
from privselect.certificates.certificate import Certificate
from privselect.certificates.certify import certify
from privselect.certificates.model import RunMetadata
from privselect.errors import ParameterError, PrivselectError
from privselect.tuning.budget import plan_of_certificate
from privselect.tuning.candidate_checks import NO_WINNER
from privselect.tuning.fingerprint import fingerprint, objective_content
from privselect.tuning.isolation import ignore_sigint, suppress_output
from privselect.tuning.ledger import FINAL, SEARCH, RunRecord
from privselect.tuning.progress import Progress
from privselect.tuning.randomness import SECRET_BYTES, SECURE_SEED_BITS, derive_key, draw_trial_count, new_secret
from privselect.tuning.release import Release, check_release_folder, files_of_release, write_release
from privselect.tuning.release_time import check_release_time, seconds_until, wait_until
from privselect.tuning.run_notes import certificate_notes
from privselect.tuning.run_registry import DEFAULT_LEDGER_FOLDER, check_folder_unclaimed, open_run
from privselect.tuning.runner import FinalDraw, RunDraws, Runner, RunnerOptions
from privselect.tuning.scores import LazyHoldout, NoisyCount
from privselect.tuning.trial import unpack_trial
from privselect.tuning.trial_mechanism import is_claimed

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from pathlib import Path

    from privselect.certificates.model import Declared
    from privselect.planning.plan_result import Plan
    from privselect.tuning.candidate_checks import FinalCandidates
    from privselect.tuning.executors import Engine
    from privselect.tuning.ledger import Best, Ledger
    from privselect.tuning.run_registry import OpenedRun
    from privselect.tuning.run_spec import RunSpec
    from privselect.tuning.space import Candidate
    from privselect.tuning.trial import TrialSetup


class Setups(NamedTuple):
    """What the workers need in each stage."""

    search: TrialSetup
    final: TrialSetup | None


class _Winner(NamedTuple):
    """What is released unless the fallback is. Secret before the release."""

    candidate: Candidate
    score: float
    content: bytes
    distributions: dict[str, Any] | None = None
    trained_with: Candidate | None = None

    def __repr__(self) -> str:
        return "Winner(...)"


@dataclass(frozen=True, repr=False)
class TuningRun:
    """A run with all its options, checked as far as possible without the data."""

    spec: RunSpec
    delta: float
    epsilon: float | None
    declared: Declared
    engine: Engine
    out: Path | None = None
    ledger: str | Path | None = DEFAULT_LEDGER_FOLDER
    again: bool = False
    insecure_seed: int | None = None
    seed_bits: int = SECURE_SEED_BITS
    timeout: float | None = None  # of one search trial, in seconds
    final_timeout: float | None = None
    memory_limit: int | None = None
    release_at: datetime | None = None
    deadline: float | None = None
    constant_work: bool = False
    losses: int = 3
    curator: bool = False
    plan: Plan | None = None  # None if nothing was open
    problem: str | None = None  # the hash of the open problem, by which a resumed run is found

    def run(self, load: Callable[[], Any] | None, show: Callable[[str], object] | None = None) -> Release:
        """Start or resume the run and return its release. ``load`` is called after K is drawn and the candidates are checked.

        ``show`` gets a line of text at each step whose time does not depend on K.
        """
        if self.spec.subsample is not None and load is None:
            raise ParameterError("`data` is required for a subsampled search, got none")
        stop_at = self._stop_at()
        progress = Progress(self, show)
        opened = open_run(self.ledger, self.spec.digest(), again=self.again)
        try:
            record = self._start(opened, progress) if opened.record is None else self._check_resume(opened, opened.record, load)
            try:
                return self._finish(opened, record, load, stop_at, progress)
            except (PrivselectError, KeyboardInterrupt) as stopped:
                # A traceback would show whether the search had ended, and its frames hold K.
                stopped.__context__ = None
                raise stopped.with_traceback(None) from None
        finally:
            opened.ledger.close()

    def _finish(
        self, opened: OpenedRun, record: RunRecord, load: Callable[[], Any] | None, stop_at: float | None, progress: Progress
    ) -> Release:
        """Check the candidates, load the data, run the stages and release."""
        draws = RunDraws(record.secret, record.trials, self.spec.space)
        transferred = self.spec.checks.check_run(draws, self.largest_k or draws.trials)
        setups = self._load_setups(opened, record, load)
        winner = self._run_stages(opened.ledger, draws, setups, transferred, stop_at=stop_at, progress=progress)
        if self.release_at is not None:
            wait_until(self.release_at)
        with ignore_sigint():
            release = self._release(winner, Certificate.from_json(record.certificate))
            opened.ledger.destroy_secrets()
        return release

    @property
    def largest_k(self) -> int | None:
        """The number of trials to run if all runs do the same work, None if K trials are run."""
        return self.spec.count.largest if self.constant_work else None

    @property
    def notes(self) -> tuple[str, ...]:
        """The notes for the certificate; nothing in them depends on what is drawn."""
        return certificate_notes(self)

    # -- start or resume ------------------------------------------------------------------------------------------------------

    def _start(self, opened: OpenedRun, progress: Progress) -> RunRecord:
        """Issue the certificate, then draw the secret and K and record all of them in one transaction."""
        try:
            check_folder_unclaimed(self.ledger, opened.plan_hash, self.out)
            if self.out is not None:
                check_release_folder(self.out)
            if self.release_at is not None:
                check_release_time(self.release_at, self)
            progress.certifying()
            with suppress_output():
                self.spec.checks.validate_space()
            randomness: Any = {} if self.insecure_seed is None else {"randomness": "a seed given by the caller", "insecure": True}
            claimed = is_claimed(self.spec.objective, self.spec.told)
            run = RunMetadata(spec_hash=opened.plan_hash, runs=opened.number, notes=self.notes, mechanism_claimed=claimed, **randomness)
            certificate = certify(
                self.spec.mechanism,
                self.spec.count,
                final=self.spec.final_mechanism,
                visible=self.spec.visible,
                subsample=self.spec.subsample,
                delta=self.delta,
                epsilon=self.epsilon,
                declared=self.declared,
                run=run,
            )
        except BaseException:
            if opened.path is not None:
                opened.path.unlink(missing_ok=True)  # made for a run that never started
            raise
        secret = new_secret() if self.insecure_seed is None else seeded_secret(self.insecure_seed, opened.number)
        trials = self._trial_count(secret)
        target = None if self.out is None else str(self.out)
        record = RunRecord(opened.plan_hash, certificate.to_json(), target, secret, trials, None, released=False, problem=self.problem)
        opened.ledger.begin(record)
        return record

    def _check_resume(self, opened: OpenedRun, record: RunRecord, load: Callable[[], Any] | None) -> RunRecord:
        """Refuse to resume a run under conditions other than those its certificate states."""
        if load is None:
            raise opened.cannot_resume("it was started without `data`, so the data cannot be checked")
        certificate = Certificate.from_json(record.certificate)
        plan = certificate.plan
        same_budget = self.epsilon is None or plan.epsilon == self.epsilon
        if not same_budget or plan.delta != self.delta or plan.declared != self.declared:
            raise opened.cannot_resume("its certificate states another budget or declaration", "Pass the original ones")
        if record.target != (None if self.out is None else str(self.out)):
            raise opened.cannot_resume(f"its `out` folder is {format_value(record.target)}", "Pass that folder")
        stated = () if certificate.run is None else certificate.run.notes
        if not set(self.notes) <= set(stated):
            raise opened.cannot_resume(
                "its certificate states other options (release_at, deadline, constant_work, curator, seed_bits, losses or executor)",
                "Pass the original ones",
            )
        if self.release_at is not None:
            # Also on resume: a run that is in time only because few trials are left would reveal information about K.
            check_release_time(self.release_at, self)
        return record

    def _trial_count(self, secret: bytes) -> int:
        """Draw K."""
        return draw_trial_count(self.spec.count, secret)

    # -- the data and the stages ----------------------------------------------------------------------------------------------

    def _load_setups(self, opened: OpenedRun, record: RunRecord, load: Callable[[], Any] | None) -> Setups:
        """Load the data, check on resume that it is unchanged, split off the hold-out and draw the sample of the search."""
        data = None if load is None else load()
        score, final = self.spec.score, self.spec.final
        data_fingerprint = b""  # without data, a fingerprint that no data has, so the run cannot be resumed
        if isinstance(score, NoisyCount) and isinstance(score.holdout, LazyHoldout):
            score = replace(score, holdout=score.holdout.load())
        if load is not None:
            holdout = score.holdout if isinstance(score, NoisyCount) else None
            functions = [objective_content(self.spec.objective), None if final is None else objective_content(final.transfer.function)]
            data_fingerprint = fingerprint((data, holdout, functions), derive_key(record.secret, "fingerprint"))
            if record.fingerprint is not None and record.fingerprint != data_fingerprint:
                raise opened.cannot_resume(
                    "the data or the objective has changed since it started, and the same randomness on other data would reveal the change",
                    "Restore both",
                )
        search: Any = {"timeout": self.timeout, **self._limits(self.engine)}
        last: Any = {"timeout": self.final_timeout, **self._limits(self.engine.for_one_trial)}
        setups = Setups(
            self.spec.search_setup(data, score, record.secret, **search),
            None if final is None else self.spec.final_setup(final, data, **last),
        )
        if record.fingerprint is None:
            # After the split: if the data cannot be split, no trial has run on it, and the run may continue with better data.
            opened.ledger.set_fingerprint(data_fingerprint)
        return setups

    def _limits(self, engine: Engine) -> dict[str, Any]:
        return {"seed_bits": self.seed_bits, "memory_limit": engine.memory_share if self.memory_limit is None else self.memory_limit}

    def _run_stages(  # noqa: PLR0913 - all that both stages need
        self,
        ledger: Ledger,
        draws: RunDraws,
        setups: Setups,
        transferred: FinalCandidates,
        *,
        stop_at: float | None,
        progress: Progress,
    ) -> _Winner | None:
        """Run the search and the final training; return what is released, or None for the fallback."""
        options = RunnerOptions(self.engine, self.largest_k, self.losses, stop_at, progress.on_trial)
        progress.stage_begins(SEARCH)
        best = Runner(ledger, draws, options).run(setups.search)
        with suppress_output():
            winner = None if best is None else self._winner(best, draws, transferred)
            # Without a winner a training is run all the same, so its absence does not show, and its result is discarded.
            unused = transferred[NO_WINNER] if NO_WINNER in transferred else draws.unused_candidate()
        if setups.final is None:
            return winner
        if winner is None:
            final = FinalDraw(draws.secret, unused, counts=False)
        else:
            final = FinalDraw(draws.secret, self.spec.final_candidate(winner.trained_with or {}))
        progress.stage_begins(FINAL)
        trained = Runner(ledger, final, RunnerOptions(self.engine.for_one_trial, 1, self.losses, stop_at)).run(setups.final)
        return None if winner is None or trained is None else winner._replace(content=trained.artifact)

    def _winner(self, best: Best, draws: RunDraws, transferred: FinalCandidates) -> _Winner:
        if not self.spec.define_by_run:
            return _Winner(draws.candidate(best.slot), best.score, best.artifact, None, transferred.get(best.slot))
        candidate, distributions, content = unpack_trial(best.artifact)
        trained_with = None if self.spec.final is None else self.spec.checks.transferred(candidate)
        return _Winner(candidate, best.score, content, distributions, trained_with)

    def _stop_at(self) -> float | None:
        limits = [self.deadline, None if self.release_at is None else seconds_until(self.release_at)]
        seconds = min((limit for limit in limits if limit is not None), default=None)
        return None if seconds is None else time.monotonic() + seconds

    # -- the release ----------------------------------------------------------------------------------------------------------

    def _release(self, winner: _Winner | None, certificate: Certificate) -> Release:
        export, content = self.spec.export, self.spec.fallback if winner is None else winner.content
        artifact = None if export is None or content is None else export.decode(content)
        plan = plan_of_certificate(certificate) if self.plan is None else self.plan
        if winner is None:
            release = Release(None, None, artifact, certificate, self.out, plan=plan)
        else:
            facts = (winner.distributions, winner.trained_with, plan)
            release = Release(winner.candidate, winner.score, artifact, certificate, self.out, *facts)
        if self.out is not None:
            file = None if export is None or content is None else export.file
            files = files_of_release(release, self.spec.as_dict(), file)
            if file is not None and content is not None:
                files[file] = content
            write_release(self.out, files, certificate)
        return release


def seeded_secret(seed: int, run_number: int) -> bytes:
    """Return the secret of a repeatable, insecure run; another one for each run of a plan."""
    return blake2b(int(seed).to_bytes(33, "big") + run_number.to_bytes(8, "big"), digest_size=SECRET_BYTES, person=b"insecure").digest()
