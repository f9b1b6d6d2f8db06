"""The answer as a sentence; every number in it is rounded to the side that claims less."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import TYPE_CHECKING

from privselect.counts import Count, Fixed
from privselect.text_forms import write_value

if TYPE_CHECKING:
    from privselect.interval import Interval
    from privselect.web.parse_question import Asked, Settled

_DIGITS, _MORE_DIGITS = 4, 6
_MANY = 10.0  # runs from which on only whole ones are told
_NAMES = {
    "noise_multiplier": "A noise multiplier of {} lets you",
    "sigma": "Gaussian noise of scale {} lets you",
    "scale": "Noise of scale {} lets you",
    "steps": "{} steps of training let you",
    "sampling_probability": "A sampling probability of {} lets you",
}


def shown_value(asked: Asked, value: float, interval: Interval) -> str:
    """The unknown, in few digits, rounded to the safe side; ``interval`` is what proves it."""
    if asked.open is None:
        return rounded(0.0 if interval.upper == 0.0 else value, up=True)  # a delta of 0 is carried on as the least that is allowed
    axis = asked.open.axis()
    if (asked.open.hole.leaks or "mostly").startswith("mostly"):
        return write_value(value)  # which alone was certified: beside it epsilon may jump
    return write_value(int(value)) if axis.whole else rounded(value, up=axis.towards_safe > 0)


def sentence(asked: Asked, found: Settled | None, shown: str | None) -> str:
    """What was found, in words; ``found`` is None where nothing finite was, ``shown`` the solved number."""
    what = _released(asked.count if found is None else found.count)
    if found is None and asked.delta is None:
        return f"No delta below 1 is proved for releasing {what} at epsilon {_written(asked.epsilon)}."
    if found is None:
        return f"No finite epsilon is proved for releasing {what} at delta {_written(asked.delta)}."
    budget = f"({_written(found.epsilon)}, {_written(found.delta)})"
    if asked.unknown == "epsilon" and asked.epsilon is None:
        return f"Releasing {what} costs epsilon {shown} at delta {_written(found.delta)}."
    if asked.unknown == "delta" and asked.delta is None:
        return f"Releasing {what} at epsilon {_written(found.epsilon)} costs delta {shown}."
    if asked.open is not None and asked.open.count is not None and asked.open.hole.owner is asked.open.count:
        return f"At {budget} you may release {what}: {asked.unknown} {shown}."
    begun = _NAMES.get(asked.unknown, f"A trial with {asked.unknown} {{}} lets you").format(shown)
    return f"{begun} release {what} at {budget}."


def proved(asked: Asked, found: Settled | None, interval: Interval) -> str:
    """The interval behind the sentence."""
    if asked.delta is None:
        name, at = "delta", f"epsilon {_written(asked.epsilon)}"
    else:
        name, at = "epsilon", f"delta {_written(asked.delta if found is None else found.delta)}"
    upper = float(interval.upper)
    if upper == 0.0:
        return f"{name} is 0 at {at}, proved"
    most = rounded(upper, up=True, digits=_MORE_DIGITS)
    if interval.lower is None:
        return f"{name} at most {most} at {at}; no lower end is proved"
    if math.isinf(float(interval.lower)):
        return f"no {name} will do at {at}, proved"
    least = rounded(float(interval.lower), up=False, digits=_MORE_DIGITS)
    if math.isinf(upper):
        return f"{name} at least {least} at {at}; no finite upper end is proved"
    return f"{name} between {least} and {most} at {at}, proved from both sides"


def rounded(value: float, *, up: bool, digits: int = _DIGITS) -> str:
    """So many digits; read back as a float, never on the other side of the value."""
    if value == 0.0:
        return "0"
    if not math.isfinite(value):
        return "infinite"
    # By the shortest digits that name it: 0.1 is shown as 0.1, though the float is a little more.
    near = Context(prec=digits, rounding=ROUND_CEILING if up else ROUND_FLOOR).plus(Decimal(repr(value)))
    if 1e-4 <= abs(value) < 1e6:
        return f"{near:f}"
    mantissa, _, exponent = f"{near:e}".partition("e")
    return f"{mantissa}e{int(exponent)}"


def _written(number: float | None) -> str:
    """Every digit, with an exponent as people write it."""
    mantissa, _, exponent = ("" if number is None else write_value(number)).partition("e")
    return f"{mantissa}e{int(exponent)}" if exponent else mantissa


def _released(count: object) -> str:
    if not isinstance(count, Count):
        return "one run"
    if isinstance(count, Fixed) and count.cap is None:
        return f"the best of {count.k} run{'s' if count.k > 1 else ''}"
    # One more run may cost more than was proved: never more of them than there are. The mean itself is right to a few units more.
    mean = count.expected() * (1.0 + 1e-12)
    about = f"{math.floor(mean):,}" if mean >= _MANY else rounded(mean, up=False, digits=2).removesuffix(".0")
    return f"the best of about {about} run{'' if about == '1' else 's'}"
