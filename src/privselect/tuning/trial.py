"""One trial, or the final training, as a worker runs it: a pure function of its randomness, the candidate and the data."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple

from privselect._util.child_process import limit_memory
from privselect._util.validation import format_value
from privselect.errors import ParameterError
from privselect.tuning.isolation import limit_time, suppress_output
from privselect.tuning.plan_violation import PlanViolation, ViolationResult, recorded_violations
from privselect.tuning.randomness import SECURE_SEED_BITS, Randomness, Stream, derive_key
from privselect.tuning.release import to_json_bytes
from privselect.tuning.suggest import Suggest

if TYPE_CHECKING:
    from collections.abc import Callable

    from privselect.tuning.exports import Export
    from privselect.tuning.scores import HoldoutScorer
    from privselect.tuning.space import Candidate
    from privselect.tuning.told import Told

_MAX_ARTIFACT_BYTES = 900_000_000  # SQLite stores at most a billion bytes in one value
_LENGTH_BYTES = 8  # of the number before a packed candidate


class Outcome(NamedTuple):
    """What a trial that did not fail returns to the coordinator. Secret, unless the trial wins."""

    score: float
    artifact: bytes  # as exported; if the objective drew its own candidate in a search, with the candidate before it

    def __repr__(self) -> str:
        return "Outcome(...)"


@dataclass(frozen=True, repr=False)
class TrialSetup:
    """Everything a worker needs except the candidate and the randomness; sent to each worker once.

    Nothing in it reveals the secret, K, or which trial is run.
    """

    objective: Callable[..., Any]
    data: Any
    scorer: HoldoutScorer | None = None  # if the score is a noisy count on a private hold-out
    export: Export | None = None
    seed_bits: int = SECURE_SEED_BITS
    timeout: float | None = None  # seconds
    memory_limit: int | None = None  # bytes
    define_by_run: bool = False  # whether the objective draws its own candidate
    candidate_fault: Callable[[Candidate], str | None] | None = None  # checks a candidate that only the trial knows
    told: Told | None = None  # keywords for the objective
    is_final: bool = False  # whether this is the final training, of which only the artifact counts

    def run(self, candidate: Candidate, seed: bytes) -> Outcome:
        """Run the trial; any error is raised, and a dry run shows it."""
        # The noise of the score is independent of all randomness that the objective can get.
        randomness = Randomness(derive_key(seed, "objective"), self.seed_bits)
        # A copy: what the objective does to its candidate must not change what is released.
        given = Suggest.of_candidate(candidate) if self.define_by_run else dict(candidate)
        told = {} if self.told is None else self.told.keywords(candidate)
        returned = self.objective(given, self.data, randomness, **told)
        if isinstance(given, Suggest) and self.candidate_fault is not None and (fault := self.candidate_fault(given.drawn)) is not None:
            raise PlanViolation(fault)
        if not isinstance(returned, tuple) or len(returned) != 2:
            raise ParameterError(f"the objective must return (score, artifact), got {format_value(type(returned).__name__)}")
        score, artifact = returned
        if self.scorer is not None:
            if score is not None:
                raise ParameterError("the objective must return None as the score when the score is a noisy count on the hold-out")
            score = self.scorer.score(artifact, Stream(derive_key(seed, "score")))
        content = b"" if self.export is None else self.export.encode(artifact)
        if isinstance(given, Suggest) and not self.is_final:
            content = pack_trial(given, content)
        if len(content) > _MAX_ARTIFACT_BYTES:
            raise ParameterError(f"an artifact must have at most {_MAX_ARTIFACT_BYTES} bytes, got more")
        return Outcome(0.0 if self.is_final else check_score(score), content)


def run_trial(setup: TrialSetup, candidate: Candidate, seed: bytes) -> Outcome | ViolationResult | None:
    """Run a trial in a worker; return its outcome, or None if it failed. All failures look the same, without a reason."""
    if setup.memory_limit is not None:
        limit_memory(setup.memory_limit)
    before = len(recorded_violations())
    outcome: Outcome | ViolationResult | None
    try:
        with suppress_output(), limit_time(setup.timeout):
            outcome = setup.run(candidate, seed)
    except KeyboardInterrupt:
        raise KeyboardInterrupt from None  # from the user, not from the trial; the exception the trial was handling must not be shown
    except PlanViolation as violation:
        outcome = ViolationResult(violation.message)
    except BaseException:  # noqa: BLE001 - includes SystemExit and anything a C library raises
        outcome = None
    # A violation that the trial caught itself, or that ended one of its threads, stops the run too. So does one of a concurrent trial.
    return ViolationResult(caught[0]) if (caught := recorded_violations()[before:]) else outcome


def check_score(score: Any) -> float:
    """Return the score as a finite float. A larger score is better."""
    if isinstance(score, bool) or not isinstance(score, Real):
        array = getattr(score, "item", None)  # a numpy or torch scalar
        score = array() if callable(array) and getattr(score, "ndim", None) == 0 else score
    if isinstance(score, bool) or not isinstance(score, Real) or not math.isfinite(number := float(score)):
        raise ParameterError(f"the score must be a finite number, got a {type(score).__name__}")
    return number + 0.0  # -0.0 and 0.0 are the same score


# -- a trial that draws its own candidate returns it packed before the artifact ------------------------------------------------


class PackedTrial(NamedTuple):
    """The candidate, its distributions and the artifact's bytes. Secret, unless the trial wins."""

    candidate: Candidate
    distributions: dict[str, Any]
    content: bytes

    def __repr__(self) -> str:
        return "PackedTrial(...)"


def pack_trial(suggest: Suggest, content: bytes) -> bytes:
    """Join candidate, distributions and artifact into the bytes that the ledger keeps."""
    distributions = {name: distribution.as_dict() for name, distribution in suggest.distributions.items()}
    head = to_json_bytes({"candidate": suggest.drawn, "laws": distributions})
    return len(head).to_bytes(_LENGTH_BYTES, "big") + head + content


def unpack_trial(packed: bytes) -> PackedTrial:
    """Split the bytes that ``pack_trial`` returned."""
    end = _LENGTH_BYTES + int.from_bytes(packed[:_LENGTH_BYTES], "big")
    head = json.loads(packed[_LENGTH_BYTES:end])
    return PackedTrial(head["candidate"], head["laws"], packed[end:])
