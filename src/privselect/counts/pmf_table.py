"""Distribution on finitely many values, as a table of log probabilities."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

# Horner's rule of degree n on positive terms has relative error 3n 2^-53: 2n for products and sums, n for 1-u. That is 4e-13.
_LARGEST_DEGREE = 1024
_WIDEST_LOG_RANGE = 500.0  # of the logs of the terms: all relevant coefficients are normal floats
_MAX_ENTRIES = 1 << 21  # of the (u, k) matrix in memory: 16 MB
_CHUNK_SIZE = 1 << 14  # values of u that fit into the processor cache


class PmfTable:
    """Values k in ascending order and the logs of their probabilities."""

    __slots__ = ("_log_probabilities", "_log_terms", "_values")

    def __init__(self, values: Floats, log_weights: Floats) -> None:
        self._values = values
        self._log_probabilities = log_weights - _log_sum(log_weights[None, :])[0]
        with np.errstate(divide="ignore"):
            self._log_terms = np.log(values) + self._log_probabilities  # k = 0 has log term minus infinity: it adds nothing to phi'

    def log_dpgf(self, u: Floats) -> Floats:
        """Return ``log sum_k k P(k) (1-u)^(k-1)``."""
        powers, log_terms = self._values[self._values > 0] - 1.0, self._log_terms[self._values > 0]
        if powers[-1] - powers[0] <= _LARGEST_DEGREE and log_terms.max() - log_terms[0] < _WIDEST_LOG_RANGE:
            return _log_polynomial(powers, log_terms, u)
        result = np.empty_like(u)
        inside = u < 1.0
        result[~inside] = log_terms[0] if powers[0] == 0.0 else -np.inf  # 0^(k-1): at u = 1 only k = 1 counts
        logs = np.log1p(-u[inside])
        rows = max(1, _MAX_ENTRIES // len(powers))
        parts = [_log_sum(log_terms + np.multiply.outer(logs[i : i + rows], powers)) for i in range(0, len(logs), rows)]
        result[inside] = np.concatenate(parts) if parts else 0.0
        return result

    def log_pmf(self, k: Floats) -> Floats:
        """Return ``log P(k)``, minus infinity for values not in the table."""
        place = np.minimum(np.searchsorted(self._values, k), len(self._values) - 1)
        return np.where(self._values[place] == k, self._log_probabilities[place], -np.inf)

    def quantile(self, q: float) -> int:
        """Return the smallest k with ``P(K <= k) >= q``."""
        below = np.cumsum(np.exp(self._log_probabilities))
        place = int(np.searchsorted(below, q * (1.0 - 1e-13)))
        return int(self._values[min(place, len(below) - 1)])  # rounding may leave the total below q


def _log_polynomial(powers: Floats, log_terms: Floats, u: Floats) -> Floats:
    """Return ``log sum exp(log_term) (1-u)^power`` by Horner's rule: all terms are positive, and the first one never underflows."""
    top = log_terms.max()
    coefficients, gaps = np.exp(log_terms - top).tolist(), np.diff(powers).astype(np.intp).tolist()
    value = np.empty_like(u)
    for first in range(0, len(u), _CHUNK_SIZE):
        part = slice(first, first + _CHUNK_SIZE)
        value[part] = _horner(coefficients, gaps, 1.0 - u[part])
    with np.errstate(divide="ignore"):
        lowest = powers[0] * np.log1p(-u) if powers[0] else 0.0
    return np.asarray(np.log(value) + lowest + top)


def _horner(coefficients: list[float], gaps: list[int], z: Floats) -> Floats:
    """Return ``c_0 + z^gap_1 (c_1 + z^gap_2 (c_2 + ...))``; powers by squaring are as accurate as by single factors."""
    value = np.full_like(z, coefficients[-1])
    for coefficient, gap in zip(coefficients[-2::-1], gaps[::-1], strict=True):
        left, power = gap, z
        while left:
            if left & 1:
                value *= power
            left >>= 1
            if left:
                power = power * power
        value += coefficient
    return value


def _log_sum(rows: Floats) -> Floats:
    """Return ``log sum exp`` of each row."""
    top = rows.max(axis=1)
    return np.asarray(top + np.log(np.exp(rows - top[:, None]).sum(axis=1)), dtype=np.float64)
