r"""The family D(eta, gamma): the negative binomial law conditioned on at least one trial.

    P(k) = (1-gamma)^k  eta/(gamma^-eta - 1)  Gamma(k+eta) / (Gamma(1+eta) k!),        k = 1, 2, ...
    phi'(1-u) = m (gamma/gamma_u)^(eta+1),    gamma_u = gamma + (1-gamma) u,
    m = eta (1-gamma) / (gamma (1 - gamma^eta)),

read at eta = 0 as their limits. Everything is continuous in eta > -1, and computed so.
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

_SMALLEST_GAMMA = 1e-100  # K is about 1/gamma now and then; beyond this it is no number of anything
MEAN_RANGE = Range(1.0, float(LARGEST_COUNT), high_open=False)
GAMMA_RANGE = Range(_SMALLEST_GAMMA, 1.0, high_open=False)
_SUMMED = 4096  # P(K <= k) is a plain sum up to here
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(20)


class TruncatedNegativeBinomial(CappedCount):
    """K ~ D(eta, gamma), by its mean or by gamma.

    A mean is turned into the float gamma whose mean is nearest; the law is then D(eta, gamma) with exactly that float.
    """

    __slots__ = ()

    eta: float
    mean: float | None
    gamma: float | None

    @property
    def resolved_gamma(self) -> float:
        """gamma, as given or as found from the mean."""
        return gamma_of(self.eta, float(self.mean or 1.0)) if self.gamma is None else self.gamma

    def _check_parameters(self) -> None:
        if (self.mean is None) == (self.gamma is None):
            given = "neither" if self.mean is None else f"mean={write_value(self.mean)} and gamma={write_value(self.gamma)}"
            raise ParameterError(f"`{self.text_name}` needs exactly one of `mean` and `gamma`, got {given}")
        _ = self.resolved_gamma  # may refuse the mean

    def _support(self) -> tuple[int, int | None]:
        return 1, (1 if self.resolved_gamma == 1.0 else None)

    def _mean(self) -> float:
        return mean_of(self.eta, self.resolved_gamma)

    def _log_dpgf(self, u: Floats) -> Floats:
        gamma = self.resolved_gamma
        # gamma_u / gamma = 1 + u (1-gamma)/gamma: no digit of a small u is lost.
        return math.log(self._mean()) - (self.eta + 1.0) * np.log1p(u * ((1.0 - gamma) / gamma))

    def _log_tilted_cdf(self, u: Floats, cap: int) -> Floats:
        """``log P(NB(eta+1, gamma_u) < cap) = log I_{gamma_u}(eta+1, cap)``."""
        gamma, a = self.resolved_gamma, self.eta + 1.0
        x, y = gamma + (1.0 - gamma) * u, (1.0 - gamma) * (1.0 - u)
        d = float(Fraction(a) - (Fraction(a) + cap) * Fraction(gamma)) - (a + cap) * (1.0 - gamma) * u
        return log_betainc(a, float(cap), x, y, d)

    def _log_pmf(self, k: Floats) -> Floats:
        """``k P(k)/m`` is the law NB(eta+1, gamma) at k-1, which has no singular eta."""
        gamma, a = self.resolved_gamma, self.eta + 1.0
        j = np.maximum(k - 1.0, 1.0)
        later = np.log(a / (a + j)) + log_binomial_term(np.full_like(j, a), j, *_both(j, gamma), a * (1.0 - gamma) - j * gamma)
        return math.log(self._mean()) - np.log(k) + np.where(k == 1.0, a * math.log(gamma), later)

    def _log_cdf(self, k: int) -> float:
        if self.resolved_gamma == 1.0:
            return 0.0
        if k <= _SUMMED:
            logs = self._log_pmf(np.arange(1.0, k + 1.0))
            top = float(logs.max())
            return min(0.0, top + math.log(float(np.exp(logs - top).sum())))
        beyond = _log_untruncated_beyond if self.eta >= 1.0 else _log_integral
        gamma = self.resolved_gamma
        tail = beyond(self.eta, gamma, k, upper=True)
        # Whichever side is smaller is found without cancellation; the other is one minus it.
        return math.log1p(-math.exp(tail)) if tail < -0.7 else beyond(self.eta, gamma, k, upper=False)

    def _terms(self) -> PmfWeights:
        base, eta = 1 - Fraction(self.resolved_gamma), Fraction(self.eta)
        if eta == 1:  # Gamma(k+1)/k! = 1: the geometric law needs no Gamma
            return PmfWeights(base, 1, self.cap)
        return PmfWeights(base, 1, self.cap, rising=(eta,), falling=(Fraction(1),))


def _both(like: Floats, gamma: float) -> tuple[Floats, Floats]:
    return np.full_like(like, gamma), np.full_like(like, 1.0 - gamma)


def mean_of(eta: float, gamma: float) -> float:
    """``eta (1-gamma) / (gamma (1 - gamma^eta))``, continuous through eta = 0."""
    if gamma == 1.0:
        return 1.0
    if eta == 1.0:
        return 1.0 / gamma
    log = -math.log(gamma)
    x = eta * log
    if abs(x) > 1.0:  # the power is right to one unit, where e^-x is to x of them
        return (1.0 - gamma) / gamma * (eta / (1.0 - math.pow(gamma, eta)))
    return (1.0 - gamma) / gamma * ((x / -math.expm1(-x) if x else 1.0) / log)


@lru_cache(maxsize=256)
def gamma_of(eta: float, mean: float) -> float:
    """The float gamma whose mean is nearest to the one asked for: bisection over the floats themselves, so nothing can slip."""
    if mean == 1.0 or eta == 1.0:
        return 1.0 / mean
    most = mean_of(eta, _SMALLEST_GAMMA)
    if most < mean:
        limit = f"in [1, {most:.10g}] at eta={write_value(eta)}, where gamma falls below 1e-100"
        raise ParameterError(f"`mean` must be {limit}, got {write_value(mean)}")
    low, high = _place(_SMALLEST_GAMMA), _place(1.0)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if mean_of(eta, _float_at(middle)) >= mean else (low, middle)
    return min((_float_at(low), _float_at(high)), key=lambda gamma: abs(mean_of(eta, gamma) - mean))


def _place(x: float) -> int:
    """Where a positive float stands among all floats."""
    return int.from_bytes(struct.pack(">d", x), "big")


def _float_at(place: int) -> float:
    return float(struct.unpack(">d", place.to_bytes(8, "big"))[0])


def _log_untruncated_beyond(eta: float, gamma: float, k: int, *, upper: bool) -> float:
    """``log P(K > k)`` (upper) or ``log P(K <= k)`` from the untruncated law, P(NB(eta, gamma) <= k) = I_gamma(eta, k+1)."""
    n = k + 1.0
    zero = -eta * math.log(gamma)  # -log P(NB = 0)
    d = float(Fraction(eta) - (Fraction(eta) + k + 1) * Fraction(gamma))
    x, y, gap = np.array([gamma]), np.array([1.0 - gamma]), np.array([d])
    positive = math.log(-math.expm1(-zero))
    if upper:
        return min(0.0, float(log_betainc(n, eta, y, x, -gap)[0]) - positive)
    # P(NB = 0) is far below P(NB <= k) here: k > 4096 and K is more likely beyond.
    within = float(log_betainc(eta, n, x, y, gap)[0])
    return min(0.0, within + math.log1p(-math.exp(min(-zero - within, -1e-300))) - positive)


def _log_integral(eta: float, gamma: float, k: int, *, upper: bool) -> float:
    r"""``log P(K > k)`` (upper) or ``log P(K <= k)`` as an integral of positive terms, for eta < 1, also at and near 0.

        P(K <= k) = integral_0^1 phi_k'(1-u) du = m gamma^a/(1-gamma) integral_gamma^1 t^-a I_t(a, k) dt,   a = eta+1,

    and the same with 1 - I for P(K > k); in s = log t the integrand is smooth at scale 1 and panels of width 1/2 do.
    """
    a, n = eta + 1.0, float(k)
    start = math.log(gamma)
    # 1 - I_t falls like e^{-k t}: nothing is left of it past k t = 760.
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


_ETA = Range(-1.0, 1e6, low_open=True, high_open=False)  # beyond 1e6 the law is Poisson's, and gamma too near 1 for a float


@register
@dataclass(frozen=True, slots=True)
class NegativeBinomial(TruncatedNegativeBinomial):
    """K ~ D(eta, gamma), the negative binomial law conditioned on K >= 1; eta = 1 is geometric, eta = 0 logarithmic.

    ``phi'(1-u) = m (gamma/(gamma + (1-gamma) u))^(eta+1)`` with ``m = eta (1-gamma)/(gamma (1 - gamma^eta))``.
    """

    text_name: ClassVar[str] = "negative_binomial"
    eta: float = parameter(_ETA, leaks="more")
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
        """The shape of this law in the family D(eta, gamma)."""
        return 1.0

    def _log_cdf(self, k: int) -> float:
        """``P(K <= k) = 1 - (1-gamma)^k``."""
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
        """The shape of this law in the family D(eta, gamma)."""
        return 0.0
