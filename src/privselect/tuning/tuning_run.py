"""One run: issue the certificate, draw K, run the trials, release the winner. A run that was stopped resumes from its ledger."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, replace
from datetime import UTC
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from privselect._util.validation import format_value
from privselect.certificates.certificate import Certificate
from privselect.certificates.certify import certify
from privselect.certificates.model import RunMetadata
from privselect.tuning.fingerprint import fingerprint, objective_content
from privselect.tuning.isolation import ignore_sigint
from privselect.tuning.ledger import RunRecord
from privselect.tuning.randomness import SECRET_BYTES, SECURE_SEED_BITS, derive_key, draw_trial_count, new_secret
from privselect.tuning.release import (
    CERTIFICATE,
    PLAN,
    RELEASE,
    Release,
    check_release_folder,
    check_release_time,
    seconds_until,
    to_json_bytes,
    wait_until,
    write_release,
)
from privselect.tuning.run_registry import DEFAULT_LEDGER_FOLDER, check_folder_unclaimed, open_run
from privselect.tuning.runner import RunDraws, Runner, RunnerOptions
from privselect.tuning.scores import LazyHoldout, NoisyCount
from privselect.tuning.trial import unpack_trial

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from pathlib import Path

    from privselect.certificates.model import Declared
    from privselect.tuning.executors import Engine
    from privselect.tuning.ledger import Best
    from privselect.tuning.run_registry import OpenedRun
    from privselect.tuning.run_spec import RunSpec
    from privselect.tuning.trial import TrialSetup


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
    timeout: float | None = None
    memory_limit: int | None = None
    release_at: datetime | None = None
    deadline: float | None = None
    constant_work: bool = False
    losses: int = 3
    curator: bool = False

    def run(self, load: Callable[[], Any] | None) -> Release:
        """Start or resume the run and return its release. ``load`` is called after K is drawn and the candidates are checked."""
        stop_at = self._stop_at()
        padded_trials = self.spec.count.largest if self.constant_work else None
        opened = open_run(self.ledger, self.spec.digest(), again=self.again)
        try:
            record = self._start(opened) if opened.record is None else self._check_resume(opened, opened.record, load)
            draws = RunDraws(record.secret, record.trials, self.spec.space)
            if self.spec.checks_candidates:
                for slot in range(padded_trials or draws.trials):
                    self.spec.check_candidate(draws.candidate(slot))
            setup = self._load_trial_setup(opened, record, load)
            options = RunnerOptions(self.engine, padded_trials, self.losses, stop_at, _curator_view() if self.curator else None)
            best = Runner(opened.ledger, draws, options).run(setup)
            if self.release_at is not None:
                wait_until(self.release_at)
            with ignore_sigint():
                release = self._release(best, draws, Certificate.from_json(record.certificate))
                opened.ledger.destroy_secrets()
            return release
        finally:
            opened.ledger.close()

    # -- start or resume ------------------------------------------------------------------------------------------------------

    def _start(self, opened: OpenedRun) -> RunRecord:
        """Issue the certificate, then draw the secret and K and record all of them in one transaction."""
        try:
            check_folder_unclaimed(self.ledger, opened.plan_hash, self.out)
            if self.out is not None:
                check_release_folder(self.out)
            if self.release_at is not None:
                check_release_time(self.release_at, self.spec.count, self.engine, self.timeout)
            self.spec.validate_space()
            randomness: Any = {} if self.insecure_seed is None else {"randomness": "a seed given by the caller", "insecure": True}
            run = RunMetadata(spec_hash=opened.plan_hash, runs=opened.number, notes=certificate_notes(self), **randomness)
            certificate = certify(
                self.spec.mechanism, self.spec.count, delta=self.delta, epsilon=self.epsilon, declared=self.declared, run=run
            )
        except BaseException:
            if opened.path is not None:
                opened.path.unlink(missing_ok=True)  # made for a run that never started
            raise
        secret = new_secret() if self.insecure_seed is None else seeded_secret(self.insecure_seed, opened.number)
        trials = draw_trial_count(self.spec.count, secret)
        target = None if self.out is None else str(self.out)
        record = RunRecord(opened.plan_hash, certificate.to_json(), target, secret, trials, None, released=False)
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
        if not set(certificate_notes(self)) <= set(stated):
            raise opened.cannot_resume(
                "its certificate states other options (release_at, deadline, constant_work, curator, seed_bits, losses or executor)",
                "Pass the original ones",
            )
        if self.release_at is not None:
            # Also on resume: a run that is in time only because few trials are left would reveal information about K.
            check_release_time(self.release_at, self.spec.count, self.engine, self.timeout)
        return record

    # -- the data and the trials ----------------------------------------------------------------------------------------------

    def _load_trial_setup(self, opened: OpenedRun, record: RunRecord, load: Callable[[], Any] | None) -> TrialSetup:
        """Load the data, check on resume that it is unchanged, and split off the hold-out."""
        data = None if load is None else load()
        score = self.spec.score
        data_fingerprint = b""  # without data, a fingerprint that no data has, so the run cannot be resumed
        if isinstance(score, NoisyCount) and isinstance(score.holdout, LazyHoldout):
            score = replace(score, holdout=score.holdout.load())
        if load is not None:
            holdout = score.holdout if isinstance(score, NoisyCount) else None
            data_fingerprint = fingerprint(
                (data, holdout, objective_content(self.spec.objective)), derive_key(record.secret, "fingerprint")
            )
            if record.fingerprint is not None and record.fingerprint != data_fingerprint:
                raise opened.cannot_resume(
                    "the data or the objective has changed since it started, and the same randomness on other data would reveal the change",
                    "Restore both",
                )
        memory_limit = self.engine.memory_share if self.memory_limit is None else self.memory_limit
        setup = self.spec.trial_setup(data, score, seed_bits=self.seed_bits, timeout=self.timeout, memory_limit=memory_limit)
        if record.fingerprint is None:
            # After the split: if the data cannot be split, no trial has run on it, and the run may continue with better data.
            opened.ledger.set_fingerprint(data_fingerprint)
        return setup

    def _stop_at(self) -> float | None:
        limits = [self.deadline, None if self.release_at is None else seconds_until(self.release_at)]
        seconds = min((limit for limit in limits if limit is not None), default=None)
        return None if seconds is None else time.monotonic() + seconds

    # -- the release ----------------------------------------------------------------------------------------------------------

    def _release(self, best: Best | None, draws: RunDraws, certificate: Certificate) -> Release:
        export, content = self.spec.export, self.spec.fallback if best is None else best.artifact
        candidate = None if best is None else draws.candidate(best.slot)
        score = None if best is None else best.score
        distributions = None
        if best is not None and self.spec.define_by_run:
            candidate, distributions, content = unpack_trial(best.artifact)
        if self.out is not None:
            released = {
                "version": 1,
                "fallback": best is None,
                "candidate": candidate,
                "score": score,
                "artifact": None if export is None or content is None else export.file,
                "certificate": certificate.hash,
            }
            if distributions is not None:
                released["distributions"] = distributions
            files = {
                PLAN: to_json_bytes(self.spec.as_dict()),
                CERTIFICATE: certificate.to_json().encode("utf-8"),
                RELEASE: to_json_bytes(released),
            }
            if export is not None and content is not None:
                files[export.file] = content
            write_release(self.out, files, certificate)
        artifact = None if export is None or content is None else export.decode(content)
        return Release(candidate, score, artifact, certificate, self.out, distributions)


def seeded_secret(seed: int, run_number: int) -> bytes:
    """Return the secret of a repeatable, insecure run; another one for each run of a plan."""
    return blake2b(int(seed).to_bytes(33, "big") + run_number.to_bytes(8, "big"), digest_size=SECRET_BYTES, person=b"insecure").digest()


def _curator_view() -> Callable[[int, int], object]:
    sys.stderr.write("warning: curator view: the following lines reveal K. Do not show them to anyone who may see only the release\n")
    return lambda done, total: sys.stderr.write(f"trial {done} of {total}\n")


# -- what the certificate says about the run: what stays visible, and what no theorem covers -----------------------------------

_FAILURES = (
    "a failed trial counts as one with the worst score; a failure caused by a record (an exception, a time or memory limit) is not covered"
)
_LOST_WORKERS = (
    "a trial that lost its worker is run again with the same randomness, at most {losses} times; giving up the run after that, without "
    "a release, is not covered"
)
_SHORT_SEEDS = (
    "the trainer takes seeds of {bits} bits, which can be found by search from a released model; the guarantee does not hold against such "
    "a search"
)
_DEFINE_BY_RUN = (
    "the objective defines the search space while it runs; that no name, range or branch of it was computed from private records is "
    "declared by the user, not checked"
)


def certificate_notes(run: TuningRun) -> tuple[str, ...]:
    """Return the notes for the certificate of a run; nothing in them depends on what was drawn."""
    spec = run.spec
    if run.release_at is not None:
        moment = run.release_at.astimezone(UTC).isoformat()
        time_note = f"the release is made at {moment}, fixed before K was drawn; the load of the machine until then stays visible"
    elif run.constant_work:
        time_note = "the largest possible number of trials is run, those beyond K are discarded in secret, and their durations stay visible"
    else:
        time_note = "the duration of the run is visible to anyone who watches the machine, and reveals something about K"
    checked = "each candidate's mechanism was checked to leak at most the declared one "
    conditions = {
        "a run that misses its deadline releases nothing; that more or slower trials make this likelier is not covered": (
            run.deadline is not None
        ),
        "the number of trials was shown to the curator during the run": run.curator,
        checked + ("in the trial that drew it" if spec.define_by_run else "before the data was accessed"): spec.checks_candidates,
        _DEFINE_BY_RUN: spec.define_by_run,
        "a trial found not to run what was planned stops the run without a release; a violation caused by a record is not covered": (
            spec.define_by_run or getattr(spec.objective, "may_violate_plan", False)
        ),
        _SHORT_SEEDS.format(bits=run.seed_bits): run.seed_bits < SECURE_SEED_BITS,
        "no ledger was kept, so earlier runs of the same plan are not counted here": run.ledger is None,
    }
    # A function that states what a candidate leaks may rest on assumptions, as the objective may.
    own = [note for source in (spec.objective, spec.mixture_of, spec.mechanism_of) for note in getattr(source, "notes", ())]
    notes = (
        "if no trial is drawn or all trials fail, the fallback fixed in the plan is released; which of the two happened stays secret",
        _FAILURES,
        _LOST_WORKERS.format(losses=run.losses),
        time_note,
        *(note for note, holds in conditions.items() if holds),
    )
    return tuple(dict.fromkeys((*notes, *run.engine.notes, *own)))
