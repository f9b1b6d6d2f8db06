"""OPS-PTR: one posterior sample whose precision is fitted to bounds on the data that are released first."""

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
from privselect.regression.methods.method import Answer, Recipe, one_gaussian
from privselect.regression.methods.noisy_statistics import noisy_smallest
from privselect.regression.ops.calibration import largest_signal
from privselect.regression.ops.posterior import posterior_sample
from privselect.regression.ptr.ptr_protocol import Proposal
from privselect.regression.ridge_sensitivity import log_norm_sensitivity, norm_limit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from privselect.regression.gaussian_sampler import Normals
    from privselect.regression.methods.sufficient_statistics import Statistics
    from privselect.regression.ptr.propose_test_release import ProposeTestRelease

    Floats = NDArray[np.float64]

_UP = 1.0 + 1e-9


@dataclass(frozen=True, slots=True)
class Bounds:
    """What the test releases: a lower bound on the least eigenvalue of X'X and an upper one on ``1 + ||th||``."""

    smallest: float
    length: float
    precision: float  # that they allow


@dataclass(frozen=True, kw_only=True)
class FittedPosterior(Proposal["Statistics", Bounds, "Floats"]):
    """Bounds with noise, each shifted to the safe side, then a sample as precise as they allow.

    Each bound is wrong with chance at most ``failure/2``. ``mu_smallest`` and ``mu_norm`` say how much noise each has; one of mu 0 is not
    released, and what always holds is used in its place.

    Why the target covers the sample where both bounds hold for the data at hand: a row that is added has leverage at most
    ``1/(ridge + smallest)`` and ``|y - x'th| <= length``. For one that is taken away, of leverage h and residual r in the data at hand, the
    reference is the data without it: there they are ``h/(1-h)`` and ``r/(1-h)``, with ``h <= min(1/(ridge + smallest), 1/(1 + ridge))``.
    The second is the worse, and both orders of both are covered by the largest leverage and residual of a row that is taken away. The noise
    of the norm is measured by what the released eigenvalue says of its sensitivity, so it covers wherever that bound holds.
    """

    calibrated = True

    target: GaussianDP
    mu_smallest: float
    mu_norm: float
    ridge: float
    records: int

    def propose(self, data: Statistics, source: Normals) -> Bounds | None:
        """The bounds; None where no precision is small enough for them."""
        quantile = float(-ndtri(0.5 * self.failure)) * _UP  # infinite where no failure is allowed: then neither bound says anything
        length = 1.0 + norm_limit(self.records, self.ridge) if self.ridge > 0.0 else math.inf
        smallest = noisy_smallest(data, 1.0 / self.mu_smallest, source, quantile) if self.mu_smallest else 0.0
        sensitivity = log_norm_sensitivity(self.ridge, smallest)
        if self.mu_norm and math.isfinite(sensitivity):
            shift = (float(source.draw(1)[0]) + quantile) * sensitivity / self.mu_norm
            length = min(math.exp(min(math.log1p(float(np.linalg.norm(data.solution(self.ridge)))) + shift, 700.0)), length)
        precision = self.precision(smallest, length)
        return Bounds(smallest, length, precision) if precision else None

    def precision(self, smallest: float, length: float) -> float:
        """The greatest that these bounds allow; 0 where none is small enough."""
        leverage = 1.0 / max(self.ridge + smallest, self.ridge + 1.0)
        if leverage >= 1.0 or math.isinf(length):
            return 0.0
        signal = largest_signal(leverage / (1.0 - leverage), self.target.mu, self.target.delta)
        return signal * ((1.0 - leverage) / length) ** 2

    def release(self, data: Statistics, plan: Bounds, source: Normals) -> Floats:
        """One sample."""
        return posterior_sample(data, self.ridge, plan.precision, source)


@dataclass(frozen=True, slots=True)
class PosteriorAfterTest(Recipe):
    """OPS-PTR within a ``mu``, which is shared out by its square: ``shares`` for the least eigenvalue and the norm, else for the sample.

    The sample stays under ``gdp(mu, delta)`` of its share; ``failure`` is the chance of a wrong bound.
    """

    mu: float
    delta: float
    failure: float
    ridge: float
    records: int
    shares: tuple[float, float] = (0.1, 0.1)
    beside: float = 0.0

    def __post_init__(self) -> None:
        if not (min(self.shares) >= 0.0 and 0.0 < sum(self.shares) < 1.0):
            raise ParameterError(f"`shares` must be two numbers >= 0 with a sum in (0, 1), got {format_value(self.shares)}")

    @property
    def proposal(self) -> FittedPosterior:
        """What is run."""
        smallest, norm = (self.mu * math.sqrt(share) for share in self.shares)
        return FittedPosterior(
            test=one_gaussian(smallest, norm, self.beside),
            target=GaussianDP(mu=self.mu * math.sqrt(1.0 - sum(self.shares)), delta=self.delta, neighbours=ADD_REMOVE),
            failure=self.failure,
            mu_smallest=smallest,
            mu_norm=norm,
            ridge=self.ridge,
            records=self.records,
        )

    @property
    def mechanism(self) -> ProposeTestRelease:
        """Its test and what is released beside it are one Gaussian."""
        return self.proposal.mechanism

    def run(self, statistics: Statistics, normals: Normals) -> Answer:
        """Bounds, then a sample."""
        proposal, facts = self.proposal, {"ridge": self.ridge}
        try:
            plan = proposal.propose(statistics, normals)
            if plan is None:
                return Answer(None, facts)
            facts |= {"smallest_eigenvalue": plan.smallest, "length": plan.length, "precision": plan.precision}
            return Answer(proposal.release(statistics, plan, normals), facts)
        except np.linalg.LinAlgError:
            # Without a ridge, a singular matrix for which the test has gone wrong: within its chance of failure.
            return Answer(None, facts)
