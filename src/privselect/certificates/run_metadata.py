"""What a run knows of itself and may tell. A certificate of a plan has none of it."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints, model_validator

from privselect.certificates.strict_model import Frozen, Line, Lines
from privselect.mechanisms import Composed, Mechanism

SYSTEM_ENTROPY = "the operating system's entropy"


class Run(Frozen):
    """Where the randomness came from, and how many runs on the same data the claim covers together.

    Nothing about K, the trials that lost or their timing belongs here: a certificate is public.
    """

    randomness: Line = Field(default=SYSTEM_ENTROPY, description="The source of all randomness.")
    insecure: bool = Field(default=False, description="True where the randomness can be known to others, as with a seed.")
    plan: Annotated[str, StringConstraints(pattern=r"^sha256:[0-9a-f]{64}$")] | None = Field(
        default=None, description="The hash of all that was run: objective, space, mechanism, law of K, score, export, fallback."
    )
    runs: int = Field(default=1, ge=1, le=10**6, description="Runs of the plan on the same data, composed.")
    notes: Lines = ()

    @model_validator(mode="after")
    def _told_apart(self) -> Run:
        if self.randomness != SYSTEM_ENTROPY and not self.insecure:
            raise ValueError(f"`insecure` must be true where the randomness is not {SYSTEM_ENTROPY}, got false")
        return self


def together(mechanism: Mechanism, run: Run | None) -> Mechanism:
    """All runs that a certificate covers, as one mechanism."""
    return mechanism if run is None or run.runs == 1 else Composed((mechanism,), times=run.runs)
