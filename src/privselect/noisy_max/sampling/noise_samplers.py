"""How each kind of noise is drawn: the density and the lattice that it lies on, found by :func:`drawing`."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import singledispatch
from typing import TYPE_CHECKING

import numpy as np

from privselect._util.validation import format_value
from privselect.errors import ParameterError
from privselect.mechanisms import DiscreteGaussian, DiscreteLaplace, Gaussian, Laplace
from privselect.noisy_max.accounting.densities import Shape
from privselect.noisy_max.index_only_noise import Exponential, Gumbel
from privselect.noisy_max.sampling.rejection_sampler import Staircase, staircase
from privselect.noisy_max.sampling.sample_grid import Lattice, Line, WholeNumbers

if TYPE_CHECKING:
    from numpy.typing import NDArray

_BROADEST = 1e11  # whole noise: all that is drawn stays below 2^53


@dataclass(frozen=True, slots=True)
class Drawing:
    """Noise of a shape, broadened by ``scale``."""

    shape: Shape
    scale: float
    whole: bool = False

    @property
    def staircase(self) -> Staircase:
        """The exact sampler: on the line in units of ``scale``, on the whole numbers as they are."""
        lattice: Lattice = WholeNumbers(self.scale) if self.whole else Line()
        return staircase(self.shape, lattice)

    def unit(self, sensitivity: Fraction) -> Fraction:
        """What the sampler's 1 means on the scores."""
        return sensitivity if self.whole else sensitivity * Fraction(self.scale)

    def in_floats(self, shape: tuple[int, ...]) -> NDArray[np.float64]:
        """In units of ``scale``, by numpy's generator: rounded, so without the guarantee."""
        generator = np.random.default_rng()
        if self.shape is Shape.NORMAL:
            return generator.standard_normal(shape)
        if self.shape is Shape.LAPLACE:
            return generator.laplace(size=shape)
        if self.shape is Shape.GUMBEL:
            return generator.gumbel(size=shape)
        return generator.standard_exponential(shape)


@singledispatch
def drawing(noise: object) -> Drawing:
    """How this noise is drawn; refused where it cannot be drawn exactly."""
    kinds = "gaussian, laplace, gumbel, exponential, discrete_gaussian or discrete_laplace"
    raise ParameterError(
        f"`noise` must be {kinds} to be drawn exactly, got {format_value(noise)}; a density given by functions can be accounted for, not drawn"
    )


@drawing.register
def _(noise: Gaussian) -> Drawing:
    return Drawing(Shape.NORMAL, noise.sigma)


@drawing.register
def _(noise: Laplace) -> Drawing:
    return Drawing(Shape.LAPLACE, noise.scale)


@drawing.register
def _(noise: Gumbel) -> Drawing:
    return Drawing(Shape.GUMBEL, noise.scale)


@drawing.register
def _(noise: Exponential) -> Drawing:
    return Drawing(Shape.EXPONENTIAL, noise.scale)


@drawing.register
def _(noise: DiscreteGaussian) -> Drawing:
    return Drawing(Shape.NORMAL, noise.sigma, whole=True)


@drawing.register
def _(noise: DiscreteLaplace) -> Drawing:
    if noise.scale > _BROADEST:
        raise ParameterError(
            f"`noise` on the whole numbers can be drawn up to a scale of {_BROADEST:g}, got {format_value(noise)}; laplace has no such limit"
        )
    return Drawing(Shape.LAPLACE, noise.scale, whole=True)
