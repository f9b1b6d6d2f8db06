"""The geometric law."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from privselect._util.validation import parameter
from privselect.counts.truncated_negative_binomial import GAMMA, MEAN, Truncated
from privselect.text_forms import register


@register
@dataclass(frozen=True, slots=True)
class Geometric(Truncated):
    """K ~ geometric on 1, 2, ...: after each trial, stop with probability gamma = 1/mean. This is D(1, gamma).

    ``phi'(1-u) = (1/gamma) (gamma/(gamma + (1-gamma) u))^2``.
    """

    text_name: ClassVar[str] = "geometric"
    mean: float | None = parameter(MEAN, default=None, leaks="more")
    gamma: float | None = parameter(GAMMA, default=None, leaks="less")

    @property
    def eta(self) -> float:  # type: ignore[override]
        """The shape of this law in the family D(eta, gamma)."""
        return 1.0

    def _log_cdf(self, k: int) -> float:
        """``P(K <= k) = 1 - (1-gamma)^k``."""
        gamma = self.resolved_gamma
        return 0.0 if gamma == 1.0 else math.log(-math.expm1(k * math.log1p(-gamma)))
