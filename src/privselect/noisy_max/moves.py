"""How one record may move the scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True)
class Moves:
    """Up to ``together`` of ``m`` scores move up, or down, by at most ``gap`` against all others."""

    m: int
    together: int
    gap: float

    def sizes(self) -> Iterator[int]:
        """Of the sets that move up against their complement; a set that moves down leaves its complement to move up."""
        return (s for s in range(1, self.m) if min(s, self.m - s) <= self.together)
