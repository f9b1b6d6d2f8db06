"""The logarithmic law."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from privselect._util.validation import parameter
from privselect.counts.truncated_negative_binomial import GAMMA, MEAN, Truncated
from privselect.text_forms import register


@register
@dataclass(frozen=True, slots=True)
class Logarithmic(Truncated):
    """K ~ logarithmic: ``P(k) = (1-gamma)^k / (k log(1/gamma))``. This is D(0, gamma).

    ``phi'(1-u) = m gamma/(gamma + (1-gamma) u)`` with ``m = (1/gamma - 1)/log(1/gamma)``.
    """

    text_name: ClassVar[str] = "logarithmic"
    mean: float | None = parameter(MEAN, default=None, leaks="more")
    gamma: float | None = parameter(GAMMA, default=None, leaks="less")

    @property
    def eta(self) -> float:  # type: ignore[override]
        """The shape of this law in the family D(eta, gamma)."""
        return 0.0
