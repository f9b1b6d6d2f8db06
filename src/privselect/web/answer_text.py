"""The answer in words, and the same question as Python code and as a command. Numbers are rounded to the safe side."""

from __future__ import annotations

import math
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

from privselect._util.rounding import format_digits_down, format_digits_up
from privselect.counts import Count, Fixed
from privselect.text_forms import write_value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from privselect.interval import Interval
    from privselect.planning.stages import OpenStages
    from privselect.selection.two_stages import Stages
    from privselect.web.question import ParsedQuestion, SolvedQuestion

_DIGITS, _PROOF_DIGITS = 4, 6
_INTEGER_MEAN = 10.0  # means of K from here on are written without decimals
_SENTENCE_STARTS = {  # {0} is the value, {1} names the stage
    "noise_multiplier": "A noise multiplier of {0}{1} lets you",
    "sigma": "Gaussian noise of scale {0}{1} lets you",
    "scale": "Noise of scale {0}{1} lets you",
    "steps": "{0} steps of training{1} let you",
    "sampling_probability": "A sampling probability of {0}{1} lets you",
}
_STAGES = {"search": " in each search trial", "final": " in the final training"}


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
    stages = question.stages if solved is None else solved.stages
    action = _describe_action(stages, question)
    doing = action.gerund
    if solved is None and question.delta is None:
        return f"No delta below 1 is proved for {doing} at epsilon {_write(question.epsilon)}."
    if solved is None:
        return f"No finite epsilon is proved for {doing} at delta {_write(question.delta)}."
    budget = f"({_write(solved.epsilon)}, {_write(solved.delta)})"
    if question.problem is None and question.epsilon is None:
        return f"{_capitalise(doing)} costs epsilon {value} at delta {_write(solved.delta)}."
    if question.problem is None:
        return f"{_capitalise(doing)} at epsilon {_write(solved.epsilon)} costs delta {value}."
    if question.problem.unknown.owner is question.stages.count:
        return f"At {budget} you may {action.verb}: {question.unknown} {value}."
    subject = "A trial" if question.problem.stage == "search" else "A final training"
    where = "" if stages.final is None else _STAGES[question.problem.stage]
    start = _SENTENCE_STARTS.get(question.unknown, f"{subject} with {question.unknown} {{0}} lets you").format(value, where)
    return f"{start} {action.verb} at {budget}."


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
    epsilon, delta = (f"{name}={_write(value)}" for name, value in (("epsilon", question.epsilon), ("delta", question.delta)))
    if question.problem is not None:
        arguments = [f'"{question.asked.mechanism}"', *([] if question.asked.count is None else [f'"{question.asked.count}"'])]
        arguments += [f"{name}={text}" for name, text in _stage_arguments(question, '"{}"'.format)]
        return f"import privselect as ps\n\nplan = ps.plan({', '.join([*arguments, epsilon, delta])})\nprint(plan.summary())\n"
    stages = question.stages.closed()
    name, selection = "selection", f'ps.parse("{stages.mechanism}")'
    if not stages.is_selection:
        name, selection = "whole", f'ps.parse("{stages.whole}")'
    elif stages.count is not None:
        selection = f'ps.Selection({selection}, ps.parse("{stages.count}"))'
    call = f"epsilon_at({delta})" if question.epsilon is None else f"delta_at({epsilon})"
    return f"import privselect as ps\n\n{name} = {selection}\nprint({name}.{call})\n"


def shell_command(question: ParsedQuestion) -> str:
    """Return a ``privselect`` command that answers the question."""
    if question.problem is not None or question.stages.closed().is_selection:
        asked = question.asked
        words = ["privselect", "plan" if question.problem is not None else question.unknown, "--mechanism", str(asked.mechanism)]
        words += [] if asked.count is None else ["--count", str(asked.count)]
        words += [word for name, text in _stage_arguments(question, str) for word in (f"--{name.replace('_', '-')}", text)]
    else:
        words = ["privselect", question.unknown, "--mechanism", str(question.stages.closed().whole)]
    words += [] if question.epsilon is None else ["--epsilon", write_value(question.epsilon)]
    words += [] if question.delta is None else ["--delta", write_value(question.delta)]
    return shlex.join(words)


def _stage_arguments(question: ParsedQuestion, quote: Callable[[str], str]) -> Iterator[tuple[str, str]]:
    """Yield the names and texts of the arguments that only two stages have; ``quote`` quotes a text."""
    asked = question.asked
    if asked.visible is not None:
        yield "visible", str(asked.visible)
    if asked.subsample is not None:
        yield "subsample", quote(str(asked.subsample))
    if asked.final is not None:
        yield "final", quote(str(asked.final))
    if question.final_noise is not None:
        yield "final_noise", write_value(question.final_noise)


def _write(number: float | None) -> str:
    """Write a number with all its digits, and its exponent without leading zeros."""
    mantissa, _, exponent = ("" if number is None else write_value(number)).partition("e")
    return f"{mantissa}e{int(exponent)}" if exponent else mantissa


@dataclass(frozen=True, slots=True)
class _Action:
    """What is released, as a verb and as a gerund: "search ..." and "searching ..."."""

    verb: str
    gerund: str


def _describe_action(stages: OpenStages | Stages, question: ParsedQuestion) -> _Action:
    if stages.final is None:
        what = _describe_trials(stages)
        return _Action(f"release {what}", f"releasing {what}")
    trials = _describe_trials(stages, "trial")
    noise = _final_noise(question)
    return _Action(f"search with {trials} and then train once{noise}", f"searching with {trials} and then training once{noise}")


def _final_noise(question: ParsedQuestion) -> str:
    """Return the noise of the final training that the rule has set, as an addition to the sentence."""
    if question.final_value is None:
        return ""
    name = question.asked.open_in_final[0].parameter.replace("_", " ")
    return f" with {name} {format_rounded(question.final_value, up=True)}"


def _describe_trials(stages: OpenStages | Stages, kind: str = "run") -> str:
    count, sample = stages.count, "" if stages.subsample is None else " on one secret sample"
    if stages.visible is not None:
        what = f"{stages.visible:,} visible {kind}{'s' if stages.visible > 1 else ''}{sample}"
        return what if kind == "trial" else f"all results of {what}"
    if not isinstance(count, Count):
        return f"one {kind}{sample}"
    best = "the best of " if kind == "run" else ""
    if isinstance(count, Fixed) and count.cap is None:
        return f"{best}{count.k} {kind}{'s' if count.k > 1 else ''}{sample}"
    # Rounded down: one more run may cost more than was proved. The mean itself is exact to a few units in the last place.
    mean = count.expected() * (1.0 + 1e-12)
    about = f"{math.floor(mean):,}" if mean >= _INTEGER_MEAN else format_rounded(mean, up=False, digits=2).removesuffix(".0")
    return f"{best}about {about} {kind}{'' if about == '1' else 's'}{sample}"


def _capitalise(words: str) -> str:
    return words[0].upper() + words[1:]
