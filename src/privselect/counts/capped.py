"""Laws of K with closed forms, conditioned on K <= cap."""

from __future__ import annotations

import math
from abc import abstractmethod
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from privselect._util.validation import as_float_array
from privselect.counts.base import Count
from privselect.counts.pmf_table import PmfTable
from privselect.counts.sampling.sampler import Sampler
from privselect.errors import ParameterError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from privselect._util.random_bits import Entropy
    from privselect.counts.sampling.pmf_ratios import PmfWeights

    Floats = NDArray[np.float64]

_ALWAYS_TABLE = 256  # for smaller caps a table is as fast as a closed form
_LARGEST_TABLE = 100_000
# Closed forms divide by P(K <= cap), whose log has an error of a few units in the last place: at -2000, nearly 1e-12 of phi'.
_TABLE_LOG_CDF, _SMALLEST_LOG_CDF = -500.0, -2000.0


class CappedCount(Count):
    r"""Law of K with closed forms, conditioned on K <= cap. Subclasses define the uncapped distribution.

        phi'(1-u) = sum_{k <= cap} k P(k) (1-u)^(k-1) / P(K <= cap).

    The sum has a closed form too. k P(k) (1-u)^(k-1) is the uncapped phi'(1-u) times the probability of k-1 under the *tilted,
    size-biased* distribution, which belongs to the same family. So the sum is phi'(1-u) times a tail probability of that
    distribution. A table of probabilities, computed from the ratios of neighbouring terms, is used instead if the cap is small. It is
    also used if P(K <= cap) is too small for an accurate quotient.
    """

    __slots__ = ()

    # -- uncapped distribution, defined by subclasses ------------------------------------------------------------------------

    @abstractmethod
    def _support(self) -> tuple[int, int | None]:
        """Return the smallest and the largest K of the uncapped distribution."""

    @abstractmethod
    def _log_dpgf(self, u: Floats) -> Floats:
        """Return ``log phi'(1-u)`` of the uncapped distribution."""

    @abstractmethod
    def _log_tilted_cdf(self, u: Floats, cap: int) -> Floats:
        """Return ``log( sum_{k <= cap} k P(k) (1-u)^(k-1) / phi'(1-u) )`` of the uncapped distribution."""

    @abstractmethod
    def _mean(self) -> float:
        """Return E K of the uncapped distribution."""

    @abstractmethod
    def _log_pmf(self, k: Floats) -> Floats:
        """Return ``log P(k)`` of the uncapped distribution, for k in its support."""

    @abstractmethod
    def _log_cdf(self, k: int) -> float:
        """Return ``log P(K <= k)`` of the uncapped distribution, for k in its support."""

    @abstractmethod
    def _pmf_weights(self) -> PmfWeights:
        """Return the capped probabilities up to a factor, as exact rationals."""

    # -- conditioned on K <= cap ---------------------------------------------------------------------------------------

    def _check(self) -> None:
        self._check_parameters()
        cap, (smallest, _) = self._effective_cap(), self._support()
        if cap is None:
            return
        if cap < smallest:
            raise ParameterError(f"`cap` must be at least {smallest}, the smallest K that {self.text_name} can draw here, got {cap}")
        if cap > _LARGEST_TABLE and _log_cdf_at_cap(self) < _SMALLEST_LOG_CDF:
            kept = f"e^{_log_cdf_at_cap(self):.0f}"
            raise ParameterError(f"`cap` must keep P(K <= cap) above e^{_SMALLEST_LOG_CDF:.0f}, got {cap}, which keeps {kept}")

    def _check_parameters(self) -> None:
        """Check the parameters other than the cap against each other."""

    def _effective_cap(self) -> int | None:
        """Return the cap, or None if it has no effect."""
        if self.cap is None:
            return None
        top = self._support()[1]
        return None if top is not None and self.cap >= top else self.cap

    def _table(self) -> PmfTable | None:
        cap = self._effective_cap()
        if cap is None or cap > _LARGEST_TABLE or (cap > _ALWAYS_TABLE and _log_cdf_at_cap(self) > _TABLE_LOG_CDF):
            return None
        return _table_of(self)

    @property
    def largest(self) -> int | None:
        """Largest possible K, or None if K is unbounded."""
        cap = self._effective_cap()
        return self._support()[1] if cap is None else cap

    def log_dpgf_unchecked(self, u: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return ``log phi'(1-u)``, with an error of about 1e-13 plus a few units in the last place."""
        flat, cap, table = u.reshape(-1), self._effective_cap(), self._table()
        if table is not None:
            result = table.log_dpgf(flat)
        else:
            result = self._log_dpgf(flat)
            if cap is not None:
                result = result + (self._log_tilted_cdf(flat, cap) - _log_cdf_at_cap(self))
        return result.reshape(u.shape)

    def log_pmf(self, k: ArrayLike) -> NDArray[np.float64]:
        """Return ``log P(K = k)``, minus infinity if k is impossible."""
        array = as_float_array("k", k, "a number")
        flat, table, top = array.reshape(-1), self._table(), self.largest
        if table is not None:
            return table.log_pmf(flat).reshape(array.shape)
        possible = (flat >= self._support()[0]) & (flat == np.floor(flat)) & np.isfinite(flat)
        if top is not None:
            possible &= flat <= top
        result = np.full(flat.shape, -np.inf)
        result[possible] = self._log_pmf(flat[possible])
        if self._effective_cap() is not None:
            result -= _log_cdf_at_cap(self)
        return result.reshape(array.shape)

    def expected(self) -> float:
        """Return ``E K``, of the capped distribution."""
        return self._mean() if self._effective_cap() is None else math.exp(float(self.log_dpgf(0.0)))

    def _quantile(self, q: float) -> int:
        table, (smallest, _), top = self._table(), self._support(), self.largest
        if table is not None:
            return table.quantile(q)
        goal = math.log(q) - 1e-13
        if self._effective_cap() is not None:
            goal += _log_cdf_at_cap(self)
        if self._log_cdf(smallest) >= goal:
            return smallest
        low, high = smallest, smallest + 1  # P(K <= low) < q
        while high != top and self._log_cdf(high) < goal:  # heavy tails reach 1e100: square instead of doubling
            low, high = high, max(high * high, high + 1)
            high = high if top is None else min(high, top)
        while high - low > max(1, high >> 53):
            middle = math.isqrt(low * high) if high > 4 * low > 0 else (low + high) // 2
            low, high = (low, middle) if self._log_cdf(middle) >= goal else (middle, high)
        return high

    def _draw(self, entropy: Entropy) -> int:
        smallest, top = self._support()
        return smallest if smallest == top else _sampler_of(self).draw(entropy)


# Laws of K are frozen and compare by value, so derived objects are cached here; no drawn K is ever cached.


@lru_cache(maxsize=256)
def _log_cdf_at_cap(count: CappedCount) -> float:
    """Return ``log P(K <= cap)`` of the uncapped distribution."""
    cap = count._effective_cap()  # noqa: SLF001 -- the cache cannot live in a slotted object
    return 0.0 if cap is None else count._log_cdf(cap)  # noqa: SLF001


@lru_cache(maxsize=32)
def _table_of(count: CappedCount) -> PmfTable:
    weights = count._pmf_weights()  # noqa: SLF001
    last = weights.last
    values = np.arange(weights.first, (weights.first if last is None else last) + 1)
    # Long doubles, if the platform has them: a running sum of 1e5 logs would otherwise lose five digits.
    steps = np.concatenate([np.zeros(1, dtype=np.longdouble), np.cumsum(weights.log_ratios(values[:-1]))])
    return PmfTable(values.astype(np.float64), (steps - steps.max()).astype(np.float64))


@lru_cache(maxsize=32)
def _sampler_of(count: CappedCount) -> Sampler:
    return Sampler.under(count._pmf_weights())  # noqa: SLF001
