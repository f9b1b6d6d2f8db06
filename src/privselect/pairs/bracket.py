"""A continuous pair caught between discrete ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from privselect.pairs.dominating_pair import DominatingPair


@dataclass(frozen=True, slots=True, eq=False)
class Bracket:
    """One ordered pair of a mechanism: ``upper`` dominates it, each of ``lowers`` is dominated by it.

    ``direction`` says which neighbour comes first: "remove", "add", or "both" where the two curves are the same.
    An empty ``lowers`` says that no lower bound is proved.
    """

    upper: DominatingPair
    lowers: tuple[DominatingPair, ...]
    direction: str = "both"

    @property
    def reverse(self) -> Bracket:
        """The same with the neighbours exchanged."""
        names = {"remove": "add", "add": "remove"}
        return Bracket(self.upper.reverse, tuple(low.reverse for low in self.lowers), names.get(self.direction, self.direction))
