"""The truncated negative binomial law."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from privselect._util.validation import Range, parameter
from privselect.counts.truncated_negative_binomial import GAMMA, MEAN, Truncated
from privselect.text_forms import register

_ETA = Range(-1.0, 1e6, low_open=True, high_open=False)  # beyond 1e6 the law is Poisson's, and gamma too near 1 for a float


@register
@dataclass(frozen=True, slots=True)
class NegativeBinomial(Truncated):
    """K ~ D(eta, gamma), the negative binomial law conditioned on K >= 1; eta = 1 is geometric, eta = 0 logarithmic.

    ``phi'(1-u) = m (gamma/(gamma + (1-gamma) u))^(eta+1)`` with ``m = eta (1-gamma)/(gamma (1 - gamma^eta))``.
    """

    text_name: ClassVar[str] = "negative_binomial"
    eta: float = parameter(_ETA, leaks="more")
    mean: float | None = parameter(MEAN, default=None, leaks="more")
    gamma: float | None = parameter(GAMMA, default=None, leaks="less")
