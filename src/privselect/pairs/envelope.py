"""Several brackets for one order of the neighbours, of which one applies: a single one that covers them all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from privselect.pairs.bracket import Bracket
from privselect.pairs.cells import LARGEST_LOSS
from privselect.pairs.curve import pair_from_curve

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from privselect.pairs.dominating import DominatingPair

    Floats = NDArray[np.float64]

_PAST = 1e-12  # beyond the last loss and its rounding: there a hockey stick is down to its infinite losses
_USUAL = 1e-6  # the delta that says which bracket leaks most


def one_per_order(brackets: Sequence[Bracket]) -> dict[str, Bracket]:
    """One bracket for each order of the neighbours, "both" or "remove" and "add": the brackets themselves where no order has two.

    Each case comes as "both", or as "remove" with its "add" somewhere beside it. As the reverse of a pair that dominates one order
    dominates the other, the brackets "add" need not be asked.
    """
    found = {bracket.direction: bracket for bracket in brackets}
    if len(found) == len(brackets) and (len(found) == 1 or "both" not in found):
        return found
    cases = [bracket for bracket in brackets if bracket.direction != "add"]
    direction = "both" if all(case.direction == "both" for case in cases) else "remove"
    # Where only one lower pair is kept, it is to be that of the case that leaks most.
    cases.sort(key=lambda case: -max(float(pair.epsilon_at(_USUAL, side=1)) for pair in (case.upper, case.upper.reverse)))
    joined = Bracket(above_all([case.upper for case in cases]), tuple(low for case in cases for low in case.lowers), direction)
    return {"both": joined} if direction == "both" else {"remove": joined, "add": joined.reverse}


def above_all(pairs: Sequence[DominatingPair]) -> DominatingPair:
    """A pair that dominates each of these: that of the greatest hockey stick.

    A maximum of convex curves is convex, and between two neighbouring kinks of all of them each curve is a line in e^epsilon: the chord
    of their maximum lies above them all, and off it only where they cross.
    """
    losses = [loss for pair in pairs for one in (pair, pair.reverse) for loss in (one.losses, one.losses[-1:] + _PAST)]
    knots = np.concatenate([np.zeros(1), *losses])
    knots = knots[(knots >= 0.0) & (knots <= LARGEST_LOSS)]  # what lies further out counts as infinite loss
    knots = knots[np.unique(np.exp(knots), return_index=True)[1]]
    forward, backward = (
        np.maximum.reduce([one.hockey_stick(knots, side=1) for one in order]) for order in (pairs, [pair.reverse for pair in pairs])
    )
    return pair_from_curve(knots, forward, backward)
