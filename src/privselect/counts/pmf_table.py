"""A law of K on finitely many values, as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

# Horner's rule of degree n on positive terms is right to 3n units of 2^-53: two for the products and sums, one for 1-u. That is 4e-13.
_LARGEST_DEGREE = 1024
_WIDEST = 500.0  # in logs: all coefficients that matter are proper floats
_ENTRIES = 1 << 21  # of the (u, k) matrix held at a time: 16 MB
_AT_A_TIME = 1 << 14  # values of u that stay in the processor's cache through all steps


class PmfTable:
    """Values k in ascending order, with the logs of their probabilities."""

    __slots__ = ("_log_probabilities", "_sizes", "_values")

    def __init__(self, values: Floats, log_weights: Floats) -> None:
        self._values = values
        self._log_probabilities = log_weights - _log_sum(log_weights[None, :])[0]
        with np.errstate(divide="ignore"):
            self._sizes = np.log(values) + self._log_probabilities  # k = 0 has size minus infinity: it adds nothing to phi'

    def log_dpgf(self, u: Floats) -> Floats:
        """``log sum_k k P(k) (1-u)^(k-1)``."""
        powers, sizes = self._values[self._values > 0] - 1.0, self._sizes[self._values > 0]
        if powers[-1] - powers[0] <= _LARGEST_DEGREE and sizes.max() - sizes[0] < _WIDEST:
            return _log_polynomial(powers, sizes, u)
        result = np.empty_like(u)
        inside = u < 1.0
        result[~inside] = sizes[0] if powers[0] == 0.0 else -np.inf  # 0^(k-1): only k = 1 is left at u = 1
        logs = np.log1p(-u[inside])
        rows = max(1, _ENTRIES // len(powers))
        parts = [_log_sum(sizes + np.multiply.outer(logs[i : i + rows], powers)) for i in range(0, len(logs), rows)]
        result[inside] = np.concatenate(parts) if parts else 0.0
        return result

    def log_pmf(self, k: Floats) -> Floats:
        """``log P(k)``, minus infinity off the table."""
        place = np.minimum(np.searchsorted(self._values, k), len(self._values) - 1)
        return np.where(self._values[place] == k, self._log_probabilities[place], -np.inf)

    def quantile(self, q: float) -> int:
        """The smallest k with ``P(K <= k) >= q``."""
        below = np.cumsum(np.exp(self._log_probabilities))
        place = int(np.searchsorted(below, q * (1.0 - 1e-13)))
        return int(self._values[min(place, len(below) - 1)])  # rounding may leave the whole sum below q


def _log_polynomial(powers: Floats, sizes: Floats, u: Floats) -> Floats:
    """``log sum exp(size) (1-u)^power`` by Horner's rule: all terms are positive, and the least one never vanishes."""
    top = sizes.max()
    coefficients, gaps = np.exp(sizes - top).tolist(), np.diff(powers).astype(np.intp).tolist()
    value = np.empty_like(u)
    for first in range(0, len(u), _AT_A_TIME):
        part = slice(first, first + _AT_A_TIME)
        value[part] = _horner(coefficients, gaps, 1.0 - u[part])
    with np.errstate(divide="ignore"):
        lowest = powers[0] * np.log1p(-u) if powers[0] else 0.0
    return np.asarray(np.log(value) + lowest + top)


def _horner(coefficients: list[float], gaps: list[int], z: Floats) -> Floats:
    """``c_0 + z^gap_1 (c_1 + z^gap_2 (c_2 + ...))``; a power by squaring is off by no more than by single factors."""
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
    """``log sum exp`` of each row."""
    top = rows.max(axis=1)
    return np.asarray(top + np.log(np.exp(rows - top[:, None]).sum(axis=1)), dtype=np.float64)
