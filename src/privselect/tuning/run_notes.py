"""The notes of a run in its certificate: what was run, what stays visible, and what no theorem covers."""

from __future__ import annotations

from datetime import UTC
from typing import TYPE_CHECKING

from privselect.tuning.randomness import SECURE_SEED_BITS
from privselect.tuning.scores import NoisyCount
from privselect.tuning.trial_mechanism import states_mechanism

if TYPE_CHECKING:
    from privselect.tuning.tuning_run import TuningRun

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
_FALLBACK = "if no trial is drawn or all trials fail, the fallback fixed in the plan is released; which of the two happened stays secret"
_FALLBACK_TWO_STAGES = (
    "if no trial is drawn, all trials fail or the final training fails, the fallback fixed in the plan is released; which of these "
    "happened stays secret, and a training is run in any case"
)
_VISIBLE = (
    "{trials} search trials were fixed in advance with their mechanism, and every result was shown; the candidate of each trial may depend "
    "on all earlier results, but its mechanism and the number of trials may not"
)
_VISIBLE_FAILURES = (
    "a failed trial is shown as failed, and so is a failed final training; a failure caused by a record (an exception, a time or memory "
    "limit) is not covered"
)
_VISIBLE_KILLS = "a trial that was interrupted is run again with the same candidate and the same randomness, and counts once"
_VISIBLE_TIME = "the duration of each trial is visible, and is not covered if it depends on the records"
_FINAL = "the final training runs once on all records, with randomness independent of the search, on {rule}"
_HOLDOUT_APART = "the records of the hold-out, which were given apart, are not used by the final training"
_SUBSAMPLE = (
    "the trials of the search run on one sample of the records, drawn once before the first trial; each record is in it with probability "
    "{probability}, independently, and the sample stays secret"
)
_TOLD = "the objective is told which mechanism to run; that it runs this mechanism is not checked"
_DEFINE_BY_RUN = (
    "the objective defines the search space while it runs; that no name, range or branch of it was computed from private records is "
    "declared by the user, not checked"
)


def certificate_notes(run: TuningRun) -> tuple[str, ...]:
    """Return the notes for the certificate of a run; nothing in them depends on what was drawn."""
    spec = run.spec
    if spec.visible is not None:
        time_note = _VISIBLE_TIME
    elif run.release_at is not None:
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
        checked + ("in the trial that drew it" if spec.define_by_run else "before the data was accessed"): spec.checks.any_mechanism,
        _DEFINE_BY_RUN: spec.define_by_run,
        "a trial found not to run what was planned stops the run without a release; a violation caused by a record is not covered": (
            spec.define_by_run or getattr(spec.objective, "may_violate_plan", False)
        ),
        _SHORT_SEEDS.format(bits=run.seed_bits): run.seed_bits < SECURE_SEED_BITS,
        "no ledger was kept, so earlier runs of the same plan are not counted here": run.ledger is None,
    }
    # A function that states what a candidate leaks may rest on assumptions, as the objective may.
    own = [note for source in (spec.objective, spec.trial.mixture_of, spec.trial.mechanism_of) for note in getattr(source, "notes", ())]
    notes = (
        *_stages(run),
        _FAILURES if spec.visible is None else _VISIBLE_FAILURES,
        _LOST_WORKERS.format(losses=run.losses),
        time_note,
        *(note for note, holds in conditions.items() if holds),
    )
    return tuple(dict.fromkeys((*notes, *spec.space.notes, *run.engine.notes, *own)))


def _stages(run: TuningRun) -> tuple[str, ...]:
    spec = run.spec
    holdout = isinstance(spec.score, NoisyCount) and spec.score.fraction is None
    says_itself = states_mechanism(spec.objective) or isinstance(getattr(spec.objective, "mechanism_claimed", None), bool)
    conditions = {
        _FALLBACK if spec.final is None else _FALLBACK_TWO_STAGES: spec.visible is None,
        _VISIBLE.format(trials=spec.visible): spec.visible is not None,
        _VISIBLE_KILLS: spec.visible is not None,
        _SUBSAMPLE.format(probability=spec.subsample): spec.subsample is not None,
        "" if spec.final is None else _FINAL.format(rule=_rule(run)): spec.final is not None,
        _HOLDOUT_APART: spec.final is not None and holdout,
        _TOLD: "mechanism" in spec.told and not says_itself,
    }
    return tuple(note for note, holds in conditions.items() if holds)


def _rule(run: TuningRun) -> str:
    rule = "" if run.spec.final is None else run.spec.final.transfer.note
    return rule if run.spec.visible is None else f"{rule}, or on another candidate chosen from the results"
