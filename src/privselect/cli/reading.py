"""From the text of an option to what it names, or one clear sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from privselect._util.validation import ACCURACY_RANGE, NON_NEGATIVE, OPEN_UNIT, POSITIVE, REAL, Range, format_value, integer_range
from privselect.errors import ParameterError, TextFormError
from privselect.text_forms import parse, parse_parameter

if TYPE_CHECKING:
    from pathlib import Path

    from privselect.certificates.plan_commitment import Promise
    from privselect.counts import Count
    from privselect.mechanisms import Mechanism
    from privselect.noisy_max import Noise
    from privselect.planning.plan_file import PlanFile


def read_delta(text: str) -> float:
    """``--delta``."""
    return parse_parameter("delta", text, OPEN_UNIT)


def read_epsilon(text: str) -> float:
    """``--epsilon``."""
    return parse_parameter("epsilon", text, REAL)


def read_budget(text: str | None, allowed: Range = NON_NEGATIVE) -> float | None:
    """``--epsilon`` as a budget, which may be left out."""
    return None if text is None else parse_parameter("epsilon", text, allowed)


def read_accuracy(text: str | None) -> float | None:
    """``--accuracy``, which may be left out."""
    return None if text is None else parse_parameter("accuracy", text, ACCURACY_RANGE)


def read_tau(text: str) -> float:
    """``--tau``."""
    return parse_parameter("tau", text, OPEN_UNIT)


def read_cap(text: str) -> int:
    """``--cap``."""
    return read_whole("cap", text)


def read_whole(name: str, text: str) -> int:
    """An option that is a whole number of at least 1; what it is for sets its other end."""
    return int(parse_parameter(name, text, integer_range(1)))


def read_mean(text: str | None) -> float | None:
    """``--mean``, which may be left out."""
    return None if text is None else parse_parameter("mean", text, POSITIVE)


def read_mechanism(text: str) -> Mechanism:
    """``--mechanism``."""
    from privselect.mechanisms import Mechanism

    described = _closed(parse(text))
    if not isinstance(described, Mechanism):
        raise TextFormError(f"--mechanism needs what one trial leaks, such as gaussian(sigma=4), got {_kind(described)} {described}")
    return described


def read_noise(text: str) -> Mechanism | Noise:
    """``--noise``: any description; a noisy max tells what is noise on a score and what is not."""
    return cast("Mechanism | Noise", _closed(parse(text)))


def read_count(text: str | None) -> Count | None:
    """``--count``, which may be left out."""
    from privselect.counts import Count

    if text is None:
        return None
    described = _closed(parse(text))
    if not isinstance(described, Count):
        raise TextFormError(f"--count needs a law of K, such as geometric(mean=300), got {_kind(described)} {described}")
    return described


def read_closed_plan(file: Path) -> PlanFile:
    """A plan file; refused while a number in it is open."""
    from privselect.planning.plan_file import read_plan

    plan = read_plan(file)
    if plan.is_open:
        raise ParameterError(f"the plan must have no ? left: solve for it with `privselect plan {file} --out FILE`, got {format_value(str(file))}")
    return plan


def read_promise(file: Path) -> Promise:
    """What a plan file promises."""
    return read_closed_plan(file).promise()


def select(mechanism: Mechanism, count: Count | None) -> Mechanism:
    """The winner of that many trials, or the mechanism alone."""
    from privselect.selection import Selection

    return mechanism if count is None else Selection(mechanism, count)


def _kind(described: object) -> str:
    from privselect.counts import Count
    from privselect.mechanisms import Mechanism

    return "the law of K" if isinstance(described, Count) else "the mechanism" if isinstance(described, Mechanism) else "the noise"


def _closed(described: object) -> object:
    from privselect.open_spec import OpenSpec

    if isinstance(described, OpenSpec):
        raise TextFormError(f"a ? can be solved for by `privselect plan` alone, got {format_value(described)}")
    return described
