r"""Family D(eta, gamma): the negative binomial distribution conditioned on at least one trial.

    P(k) = (1-gamma)^k  eta/(gamma^-eta - 1)  Gamma(k+eta) / (Gamma(1+eta) k!),        k = 1, 2, ...
    phi'(1-u) = m (gamma/gamma_u)^(eta+1),    gamma_u = gamma + (1-gamma) u,
    m = eta (1-gamma) / (gamma (1 - gamma^eta)),

with limits at eta = 0. All quantities are continuous in eta > -1, and so are the computed ones.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from privselect._util.validation import Range, parameter
from privselect.counts.base import LARGEST_COUNT
from privselect.counts.capped import CappedCount
from privselect.counts.log_tails import log_betainc, log_binomial_term
from privselect.counts.sampling.pmf_ratios import PmfWeights
from privselect.errors import ParameterError
from privselect.text_forms import register, write_value

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_SMALLEST_GAMMA = 1e-100  # K can reach about 1/gamma
MEAN_RANGE = Range(1.0, float(LARGEST_COUNT), high_open=False)
_ETA_RANGE = Range(-1.0, 1e6, low_open=True, high_open=False)  # for larger eta use Poisson: gamma would be too close to 1 for a float
GAMMA_RANGE = Range(_SMALLEST_GAMMA, 1.0, high_open=False)
_LARGEST_SUM_LENGTH = 4096  # P(K <= k) is computed as a sum up to this k
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(20)


class TruncatedNegativeBinomial(CappedCount):
    """K ~ D(eta, gamma), given by its mean or by gamma.

    A mean is converted to the float gamma with the nearest mean. The distribution is then D(eta, gamma) with exactly that float.
    """

    __slots__ = ()

    eta: float
    mean: float | None
    gamma: float | None

    @property
    def resolved_gamma(self) -> float:
        """Parameter gamma, as given or computed from the mean."""
        return gamma_of(self.eta, float(self.mean or 1.0)) if self.gamma is None else self.gamma

    def _check_parameters(self) -> None:
        if (self.mean is None) == (self.gamma is None):
            given = "neither" if self.mean is None else f"mean={write_value(self.mean)} and gamma={write_value(self.gamma)}"
            raise ParameterError(f"`{self.text_name}` needs exactly one of `mean` and `gamma`, got {given}")
        _ = self.resolved_gamma  # raises ParameterError if the mean is too large

    def _support(self) -> tuple[int, int | None]:
        return 1, (1 if self.resolved_gamma == 1.0 else None)

    def _mean(self) -> float:
        return mean_of(self.eta, self.resolved_gamma)

    def _log_dpgf(self, u: Floats) -> Floats:
        gamma = self.resolved_gamma
        # gamma_u / gamma = 1 + u (1-gamma)/gamma: no digit of a small u is lost.
        return math.log(self._mean()) - (self.eta + 1.0) * np.log1p(u * ((1.0 - gamma) / gamma))

    def _log_tilted_cdf(self, u: Floats, cap: int) -> Floats:
        """Return ``log P(NB(eta+1, gamma_u) < cap) = log I_{gamma_u}(eta+1, cap)``."""
        gamma, a = self.resolved_gamma, self.eta + 1.0
        x, y = gamma + (1.0 - gamma) * u, (1.0 - gamma) * (1.0 - u)
        d = float(Fraction(a) - (Fraction(a) + cap) * Fraction(gamma)) - (a + cap) * (1.0 - gamma) * u
        return log_betainc(a, float(cap), x, y, d)

    def _log_pmf(self, k: Floats) -> Floats:
        """Return ``log P(k)``: ``k P(k)/m`` is NB(eta+1, gamma) at k-1, which has no singular eta."""
        gamma, a = self.resolved_gamma, self.eta + 1.0
        j = np.maximum(k - 1.0, 1.0)
        later = np.log(a / (a + j)) + log_binomial_term(np.full_like(j, a), j, *_gamma_arrays(j, gamma), a * (1.0 - gamma) - j * gamma)
        return math.log(self._mean()) - np.log(k) + np.where(k == 1.0, a * math.log(gamma), later)

    def _log_cdf(self, k: int) -> float:
        if self.resolved_gamma == 1.0:
            return 0.0
        if k <= _LARGEST_SUM_LENGTH:
            logs = self._log_pmf(np.arange(1.0, k + 1.0))
            top = float(logs.max())
            return min(0.0, top + math.log(float(np.exp(logs - top).sum())))
        beyond = _log_tail_from_beta if self.eta >= 1.0 else _log_tail_from_integral
        gamma = self.resolved_gamma
        tail = beyond(self.eta, gamma, k, upper=True)
        # The smaller side is computed without cancellation; the other side is one minus it.
        return math.log1p(-math.exp(tail)) if tail < -0.7 else beyond(self.eta, gamma, k, upper=False)

    def _pmf_weights(self) -> PmfWeights:
        base, eta = 1 - Fraction(self.resolved_gamma), Fraction(self.eta)
        if eta == 1:  # Gamma(k+1)/k! = 1: the geometric distribution needs no Gamma
            return PmfWeights(base, 1, self.cap)
        return PmfWeights(base, 1, self.cap, numerator_shifts=(eta,), denominator_shifts=(Fraction(1),))


def _gamma_arrays(like: Floats, gamma: float) -> tuple[Floats, Floats]:
    return np.full_like(like, gamma), np.full_like(like, 1.0 - gamma)


def mean_of(eta: float, gamma: float) -> float:
    """Return ``eta (1-gamma) / (gamma (1 - gamma^eta))``, continuous at eta = 0."""
    if gamma == 1.0:
        return 1.0
    if eta == 1.0:
        return 1.0 / gamma
    log = -math.log(gamma)
    x = eta * log
    if abs(x) > 1.0:  # the power has an error of one unit in the last place, e^-x of x units
        return (1.0 - gamma) / gamma * (eta / (1.0 - math.pow(gamma, eta)))
    return (1.0 - gamma) / gamma * ((x / -math.expm1(-x) if x else 1.0) / log)


@lru_cache(maxsize=256)
def gamma_of(eta: float, mean: float) -> float:
    """Return the float gamma with the mean nearest to ``mean``, by bisection over all floats."""
    if mean == 1.0 or eta == 1.0:
        return 1.0 / mean
    largest_mean = mean_of(eta, _SMALLEST_GAMMA)
    if largest_mean < mean:
        limit = f"in [1, {largest_mean:.10g}] at eta={write_value(eta)}, where gamma falls below 1e-100"
        raise ParameterError(f"`mean` must be {limit}, got {write_value(mean)}")
    low, high = _float_rank(_SMALLEST_GAMMA), _float_rank(1.0)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if mean_of(eta, _float_of_rank(middle)) >= mean else (low, middle)
    return min((_float_of_rank(low), _float_of_rank(high)), key=lambda gamma: abs(mean_of(eta, gamma) - mean))


def _float_rank(x: float) -> int:
    """Return the rank of a positive float among all floats."""
    return int.from_bytes(struct.pack(">d", x), "big")


def _float_of_rank(place: int) -> float:
    return float(struct.unpack(">d", place.to_bytes(8, "big"))[0])


def _log_tail_from_beta(eta: float, gamma: float, k: int, *, upper: bool) -> float:
    """Return ``log P(K > k)`` (upper) or ``log P(K <= k)``, from the untruncated P(NB(eta, gamma) <= k) = I_gamma(eta, k+1)."""
    n = k + 1.0
    zero = -eta * math.log(gamma)  # -log P(NB = 0)
    d = float(Fraction(eta) - (Fraction(eta) + k + 1) * Fraction(gamma))
    x, y, gap = np.array([gamma]), np.array([1.0 - gamma]), np.array([d])
    positive = math.log(-math.expm1(-zero))
    if upper:
        return min(0.0, float(log_betainc(n, eta, y, x, -gap)[0]) - positive)
    # P(NB = 0) is far below P(NB <= k) here, because k > 4096 and larger K are more likely.
    within = float(log_betainc(eta, n, x, y, gap)[0])
    return min(0.0, within + math.log1p(-math.exp(min(-zero - within, -1e-300))) - positive)


def _log_tail_from_integral(eta: float, gamma: float, k: int, *, upper: bool) -> float:
    r"""Return ``log P(K > k)`` (upper) or ``log P(K <= k)`` as an integral of positive terms, for eta < 1, also at and near 0.

        P(K <= k) = integral_0^1 phi_k'(1-u) du = m gamma^a/(1-gamma) integral_gamma^1 t^-a I_t(a, k) dt,   a = eta+1,

    and the same with 1 - I for P(K > k). In s = log t the integrand is smooth on a scale of 1, so panels of width 1/2 suffice.
    """
    a, n = eta + 1.0, float(k)
    start = math.log(gamma)
    # 1 - I_t falls like e^{-k t} and underflows past k t = 760.
    end = min(0.0, math.log((a + 760.0) / n)) if upper else 0.0
    if end <= start:
        return -math.inf
    panels = math.ceil(2.0 * (end - start))
    edges = np.linspace(start, end, panels + 1)
    half = (end - start) / panels / 2.0
    s = (edges[:-1, None] + half * (1.0 + _NODES)).reshape(-1)
    t, rest = np.exp(s), -np.expm1(s)
    d = a - (a + n) * t
    tail = log_betainc(n, a, rest, t, -d) if upper else log_betainc(a, n, t, rest, d)
    logs = tail + a * (start - s) + s + np.log(half * np.tile(_WEIGHTS, panels))
    top = float(logs.max())
    total = top + math.log(float(np.exp(logs - top).sum()))
    return min(0.0, total + math.log(mean_of(eta, gamma)) - math.log1p(-gamma))


@register
@dataclass(frozen=True, slots=True)
class NegativeBinomial(TruncatedNegativeBinomial):
    """K ~ D(eta, gamma), negative binomial conditioned on K >= 1; eta = 1 is geometric, eta = 0 logarithmic.

    ``phi'(1-u) = m (gamma/(gamma + (1-gamma) u))^(eta+1)`` with ``m = eta (1-gamma)/(gamma (1 - gamma^eta))``.
    """

    text_name: ClassVar[str] = "negative_binomial"
    eta: float = parameter(_ETA_RANGE, leaks="more")
    mean: float | None = parameter(MEAN_RANGE, default=None, leaks="more")
    gamma: float | None = parameter(GAMMA_RANGE, default=None, leaks="less")


@register
@dataclass(frozen=True, slots=True)
class Geometric(TruncatedNegativeBinomial):
    """K ~ geometric on 1, 2, ...: after each trial, stop with probability gamma = 1/mean. This is D(1, gamma).

    ``phi'(1-u) = (1/gamma) (gamma/(gamma + (1-gamma) u))^2``.
    """

    text_name: ClassVar[str] = "geometric"
    mean: float | None = parameter(MEAN_RANGE, default=None, leaks="more")
    gamma: float | None = parameter(GAMMA_RANGE, default=None, leaks="less")

    @property
    def eta(self) -> float:  # type: ignore[override]
        """Shape parameter eta in the family D(eta, gamma)."""
        return 1.0

    def _log_cdf(self, k: int) -> float:
        """Return the log of ``P(K <= k) = 1 - (1-gamma)^k``."""
        gamma = self.resolved_gamma
        return 0.0 if gamma == 1.0 else math.log(-math.expm1(k * math.log1p(-gamma)))


@register
@dataclass(frozen=True, slots=True)
class Logarithmic(TruncatedNegativeBinomial):
    """K ~ logarithmic: ``P(k) = (1-gamma)^k / (k log(1/gamma))``. This is D(0, gamma).

    ``phi'(1-u) = m gamma/(gamma + (1-gamma) u)`` with ``m = (1/gamma - 1)/log(1/gamma)``.
    """

    text_name: ClassVar[str] = "logarithmic"
    mean: float | None = parameter(MEAN_RANGE, default=None, leaks="more")
    gamma: float | None = parameter(GAMMA_RANGE, default=None, leaks="less")

    @property
    def eta(self) -> float:  # type: ignore[override]
        """Shape parameter eta in the family D(eta, gamma)."""
        return 0.0
