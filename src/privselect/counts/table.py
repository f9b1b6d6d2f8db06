"""A law of K on finitely many values, as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_LARGEST_DEGREE = 256  # Horner's rule is then right to 1e-13
_WIDEST = 500.0  # in logs: all coefficients that matter are proper floats
_ENTRIES = 1 << 21  # of the (u, k) matrix held at a time: 16 MB


class Table:
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
    coefficients = np.zeros(int(powers[-1] - powers[0]) + 1)
    coefficients[(powers - powers[0]).astype(np.intp)] = np.exp(sizes - top)
    z, value = 1.0 - u, np.full_like(u, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        value *= z
        if coefficient:
            value += coefficient
    with np.errstate(divide="ignore"):
        lowest = powers[0] * np.log1p(-u) if powers[0] else 0.0
    return np.asarray(np.log(value) + lowest + top)


def _log_sum(rows: Floats) -> Floats:
    """``log sum exp`` of each row."""
    top = rows.max(axis=1)
    return np.asarray(top + np.log(np.exp(rows - top[:, None]).sum(axis=1)), dtype=np.float64)
