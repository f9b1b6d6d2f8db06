"""Many trials of private regressions at once, with the same distribution as the methods in ``privselect.regression``.

In the eigenvectors of X'X the covariance of the posterior is diagonal, so a sample costs only its normals. For speed, the largest
leverage is rounded up to a grid: a precision is about 1% lower than in the library, and more if hardly any precision is allowed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtri

from privselect.regression.ops.calibration import largest_signal
from privselect.regression.ridge_sensitivity import log_norm_sensitivity, solution_norm_bound, solution_sensitivity
from research.figures.split_problem import CLIP

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from privselect.regression.ptr.ops_ptr import OPSPTRProtocol
    from research.figures.allowed_noise import TrialNoise
    from research.figures.split_problem import Problem

    Floats = NDArray[np.float64]

RIDGES = np.geomspace(2.5, 2.5**10, 30)
_GRID = 100.0  # grid points per factor e of leverage
_UP = 1.0 + 1e-9
_LONGEST = 700.0


@dataclass(frozen=True, slots=True, repr=False)
class Draws:
    """All random numbers of one selection: the ridge and normals of each trial, shared by all epsilons and accountings."""

    ridges: Floats
    smallest: Floats
    norm: Floats
    sample: Floats
    score: Floats


@dataclass(frozen=True, slots=True, repr=False)
class Trials:
    """The release of each trial in the eigenvectors; a ``precision`` of 0 means "no answer"."""

    coefficients: Floats
    precision: Floats


@dataclass(frozen=True, slots=True)
class Winner:
    """The released trial: its error on the test part. Without an answer every prediction is 0."""

    test_error: float
    ridge: float
    precision: float
    answered: float  # share of trials with an answer


def draw_trials(features: int, mean: float, generator: np.random.Generator) -> Draws:
    """Draw K from a geometric distribution with this mean, and each ridge from ``RIDGES`` with replacement."""
    count = int(generator.geometric(1.0 / mean))
    ridges = generator.choice(RIDGES, count)
    smallest, norm, score = generator.standard_normal((3, count))
    return Draws(ridges, smallest, norm, generator.standard_normal((count, features)), score)


def fitted_posteriors(problem: Problem, noise: TrialNoise, draws: Draws) -> Trials:
    """Run trials of OPS-PTR."""
    public = problem.training.records
    proposal = noise.recipe(1.0, public).protocol
    solutions = problem.solutions(draws.ridges)
    norms = np.linalg.norm(solutions, axis=1)
    precision = precisions(proposal, draws.ridges, (float(problem.values[0]), norms), (draws.smallest, draws.norm))
    spread = np.sqrt(np.where(precision > 0.0, precision, 1.0)[:, None] * (problem.values + draws.ridges[:, None]))
    return Trials(solutions + draws.sample / spread, precision)


def precisions(proposal: OPSPTRProtocol, ridges: Floats, data: tuple[float, Floats], normals: tuple[Floats, Floats]) -> Floats:
    """Return the precision at each ridge that the released bounds allow.

    ``data`` are the smallest eigenvalue and the norms, ``normals`` the random numbers of both releases.
    """
    least, norms = data
    quantile = float(-ndtri(0.5 * proposal.failure)) * _UP
    smallest = np.maximum(least + (normals[0] - quantile) / proposal.mu_eigenvalue, 0.0)
    sensitivity = np.array([log_norm_sensitivity(ridge, low) for ridge, low in zip(ridges.tolist(), smallest.tolist(), strict=True)])
    lengths = np.exp(np.minimum(np.log1p(norms) + (normals[1] + quantile) * sensitivity / proposal.mu_norm, _LONGEST))
    limits = {ridge: 1.0 + solution_norm_bound(proposal.records, ridge) for ridge in set(ridges.tolist())}
    lengths = np.minimum(lengths, [limits[ridge] for ridge in ridges.tolist()])
    leverage = 1.0 / (ridges + np.maximum(smallest, 1.0))
    signals = _signals(leverage / (1.0 - leverage), proposal.target.mu, proposal.target.delta)
    return np.asarray(signals * ((1.0 - leverage) / lengths) ** 2)


def _signals(leverage: Floats, mu: float, delta: float) -> Floats:
    """Return the largest signal at each leverage, rounded up to the grid."""
    steps, place = np.unique(np.ceil(np.log(leverage) * _GRID), return_inverse=True)
    return np.array([largest_signal(step, mu, delta) for step in np.exp(steps / _GRID).tolist()])[place]


def perturbed_outputs(problem: Problem, mu: float, draws: Draws) -> Trials:
    """Run trials of output perturbation."""
    public = problem.training.records
    pulls = {ridge: solution_sensitivity(public, ridge) for ridge in set(draws.ridges.tolist())}
    scales = np.array([pulls[ridge] for ridge in draws.ridges.tolist()]) / mu
    return Trials(problem.solutions(draws.ridges) + scales[:, None] * draws.sample, 1.0 / scales**2)


def winners(problem: Problem, trials: Trials, draws: Draws, score_mu: float) -> dict[str, Winner]:
    """Return the best trial by the published (non-private) validation, and by the private one.

    The private score of a trial is a sum of clipped squared errors with Gaussian noise of deviation ``CLIP/score_mu``.
    """
    errors = problem.validation_errors(trials.coefficients)
    sums = problem.clipped_sums(trials.coefficients) + draws.score * (CLIP / score_mu)
    return {"unpaid": _best(problem, trials, draws, errors), "paid": _best(problem, trials, draws, sums)}


def _best(problem: Problem, trials: Trials, draws: Draws, losses: Floats) -> Winner:
    answered = trials.precision > 0.0
    if not answered.any():
        return Winner(problem.test_error(np.zeros_like(problem.moment)), float("nan"), 0.0, 0.0)
    best = int(np.argmin(np.where(answered, losses, np.inf)))
    return Winner(
        problem.test_error(trials.coefficients[best]),
        float(draws.ridges[best]),
        float(trials.precision[best]),
        float(answered.mean()),
    )
