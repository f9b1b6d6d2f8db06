"""What a selection should give, from the probabilities of K alone: nothing here uses the accountant."""

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

BITS = 64  # masses are whole multiples of 2^-64
FALSE_ALARM = 1e-3  # of one interval
_SIGMAS = 3.290526731491926  # a normal variable is further out with probability 0.001


def probabilities(count: Count) -> Floats:
    """``P(K = k)`` for k = 0, 1, ...

    A law without an end is cut at twice the place beyond which 1e-9 is left: where its tail falls at least geometrically, as those
    of all audited laws do, less than 1e-17 is lost.
    """
    last = 2 * count.quantile(1.0 - 1e-9) if count.largest is None else count.largest
    return np.exp(count.log_pmf(np.arange(last + 1)))


def chances(ends: Sequence[int], law: Floats) -> Floats:
    """The chance that each piece is released: ``phi(1-u) - phi(1-v)`` for the piece between masses u and v from the best score down.

    ``ends`` are the masses v in units of 2^-64, ``law`` the probabilities of K, and ``phi(z) = E z^K`` is their power series.
    """
    left = np.array([2**BITS, *(2**BITS - end for end in ends)], dtype=object) / 2**BITS  # 1-u, each rounded once
    values = np.polynomial.polynomial.polyval(left.astype(np.float64), law)
    return np.asarray(values[:-1] - values[1:])


@dataclass(frozen=True)
class Prediction:
    """The chances that what is released lies in the counted set, on each of the two data sets."""

    first: float
    second: float
    epsilon: float

    @property
    def value(self) -> float:
        """``P(S) - e^epsilon P'(S)``: what the selection leaks at this epsilon."""
        return self.first - math.exp(self.epsilon) * self.second

    def measured(self, hits: tuple[int, int], selections: int) -> float:
        """The same from counts, of so many selections on each data set."""
        return (hits[0] - math.exp(self.epsilon) * hits[1]) / selections

    def error(self, selections: int) -> float:
        """The standard deviation of what is measured: ``sqrt((P(1-P) + e^{2 epsilon} P'(1-P')) / n)``, n selections on each data set."""
        variance = self.first * (1.0 - self.first) + math.exp(2.0 * self.epsilon) * self.second * (1.0 - self.second)
        return math.sqrt(variance / selections)

    def interval(self, selections: int) -> tuple[float, float]:
        """Where a correct run's measurement lies with probability 99.9%: a normal law in place of the difference of two binomials."""
        reach = _SIGMAS * self.error(selections)
        return self.value - reach, self.value + reach

    def false_alarm(self, selections: int) -> float:
        """The exact probability that a correct run's measurement lies outside that interval: what the normal law costs."""
        from scipy.stats import binom

        low, high = (end * selections for end in self.interval(selections))
        second = np.arange(selections + 1)
        least, most = (end + math.exp(self.epsilon) * second for end in (low, high))
        inside = binom.cdf(np.floor(most), selections, self.first) - binom.cdf(np.ceil(least) - 1.0, selections, self.first)
        return float(1.0 - binom.pmf(second, selections, self.second) @ inside)
