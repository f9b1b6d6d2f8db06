"""Neighbouring relations between data sets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from privselect._util.validation import format_value
from privselect.errors import NeighbourError, ParameterError

if TYPE_CHECKING:
    from collections.abc import Iterable

ADD_REMOVE = "add_remove"
REPLACE_ONE = "replace_one"
ANY = "any"  # the sensitivity is stated for the caller's relation, so it is compatible with both
RELATIONS = (ANY, ADD_REMOVE, REPLACE_ONE)


def check_relation(value: Any) -> str:
    """Return ``value`` if it is a known relation; raise otherwise."""
    if not isinstance(value, str) or value not in RELATIONS:
        raise ParameterError(f"`neighbours` must be one of {', '.join(RELATIONS)}, got {format_value(value)}")
    return str(value)


def common_relation(parts: Iterable[tuple[str, object]]) -> str:
    """Return the one relation that all (relation, part) pairs are stated for; raise if they disagree."""
    found, first = ANY, None
    for relation, part in parts:
        if relation in {ANY, found}:
            continue
        if found != ANY:
            raise NeighbourError(f"parts disagree on neighbouring data sets: {first} is stated for {found}, {part} for {relation}")
        found, first = relation, part
    return found
