"""A few trials on synthetic data, to debug an objective before any private data is accessed.

Nothing is hidden: the output of a trial is shown, and its errors come with their traceback. Synthetic data is not private.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from privselect.errors import ParameterError, PrivselectError
from privselect.tuning.isolation import suppress_output
from privselect.tuning.plan_violation import PlanViolation
from privselect.tuning.randomness import new_secret
from privselect.tuning.runner import RunDraws
from privselect.tuning.scores import NoisyCount
from privselect.tuning.trial import unpack_trial

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from privselect.tuning.space import Candidate
    from privselect.tuning.tuning_run import TuningRun


@dataclass(frozen=True)
class DryRunTrial:
    """One trial on synthetic data. None of this is secret."""

    candidate: Candidate
    score: float
    seconds: float
    size: int | None  # bytes of the exported artifact; None if nothing is exported
    reproducible: bool | None  # whether the same randomness gave the same outcome again; None if not checked


def dry_run(run: TuningRun, synthetic: Callable[[], Any], trials: int = 3) -> Iterator[DryRunTrial]:
    """Yield the trials one by one, run in this process. Errors are raised unchanged."""
    spec = run.spec
    spec.validate_space()
    draws = RunDraws(new_secret(), trials, spec.space)
    data, score, export = synthetic(), spec.score, spec.export
    if isinstance(score, NoisyCount) and score.fraction is None:
        score = replace(score, holdout=data)  # the real one is private
    setup = spec.trial_setup(data, score, seed_bits=run.seed_bits)
    for slot in range(trials):
        candidate = draws.candidate(slot)
        spec.check_candidate(candidate)
        began = time.perf_counter()
        outcome = setup.run(candidate, draws.seed(slot))
        seconds, content = time.perf_counter() - began, outcome.artifact
        if spec.define_by_run:
            candidate, _, content = unpack_trial(content)
        if export is not None:
            export.decode(content)
        # One repeated trial is enough to find a trainer with its own generator.
        repeated = setup.run(draws.candidate(slot), draws.seed(slot)) == outcome if slot == 0 and trials > 1 else None
        yield DryRunTrial(candidate, outcome.score, seconds, None if export is None else len(content), repeated)


def run_synthetic_trial(run: TuningRun, synthetic: Callable[[], Any]) -> None:
    """Run one trial without output before K is drawn, and refuse an objective that fails while nothing has been spent."""
    try:
        with suppress_output():
            next(dry_run(run, synthetic, 1))
    except KeyboardInterrupt:
        raise
    except (PrivselectError, PlanViolation) as error:
        raise ParameterError(f"the trial on synthetic data failed before any private data was accessed: {error}") from error
    except BaseException as error:
        raise ParameterError(
            f"the trial on synthetic data failed with {type(error).__name__} before any private data was accessed; "
            "`privselect tune --dry-run` shows more"
        ) from error
