"""Gaussian differential privacy with an additional failure probability."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from privselect._util.validation import POSITIVE, Range, parameter
from privselect.mechanisms.base import StatedMechanism, check_orders
from privselect.mechanisms.gaussian import cell_width, gaussian_bracket
from privselect.pairs import Bracket, DominatingPair
from privselect.pairs.subnormal_masses import union_lower, union_upper
from privselect.text_forms import register

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

_EVERYTHING_LEAKS = DominatingPair(np.array([]), np.array([]), 1.0, 1.0)


@register
@dataclass(frozen=True, slots=True)
class GaussianDP(StatedMechanism):
    """(mu, delta)-approximate Gaussian DP: with probability ``delta`` everything leaks, otherwise at most N(mu, 1) against N(0, 1)."""

    text_name = "gdp"

    mu: float = parameter(POSITIVE, leaks="more")
    delta: float = parameter(Range(0.0, 1.0), default=0.0, leaks="more")

    def _make_brackets(self, accuracy: float, /) -> tuple[Bracket, ...]:
        return (with_total_leak(gaussian_bracket(self.mu, cell_width(accuracy)), self.delta),)

    def renyi_at(self, alpha: ArrayLike) -> Floats:
        """Compute the Gaussian divergence, an upper bound because the pair dominates; infinite if delta > 0."""
        with np.errstate(over="ignore"):
            clean = 0.5 * check_orders(alpha) * self.mu * self.mu * (1.0 + 1e-15)
        return np.asarray(clean if self.delta == 0.0 else np.full_like(clean, np.inf))


def with_total_leak(clean: Bracket, delta: float) -> Bracket:
    """Return the bracket of a mechanism that leaks everything with probability ``delta``, and otherwise as ``clean``."""
    parts = [[(1.0 - delta, pair), (delta, _EVERYTHING_LEAKS)] for pair in (clean.upper, *clean.lowers)]
    return Bracket(union_upper(parts[0]), tuple(union_lower(part) for part in parts[1:]), clean.direction)
