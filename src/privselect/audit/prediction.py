"""The predicted outcome of a selection, from the probabilities of K alone. It does not use the accountant."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from privselect.counts import Count

    Floats = NDArray[np.float64]

BITS = 64  # masses are integer multiples of 2^-64
FALSE_ALARM = 1e-3  # probability that a correct runner fails one test
_STANDARD_DEVIATIONS = 3.290526731491926  # a normal variable is further out with probability 0.001


def count_probabilities(count: Count) -> Floats:
    """Return ``P(K = k)`` for k = 0, 1, ...

    An unbounded law of K is cut at twice its 1 - 1e-9 quantile. The tails of all audited laws fall at least geometrically, so less
    than 1e-17 is lost.
    """
    last = 2 * count.quantile(1.0 - 1e-9) if count.largest is None else count.largest
    return np.exp(count.log_pmf(np.arange(last + 1)))


def release_probabilities(cumulative: Sequence[int], count: Floats) -> Floats:
    """Return the probability that each piece is released.

    It is ``phi(1-u) - phi(1-v)`` for the piece between the cumulative masses u and v, counted from the best score down. ``cumulative``
    holds the masses v in units of 2^-64, ``count`` the probabilities of K, and ``phi(z) = E z^K`` is their power series.
    """
    left = np.array([2**BITS, *(2**BITS - mass for mass in cumulative)], dtype=object) / 2**BITS  # 1-u, each rounded once
    values = np.polynomial.polynomial.polyval(left.astype(np.float64), count)
    return np.asarray(values[:-1] - values[1:])


@dataclass(frozen=True)
class Prediction:
    """The probabilities P(S) and P'(S) that the released piece lies in the counted set S, on X and on X'."""

    on_x: float
    on_neighbour: float
    epsilon: float

    @property
    def delta(self) -> float:
        """The delta of the counted set: ``P(S) - e^epsilon P'(S)``."""
        return self.on_x - math.exp(self.epsilon) * self.on_neighbour

    def estimate(self, hits: tuple[int, int], selections: int) -> float:
        """Return the delta estimated from hits, with ``selections`` selections on each data set."""
        return (hits[0] - math.exp(self.epsilon) * hits[1]) / selections

    def standard_error(self, selections: int) -> float:
        """Return the standard deviation of the estimate: ``sqrt((P(1-P) + e^{2 epsilon} P'(1-P')) / n)``."""
        variance = self.on_x * (1.0 - self.on_x) + math.exp(2.0 * self.epsilon) * self.on_neighbour * (1.0 - self.on_neighbour)
        return math.sqrt(variance / selections)

    def interval(self, selections: int) -> tuple[float, float]:
        """Return the 99.9% interval for a correct runner's estimate, by a normal approximation."""
        reach = _STANDARD_DEVIATIONS * self.standard_error(selections)
        return self.delta - reach, self.delta + reach

    def false_alarm(self, selections: int) -> float:
        """Return the exact probability, from two binomials, that a correct runner's estimate lies outside that interval."""
        from scipy.stats import binom

        low, high = (bound * selections for bound in self.interval(selections))
        hits = np.arange(selections + 1)
        smallest, largest = (bound + math.exp(self.epsilon) * hits for bound in (low, high))
        inside = binom.cdf(np.floor(largest), selections, self.on_x) - binom.cdf(np.ceil(smallest) - 1.0, selections, self.on_x)
        return float(1.0 - binom.pmf(hits, selections, self.on_neighbour) @ inside)
