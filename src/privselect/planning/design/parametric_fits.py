"""The best laws of K within parametric families; each is certified."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from privselect.counts import Binomial, Geometric, NegativeBinomial
from privselect.counts.base import LARGEST_COUNT
from privselect.selection.selection import Selection

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from privselect.counts.base import Count
    from privselect.interval import Interval
    from privselect.planning.design.cutting_planes import CuttingPlanes

    Floats = NDArray[np.float64]

_STEPS = 40  # of a bisection on the cuts, which is fast
_MEANS = 14  # of a bisection that calls the accountant
_TRIES = 12
_CLOSE = 1e-3
_SMALLEST = 1e-9


@dataclass(frozen=True, slots=True)
class ParametricFit:
    """A law of K, its success probability and its certified epsilon."""

    count: Count
    success_probability: float
    epsilon: Interval

    def as_dict(self) -> dict[str, object]:
        """Return JSON data."""
        return {"count": str(self.count), "success_probability": self.success_probability, "epsilon": self.epsilon.as_dict()}


def best_geometric(search: CuttingPlanes) -> ParametricFit | None:
    """Return the uncapped geometric law of K with the largest allowed mean; None if not even K = 1 is allowed."""
    goal = search.goal
    most = float(goal.cap) if goal.mean is None else float(goal.mean)
    if most < 1.0:
        return None
    most = min(most, float(LARGEST_COUNT))
    found = _certified(search, Geometric(mean=most))
    low, high = 0.0, math.log(most)
    for _ in range(_MEANS if found is None else 0):
        middle = 0.5 * (low + high)
        law = Geometric(mean=max(_rounded(math.exp(middle), up=False), 1.0))
        here = _certified(search, law)
        found, low, high = (here, middle, high) if here is not None else (found, low, middle)
    return found if found is not None else _certified(search, Geometric(mean=1))


def best_negative_binomial(search: CuttingPlanes) -> ParametricFit | None:
    """Return the best D(eta, gamma) conditioned on at most cap trials, among some shapes and caps."""

    def logs(shape: Floats, size: Floats, k: Floats) -> Floats:
        from scipy.special import gammaln

        eta, cap = shape.T[:, :, None]
        weights = gammaln(k + eta) - gammaln(k + 1.0) + k * np.log1p(-np.exp(size))[:, None]
        return np.asarray(np.where((k >= 1.0) & (k <= cap), weights, -np.inf))

    def law(shape: Floats, size: float) -> Count:
        gamma = min(_rounded(math.exp(size), up=True), 1.0)
        return NegativeBinomial(eta=float(shape[0]), gamma=gamma, cap=int(shape[1]))

    goal = search.goal
    etas = np.concatenate([[-0.9, -0.7, -0.5, -0.3, -0.1], np.linspace(0.1, 2.0, 14), [2.5, 3.0, 4.0, 6.0, 10.0, 20.0]])
    caps = np.unique(np.round(goal.cap * np.array([1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.35, 0.25, 0.15, 0.1])).clip(1))
    shapes = np.array([(eta, cap) for eta in etas for cap in caps])

    def neighbours_of(shape: Floats) -> Floats:
        eta, cap = shape
        closer = np.round(np.maximum(eta + (1.0 + abs(eta)) * np.linspace(-0.12, 0.12, 9), -0.95), 3)
        caps = np.unique(np.clip(np.round(cap * np.linspace(0.9, 1.1, 9)), 1, goal.cap))
        return np.array([(one, other) for one in closer for other in caps])

    return _Family(search, logs, law, sign=-1.0).best(shapes, neighbours_of)


def best_binomial(search: CuttingPlanes) -> ParametricFit | None:
    """Return the best Binomial(n, p) with n <= cap."""

    def logs(shape: Floats, size: Floats, k: Floats) -> Floats:
        from scipy.special import gammaln

        n, p = shape[:, :1], np.exp(size)[:, None]
        weights = gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(np.maximum(n - k, 0.0) + 1.0) + k * np.log(p) + (n - k) * np.log1p(-p)
        return np.asarray(np.where(k <= n, weights, -np.inf))

    def law(shape: Floats, size: float) -> Count:
        return Binomial(n=int(shape[0]), p=1.0 if size > -2.0 * _SMALLEST else _rounded(math.exp(size), up=False))

    cap = search.goal.cap
    shapes = np.unique(np.round(np.geomspace(1.0, cap, 40)))[:, None]

    def neighbours_of(shape: Floats) -> Floats:
        return np.unique(np.clip(np.round(shape[0] * np.linspace(0.9, 1.1, 21)), 1, cap))[:, None]

    return _Family(search, logs, law, sign=1.0).best(shapes, neighbours_of)


@dataclass(frozen=True, slots=True)
class _Family:
    """Laws of K with shape parameters and a size, which is a logarithm below 0. K grows with ``sign`` times the size."""

    search: CuttingPlanes
    logs: Callable[[Floats, Floats, Floats], Floats]  # log weights for each shape and size, one law of K per row
    law: Callable[[Floats, float], Count]
    sign: float

    def best(self, shapes: Floats, neighbours_of: Callable[[Floats], Floats]) -> ParametricFit | None:
        """Choose a shape by the known cuts, add the cuts of the worst order, and repeat; then certify."""
        shape = shapes[0]
        for _ in range(_TRIES):
            shape = self._choose(neighbours_of(self._choose(shapes, 1.0)), 1.0)
            pmf = self._pmf(shape[None], self._sizes(shape[None], 1.0))[0]
            if self.search.leaks(pmf) <= 1.0 + _CLOSE:
                break
        limit, best = 1.0, None
        for _ in range(_TRIES):
            law = self.law(shape, float(self._sizes(shape[None], limit)[0]))
            best = _certified(self.search, law)
            if best is not None or not self.search.goal.meets_mean(law):
                break  # even the smallest size exceeds the mean, because K is at least 1
            limit *= min(1.0 / max(_excess(self.search, law), 1.0), 1.0) * (1.0 - _CLOSE)
        return best

    def _choose(self, shapes: Floats, limit: float) -> Floats:
        values = self._pmf(shapes, self._sizes(shapes, limit))[:, 1:] @ self.search.goal.values
        return np.asarray(shapes[int(np.argmax(values))])

    def _sizes(self, shapes: Floats, limit: float) -> Floats:
        """Return the largest allowed size for each shape, by bisection on the cuts."""
        mean = self.search.goal.mean
        feasible, infeasible = np.full(len(shapes), math.log(_SMALLEST)), np.full(len(shapes), math.log1p(-_SMALLEST))
        feasible, infeasible = (feasible, infeasible) if self.sign > 0.0 else (infeasible, feasible)
        rows = self.search.program.rows.T
        for step in range(_STEPS):
            size = infeasible if step == 0 else 0.5 * (feasible + infeasible)
            pmf = self._pmf(shapes, size)
            allowed = (pmf[:, 1:] @ rows).max(axis=1) <= limit
            if mean is not None:
                allowed &= pmf @ np.arange(pmf.shape[1]) <= float(mean) * (1.0 - 1e-6)
            feasible, infeasible = np.where(allowed, size, feasible), np.where(allowed, infeasible, size)
        return feasible

    def _pmf(self, shapes: Floats, size: Floats) -> Floats:
        logs = self.logs(shapes, size, np.arange(self.search.goal.cap + 1.0))
        weights = np.exp(logs - logs.max(axis=1, keepdims=True))
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def _certified(search: CuttingPlanes, law: Count) -> ParametricFit | None:
    """Return the law of K with its success probability and epsilon if it meets the budget, else None."""
    goal = search.goal
    if not goal.meets_mean(law) or _excess(search, law) > 1.0:
        return None
    epsilon = Selection(search.mechanism, law).epsilon_at(goal.delta)
    return ParametricFit(law, goal.success_probability(law), epsilon) if epsilon.upper <= goal.epsilon else None


def _excess(search: CuttingPlanes, law: Count) -> float:
    return float(Selection(search.mechanism, law).delta_at(search.goal.epsilon).upper) / search.goal.delta


def _rounded(value: float, *, up: bool) -> float:
    """Round to five digits, which is precise enough for a parameter."""
    near = float(f"{value:.4e}")
    if (near < value * (1.0 - 1e-12)) if up else (near > value * (1.0 + 1e-12)):
        near = float(f"{value * (1.0 + 0.99e-4 * (1.0 if up else -1.0)):.4e}")
    return near
