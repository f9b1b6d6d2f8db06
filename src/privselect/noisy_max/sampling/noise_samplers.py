"""The sampler of each kind of noise: its density, its scale and its grid."""

from __future__ import annotations

import random
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from privselect._util.validation import format_value
from privselect.errors import ParameterError
from privselect.mechanisms import DiscreteGaussian, DiscreteLaplace, Gaussian, Laplace
from privselect.noisy_max.index_only_noise import Exponential, Gumbel
from privselect.noisy_max.sampling.rejection_sampler import Density, RejectionSampler, cached_sampler
from privselect.noisy_max.sampling.sample_grid import Grid, IntegerGrid, RealGrid

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from privselect._util.random_bits import Entropy

_LARGEST_INTEGER_SCALE = 1e11  # all samples stay below 2^53


@dataclass(frozen=True, slots=True)
class NoiseSampler:
    """Noise with a given density, scaled by ``scale``."""

    shape: Density
    scale: float
    integer: bool = False

    @property
    def sampler(self) -> RejectionSampler:
        """The exact sampler: real noise in units of ``scale``, integer noise in units of 1."""
        grid: Grid = IntegerGrid(self.scale) if self.integer else RealGrid()
        return cached_sampler(self.shape, grid)

    def unit(self, sensitivity: Fraction) -> Fraction:
        """Return the factor from the sampler's units to the units of the scores."""
        return sensitivity if self.integer else sensitivity * Fraction(self.scale)

    def sample_floats(self, shape: tuple[int, ...]) -> NDArray[np.float64]:
        """Draw noise in units of ``scale`` with numpy's generator. Rounded, so the guarantee does not hold."""
        generator = np.random.default_rng()
        if self.shape is Density.NORMAL:
            return generator.standard_normal(shape)
        if self.shape is Density.LAPLACE:
            return generator.laplace(size=shape)
        if self.shape is Density.GUMBEL:
            return generator.gumbel(size=shape)
        return generator.standard_exponential(shape)


def sampler_for(noise: object) -> NoiseSampler:
    """Return the sampler of this noise; raise if the noise cannot be drawn exactly."""
    match noise:
        case Gaussian():
            return NoiseSampler(Density.NORMAL, noise.sigma)
        case Laplace():
            return NoiseSampler(Density.LAPLACE, noise.scale)
        case Gumbel():
            return NoiseSampler(Density.GUMBEL, noise.scale)
        case Exponential():
            return NoiseSampler(Density.EXPONENTIAL, noise.scale)
        case DiscreteGaussian():
            return NoiseSampler(Density.NORMAL, noise.sigma, integer=True)
        case DiscreteLaplace() if noise.scale <= _LARGEST_INTEGER_SCALE:
            return NoiseSampler(Density.LAPLACE, noise.scale, integer=True)
        case DiscreteLaplace():
            raise ParameterError(
                f"`noise` on the integers must have a scale of at most {_LARGEST_INTEGER_SCALE:g} to be drawn, got {format_value(noise)}. "
                "Use laplace, which has no such limit."
            )
    kinds = "gaussian, laplace, gumbel, exponential, discrete_gaussian or discrete_laplace"
    raise ParameterError(
        f"`noise` must be {kinds} to be drawn exactly, got {format_value(noise)}. A density given by functions has bounds but no sampler."
    )


def check_entropy(entropy: Entropy | None) -> Entropy:
    """Return the given source of random bits; None means the operating system's."""
    if entropy is None:
        return random.SystemRandom()
    if not callable(getattr(entropy, "getrandbits", None)):
        raise ParameterError(
            f"`entropy` must have a method getrandbits such as random.SystemRandom() has, got {format_value(type(entropy).__name__)}"
        )
    return entropy
