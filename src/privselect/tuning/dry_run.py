"""A few trials on synthetic data, before anything private is touched: here is where an objective is debugged.

Nothing is hidden: what a trial prints is seen, and what it raises comes with its traceback. That is allowed as the data is nobody's.
"""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from privselect.errors import ParameterError, PrivselectError
from privselect.tuning.define_by_run import unpacked
from privselect.tuning.isolation.suppress_output import silence
from privselect.tuning.plan_violation import Breach
from privselect.tuning.randomness.key_derivation import SECRET_BYTES
from privselect.tuning.runner import Drawn
from privselect.tuning.scores import NoisyCount
from privselect.tuning.trial import Work

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from privselect.tuning.space import Candidate
    from privselect.tuning.tune import Tuning

TRIALS = 3


@dataclass(frozen=True)
class DryTrial:
    """One trial on synthetic data. None of this is secret."""

    candidate: Candidate
    score: float
    seconds: float
    size: int | None  # bytes of the exported artifact; None where nothing is exported
    pure: bool | None  # whether the same randomness gave the same outcome once more; None where it was not tried


def dry_run(tuning: Tuning, synthetic: Callable[[], Any], trials: int = TRIALS) -> Iterator[DryTrial]:
    """The trials one by one, in this process; whatever goes wrong is raised as it is."""
    recipe = tuning.recipe
    recipe.look_at_space()
    drawn = Drawn(secrets.token_bytes(SECRET_BYTES), trials, recipe.space)
    work = _work(tuning, synthetic())
    export = work.export
    for slot in range(trials):
        candidate = drawn.candidate(slot)
        recipe.check(candidate)
        began = time.perf_counter()
        outcome = work.outcome(candidate, drawn.seed(slot))
        seconds = time.perf_counter() - began
        content = outcome.artifact
        if recipe.suggested:
            candidate, _, content = unpacked(content)
        if export is not None:
            export.decode(content)
        # Once is enough to find a trainer that has a generator of its own, and costs no more than one trial's time.
        pure = work.outcome(drawn.candidate(slot), drawn.seed(slot)) == outcome if slot == 0 and trials > 1 else None
        yield DryTrial(candidate, outcome.score, seconds, None if export is None else len(content), pure)


def try_once(tuning: Tuning, synthetic: Callable[[], Any]) -> None:
    """One trial before K is drawn, in silence: an objective that cannot run is refused while nothing has been spent."""
    try:
        with silence():
            next(dry_run(tuning, synthetic, 1))
    except KeyboardInterrupt:
        raise
    except (PrivselectError, Breach) as error:
        raise ParameterError(f"the trial on synthetic data failed before anything private was touched: {error}") from error
    except BaseException as error:
        raise ParameterError(
            f"the trial on synthetic data failed with {type(error).__name__} before anything private was touched; "
            "`privselect tune --dry-run` shows more"
        ) from error


def _work(tuning: Tuning, data: Any) -> Work:
    """As in a run, but for the hold-out: one that is given apart is private, and the synthetic data itself stands in for it."""
    recipe, measured = tuning.recipe, None
    if isinstance(recipe.score, NoisyCount):
        score = recipe.score if recipe.score.fraction is not None else replace(recipe.score, holdout=data)
        data, measured = score.parts(data, recipe.split_key())
    return Work(
        recipe.objective,
        data,
        measured,
        recipe.export,
        seed_bits=tuning.seed_bits,
        suggested=recipe.suggested,
        fault=recipe.judge,
    )
