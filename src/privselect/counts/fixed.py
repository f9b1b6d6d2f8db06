"""Fixed number of trials."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from privselect._util.validation import as_float_array, integer_range, parameter
from privselect.counts.base import LARGEST_COUNT, Count
from privselect.errors import ParameterError
from privselect.text_forms import register

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from privselect._util.random_bits import Entropy


@register
@dataclass(frozen=True, slots=True)
class Fixed(Count):
    """K = k always: ``phi'(1-u) = k (1-u)^(k-1)``."""

    text_name: ClassVar[str] = "fixed"
    k: int = parameter(integer_range(1, LARGEST_COUNT), leaks="mostly more")

    def _check(self) -> None:
        if self.cap is not None and self.cap < self.k:
            raise ParameterError(f"`cap` must be at least k = {self.k}, the only K that fixed draws, got {self.cap}")

    @property
    def largest(self) -> int:
        """Largest possible K."""
        return self.k

    def log_dpgf_unchecked(self, u: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return ``log k + (k-1) log(1-u)``."""
        if self.k == 1:
            return np.zeros_like(u)
        with np.errstate(divide="ignore"):  # u = 1
            return np.asarray(math.log(self.k) + (self.k - 1) * np.log1p(-u))

    def log_pmf(self, k: ArrayLike) -> NDArray[np.float64]:
        """Return ``log P(K = k)``, minus infinity if k is impossible."""
        return np.where(as_float_array("k", k, "a number") == self.k, 0.0, -np.inf)

    def expected(self) -> float:
        """Return ``E K = k``."""
        return float(self.k)

    def _quantile(self, q: float) -> int:  # noqa: ARG002 -- the same for every q
        return self.k

    def _draw(self, entropy: Entropy) -> int:  # noqa: ARG002 -- nothing to draw
        return self.k
