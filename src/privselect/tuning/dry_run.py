"""A few trials and the final training on synthetic data, to debug an objective before any private data is accessed.

Nothing is hidden: the output of a trial is shown, and its errors come with their traceback. Synthetic data is not private.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from privselect.errors import ParameterError, PrivselectError
from privselect.tuning.isolation import suppress_output
from privselect.tuning.ledger import SEARCH
from privselect.tuning.plan_violation import PlanViolation
from privselect.tuning.probe import probe_objective
from privselect.tuning.randomness import new_secret
from privselect.tuning.runner import FinalDraw, RunDraws
from privselect.tuning.scores import NoisyCount
from privselect.tuning.trial import unpack_trial

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from privselect.tuning.space import Candidate
    from privselect.tuning.trial import TrialSetup
    from privselect.tuning.tuning_run import TuningRun


@dataclass(frozen=True)
class DryRunTrial:
    """One trial on synthetic data, or the final training. None of this is secret."""

    candidate: Candidate
    score: float
    seconds: float
    size: int | None  # bytes of the exported artifact; None if nothing is exported
    reproducible: bool | None  # whether the same randomness gave the same outcome again; None if not checked
    stage: str = SEARCH


def dry_run(run: TuningRun, synthetic: Callable[[], Any], trials: int = 3) -> Iterator[DryRunTrial]:
    """Yield the search trials one by one, then the final training with the best candidate, run in this process.

    Errors are raised unchanged.
    """
    run.spec.checks.validate_space()
    yield from _run_trials(run, synthetic, trials)


def _run_trials(run: TuningRun, synthetic: Callable[[], Any], trials: int) -> Iterator[DryRunTrial]:
    spec, secret = run.spec, new_secret()
    draws = RunDraws(secret, trials, spec.space)
    data, score = synthetic(), spec.score
    if isinstance(score, NoisyCount) and score.fraction is None:
        score = replace(score, holdout=data)  # the real one is private
    setup = spec.search_setup(data, score, secret, seed_bits=run.seed_bits)
    final = None if spec.final is None else spec.final_setup(spec.final, data, seed_bits=run.seed_bits)
    best: DryRunTrial | None = None
    for slot in range(trials):
        # One repeated trial is enough to find a trainer with its own generator.
        trial = _run_one(run, setup, draws, slot, repeat=slot == 0 and trials > 1)
        best = trial if best is None or trial.score > best.score else best
        yield trial
    probe_objective(spec, data, setup, final)
    if final is not None and best is not None:
        trained_with = spec.checks.transferred(best.candidate)
        draw = FinalDraw(secret, spec.final_candidate(trained_with))
        yield replace(_run_one(run, final, draw), candidate=trained_with)


def _run_one(run: TuningRun, setup: TrialSetup, draws: RunDraws | FinalDraw, slot: int = 0, *, repeat: bool = False) -> DryRunTrial:
    spec, candidate = run.spec, draws.candidate(slot)
    if not setup.is_final and spec.checks.any_before_data:
        spec.checks.check_drawn(candidate)
    began = time.perf_counter()
    outcome = setup.run(candidate, draws.seed(slot))
    seconds, content = time.perf_counter() - began, outcome.artifact
    repeated = setup.run(draws.candidate(slot), draws.seed(slot)) == outcome if repeat else None
    if spec.define_by_run and not setup.is_final:
        candidate, _, content = unpack_trial(content)
    if setup.export is not None:
        setup.export.decode(content)
    return DryRunTrial(candidate, outcome.score, seconds, None if setup.export is None else len(content), repeated, draws.stage)


def run_synthetic_trial(run: TuningRun, synthetic: Callable[[], Any]) -> None:
    """Run one trial, and the final training, without output before K is drawn; refuse an objective that fails: nothing has been spent."""
    with suppress_output():
        run.spec.checks.validate_space()  # its errors are not those of the trial
    try:
        with suppress_output():
            for _ in _run_trials(run, synthetic, 1):
                pass
    except KeyboardInterrupt:
        raise
    except (PrivselectError, PlanViolation) as error:
        raise ParameterError(f"the trial on synthetic data failed before any private data was accessed: {error}") from error
    except BaseException as error:
        raise ParameterError(
            f"the trial on synthetic data failed with {type(error).__name__} before any private data was accessed; "
            "`privselect tune --dry-run` shows more"
        ) from error
