"""Grids for noise samples: the integers, or the real line divided into narrow boxes that can be refined."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from privselect._util.random_bits import Entropy

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]

_REFINE_BITS = 32  # bits that one refinement adds
_CELL_BITS = 6  # about 2^6 cells in one unit of the noise


@dataclass(slots=True, repr=False)
class Box:
    """A number known to lie in [index, index + 1) 2^-bits, or the integer ``index`` itself. Secret, so it has no repr."""

    index: int
    bits: int
    integer: bool

    @property
    def start(self) -> Fraction:
        """The smallest possible value."""
        return Fraction(self.index, 1 << self.bits)

    @property
    def end(self) -> Fraction:
        """The upper bound of the box, which the value does not reach."""
        return self.start if self.integer else Fraction(self.index + 1, 1 << self.bits)

    def refine(self, entropy: Entropy) -> None:
        """Draw further bits of a real number; leave an integer unchanged."""
        if not self.integer:
            self.index, self.bits = self.index << _REFINE_BITS | entropy.getrandbits(_REFINE_BITS), self.bits + _REFINE_BITS


@dataclass(frozen=True, slots=True)
class RealGrid:
    """The real line in boxes [index, index + 1) 2^-(cell_bits + box_bits), in units of the noise. Exact: |index| is below 2^53."""

    box_bits: int = 32  # of a box in its cell
    cell_bits: int = _CELL_BITS  # of a cell in its unit

    integer = False

    @property
    def unit_bits(self) -> int:
        """The number of bits of a box index within one unit."""
        return self.box_bits + self.cell_bits

    def cell_count(self, units: int) -> int:
        """Return how many cells cover ``units`` units."""
        return units << self.cell_bits

    def bounds(self, index: Integers) -> tuple[Floats, Floats]:
        """Return the lower and upper bounds of many boxes, in units of the noise."""
        scale = np.float64(2.0**-self.unit_bits)
        return index * scale, (index + 1) * scale

    def box(self, index: int) -> Box:
        """Return a box that can be refined."""
        return Box(index, self.unit_bits, integer=False)

    def exact_bounds(self, box: Box) -> tuple[Fraction, Fraction]:
        """Return the exact bounds of one box, in units of the noise."""
        return box.start, box.end


@dataclass(frozen=True, slots=True)
class IntegerGrid:
    """The integers, with ``scale`` of them in one unit of the noise. Each integer is a box; a cell holds a power of two of them."""

    scale: float

    integer = True

    @property
    def box_bits(self) -> int:
        """The number of bits of an integer within its cell."""
        return max(0, self.unit_bits - 1 - _CELL_BITS)

    @property
    def unit_bits(self) -> int:
        """The number of bits of the smallest power of two above ``scale``."""
        return max(0, math.frexp(self.scale)[1])

    def cell_count(self, units: int) -> int:
        """Return how many cells cover ``units`` units."""
        return math.ceil(units * Fraction(self.scale) / (1 << self.box_bits))

    def bounds(self, index: Integers) -> tuple[Floats, Floats]:
        """Return the lower and upper bounds of many integers, which are equal, in units of the noise."""
        with np.errstate(over="ignore"):
            z = index / self.scale
        return z, z

    def box(self, index: int) -> Box:
        """Return one integer as a box."""
        return Box(index, 0, integer=True)

    def exact_bounds(self, box: Box) -> tuple[Fraction, Fraction]:
        """Return the exact bounds of one integer, in units of the noise."""
        z = box.start / Fraction(self.scale)
        return z, z


Grid = RealGrid | IntegerGrid
