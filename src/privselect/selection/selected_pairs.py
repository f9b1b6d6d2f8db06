"""The pairs of a whole selection: its privacy profile above, real score orders below."""

from __future__ import annotations

import math
from functools import cache, partial
from typing import TYPE_CHECKING

import numpy as np

from privselect._util.safe_search import LARGEST_EPSILON
from privselect.pairs import Bracket, pair_from_profile
from privselect.pairs.compose import ACCURACY
from privselect.selection.exact.engine import ExactLower

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from privselect.pairs import DominatingPair
    from privselect.selection.exact.accountant import Accountant
    from privselect.selection.exact.fixed_mesh import FixedMesh

    Floats = NDArray[np.float64]

# How far log delta falls between knots (several times as far at tiny deltas, see _DEEP_FALLS), and where the profile stops. All later
# losses count as infinite.
_KNOT_FALL, _FEW_OUTCOMES_FALL = 0.1, 0.09  # pairs of few outcomes have curves with kinks
_DEEP_FALLS = ((1e-12, 1.0), (1e-20, 3.0), (0.0, 6.0))  # factors above these deltas
_SMALLEST_DELTA = 1e-40
_SMALLEST_STEP = 1e-10  # relative: a curve that falls to 0 at the largest loss must get past it
# Deltas, above the mass of infinite losses, at which the lower pairs have their worst score orders; fewer suffice for less accuracy.
_ORDER_DELTAS = (1e-2, 1e-4, 1e-6, 1e-9, 1e-3, 3e-2, 0.2)
_FEW_ORDER_DELTAS = (1e-2, 1e-4)
_ROUGH = 1e-3
_OPPOSITE = {"both": "both", "remove": "add", "add": "remove"}


def selected_brackets(accountants: Sequence[Accountant], accuracy: float = ACCURACY) -> tuple[Bracket, ...]:
    """Return the brackets of a selection: for each order of the neighbours, its profile and a few score orders.

    The profile is a supremum over score orders, and no single order attains it, so the maximum of lower bounds is no valid lower pair.
    """
    by_direction = {accountant.bracket.direction: accountant for accountant in accountants}
    meshes = {direction: accountant.fixed_mesh(accuracy) for direction, accountant in by_direction.items()}
    uppers = {direction: cache(accountant.curve_on(meshes[direction])) for direction, accountant in by_direction.items()}
    few = all(accountant.has_few_outcomes for accountant in accountants)
    fall = (_FEW_OUTCOMES_FALL if few else _KNOT_FALL) * max(accuracy / ACCURACY, 1.0) ** 0.25
    knots = _profile_knots(list(uppers.values()), fall)
    curves = {direction: np.array([upper(epsilon) for epsilon in knots]) for direction, upper in uppers.items()}
    deltas = _ORDER_DELTAS if accuracy < _ROUGH else _FEW_ORDER_DELTAS

    def bracket(direction: str, accountant: Accountant) -> Bracket:
        curve = curves[direction]
        epsilons = [_epsilon_on(knots, curve - curve[-1], delta) for delta in deltas]
        upper = pair_from_profile(knots, curve, curves[_OPPOSITE[direction]])
        return Bracket(upper, tuple(_order_pairs(accountant, meshes[direction], epsilons)), direction)

    return tuple(bracket(direction, accountant) for direction, accountant in by_direction.items())


def _order_pairs(accountant: Accountant, mesh: FixedMesh | None, epsilons: list[float]) -> list[DominatingPair]:
    """Return the pair of one score order for each epsilon and each pair below a trial."""
    found = []
    for pair in accountant.bracket.lowers:
        find = ExactLower(pair, accountant.count).score_order if mesh is None else partial(mesh.score_order, pair=pair)
        orders = [find(epsilon) for epsilon in dict.fromkeys(epsilons)]
        found += [order.selected_pair(accountant.count) for order in orders if order is not None]
    return found


def _epsilon_on(knots: list[float], curve: Floats, delta: float) -> float:
    """Return the epsilon at which a curve that ends at 0 falls to delta."""
    i = int(np.argmax(curve <= delta))
    if i == 0:
        return 0.0
    share = math.log(curve[i - 1] / delta) / math.log(curve[i - 1] / max(curve[i], 1e-300))
    return knots[i - 1] + share * (knots[i] - knots[i - 1])


def _profile_knots(uppers: Sequence[Callable[[float], float]], fall: float) -> list[float]:
    """Return epsilons from 0 on between which log delta falls by about ``fall``: that of the larger curve, of the other once it is flat."""
    knots, step = [0.0], 0.01
    values = [upper(0.0) for upper in uppers]
    while max(values) > _SMALLEST_DELTA and knots[-1] < LARGEST_EPSILON and len(knots) < 1500:
        knots.append(min(knots[-1] + step, LARGEST_EPSILON))
        there = [upper(knots[-1]) for upper in uppers]
        if there == values and max(there) < 1.0:
            break
        fallen = _fall_of_log(max(values), max(there)) or max(map(_fall_of_log, values, there))
        target = fall * next(factor for above, factor in _DEEP_FALLS if max(there) >= above)
        step *= min(max(target / max(fallen, 1e-9), 0.2), 2.0)
        step = max(step, _SMALLEST_STEP * knots[-1])
        values = there
    return knots


def _fall_of_log(before: float, after: float) -> float:
    if after > _SMALLEST_DELTA:
        return math.log(before / after)
    return 1.0 if before > _SMALLEST_DELTA else 0.0
