"""Several brackets for one order of the neighbours, of which one applies: a single one that covers them all."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from privselect.pairs.bracket import Bracket
from privselect.pairs.discretize import LARGEST_LOSS
from privselect.pairs.from_profile import pair_from_curve

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from privselect.pairs.dominating_pair import DominatingPair

    Floats = NDArray[np.float64]

_PAST = 1e-12  # beyond the last loss and its rounding: there a hockey stick is down to its infinite losses
_NEAR = 4e-12  # relative: slopes between closer knots would be made of rounding
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

    A maximum of convex curves is convex. Between two neighbouring kinks of all of them each curve is a line in e^epsilon, so the chord
    of their maximum lies above them all, whatever knots are chosen; with the crossings among the knots it is the maximum itself.
    """
    reverses = [pair.reverse for pair in pairs]
    losses = [loss for pair in (*pairs, *reverses) for loss in (pair.losses, pair.losses[-1:] + _PAST)]
    kinks = _told_apart(np.concatenate(losses))
    knots = _told_apart(np.concatenate([kinks, *_crossings(pairs, kinks), *_crossings(reverses, kinks)]))
    return pair_from_curve(knots, _highest(pairs, knots), _highest(reverses, knots))


def _highest(pairs: Sequence[DominatingPair], epsilon: Floats) -> Floats:
    return np.asarray(np.maximum.reduce([pair.hockey_stick(epsilon, side=1) for pair in pairs]))


def _crossings(pairs: Sequence[DominatingPair], epsilon: Floats) -> Iterator[Floats]:
    """Where one hockey stick passes another, between neighbouring kinks."""
    ratio = np.exp(epsilon)
    for one, other in combinations((pair.hockey_stick(epsilon) for pair in pairs), 2):
        ahead = one - other
        turn = np.flatnonzero(ahead[:-1] * ahead[1:] < 0.0)
        share = ahead[turn] / (ahead[turn] - ahead[turn + 1])
        yield np.log(ratio[turn] + share * (ratio[turn + 1] - ratio[turn]))


def _told_apart(epsilon: Floats) -> Floats:
    """Ascending epsilons from 0 on, apart by more than rounding; what lies beyond the last counts as infinite loss."""
    sorted_up = np.unique(epsilon[(epsilon > _NEAR) & (epsilon <= LARGEST_LOSS)])
    ratio = np.exp(sorted_up)
    return np.concatenate([np.zeros(1), sorted_up[np.diff(ratio, append=np.inf) > _NEAR * ratio]])
