"""The answer in words, and the same question as Python code and as a command. Numbers are rounded to the safe side."""

from __future__ import annotations

import math
import shlex
from typing import TYPE_CHECKING

from privselect._util.rounding import format_digits_down, format_digits_up
from privselect.counts import Count, Fixed
from privselect.text_forms import write_value

if TYPE_CHECKING:
    from privselect.interval import Interval
    from privselect.web.question import ParsedQuestion, SolvedQuestion

_DIGITS, _PROOF_DIGITS = 4, 6
_INTEGER_MEAN = 10.0  # means of K from here on are written without decimals
_SENTENCE_STARTS = {
    "noise_multiplier": "A noise multiplier of {} lets you",
    "sigma": "Gaussian noise of scale {} lets you",
    "scale": "Noise of scale {} lets you",
    "steps": "{} steps of training let you",
    "sampling_probability": "A sampling probability of {} lets you",
}


def value_text(question: ParsedQuestion, value: float, interval: Interval) -> str:
    """Format the solved number in few digits, rounded to the safe side. ``interval`` is the proof of the number."""
    if question.problem is None:
        # The solved delta is at least the smallest allowed one, also if the proved delta is 0.
        return format_rounded(0.0 if interval.upper == 0.0 else value, up=True)
    search_range = question.problem.search_range()
    if (question.problem.unknown.leaks or "mostly").startswith("mostly"):
        return write_value(value)  # epsilon may jump next to the certified number, so rounding is unsafe
    return write_value(int(value)) if search_range.integer else format_rounded(value, up=search_range.safe_direction > 0)


def answer_sentence(question: ParsedQuestion, solved: SolvedQuestion | None, value: str | None) -> str:
    """Return the answer as a sentence. ``solved`` and ``value`` are None if no finite number was found."""
    what = _describe_release(question.count if solved is None else solved.count)
    if solved is None and question.delta is None:
        return f"No delta below 1 is proved for releasing {what} at epsilon {_write(question.epsilon)}."
    if solved is None:
        return f"No finite epsilon is proved for releasing {what} at delta {_write(question.delta)}."
    budget = f"({_write(solved.epsilon)}, {_write(solved.delta)})"
    if question.problem is None and question.epsilon is None:
        return f"Releasing {what} costs epsilon {value} at delta {_write(solved.delta)}."
    if question.problem is None:
        return f"Releasing {what} at epsilon {_write(solved.epsilon)} costs delta {value}."
    if question.problem.unknown.owner is question.count:
        return f"At {budget} you may release {what}: {question.unknown} {value}."
    start = _SENTENCE_STARTS.get(question.unknown, f"A trial with {question.unknown} {{}} lets you").format(value)
    return f"{start} release {what} at {budget}."


def proof_sentence(question: ParsedQuestion, solved: SolvedQuestion | None, interval: Interval) -> str:
    """Return the proved interval in words."""
    if question.delta is None:
        name, at = "delta", f"epsilon {_write(question.epsilon)}"
    else:
        name, at = "epsilon", f"delta {_write(question.delta if solved is None else solved.delta)}"
    upper = float(interval.upper)
    if upper == 0.0:
        return f"{name} is 0 at {at} (proved)"
    largest = format_rounded(upper, up=True, digits=_PROOF_DIGITS)
    if interval.lower is None:
        return f"{name} is at most {largest} at {at}; no lower bound is proved"
    if math.isinf(float(interval.lower)):
        return f"no finite {name} is possible at {at} (proved)"
    smallest = format_rounded(float(interval.lower), up=False, digits=_PROOF_DIGITS)
    if math.isinf(upper):
        return f"{name} is at least {smallest} at {at}; no finite upper bound is proved"
    return f"{name} is between {smallest} and {largest} at {at} (both bounds proved)"


def format_rounded(value: float, *, up: bool, digits: int = _DIGITS) -> str:
    """Format a number with few digits. Read back as a float, the text is never on the unsafe side of the value."""
    if value == 0.0:
        return "0"
    return (format_digits_up if up else format_digits_down)(value, digits, shortest=True)


def python_code(question: ParsedQuestion) -> str:
    """Return a Python program that answers the question."""
    mechanism, count = f'"{question.mechanism}"', "" if question.count is None else f', "{question.count}"'
    epsilon, delta = (f"{name}={_write(value)}" for name, value in (("epsilon", question.epsilon), ("delta", question.delta)))
    if question.problem is not None:
        return f"import privselect as ps\n\nplan = ps.plan({mechanism}{count}, {epsilon}, {delta})\nprint(plan.summary())\n"
    selection = f"ps.parse({mechanism})"
    if question.count is not None:
        selection = f'ps.Selection({selection}, ps.parse("{question.count}"))'
    call = f"epsilon_at({delta})" if question.epsilon is None else f"delta_at({epsilon})"
    return f"import privselect as ps\n\nselection = {selection}\nprint(selection.{call})\n"


def shell_command(question: ParsedQuestion) -> str:
    """Return a ``privselect`` command that answers the question."""
    words = ["privselect", "plan" if question.problem is not None else question.unknown, "--mechanism", str(question.mechanism)]
    words += [] if question.count is None else ["--count", str(question.count)]
    words += [] if question.epsilon is None else ["--epsilon", write_value(question.epsilon)]
    words += [] if question.delta is None else ["--delta", write_value(question.delta)]
    return shlex.join(words)


def _write(number: float | None) -> str:
    """Write a number with all its digits, and its exponent without leading zeros."""
    mantissa, _, exponent = ("" if number is None else write_value(number)).partition("e")
    return f"{mantissa}e{int(exponent)}" if exponent else mantissa


def _describe_release(count: object) -> str:
    if not isinstance(count, Count):
        return "one run"
    if isinstance(count, Fixed) and count.cap is None:
        return f"the best of {count.k} run{'s' if count.k > 1 else ''}"
    # Rounded down: one more run may cost more than was proved. The mean itself is exact to a few units in the last place.
    mean = count.expected() * (1.0 + 1e-12)
    about = f"{math.floor(mean):,}" if mean >= _INTEGER_MEAN else format_rounded(mean, up=False, digits=2).removesuffix(".0")
    return f"the best of about {about} run{'' if about == '1' else 's'}"
