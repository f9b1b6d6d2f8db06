"""Releases one after the other, as other accountants list them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from privselect.mechanisms import DPSGD, Composed, Mechanism, Pure

if TYPE_CHECKING:
    from collections.abc import Iterable


def composed(parts: Iterable[Mechanism], neighbours: str) -> Mechanism:
    """All of ``parts`` released: none is :func:`nothing`, one alone is itself."""
    kept = tuple(part for part in parts if not leaks_nothing(part))
    if not kept:
        return nothing(neighbours)
    return kept[0] if len(kept) == 1 else Composed(kept)


def repeated(mechanism: Mechanism, times: int, neighbours: str) -> Mechanism:
    """``times`` independent runs, all released."""
    if times == 0 or leaks_nothing(mechanism):
        return nothing(neighbours)
    if times == 1:
        return mechanism
    if isinstance(mechanism, DPSGD):
        return replace(mechanism, steps=mechanism.steps * times)
    if isinstance(mechanism, Composed):
        return replace(mechanism, times=mechanism.times * times)
    return Composed((mechanism,), times=times)


def nothing(neighbours: str) -> Mechanism:
    """The mechanism that leaks nothing."""
    return Pure(epsilon=0.0, neighbours=neighbours)


def leaks_nothing(mechanism: Mechanism) -> bool:
    """Whether it is :func:`nothing`."""
    return isinstance(mechanism, Pure) and mechanism.epsilon == 0.0
