"""Mechanisms: what one trial leaks, one frozen description per file."""

from privselect.mechanisms.approximate import Approximate
from privselect.mechanisms.base import Mechanism
from privselect.mechanisms.composed import Composed
from privselect.mechanisms.curve import Curve
from privselect.mechanisms.discrete_gaussian import DiscreteGaussian
from privselect.mechanisms.discrete_laplace import DiscreteLaplace
from privselect.mechanisms.dpsgd import DPSGD
from privselect.mechanisms.gaussian import Gaussian
from privselect.mechanisms.gaussian_dp import GaussianDP
from privselect.mechanisms.laplace import Laplace
from privselect.mechanisms.mixture import Mixture
from privselect.mechanisms.parallel_composition import Disjoint
from privselect.mechanisms.pure import Pure
from privselect.mechanisms.renyi import Renyi
from privselect.mechanisms.sampled_gaussian import SampledGaussian
from privselect.mechanisms.stated_guarantees import Points
from privselect.mechanisms.subsampled import Subsampled

__all__ = [
    "DPSGD",
    "Approximate",
    "Composed",
    "Curve",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Disjoint",
    "Gaussian",
    "GaussianDP",
    "Laplace",
    "Mechanism",
    "Mixture",
    "Points",
    "Pure",
    "Renyi",
    "SampledGaussian",
    "Subsampled",
]
