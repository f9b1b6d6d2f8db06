"""What an objective is told about its stage: keywords that it gets if it has a parameter of that name."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from privselect.errors import ParameterError
from privselect.tuning.trial_mechanism import mechanism_for

if TYPE_CHECKING:
    from privselect.mechanisms import Mechanism
    from privselect.tuning.space import Candidate
    from privselect.tuning.trial_mechanism import MechanismOf

_KEYWORDS = ("mechanism", "stage")
_BY_NAME = {inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY}


@dataclass(frozen=True)
class Told:
    """The stage, and the mechanism of training in it: one for all candidates, or a function of the candidate."""

    stage: str
    mechanism: Mechanism | MechanismOf
    names: tuple[str, ...]  # the keywords that the objective takes

    def keywords(self, candidate: Candidate) -> dict[str, Any]:
        """Return the keywords for a trial of this candidate."""
        values: dict[str, Any] = {"stage": self.stage} if "stage" in self.names else {}
        if "mechanism" in self.names:
            values["mechanism"] = mechanism_for(self.mechanism, candidate) if callable(self.mechanism) else self.mechanism
        return values


def told_names(objective: Any) -> tuple[str, ...]:
    """Return the keywords that the objective has parameters for; refuse one that cannot be called with them."""
    try:
        own, inner = (inspect.signature(objective, follow_wrapped=follow) for follow in (False, True))
    except (TypeError, ValueError):  # some built-in functions have no signature
        return ()
    # A decorator's **keywords pass on what the decorated function takes.
    passes_on = any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in own.parameters.values())
    names = tuple(name for name in _KEYWORDS if _takes(own, name) or (passes_on and _takes(inner, name)))
    try:
        if names:
            own.bind(None, None, None, **dict.fromkeys(names))
    except TypeError:
        call = ", ".join(("candidate", "data", "randomness", *(f"{name}=..." for name in names)))
        raise ParameterError(f"`objective` must be a function that can be called as objective({call}), got the parameters {own}") from None
    return names


def _takes(signature: inspect.Signature, name: str) -> bool:
    parameter = signature.parameters.get(name)
    return parameter is not None and parameter.kind in _BY_NAME
