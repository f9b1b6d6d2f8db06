"""Whether one description leaks at most what another does, by its parameters alone: no number is computed, nothing can be rounded."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from privselect.mechanisms import Mechanism


def leaks_at_most(mechanism: Mechanism, declared: Mechanism) -> bool:
    """True where it is certain: the same kind, and each parameter the same or on its safe side (more noise, fewer steps).

    Where one parameter is on the safe side and another is not, or the kinds differ, the answer is False, whatever the truth is.
    """
    if mechanism == declared:
        return True
    if type(mechanism) is not type(declared) or mechanism.neighbours != declared.neighbours:
        return False
    fields: Any = dataclasses.fields(mechanism)  # type: ignore[arg-type]
    return all(_safe(field, getattr(mechanism, field.name), getattr(declared, field.name)) for field in fields)


def _safe(field: dataclasses.Field[Any], value: Any, declared: Any) -> bool:
    if value == declared:
        return True
    leaks = field.metadata.get("leaks")
    if value is None or declared is None:
        return False
    if leaks == "more":
        return bool(value <= declared)
    if leaks == "less":
        return bool(value >= declared)
    if field.name == "parts" and len(value) == len(declared):
        return all(_part_safe(mine, theirs) for mine, theirs in zip(value, declared, strict=True))
    return False


def _part_safe(part: Any, declared: Any) -> bool:
    from privselect.mechanisms import Mechanism

    return isinstance(part, Mechanism) and isinstance(declared, Mechanism) and leaks_at_most(part, declared)
