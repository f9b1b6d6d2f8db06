"""What a process of the server does: one question after the other, each a plain dictionary in and one out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from privselect._util.validation import OPEN_UNIT, POSITIVE, integer_range
from privselect.planning.design.design import design
from privselect.web.chart_data import curves
from privselect.web.comparison import rows
from privselect.web.downloads import draft_certificate, plan_toml
from privselect.web.limits import MOST_DESIGNED
from privselect.web.parse_question import about, read_asked, read_closed, read_field
from privselect.web.solve import answer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Fields = Mapping[str, Any]


def _answer(fields: Fields) -> Any:
    return answer(read_asked(fields), fields.get("near"))


def _curves(fields: Fields) -> Any:
    return curves(read_asked(fields).settled(fields["value"]))


def _compare(fields: Fields) -> Any:
    asked = read_asked(fields)
    return rows(asked, asked.settled(fields["value"]), fields["value"])


def _plan(fields: Fields) -> Any:
    asked = read_asked(fields)
    return plan_toml(asked, asked.settled(fields["value"]))


def _certificate(fields: Fields) -> Any:
    asked = read_asked(fields)
    return draft_certificate(asked, asked.settled(fields["value"]))


def _design(fields: Fields) -> Any:
    return design(
        read_closed(fields),
        epsilon=read_field(fields, "epsilon", POSITIVE),
        delta=read_field(fields, "delta", OPEN_UNIT),
        tau=read_field(fields, "tau", OPEN_UNIT),
        cap=int(read_field(fields, "cap", integer_range(1, MOST_DESIGNED))),
        mean=None if fields["mean"] is None else read_field(fields, "mean", POSITIVE),
    ).as_dict()


KINDS: dict[str, Callable[[Fields], Any]] = {
    "answer": _answer,
    "curves": _curves,
    "compare": _compare,
    "design": _design,
    "plan": _plan,
    "certificate": _certificate,
}


def work(kind: str, fields: Fields) -> Any:
    """The answer to one question; a refusal is a ``RefusedError``."""
    with about(None):
        return KINDS[kind](fields)
