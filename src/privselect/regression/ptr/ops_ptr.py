"""OPS-PTR: one posterior sample whose precision is calibrated to noisy bounds on the data."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtri

from privselect._util.validation import format_value
from privselect.errors import ParameterError
from privselect.mechanisms import GaussianDP
from privselect.mechanisms.neighbours import ADD_REMOVE
from privselect.regression.methods import RegressionMethod, RegressionResult, composed_gaussian
from privselect.regression.ops.calibration import largest_signal
from privselect.regression.ptr.propose_test_release import PTRProtocol
from privselect.regression.ridge_sensitivity import log_norm_sensitivity, solution_norm_bound
from privselect.regression.sufficient_statistics import noisy_smallest_eigenvalue, posterior_sample

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from privselect.regression.noise_source import NoiseSource
    from privselect.regression.ptr.propose_test_release import ProposeTestRelease
    from privselect.regression.sufficient_statistics import SufficientStatistics

    Floats = NDArray[np.float64]

_UP = 1.0 + 1e-9


@dataclass(frozen=True, slots=True)
class ReleasedBounds:
    """Released lower bound on the smallest eigenvalue of X'X and upper bound on residuals, with the precision that they allow.

    The residual bound is an upper bound on ``1 + ||th||``.
    """

    smallest_eigenvalue: float
    residual: float
    precision: float


@dataclass(frozen=True, kw_only=True)
class OPSPTRProtocol(PTRProtocol["SufficientStatistics", ReleasedBounds, "Floats"]):
    """Release noisy bounds, each shifted to the safe side, then a sample with the largest precision that they allow.

    Each bound is wrong with probability at most ``failure/2``. ``mu_eigenvalue`` and ``mu_norm`` set the noise of each bound. A bound
    with mu 0 is not released; a bound that holds for all data replaces it.

    Why the target covers the sample if both bounds hold for the data: an added row has leverage at most ``1/(ridge + smallest)`` and
    ``|y - x'th| <= residual``. For a removed row, let h and r be its leverage and residual in the data. The reference is the data without
    the row. There they are ``h/(1-h)`` and ``r/(1-h)``, with ``h <= min(1/(ridge + smallest), 1/(1 + ridge))``. The removed row is the
    worse case, so its limits cover both cases in both orders. The noise of the norm is scaled by the sensitivity that the released
    eigenvalue implies, so it is sufficient whenever that bound holds.
    """

    calibrated = True

    target: GaussianDP
    mu_eigenvalue: float
    mu_norm: float
    ridge: float
    records: int

    def propose(self, data: SufficientStatistics, source: NoiseSource) -> ReleasedBounds | None:
        """Release the bounds; None if no precision is small enough for them."""
        quantile = float(-ndtri(0.5 * self.failure)) * _UP  # infinite if failure is 0: then the bounds carry no information
        residual = 1.0 + solution_norm_bound(self.records, self.ridge) if self.ridge > 0.0 else math.inf
        smallest = noisy_smallest_eigenvalue(data, 1.0 / self.mu_eigenvalue, source, quantile) if self.mu_eigenvalue else 0.0
        sensitivity = log_norm_sensitivity(self.ridge, smallest)
        if self.mu_norm and math.isfinite(sensitivity):
            shift = (float(source.standard_normals(1)[0]) + quantile) * sensitivity / self.mu_norm
            residual = min(math.exp(min(math.log1p(float(np.linalg.norm(data.ridge_solution(self.ridge)))) + shift, 700.0)), residual)
        precision = self.precision(smallest, residual)
        return ReleasedBounds(smallest, residual, precision) if precision else None

    def precision(self, smallest_eigenvalue: float, residual: float) -> float:
        """Return the largest precision that these bounds allow; 0 if none is small enough."""
        leverage = 1.0 / max(self.ridge + smallest_eigenvalue, self.ridge + 1.0)
        if leverage >= 1.0 or math.isinf(residual):
            return 0.0
        signal = largest_signal(leverage / (1.0 - leverage), self.target.mu, self.target.delta)
        return signal * ((1.0 - leverage) / residual) ** 2

    def release(self, data: SufficientStatistics, plan: ReleasedBounds, source: NoiseSource) -> Floats:
        """Return one posterior sample."""
        return posterior_sample(data, self.ridge, plan.precision, source)


@dataclass(frozen=True, slots=True)
class OPSPTR(RegressionMethod):
    """OPS-PTR with a total ``mu``; ``shares`` of mu^2 go to the smallest eigenvalue and to the norm, the rest to the sample.

    The sample leaks at most ``gdp(mu, delta)`` of its share. ``failure`` is the probability of a wrong bound.
    """

    mu: float
    delta: float
    failure: float
    ridge: float
    records: int
    shares: tuple[float, float] = (0.1, 0.1)
    extra_mu: float = 0.0

    def __post_init__(self) -> None:
        if not (min(self.shares) >= 0.0 and 0.0 < sum(self.shares) < 1.0):
            raise ParameterError(f"`shares` must be two numbers >= 0 with a sum in (0, 1), got {format_value(self.shares)}")

    @property
    def protocol(self) -> OPSPTRProtocol:
        """The propose-test-release protocol to run."""
        mu_eigenvalue, mu_norm = (self.mu * math.sqrt(share) for share in self.shares)
        return OPSPTRProtocol(
            test=composed_gaussian(mu_eigenvalue, mu_norm, self.extra_mu),
            target=GaussianDP(mu=self.mu * math.sqrt(1.0 - sum(self.shares)), delta=self.delta, neighbours=ADD_REMOVE),
            failure=self.failure,
            mu_eigenvalue=mu_eigenvalue,
            mu_norm=mu_norm,
            ridge=self.ridge,
            records=self.records,
        )

    @property
    def mechanism(self) -> ProposeTestRelease:
        """Propose-test-release; one Gaussian covers both its test and the extra releases."""
        return self.protocol.mechanism

    def run(self, statistics: SufficientStatistics, source: NoiseSource) -> RegressionResult:
        """Release the bounds, then a sample."""
        protocol, facts = self.protocol, {"ridge": self.ridge}
        try:
            plan = protocol.propose(statistics, source)
            if plan is None:
                return RegressionResult(None, facts)
            facts |= {"smallest_eigenvalue": plan.smallest_eigenvalue, "residual_bound": plan.residual, "precision": plan.precision}
            return RegressionResult(protocol.release(statistics, plan, source), facts)
        except np.linalg.LinAlgError:
            # Only a singular matrix without a ridge gets here, and only if a bound is wrong: `failure` covers it.
            return RegressionResult(None, facts)
