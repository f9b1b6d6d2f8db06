"""The same question in Python and on the command line."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from privselect.text_forms import write_value

if TYPE_CHECKING:
    from privselect.web.parse_question import Asked


def python(asked: Asked) -> str:
    """To be pasted into a program."""
    mechanism, count = f'"{asked.mechanism}"', "" if asked.count is None else f', "{asked.count}"'
    if asked.open is not None:
        budget = f"epsilon={_written(asked.epsilon)}, delta={_written(asked.delta)}"
        return f"import privselect as ps\n\nplan = ps.plan({mechanism}{count}, {budget})\nprint(plan.summary())\n"
    chosen = f"ps.parse({mechanism})"
    if asked.count is not None:
        chosen = f'ps.Selection({chosen}, ps.parse("{asked.count}"))'
    call = f"epsilon_at(delta={_written(asked.delta)})" if asked.epsilon is None else f"delta_at(epsilon={_written(asked.epsilon)})"
    return f"import privselect as ps\n\nchosen = {chosen}\nprint(chosen.{call})\n"


def command(asked: Asked) -> str:
    """To be pasted into a shell."""
    name = "plan" if asked.open is not None else asked.unknown
    words = ["privselect", name, "--mechanism", str(asked.mechanism)]
    words += [] if asked.count is None else ["--count", str(asked.count)]
    words += [] if asked.epsilon is None else ["--epsilon", _written(asked.epsilon)]
    words += [] if asked.delta is None else ["--delta", _written(asked.delta)]
    return shlex.join(words)


def _written(number: float | None) -> str:
    return "" if number is None else write_value(number)
