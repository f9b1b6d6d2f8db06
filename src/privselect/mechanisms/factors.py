"""Factors of a composition: mechanisms whose pairs are computed once and kept, and the product of their pairs."""

from __future__ import annotations

import math
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np

from privselect.interval import Interval
from privselect.mechanisms.base import interval_of_maxima, scalar_or_array
from privselect.mechanisms.gaussian import Gaussian, cell_width, gaussian_bracket, gaussian_composition_step
from privselect.mechanisms.gaussian_dp import GaussianDP, with_total_leak
from privselect.pairs.compose import CompositionStep, compose
from privselect.pairs.envelope import remove_order
from privselect.pairs.pair_product import PairProduct

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from privselect.mechanisms.base import Mechanism
    from privselect.pairs import Bracket

    Floats = NDArray[np.float64]
    Steps = Sequence[tuple[Mechanism, int]]


def factors_of(steps: Steps) -> tuple[Mechanism, ...]:
    """Return the factors of a composition of ``steps``, given as (step, number of runs).

    Each DP-SGD training, selection and subsampled mechanism is a factor, with all its runs. All other steps together are one factor.
    """
    from privselect.mechanisms.composed import Composed

    apart = [step.repeated(count) for step, count in steps if step.is_factor]
    others = [step.repeated(count) for step, count in steps if not step.is_factor]
    return (*apart, *([others[0] if len(others) == 1 else Composed(tuple(others))] if others else []))


def composed_factors(factors: tuple[Mechanism, ...], accuracy: float) -> BracketProduct:
    """Return the product of the last of two or more factors and the composition of all others.

    The pairs of a factor are kept by :meth:`Mechanism.brackets_within`, and the composition of all but the last of three or more by this
    function. So an evaluation in which one of two factors is new computes the pairs of that factor only.
    """
    *front, last = factors
    return BracketProduct(_composed_front(tuple(front), accuracy), _remove_order_of(last, accuracy))


@lru_cache(maxsize=16)
def _composed_front(factors: tuple[Mechanism, ...], accuracy: float) -> Bracket:
    brackets = [_remove_order_of(factor, accuracy) for factor in factors]
    return brackets[0] if len(brackets) == 1 else compose([(CompositionStep(bracket), 1) for bracket in brackets], accuracy)


def _remove_order_of(factor: Mechanism, accuracy: float) -> Bracket:
    return remove_order(factor.brackets_within(accuracy))


class BracketProduct:
    """Bounds on two mechanisms together, from a bracket of each, for the order "remove" if there are two."""

    def __init__(self, first: Bracket, second: Bracket) -> None:
        self._parts = first, second

    @cached_property
    def _uppers(self) -> list[PairProduct]:
        first, second = (bracket.upper for bracket in self._parts)
        products = [PairProduct(first, second, side=1)]
        if any(bracket.direction != "both" for bracket in self._parts):
            products.append(PairProduct(first.reverse, second.reverse, side=1))
        return products

    @cached_property
    def _lowers(self) -> list[PairProduct]:
        pairs = [(one, other) for one in self._parts[0].lowers for other in self._parts[1].lowers]
        return [PairProduct(*both, side=-1) for one, other in pairs for both in ((one, other), (one.reverse, other.reverse))]

    def upper(self, epsilon: float) -> float:
        """Return an upper bound on delta at one real epsilon."""
        return max(product.delta(epsilon) for product in self._uppers)

    def delta_at(self, epsilon: Floats) -> Interval:
        """Return bounds on delta at each epsilon."""
        return interval_of_maxima(*([product.hockey_stick(epsilon) for product in side] for side in (self._uppers, self._lowers)))

    def upper_epsilon(self, delta: float) -> float:
        """Return an epsilon >= 0 at which the upper bound is at most delta."""
        found = 0.0
        for product in self._uppers:
            # At an infinite epsilon the rounding of the second product may exceed a tiny delta: its own epsilon may be smaller.
            if product.delta(found) > delta:
                found = max(found, product.epsilon_at(delta))
        return found

    def epsilon_at(self, delta: Floats) -> Interval:
        """Return bounds on the smallest epsilon >= 0 at each delta."""
        found = [self._epsilon_bounds(value) for value in delta.ravel().tolist()]
        lower, upper = (np.array(ends).reshape(delta.shape) for ends in zip(*found, strict=True))
        return Interval(scalar_or_array(lower) if self._lowers else None, scalar_or_array(upper))

    def _epsilon_bounds(self, delta: float) -> tuple[float, float]:
        upper = self.upper_epsilon(delta)
        if not self._lowers or upper == 0.0:
            return 0.0, upper
        # Of the lower pairs, the one with the largest delta near the upper bound has about the largest epsilon.
        place = upper if math.isfinite(upper) else 1.0
        best = max(self._lowers, key=lambda product: product.delta(place))
        return min(best.epsilon_at(delta), upper), upper


def composed_brackets(steps: Steps, accuracy: float) -> tuple[Bracket, ...]:
    """Return the brackets of the composition of ``steps``, given as (step, number of runs)."""
    # Gaussians compose to one Gaussian: the values of 1/sigma^2 add up.
    shifts = [math.sqrt(count) / step.sigma for step, count in steps if isinstance(step, Gaussian)]
    parts = [(step.composition_step(), count) for step, count in steps if not isinstance(step, Gaussian)]
    if shifts and not parts:
        return (gaussian_bracket(math.hypot(*shifts), cell_width(accuracy)),)
    gaussian_dp = [(step, count) for step, count in steps if isinstance(step, GaussianDP)]
    if len(gaussian_dp) == len(parts):
        # The values of mu^2 add up too; everything leaks only if it leaks in some step.
        mu = math.hypot(*shifts, *(math.sqrt(count) * step.mu for step, count in gaussian_dp))
        leak = -math.expm1(sum(count * math.log1p(-step.delta) for step, count in gaussian_dp))
        return (with_total_leak(gaussian_bracket(mu, cell_width(accuracy)), leak),)
    if shifts:
        parts.append((gaussian_composition_step(math.hypot(*shifts)), 1))
    both = compose(parts, accuracy)
    return (both,) if both.direction == "both" else (both, both.reverse)
