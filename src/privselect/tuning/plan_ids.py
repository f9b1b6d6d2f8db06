"""Stable names of functions and classes in plans."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

_ATTRIBUTE = "_plan_id"
Marked = TypeVar("Marked")


def plan_id(name: str) -> Callable[[Marked], Marked]:
    """Give a function or class of privselect a name that stays the same when it moves to another module.

    Plan hashes, ledger look-ups and the key of the hold-out split contain this name. Never change a released one.
    """

    def mark(thing: Marked) -> Marked:
        setattr(thing, _ATTRIBUTE, f"privselect:{name}")
        return thing

    return mark


def name_in_plan(thing: object) -> str:
    """Return the plan id of a function, a class or an object's class, or ``module:qualname`` if it has none."""
    has_name = getattr(thing, "__module__", None) is not None and getattr(thing, "__qualname__", None) is not None
    named: Any = thing if has_name else type(thing)
    # A subclass runs other code, so it does not inherit the id.
    own = vars(named).get(_ATTRIBUTE) if hasattr(named, "__dict__") else None
    return own if isinstance(own, str) else f"{named.__module__}:{named.__qualname__}"
