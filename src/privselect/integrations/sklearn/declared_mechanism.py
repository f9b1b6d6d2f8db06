"""What an estimator says of itself: the mechanism of one fit, and what a certificate must say of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sklearn.base import clone

from privselect.errors import ParameterError
from privselect.integrations.sklearn.pipeline import private_part
from privselect.mechanisms import Mechanism

if TYPE_CHECKING:
    from collections.abc import Iterable

    from privselect.tuning.space import Candidate

VARIED = "candidates differ in {names}: what is said here of these is as the estimator was given, and the winner may have others"


@dataclass(frozen=True)
class MechanismOf:
    """What an estimator with these parameters says that it leaks; of a pipeline, its last step."""

    estimator: Any

    def __call__(self, candidate: Candidate) -> Mechanism:
        """Of a fresh clone."""
        part = private_part(clone(self.estimator).set_params(**candidate))
        if is_of_diffprivlib(part):
            from privselect.integrations.diffprivlib import mechanism_from_estimator

            return mechanism_from_estimator(part)
        mechanism = getattr(part, "mechanism", None)
        if not isinstance(mechanism, Mechanism):
            raise ParameterError("every candidate must say what its fit leaks where the estimator does, got one that has no `mechanism`")
        return mechanism


def told_mechanism(estimator: Any) -> MechanismOf | None:
    """None where the estimator says nothing of what it leaks. One of diffprivlib that is known not to keep its promise is refused."""
    part = private_part(estimator)
    told = MechanismOf(estimator)
    if is_of_diffprivlib(part):
        told({})
        return told
    return told if isinstance(getattr(part, "mechanism", None), Mechanism) else None


def told_notes(estimator: Any, searched: Iterable[str] = ()) -> tuple[str, ...]:
    """Lines for the certificate, and one where they are about parameters that are ``searched``."""
    part = private_part(estimator)
    if is_of_diffprivlib(part):
        from privselect.integrations.diffprivlib import diffprivlib_mechanism

        return diffprivlib_mechanism(clone(part)).notes
    if "insecure_seed" in part.get_params(deep=False):
        part = clone(part).set_params(insecure_seed=None)  # in a search each trial has randomness of its own in its place
    names = sorted({name.rpartition("__")[2] for name in searched} & getattr(part, "noted", frozenset()))
    return (*getattr(part, "notes", ()), *((VARIED.format(names=", ".join(names)),) if names else ()))


def strip(estimator: Any) -> None:
    """Take out of a fitted estimator what its mechanism is known not to cover."""
    part = private_part(estimator)
    if is_of_diffprivlib(part):
        from privselect.integrations import diffprivlib

        diffprivlib.strip(part)


def is_of_diffprivlib(part: Any) -> bool:
    """Whether privselect knows what the estimator leaks, where that itself does not tell."""
    return type(part).__module__.startswith("diffprivlib.models.")
