"""Envelope of several brackets: one bracket that is valid for whichever of them applies."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from privselect.pairs.discretize import LARGEST_LOSS
from privselect.pairs.dominating_pair import Bracket
from privselect.pairs.from_profile import pair_from_profile

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from privselect.pairs.dominating_pair import DominatingPair

    Floats = NDArray[np.float64]

_PAST_LAST_LOSS = 1e-12  # past the last loss and its rounding, only infinite losses count
_MIN_SPACING = 4e-12  # relative: slopes between closer knots would consist of rounding errors
_TYPICAL_DELTA = 1e-6  # at which brackets are compared


def envelope_per_order(brackets: Sequence[Bracket]) -> dict[str, Bracket]:
    """Return one bracket for each order of the neighbours: "both", or "remove" and "add".

    Each case is given as "both", or as "remove" and "add". The "add" brackets are not used: the reverse of a pair that dominates one
    order dominates the other. If no order occurs twice, the brackets are returned unchanged.
    """
    found = {bracket.direction: bracket for bracket in brackets}
    if len(found) == len(brackets) and (len(found) == 1 or "both" not in found):
        return found
    cases = [bracket for bracket in brackets if bracket.direction != "add"]
    direction = "both" if all(case.direction == "both" for case in cases) else "remove"
    # A caller that keeps only the first lower pair gets the one of the case with the largest epsilon.
    cases.sort(key=lambda case: -max(float(pair.epsilon_at(_TYPICAL_DELTA, side=1)) for pair in (case.upper, case.upper.reverse)))
    joined = Bracket(envelope([case.upper for case in cases]), tuple(low for case in cases for low in case.lowers), direction)
    return {"both": joined} if direction == "both" else {"remove": joined, "add": joined.reverse}


def remove_order(brackets: Sequence[Bracket]) -> Bracket:
    """Return one bracket for the order "remove", "both" if both orders are equal, valid for all cases.

    A lower pair of the order "add", reversed, is a lower pair of the order "remove".
    """
    found = envelope_per_order(brackets)
    if "both" in found:
        return found["both"]
    remove = found["remove"]
    turned = [low.reverse for low in found["add"].lowers]
    new = tuple(low for low in turned if not any(np.array_equal(low.p, known.p) for known in remove.lowers))
    return Bracket(remove.upper, remove.lowers + new, "remove")


def envelope(pairs: Sequence[DominatingPair]) -> DominatingPair:
    """Return the pair whose hockey stick is the maximum of the given ones; it dominates each of them.

    A maximum of convex curves is convex. Between neighbouring kinks each curve is linear in e^epsilon, so the chord of the maximum
    lies above all of them, for any knots. With the crossings among the knots, the chord equals the maximum.
    """
    reverses = [pair.reverse for pair in pairs]
    losses = [loss for pair in (*pairs, *reverses) for loss in (pair.losses, pair.losses[-1:] + _PAST_LAST_LOSS)]
    kinks = separate_knots(np.concatenate(losses))
    knots = separate_knots(np.concatenate([kinks, *_crossings(pairs, kinks), *_crossings(reverses, kinks)]))
    return pair_from_profile(knots, _max_hockey_stick(pairs, knots), _max_hockey_stick(reverses, knots))


def _max_hockey_stick(pairs: Sequence[DominatingPair], epsilon: Floats) -> Floats:
    return np.asarray(np.maximum.reduce([pair.hockey_stick(epsilon, side=1) for pair in pairs]))


def _crossings(pairs: Sequence[DominatingPair], epsilon: Floats) -> Iterator[Floats]:
    """Yield the crossings of each two hockey sticks between neighbouring kinks."""
    ratio = np.exp(epsilon)
    for one, other in combinations((pair.hockey_stick(epsilon) for pair in pairs), 2):
        ahead = one - other
        turn = np.flatnonzero(ahead[:-1] * ahead[1:] < 0.0)
        share = ahead[turn] / (ahead[turn] - ahead[turn + 1])
        yield np.log(ratio[turn] + share * (ratio[turn + 1] - ratio[turn]))


def separate_knots(epsilon: Floats) -> Floats:
    """Return ascending knots from 0 on whose distances exceed rounding; losses beyond the last one count as infinite."""
    sorted_up = np.unique(epsilon[(epsilon > _MIN_SPACING) & (epsilon <= LARGEST_LOSS)])
    ratio = np.exp(sorted_up)
    return np.concatenate([np.zeros(1), sorted_up[np.diff(ratio, append=np.inf) > _MIN_SPACING * ratio]])
