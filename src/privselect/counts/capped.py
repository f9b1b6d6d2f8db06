"""Laws with closed forms, and what conditioning on K <= cap makes of them."""

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

_SHORT = 256  # a table this long costs no more than a closed form
_LONG = 100_000
# Closed forms divide by P(K <= cap), whose log is right to a few units: at -2000 that is nearly 1e-12 of phi'.
_RARE, _TOO_RARE = -500.0, -2000.0


class CappedCount(Count):
    r"""A law given uncapped, by closed forms; here they are conditioned on K <= cap.

        phi'(1-u) = sum_{k <= cap} k P(k) (1-u)^(k-1) / P(K <= cap).

    The sum is closed too: k P(k) (1-u)^(k-1) is the uncapped phi'(1-u) times the probability that the *tilted, size-biased*
    law gives k-1 (again of the same family), so the sum is phi'(1-u) times a tail of that law. Where the cap is short, or keeps so
    little that P(K <= cap) would cost digits, the law is a table instead, by the ratios of its neighbouring terms.
    """

    __slots__ = ()

    # -- what a law says about itself, uncapped ------------------------------------------------------------------------

    @abstractmethod
    def _support(self) -> tuple[int, int | None]:
        """The least and the greatest K of the uncapped law."""

    @abstractmethod
    def _log_dpgf(self, u: Floats) -> Floats:
        """``log phi'(1-u)`` of the uncapped law."""

    @abstractmethod
    def _log_tilted_cdf(self, u: Floats, cap: int) -> Floats:
        """``log( sum_{k <= cap} k P(k) (1-u)^(k-1) / phi'(1-u) )`` of the uncapped law."""

    @abstractmethod
    def _mean(self) -> float:
        """E K of the uncapped law."""

    @abstractmethod
    def _log_pmf(self, k: Floats) -> Floats:
        """``log P(k)`` of the uncapped law, for k in its support."""

    @abstractmethod
    def _log_cdf(self, k: int) -> float:
        """``log P(K <= k)`` of the uncapped law, for k in its support."""

    @abstractmethod
    def _terms(self) -> PmfWeights:
        """The law's weights up to a factor, as exact rationals, capped."""

    # -- conditioned on K <= cap ---------------------------------------------------------------------------------------

    def _check(self) -> None:
        self._check_parameters()
        cap, (least, _) = self._binding_cap(), self._support()
        if cap is None:
            return
        if cap < least:
            raise ParameterError(f"`cap` must be at least {least}, the least K that {self.text_name} can draw here, got {cap}")
        if cap > _LONG and _log_kept(self) < _TOO_RARE:
            kept = f"e^{_log_kept(self):.0f}"
            raise ParameterError(f"`cap` must keep K <= cap likelier than e^{_TOO_RARE:.0f}, got {cap}, which keeps {kept}")

    def _check_parameters(self) -> None:
        """Refuse what the ranges of single parameters let through."""

    def _binding_cap(self) -> int | None:
        """The cap, if it takes anything away."""
        if self.cap is None:
            return None
        top = self._support()[1]
        return None if top is not None and self.cap >= top else self.cap

    def _table(self) -> PmfTable | None:
        cap = self._binding_cap()
        if cap is None or cap > _LONG or (cap > _SHORT and _log_kept(self) > _RARE):
            return None
        return _table_of(self)

    @property
    def largest(self) -> int | None:
        """The greatest possible K, or None where there is none."""
        cap = self._binding_cap()
        return self._support()[1] if cap is None else cap

    def log_dpgf_unchecked(self, u: NDArray[np.float64]) -> NDArray[np.float64]:
        """``log phi'(1-u)``, to about 1e-13 plus a few units in its own last place."""
        flat, cap, table = u.reshape(-1), self._binding_cap(), self._table()
        if table is not None:
            result = table.log_dpgf(flat)
        else:
            result = self._log_dpgf(flat)
            if cap is not None:
                result = result + (self._log_tilted_cdf(flat, cap) - _log_kept(self))
        return result.reshape(u.shape)

    def log_pmf(self, k: ArrayLike) -> NDArray[np.float64]:
        """``log P(K = k)``, minus infinity where k cannot be drawn."""
        array = as_float_array("k", k, "a number")
        flat, table, top = array.reshape(-1), self._table(), self.largest
        if table is not None:
            return table.log_pmf(flat).reshape(array.shape)
        possible = (flat >= self._support()[0]) & (flat == np.floor(flat)) & np.isfinite(flat)
        if top is not None:
            possible &= flat <= top
        result = np.full(flat.shape, -np.inf)
        result[possible] = self._log_pmf(flat[possible])
        if self._binding_cap() is not None:
            result -= _log_kept(self)
        return result.reshape(array.shape)

    def expected(self) -> float:
        """``E K``, after the cap."""
        return self._mean() if self._binding_cap() is None else math.exp(float(self.log_dpgf(0.0)))

    def _quantile(self, q: float) -> int:
        table, (least, _), top = self._table(), self._support(), self.largest
        if table is not None:
            return table.quantile(q)
        goal = math.log(q) - 1e-13
        if self._binding_cap() is not None:
            goal += _log_kept(self)
        if self._log_cdf(least) >= goal:
            return least
        low, high = least, least + 1  # P(K <= low) < q
        while high != top and self._log_cdf(high) < goal:  # heavy tails reach 1e100: square, do not double
            low, high = high, max(high * high, high + 1)
            high = high if top is None else min(high, top)
        while high - low > max(1, high >> 53):
            middle = math.isqrt(low * high) if high > 4 * low > 0 else (low + high) // 2
            low, high = (low, middle) if self._log_cdf(middle) >= goal else (middle, high)
        return high

    def _draw(self, entropy: Entropy) -> int:
        least, top = self._support()
        return least if least == top else _sampler_of(self).draw(entropy)


# Laws are frozen and compare by value, so what is worked out for one is kept here; no drawn K ever is.


@lru_cache(maxsize=256)
def _log_kept(law: CappedCount) -> float:
    """``log P(K <= cap)`` of the uncapped law."""
    cap = law._binding_cap()  # noqa: SLF001 -- the cache cannot live in a slotted object
    return 0.0 if cap is None else law._log_cdf(cap)  # noqa: SLF001


@lru_cache(maxsize=32)
def _table_of(law: CappedCount) -> PmfTable:
    terms = law._terms()  # noqa: SLF001
    last = terms.last
    values = np.arange(terms.first, (terms.first if last is None else last) + 1)
    # Long doubles where the platform has them: a running sum of 1e5 logs would cost five digits otherwise.
    steps = np.concatenate([np.zeros(1, dtype=np.longdouble), np.cumsum(terms.log_ratios(values[:-1]))])
    return PmfTable(values.astype(np.float64), (steps - steps.max()).astype(np.float64))


@lru_cache(maxsize=32)
def _sampler_of(law: CappedCount) -> Sampler:
    return Sampler.under(law._terms())  # noqa: SLF001
