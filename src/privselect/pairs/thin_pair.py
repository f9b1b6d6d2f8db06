"""A dominating pair with fewer outcomes, for computations whose time grows with their number."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtri

from privselect.pairs.envelope import separate_knots
from privselect.pairs.from_profile import pair_from_profile

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from privselect.pairs.dominating_pair import DominatingPair

    Floats = NDArray[np.float64]

_FAR = 6.0  # standard deviations of a normal tail from which on knots follow the logarithm of the tail
_SMALLEST_TAIL = 1e-45  # smaller tails have no knots, except for the last loss
_PAST_LAST_LOSS = 1e-12  # past the last loss and its rounding, only infinite losses count


def thin_upper(pair: DominatingPair, step: float) -> DominatingPair:
    """Return a pair that dominates the given one, with knots at about every ``step`` standard deviations of the loss.

    Its hockey stick is the same at the knots, and between them the chord of a convex curve. A pair that is small already is returned
    unchanged. The knots affect only the tightness.
    """
    reverse = pair.reverse
    knots = separate_knots(np.concatenate([_knots(pair, step), _knots(reverse, step)]))
    if len(pair.p) <= 2 * len(knots):
        return pair
    return pair_from_profile(knots, pair.hockey_stick(knots, side=1), reverse.hockey_stick(knots, side=1))


def _knots(pair: DominatingPair, step: float) -> Floats:
    """Return positive losses between which the normal quantile of the mass above changes by about ``step``."""
    positive = np.searchsorted(pair.losses, 0.0, side="right")
    losses, masses = pair.losses[positive:], pair.p[positive:]
    if len(losses) == 0:
        return losses
    above = np.cumsum(masses[::-1])[::-1] - masses + pair.p_only
    place = -ndtri(np.clip(above, _SMALLEST_TAIL, 0.5))
    far = np.where(place > _FAR, 0.5 * (place * place / _FAR + _FAR), place)
    cell = np.floor(far / step)
    last = np.append(np.flatnonzero(np.diff(cell) > 0.0), len(losses) - 1)
    return np.concatenate([losses[last], losses[-1:] + _PAST_LAST_LOSS])
