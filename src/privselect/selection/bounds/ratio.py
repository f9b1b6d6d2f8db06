"""**Ratio**: K changes the odds of every outcome by at most one factor; this module bounds the supremum of that factor."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from privselect._util.safe_search import solve_epsilon
from privselect._util.validation import NON_NEGATIVE, check_array
from privselect.counts import Binomial, Poisson
from privselect.counts.negative_binomial import TruncatedNegativeBinomial

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

    from privselect.counts.base import Count
    from privselect.pairs import DominatingPair

    Floats = NDArray[np.float64]

_LOG_ROUNDING = 1e-12  # relative error of log phi' where it is large; that of expected() is smaller
_PATH_ROUNDING = 4e-12  # twice the error of two neighbouring values of log phi'
_MAX_PIECES, _MAX_ROUNDS = 300_000, 40


def log_ratio(pair: DominatingPair, count: Count) -> float:
    """Return an upper bound on ``log sup_u phi'(1-u)/phi'(1-g(u))``, the largest change of the log-odds of an outcome.

    g is piecewise linear. For an uncapped D(eta, gamma) and for a binomial K, ``phi'(1-u)/phi'(1-v)`` is a power of a quotient of
    linear functions; for a Poisson K it is the exponential of a linear function. Along a piece it is then monotone, so the
    supremum is at a vertex and the bound is exact up to rounding. For any other K each piece is bounded separately.
    """
    u, v = g_vertices(pair)
    top, bottom = count.log_dpgf(u), count.log_dpgf(v)
    if count.cap is None and isinstance(count, (TruncatedNegativeBinomial, Poisson, Binomial)):
        with np.errstate(invalid="ignore"):
            gap = top - bottom + _LOG_ROUNDING * (1.0 + np.abs(top) + np.abs(bottom))
        # At (1, 1) both phi' may vanish: the quotient tends to its value at the previous vertex.
        return float(np.nanmax(gap))
    depth = np.abs(bottom[np.isfinite(bottom)]).max(initial=abs(float(top[0])))
    return float(max_along_path(count.log_dpgf, (u, v)) + _LOG_ROUNDING * (1.0 + 2.0 * depth))


def ratio_delta(pair: DominatingPair, count: Count, epsilon: ArrayLike) -> Floats:
    r"""Return an upper bound on the selection's hockey stick, from one shift of the base's.

    Claim: ``delta_A(e) <= m delta_{P||P'}(e - r)`` with ``r = log sup_u phi'(1-u)/phi'(1-g(u))``. For K ~ D(eta, gamma)
    this r is ``(eta+1) e*``, where ``delta_{P'||P}(e*) = gamma/(1-gamma) (exp(e*) - 1)``.

    Holds when the pair dominates the base mechanism in this order of the neighbours, the law of K is public and
    independent of the data, and e >= 0 (then the outcome of K = 0 adds nothing). Label: **Ratio**.
    """
    eps = check_array("epsilon", epsilon, NON_NEGATIVE)
    shifted = np.nextafter(eps - log_ratio(pair, count), -np.inf)
    return np.minimum(count.expected() * (1.0 + 1e-12) * pair.hockey_stick(shifted, side=1), 1.0)


def ratio_epsilon(pair: DominatingPair, count: Count, delta: float) -> float:
    """Return the smallest epsilon with :func:`ratio_delta` at most delta."""
    shift = log_ratio(pair, count)
    if math.isinf(shift):
        return solve_epsilon(lambda _: float(ratio_delta(pair, count, 0.0)), delta)
    mean = count.expected() * (1.0 + 1e-12)
    base = float(pair.epsilon_at(min(delta / mean, 1.0), side=1))
    shifted = math.nextafter(base + shift, math.inf)
    if base > 0.0:
        return shifted
    return min(solve_epsilon(lambda e: mean * float(pair.hockey_stick(np.nextafter(e - shift, -np.inf), side=1)), delta), shifted)


def g_vertices(pair: DominatingPair) -> tuple[Floats, Floats]:
    """Return the vertices (u, g(u)) of g, with u rounded down and g(u) rounded up."""
    x, g = pair.low_nodes
    u = np.minimum(x * (1.0 - pair.relative_rounding), 1.0)
    v = np.minimum(g * (1.0 + pair.relative_rounding), 1.0)
    if pair.p_only == 0.0:
        u[-1] = v[-1] = 1.0  # the total mass is exactly 1
    else:
        v[-1] = 1.0
    return u, v


# -- the maximum along a polygon -------------------------------------------------------------------------------------------


def max_along_path(
    log_weight: Callable[[Floats], Floats], path: tuple[Floats, Floats], *, gain: float = 1.0, cost: float = 1.0, tolerance: float = 1e-6
) -> float:
    r"""Return an upper bound on ``gain L(u) - cost L(v)`` along the polygon ``path`` of vertices (u, v), both ascending from 0 to 1.

    L is ``log phi'(1-u)`` for some law of K, and gain >= cost >= 0. Each piece of the polygon is bounded separately. Pieces are
    subdivided until the bounds are within ``tolerance`` of an attained value: see :func:`_piece_bounds`.

    On a last piece that ends in (1, 1) with v >= u, the largest value is at its start. There ``1-v = c (1-u)`` with c <= 1, and L is
    a convex increasing function of ``log(1-u)``, like the logarithm of any power series with nonnegative coefficients.
    """
    u, v = path
    if len(u) > 1 and u[-1] >= 1.0 and v[-1] >= 1.0 and v[-2] >= u[-2]:
        u, v = u[:-1], v[:-1]
    top, bottom = log_weight(u), log_weight(v)
    for remaining in range(_MAX_ROUNDS, -1, -1):
        values = _difference(gain, top, cost, bottom)
        bounds = _piece_bounds(_PathTerm(u, top, gain), _PathTerm(v, bottom, cost), values)
        attained = values.max()
        loose = np.flatnonzero(bounds > attained + tolerance)
        if len(loose) == 0 or np.isposinf(attained) or len(u) > _MAX_PIECES or remaining == 0:
            break
        after = np.repeat(loose + 1, 3)
        share = np.tile([0.25, 0.5, 0.75], len(loose))
        new_u = u[after - 1] + share * (u[after] - u[after - 1])
        new_v = v[after - 1] + share * (v[after] - v[after - 1])
        u, v = np.insert(u, after, new_u), np.insert(v, after, new_v)
        top, bottom = np.insert(top, after, log_weight(new_u)), np.insert(bottom, after, log_weight(new_v))
    return float(max(attained, bounds.max(initial=-np.inf)))


def _difference(gain: float, top: Floats, cost: float, bottom: Floats) -> Floats:
    """Return ``gain top - cost bottom`` in the extended reals; minus infinity where ``top`` is, whatever ``bottom`` is."""
    with np.errstate(invalid="ignore"):
        value = gain * top - cost * bottom
    return np.where(np.isneginf(top), -np.inf, value)


class _PathTerm:
    """One of the two terms, ``factor * L``, at the vertices, with bounds on how fast it falls inside each piece."""

    def __init__(self, positions: Floats, log_weights: Floats, factor: float) -> None:
        self.positions, self.factor = positions, factor
        self.values = factor * log_weights
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            step, left = np.diff(positions), 1.0 - positions
            fall, run = self.values[:-1] - self.values[1:], np.log1p(step / left[1:])
            noise = factor * _PATH_ROUNDING * (1.0 + np.abs(log_weights[1:]))
            # L is convex in log(1-u): its slope inside a piece is at most that of the chord before, at least that of the chord after.
            steepest = _last_finite((fall + noise) / run, np.inf)
            flattest = _last_finite(((fall - noise) / run)[::-1], 0.0)[::-1]
            largest = np.where(step > 0.0, steepest * step / left[1:], 0.0)
            smallest = np.where(step > 0.0, np.maximum(flattest, 0.0) * step / left[:-1], 0.0)
        # The rate of fall inside a piece, per length of the piece, is between these two.
        self.max_fall = np.where(np.isnan(largest), np.inf, largest)
        self.min_fall = np.where(np.isnan(smallest), 0.0, smallest)


def _last_finite(slopes: Floats, first: float) -> Floats:
    """Return the previous finite entry for each entry; entries of zero-length pieces are not finite and are skipped."""
    known = np.where(np.isfinite(slopes), np.arange(1, len(slopes) + 1), 0)
    before = np.concatenate([[0], np.maximum.accumulate(known)])[: len(slopes)]
    return np.asarray(np.concatenate([[first], slopes])[before])


def _piece_bounds(top: _PathTerm, bottom: _PathTerm, values: Floats) -> Floats:
    """Return an upper bound on top minus bottom inside each piece: the minimum of four bounds.

    1. Both terms fall along a piece: the value is at most top at its start minus bottom at its end.
    2. It is at most the value at the start plus the largest amount by which bottom falls more than top.
    3. It is at most the value at the end plus the largest amount by which top falls more than bottom.
    4. If v <= u, then ``cost (L(u) - L(v)) <= 0``.

    Bounds 2 and 3 are of second order in the piece where it matters.
    """
    crude = _difference(1.0, top.values[:-1], 1.0, bottom.values[1:])
    with np.errstate(invalid="ignore"):
        from_start = values[:-1] + np.maximum(bottom.max_fall - top.min_fall, 0.0)
        from_end = values[1:] + np.maximum(top.max_fall - bottom.min_fall, 0.0)
        excess = (1.0 - bottom.factor / top.factor) * top.values[:-1]
    from_end = np.where(np.isneginf(values[1:]), np.inf, from_end)
    behind = bottom.positions <= top.positions
    ordered = np.where(behind[:-1] & behind[1:], excess, np.inf)
    # fmin ignores NaN: a piece that starts where phi' vanishes has no value, and its bound is minus infinity.
    return np.asarray(np.fmin(np.fmin(crude, from_start), np.fmin(from_end, ordered)))
