"""The privacy profile of a certificate, and one approximate Gaussian DP guarantee that covers it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri

from privselect._util.rounding import round_up
from privselect._util.safe_search import LARGEST_EPSILON
from privselect.certificates.model import ApproximateGDP, ProfilePoint
from privselect.selection import Selection

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from privselect.certificates.model import TotalEpsilon
    from privselect.mechanisms import Mechanism

_STEPS, _MOST_POINTS = 46, 80
_DEEPEST = 1e-12  # the curve ends at this delta, or at a thousandth of the certified delta if that is smaller
_STEEP = 3.0  # a fall of more than this many average steps is repeated with a shorter step
_FINEST = 1e-3  # shortest step, relative to the certified epsilon

_ROUNDING = 1e-11  # relative: a hundred times the error of a normal tail times e^epsilon
_LEAK_SHARE = 0.1  # of delta: costs little epsilon and makes mu independent of the far tail of the curve
_SMALLEST_MU, _LARGEST_MU = 1e-6, 60.0  # a mu outside is no stronger than the curve itself
_TOLERANCE = 1e-7


def profile_points(mechanism: Mechanism, total: TotalEpsilon) -> tuple[ProfilePoint, ...]:
    """Return about fifty proved points (epsilon, delta), from epsilon = 0 to a small delta, including the certified one.

    Each delta is proved at its own epsilon or at a smaller one; delta falls as epsilon grows.
    """
    found = _descend(upper_delta_function(mechanism), min(_DEEPEST, 1e-3 * total.delta), max(total.upper, 1e-3))
    found[total.upper] = min(total.delta, found.get(total.upper, 1.0))
    points, smallest = [], 1.0
    for epsilon in sorted(found):
        smallest = min(smallest, found[epsilon])
        points.append(ProfilePoint(epsilon=epsilon, delta=smallest))
    return tuple(points)


def upper_delta_function(mechanism: Mechanism) -> Callable[[float], float]:
    """Return a function that gives an upper bound on delta at an epsilon >= 0."""
    return mechanism.upper_curve() if isinstance(mechanism, Selection) else lambda epsilon: float(mechanism.delta_at(epsilon).upper)


def _descend(upper: Callable[[float], float], floor: float, scale: float) -> dict[float, float]:
    """Evaluate ``upper`` at epsilons at which the normal quantile of delta falls in about equal steps."""
    epsilon, value, step = 0.0, upper(0.0), 0.05 * scale
    found = {epsilon: value}
    target = max(_depth(floor) - _depth(value), 0.1) / _STEPS
    while value > floor and epsilon < LARGEST_EPSILON and len(found) < _MOST_POINTS:
        ahead = min(epsilon + step, LARGEST_EPSILON)
        there = found.setdefault(ahead, upper(ahead))
        if there == value < 1.0:
            break  # the rest of delta is the probability of revealing everything
        fall = _depth(max(there, 0.1 * floor)) - _depth(value)
        steep = fall > _STEEP * target and step > _FINEST * scale
        step *= min(max(target / max(fall, 1e-9), 0.2), 2.0)
        if not steep:
            epsilon, value = ahead, there
    return found


def _depth(delta: float) -> float:
    return -float(ndtri(min(delta, 1.0 - 1e-15))) if delta > 0.0 else math.inf


def gdp_covers(gdp: ApproximateGDP, curve: Sequence[ProfilePoint]) -> bool:
    r"""Return whether ``delta(e) <= delta0 + (1 - delta0) G_mu(e)`` follows for every e >= 0 from the points of ``curve``.

    Write a = e^e. The true delta is convex in a, so between two points it lies below their chord. For every threshold z, the set of
    outcomes above it shows ``G_mu >= Phi(mu/2 - z) - a Phi(-mu/2 - z)``, a line in a. If such a line, scaled and raised by the leak
    delta0, is above the chord at both of its ends, then the Gaussian side is above delta between them. The z used is the one whose
    line touches G_mu parallel to the chord; a poor z can only make the check fail. Beyond the last point delta is at most its value
    there, which must not exceed delta0.
    """
    if curve[0].epsilon != 0.0 or curve[-1].delta > gdp.delta:
        return False
    epsilon, delta = np.array([point.epsilon for point in curve]), np.array([point.delta for point in curve])
    if len(curve) == 1:
        return True
    mu, clean = gdp.mu, 1.0 - gdp.delta
    with np.errstate(all="ignore"):  # NaN compares as False, so the check then fails
        slope = -np.diff(delta) / np.diff(np.exp(epsilon))
        z = np.clip(-0.5 * mu - ndtri(np.clip(slope / clean, 0.0, 1.0)), epsilon[:-1] / mu, epsilon[1:] / mu)
        gain, log_cost = ndtr(0.5 * mu - z) * (1.0 - _ROUNDING), log_ndtr(-0.5 * mu - z)
        return all(
            bool(np.all(gdp.delta + clean * (gain - np.exp(at + log_cost) * (1.0 + _ROUNDING)) >= required))
            for at, required in ((epsilon[:-1], delta[:-1]), (epsilon[1:], delta[1:]))
        )


def fit_gdp(curve: Sequence[ProfilePoint], delta: float) -> ApproximateGDP | None:
    """Return the smallest mu found, rounded up, with a tenth of delta (or the end of the curve) as leak; None if there is none."""
    leak = max(_LEAK_SHARE * delta, curve[-1].delta)
    low, high = _SMALLEST_MU, 1.0
    while not gdp_covers(ApproximateGDP(mu=high, delta=leak), curve):
        low, high = high, 2.0 * high
        if high > _LARGEST_MU:
            return None
    while high - low > _TOLERANCE * high:
        middle = 0.5 * (low + high)
        if gdp_covers(ApproximateGDP(mu=middle, delta=leak), curve):
            high = middle
        else:
            low = middle
    rounded = ApproximateGDP(mu=round_up(high, 6), delta=leak)
    return rounded if gdp_covers(rounded, curve) else ApproximateGDP(mu=high, delta=leak)
