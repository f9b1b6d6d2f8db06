"""The history of a training run, as an accountant of Opacus keeps it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from privselect._util.validation import POSITIVE, PROBABILITY, check_number, check_sequence, format_value, integer_range
from privselect.errors import NotCoveredError, ParameterError
from privselect.integrations.sequential import composed
from privselect.mechanisms import DPSGD
from privselect.mechanisms.neighbours import ADD_REMOVE

if TYPE_CHECKING:
    from privselect.mechanisms import Mechanism

_WANTED = "an accountant of Opacus or its history, triples (noise_multiplier, sample_rate, num_steps)"
_KNOWN = ("prv", "rdp")


def mechanism_from_history(accountant: Any) -> Mechanism:
    """The DP-SGD run that an accountant of Opacus has kept, or a plain list of its (noise_multiplier, sample_rate, num_steps).

    Holds when the batches were Poisson samples, as ``make_private`` draws them unless told ``poisson_sampling=False``: the history
    does not say. Stages of equal noise and rate are one, in whatever order they were run.
    """
    history = accountant
    if hasattr(accountant, "history"):
        name = accountant.mechanism() if callable(getattr(accountant, "mechanism", None)) else None
        if name == "gdp":
            raise NotCoveredError(
                "the gdp accountant of Opacus is a central limit below the truth; what it has kept is not: pass `accountant.history` itself"
            )
        if name not in _KNOWN:
            raise NotCoveredError(f"the accountant must be one of {', '.join(_KNOWN)}, got {format_value(name)}")
        history = accountant.history
    stages: dict[tuple[float, float], int] = {}
    for entry in check_sequence("history", history, _WANTED):
        noise, rate, steps = _stage(entry)
        stages[noise, rate] = stages.get((noise, rate), 0) + steps
    if not stages:
        raise ParameterError("`history` must hold at least one step, got none")
    runs = (DPSGD(noise_multiplier=noise, sampling_probability=rate, steps=steps) for (noise, rate), steps in stages.items())
    return composed(runs, ADD_REMOVE)


def _stage(entry: Any) -> tuple[float, float, int]:
    try:
        noise, rate, steps = entry
    except (TypeError, ValueError):
        raise ParameterError(f"each stage must be a triple (noise_multiplier, sample_rate, num_steps), got {format_value(entry)}") from None
    return (
        check_number("noise_multiplier", noise, POSITIVE),
        check_number("sample_rate", rate, PROBABILITY),
        int(check_number("num_steps", steps, integer_range(1, 10**9))),
    )
