"""How a score is private, in the words of a certificate: the same for a plan file and for the run that follows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from privselect.certificates.declarations import Declared
from privselect.mechanisms import DiscreteGaussian
from privselect.mechanisms.neighbours import ADD_REMOVE

if TYPE_CHECKING:
    from privselect.mechanisms import Mechanism

PUBLIC, COVERED = "public", "covered"
KINDS = {
    PUBLIC: "computed from the private output of the trial and from public data",
    COVERED: "declared by the user to be covered by the mechanism of a trial",
}


def count_noise(sigma: float) -> DiscreteGaussian:
    """What a noisy count of right answers costs: one record changes the count by at most 1."""
    return DiscreteGaussian(sigma=sigma, neighbours=ADD_REMOVE)


def counted(noise: Mechanism) -> str:
    """The words for a noisy count."""
    return f"a count of right answers on private records that no trial is trained on, plus noise: {noise}"


def with_score(declared: Declared, said: str) -> Declared:
    """What is declared, and how the score is private where the user has no words of their own for that."""
    return declared if declared.score is not None else Declared(**{**declared.model_dump(), "score": said})
