"""What a run says of itself in its certificate: what stays visible, and what no theorem covers."""

from __future__ import annotations

from datetime import UTC
from typing import TYPE_CHECKING

from privselect.tuning.randomness.trial_randomness import ENOUGH_BITS

if TYPE_CHECKING:
    from privselect.tuning.tune import Tuning

_FALLBACK = "where no trial is drawn, or all fail, the fallback fixed in the plan is released, and which of the two it was stays secret"
_FAILURES = (
    "a trial that fails counts as one with the worst score; that a record itself may set off a failure (an exception, a time or memory "
    "limit) is not covered"
)
_LOST = (
    "a trial whose worker was lost is run again with the same randomness, at most {losses} times; that a run is then given up without "
    "a release is not covered"
)
_TIME = "how long the run took is visible to whoever watches the machine, and tells something about K"
_CONSTANT = "as many trials are run as the law of K allows, and those beyond K are dropped in secret; how long each took stays visible"
_AT = "the release is made at {moment}, which was fixed before K was drawn; the load of the machine until then stays visible"
_MEMORY = "no ledger was kept: whether the same plan was run before is not known here"
_SEED = (
    "the trainer takes seeds of {bits} bits, which can be found by search from a released model: the guarantee does not hold against that"
)
_DEADLINE = "a run that misses its deadline releases nothing; that a run with more trials, or slower ones, is likelier to is not covered"
_CURATOR = "the number of trials was shown to the curator while they ran"
_CHECKED = "the mechanism of each candidate was checked to leak at most the declared one before the data was touched"
_JUDGED = "the mechanism of each candidate was checked to leak at most the declared one in the trial that drew it"
_SUGGESTED = (
    "the search space is what the objective asks for while it runs; that no name, range or branch of it was computed from private records "
    "is declared by the user, not checked"
)
_BREACH = (
    "a trial that is found not to run what was planned ends the run without a release; that a record itself sets this off is not covered"
)


def of(tuning: Tuning) -> tuple[str, ...]:
    """The notes of a run; nothing in them depends on what was drawn."""
    said = [_FALLBACK, _FAILURES, _LOST.format(losses=tuning.losses)]
    if tuning.release_at is not None:
        said.append(_AT.format(moment=tuning.release_at.astimezone(UTC).isoformat()))
    elif tuning.constant_work:
        said.append(_CONSTANT)
    else:
        said.append(_TIME)
    conditions = {
        _DEADLINE: tuning.deadline is not None,
        _CURATOR: tuning.curator,
        _CHECKED: tuning.recipe.judges and not tuning.recipe.suggested,
        _JUDGED: tuning.recipe.judges and tuning.recipe.suggested,
        _SUGGESTED: tuning.recipe.suggested,
        _BREACH: tuning.recipe.suggested or getattr(tuning.recipe.objective, "may_breach", False),
        _SEED.format(bits=tuning.seed_bits): tuning.seed_bits < ENOUGH_BITS,
        _MEMORY: tuning.ledger is None,
    }
    said += [note for note, holds in conditions.items() if holds]
    recipe = tuning.recipe
    # A function that tells what a candidate leaks may rest on more than its numbers say, as the objective may.
    told = [note for teller in (recipe.objective, recipe.mixed, recipe.mechanism_of) for note in getattr(teller, "notes", ())]
    return tuple(dict.fromkeys((*said, *tuning.engine.notes, *told)))
