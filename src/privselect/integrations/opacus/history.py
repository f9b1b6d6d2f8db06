"""The history of a training run, as recorded by an accountant of Opacus."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from privselect._util.validation import POSITIVE, PROBABILITY, check_number, check_sequence, format_value, integer_range
from privselect.errors import NotCoveredError, ParameterError
from privselect.mechanisms import DPSGD, Composed

if TYPE_CHECKING:
    from privselect.mechanisms import Mechanism

_EXPECTED = "an accountant of Opacus or its history, triples (noise_multiplier, sample_rate, num_steps)"
_ACCOUNTANTS = ("prv", "rdp")


def mechanism_from_history(accountant: Any) -> Mechanism:
    """Return the DP-SGD run recorded by an accountant of Opacus, or by a list of (noise_multiplier, sample_rate, num_steps).

    Holds when the batches were Poisson samples, which is the default of ``make_private``: the history does not record
    ``poisson_sampling=False``. Stages of equal noise and rate are merged, in any order.
    """
    history = accountant
    if hasattr(accountant, "history"):
        name = accountant.mechanism() if callable(getattr(accountant, "mechanism", None)) else None
        if name == "gdp":
            raise NotCoveredError(
                "the gdp accountant of Opacus is a central limit approximation and understates epsilon; its history is exact: "
                "pass `accountant.history` itself"
            )
        if name not in _ACCOUNTANTS:
            raise NotCoveredError(f"the accountant must be one of {', '.join(_ACCOUNTANTS)}, got {format_value(name)}")
        history = accountant.history
    stages: dict[tuple[float, float], int] = {}
    for entry in check_sequence("history", history, _EXPECTED):
        noise, rate, steps = _stage(entry)
        stages[noise, rate] = stages.get((noise, rate), 0) + steps
    if not stages:
        raise ParameterError("`history` must hold at least one step, got none")
    runs = tuple(DPSGD(noise_multiplier=noise, sampling_probability=rate, steps=steps) for (noise, rate), steps in stages.items())
    return runs[0] if len(runs) == 1 else Composed(runs)


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
