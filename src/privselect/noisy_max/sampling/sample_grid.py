"""Where noise can lie: on the whole numbers, or anywhere, known as one of many narrow boxes that can be made narrower."""

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
    Wholes = NDArray[np.int64]

_MORE = 32  # bits by which a box is narrowed at once
_CELLS = 6  # about 2^6 cells to a unit of the noise


@dataclass(slots=True, repr=False)
class Place:
    """A number known to lie in [at, at + 1) 2^-bits; a whole number is ``at`` itself. It is secret: it has no repr."""

    at: int
    bits: int
    whole: bool

    @property
    def start(self) -> Fraction:
        """The least that it can be."""
        return Fraction(self.at, 1 << self.bits)

    @property
    def end(self) -> Fraction:
        """Where its box ends."""
        return self.start if self.whole else Fraction(self.at + 1, 1 << self.bits)

    def narrow(self, entropy: Entropy) -> None:
        """Draw more of its bits, if it has any."""
        if not self.whole:
            self.at, self.bits = self.at << _MORE | entropy.getrandbits(_MORE), self.bits + _MORE


@dataclass(frozen=True, slots=True)
class Line:
    """The real line: a box is [at, at + 1) 2^-(cell_bits + place_bits) in units of the noise. No rounding: |at| is below 2^53."""

    place_bits: int = 32  # of a box in its cell
    cell_bits: int = _CELLS  # of a cell in its unit

    whole = False

    @property
    def unit_bits(self) -> int:
        """Bits of a box in its unit."""
        return self.place_bits + self.cell_bits

    def cells(self, units: int) -> int:
        """So many that they reach ``units`` far."""
        return units << self.cell_bits

    def ends(self, at: Wholes) -> tuple[Floats, Floats]:
        """Of boxes, in units of the noise."""
        scale = np.float64(2.0**-self.unit_bits)
        return at * scale, (at + 1) * scale

    def place(self, at: int) -> Place:
        """A box that can be narrowed."""
        return Place(at, self.unit_bits, whole=False)

    def exact_ends(self, place: Place) -> tuple[Fraction, Fraction]:
        """Of one box, in units of the noise."""
        return place.start, place.end


@dataclass(frozen=True, slots=True)
class WholeNumbers:
    """The whole numbers, of which ``scale`` make a unit of the noise: each is its own box, and cells are of a power of two of them."""

    scale: float

    whole = True

    @property
    def place_bits(self) -> int:
        """Of a whole number in its cell."""
        return max(0, self.unit_bits - 1 - _CELLS)

    @property
    def unit_bits(self) -> int:
        """Of a whole number in a run of at least ``scale``, the least power of two above it."""
        return max(0, math.frexp(self.scale)[1])

    def cells(self, units: int) -> int:
        """So many that they reach ``units`` far."""
        return math.ceil(units * Fraction(self.scale) / (1 << self.place_bits))

    def ends(self, at: Wholes) -> tuple[Floats, Floats]:
        """Of boxes, in units of the noise."""
        with np.errstate(over="ignore"):
            z = at / self.scale
        return z, z

    def place(self, at: int) -> Place:
        """A whole number."""
        return Place(at, 0, whole=True)

    def exact_ends(self, place: Place) -> tuple[Fraction, Fraction]:
        """Of one whole number, in units of the noise."""
        z = place.start / Fraction(self.scale)
        return z, z


Lattice = Line | WholeNumbers
