"""From the text of an option to what it names, or one clear sentence."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from privselect.errors import ParameterError, TextFormError
from privselect.parameters import OPEN_UNIT, REAL, Range

if TYPE_CHECKING:
    from privselect.counts import Count
    from privselect.mechanisms import Mechanism


def read_delta(text: str) -> float:
    """``--delta``."""
    return _number("delta", text, OPEN_UNIT)


def read_epsilon(text: str) -> float:
    """``--epsilon``."""
    return _number("epsilon", text, REAL)


def read_mechanism(text: str) -> Mechanism:
    """``--mechanism``."""
    from privselect.mechanisms import Mechanism
    from privselect.text import parse

    described = parse(text)
    if not isinstance(described, Mechanism):
        raise TextFormError(f"--mechanism needs what one trial leaks, such as gaussian(sigma=4), got the law of K {described}")
    return described


def read_count(text: str | None) -> Count | None:
    """``--count``, which may be left out."""
    from privselect.counts import Count
    from privselect.text import parse

    if text is None:
        return None
    described = parse(text)
    if not isinstance(described, Count):
        raise TextFormError(f"--count needs a law of K, such as geometric(mean=300), got the mechanism {described}")
    return described


def select(mechanism: Mechanism, count: Count | None) -> Mechanism:
    """The winner of that many trials, or the mechanism alone."""
    from privselect.selection import Selection

    return mechanism if count is None else Selection(mechanism, count)


def _number(name: str, text: str, allowed: Range) -> float:
    top, slash, bottom = text.partition("/")
    try:
        value = float(top) / float(bottom if slash else 1)
    except (ValueError, ZeroDivisionError):
        value = math.nan
    if not math.isfinite(value) or value not in allowed:
        # Show what was typed: the float of 1e400 is infinity.
        shown = text if len(text) <= 80 else f"{text[:77]}..."
        raise ParameterError(f"`{name}` must be {allowed}, got {shown!r}")
    return value
