r"""Exact rejection sampling of noise, many samples at a time.

A uniform point is drawn under a staircase that lies above the density, and kept if it lies under the density.

**Staircase.** It lies above the density times ``height``. Each cell has one step: an integer that is larger than every density value in
the cell. Beyond the last cell on either side follows an infinite tail of steps, one unit wide, whose heights halve.

**Proposal.** One uniform integer below the sum of all step heights selects a cell with probability proportional to its height. The
remainder of that integer is the integer part y of the point's height. Uniform bits select the box within the cell. The point is then
uniform in the box times [y, y+1).

**Decision.** The point is kept if its whole region lies under the density, and rejected if the whole region lies above. Otherwise the box
is refined and y receives more bits. Both remain uniform, because only the larger box has been examined. For the same reason the
undetermined part of a kept point is uniform in its box and may be drawn later.

The samples therefore follow the density exactly. No normalising constant is needed and no rounding enters: floats decide only when they
are certain by a wide margin.

**Densities.** Each density is given in units of the noise, up to a factor: its maximum is 1, at 0, and it decreases on both sides. Its
logarithm is concave, and from 1 upwards (from -1 downwards) each further unit at least halves it. The tails of the staircase rely on
both properties. One unit multiplies exp(-z^2/2) by exp(-z - 1/2) < 1/2, and exp(-|z|) by 1/e. It multiplies Gumbel's exp(1 - z - e^-z) by
exp(-1 + e^-z (1 - 1/e)) <= exp(-0.76) < 1/2 upwards from z = 1, and by exp(1 - e^-z (e - 1)) <= exp(-3.6) downwards from z = -1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from privselect._util.random_bits import uniform_below
from privselect.counts.sampling.interval_arithmetic import IntervalArithmetic

if TYPE_CHECKING:
    from fractions import Fraction

    from numpy.typing import NDArray

    from privselect._util.random_bits import Entropy
    from privselect.counts.sampling.interval_arithmetic import Enclosure
    from privselect.noisy_max.sampling.sample_grid import Box, Grid

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]

# The relative error of a float density is below 2^-40. Box bounds are exact, or an integer over the scale with one rounding. An exponent
# of at most 60 in size has an error below 60 * 4 * 2^-53, and numpy's exp adds a few units of 2^-53. With a larger exponent the density is
# below 2^-80, far below one step; then only the lowest part of a step matters, which floats never decide.
_SLACK = 2.0**-40
_UNDECIDED = 2.0**-20  # of a step: floats never reject the lowest part [0, 1) of a step, so underflow stays undecided
_DIGITS = 20
_MORE_BITS = 32  # about 10 digits
_MORE_DIGITS = 12
_WORDS_PER_CALL = 1024  # keeps sources fast that hold their pool as one large integer


class Density(Enum):
    """The density of a noise distribution in units of its scale, with maximum 1."""

    NORMAL = "exp(-z^2/2)"
    LAPLACE = "exp(-|z|)"
    EXPONENTIAL = "exp(-z) for z >= 0"
    GUMBEL = "exp(1 - z - exp(-z))"

    @property
    def one_sided(self) -> bool:
        """Whether all mass lies at z >= 0."""
        return self is Density.EXPONENTIAL

    def density(self, z: Floats) -> Floats:
        """Evaluate the density in floats."""
        with np.errstate(over="ignore", under="ignore"):
            if self is Density.NORMAL:
                return np.asarray(np.exp(-0.5 * (z * z)))
            if self is Density.GUMBEL:
                return np.asarray(np.exp(1.0 - z - np.exp(-z)))
            return np.asarray(np.exp(-np.abs(z)))

    def enclosure(self, z: Fraction, arithmetic: IntervalArithmetic) -> Enclosure:
        """Return decimal lower and upper bounds on the density."""
        if self is Density.NORMAL:
            return arithmetic.exp(arithmetic.rational(-z * z / 2))
        if self is Density.GUMBEL:
            return arithmetic.exp(arithmetic.minus(arithmetic.rational(1 - z), arithmetic.exp(arithmetic.rational(-z))))
        return arithmetic.exp(arithmetic.rational(-abs(z)))


@dataclass(frozen=True, slots=True, repr=False)
class NoiseSamples:
    """Samples as box indices; ``refined`` holds the samples that were refined or lie in a tail. Secret, so it has no repr."""

    index: Integers
    refined: dict[int, Box]

    def __len__(self) -> int:
        return len(self.index)

    def box(self, sample: int, grid: Grid) -> Box:
        """Return the box of one sample, which can be refined."""
        return self.refined.get(sample) or grid.box(int(self.index[sample]))


class _Tail(NamedTuple):
    """The infinite staircase beyond box ``edge``, in direction +1 or -1."""

    edge: int
    direction: int
    height: int


class RejectionSampler:
    """A sampler for one density on one grid. It holds no secret."""

    def __init__(self, shape: Density, grid: Grid, point_bits: int = 32) -> None:
        """Build the staircase.

        ``point_bits`` and the grid's bits together are at most 64. Fewer point bits leave more points to be decided one by one.
        """
        self.shape, self.grid, self._point_bits = shape, grid, point_bits
        reach = [grid.cell_count(_reach(shape, way, point_bits)) if way > 0 or not shape.one_sided else 0 for way in (-1, 1)]
        self._first = -reach[0]
        edges = np.arange(-reach[0], reach[1] + 1, dtype=np.int64) << grid.box_bits
        density = shape.density(grid.bounds(edges)[0])
        highest = np.where(edges[:-1] >= 0, density[:-1], density[1:])
        sides = [(int(edges[-1]), 1, density[-1])] + ([] if shape.one_sided else [(int(edges[0]), -1, density[0])])
        per_unit = 1 << grid.unit_bits - grid.box_bits
        tops = np.append(highest, [2.0 * per_unit * top for _, _, top in sides])  # 1 + 1/2 + 1/4 + ...
        # Rounding up adds at most 1 to each step, and a tail counts as 2 per_unit steps.
        self.height = int(((1 << point_bits) - len(highest) - 4 * per_unit) / float(tops.sum()) * (1.0 - 2.0**-30))
        self._tails = [_Tail(edge, way, self._step_height(top)) for edge, way, top in sides]
        areas = [self._step_height(top) for top in highest.tolist()] + [2 * per_unit * tail.height for tail in self._tails]
        self._ends = np.cumsum(areas, dtype=np.int64)
        if self.height < 1 or self._ends[-1] > 1 << point_bits:
            raise ArithmeticError("`point_bits` is too small for the number of steps")
        self._starts = np.append(0, self._ends[:-1])

    def _step_height(self, top: float) -> int:
        """Return an integer above ``height * top``, whatever the rounding of ``top``."""
        return math.floor(self.height * top * (1.0 + _SLACK)) + 1

    def sample(self, n: int, entropy: Entropy) -> NoiseSamples:
        """Draw ``n`` independent samples."""
        index, refined, have = np.empty(n, dtype=np.int64), {}, 0
        while have < n:
            found = self._attempts((n - have) * 17 // 16 + 8, entropy)
            new = min(len(found), n - have)  # keep the first ones: the choice does not depend on the values
            index[have : have + new] = found.index[:new]
            refined.update({have + i: box for i, box in found.refined.items() if i < new})
            have += new
        return NoiseSamples(index, refined)

    def _attempts(self, n: int, entropy: Entropy) -> NoiseSamples:
        """Propose ``n`` points and return the accepted ones."""
        word = random_words(n, entropy)
        point = (word >> np.uint64(64 - self._point_bits)).astype(np.int64)
        inside = point < self._ends[-1]
        point, word = point[inside], word[inside]
        step = np.searchsorted(self._ends, point, side="right")
        y = point - self._starts[step]
        index = ((self._first + step) << self.grid.box_bits) + (word & np.uint64((1 << self.grid.box_bits) - 1)).astype(np.int64)
        start, end = (self.height * self.shape.density(z) for z in self.grid.bounds(index))
        kept = y + 1 <= np.minimum(start, end) * (1.0 - _SLACK) - _UNDECIDED
        rejected = y >= np.maximum(start, end) * (1.0 + _SLACK) + _UNDECIDED
        beyond = step - (len(self._ends) - len(self._tails))
        refined: dict[int, Box] = {}
        for i in np.flatnonzero(~(kept | rejected) | (beyond >= 0)).tolist():
            box = self._in_tail(beyond[i], entropy) if beyond[i] >= 0 else self._decide(int(index[i]), int(y[i]), 0, entropy)
            kept[i] = box is not None
            if box is not None:
                refined[i] = box
        rank = np.cumsum(kept) - 1
        return NoiseSamples(index[kept], {int(rank[i]): box for i, box in refined.items()})

    def _in_tail(self, which: int, entropy: Entropy) -> Box | None:
        """Draw a uniform point under a tail; return its box if it is accepted."""
        tail = self._tails[which]
        halvings = 0
        while entropy.getrandbits(1):
            halvings += 1
        out = (halvings << self.grid.unit_bits) + entropy.getrandbits(self.grid.unit_bits)
        index = tail.edge + out if tail.direction > 0 else tail.edge - 1 - out
        return self._decide(index, uniform_below(tail.height, entropy), halvings, entropy)

    def _decide(self, index: int, y: int, bits: int, entropy: Entropy) -> Box | None:
        """Return the box of a point with height in [y, y+1) 2^-bits if it lies under the density, else None."""
        box, digits = self.grid.box(index), _DIGITS
        while True:
            arithmetic = IntervalArithmetic.of(digits)
            both = [self.shape.enclosure(z, arithmetic) for z in self.grid.exact_bounds(box)]  # monotone: 0 is inside no box
            scale = arithmetic.integer(self.height << bits)
            low, high = arithmetic.times((min(low for low, _ in both), max(high for _, high in both)), scale)
            if y + 1 <= low:
                return box
            if y >= high:
                return None
            box.refine(entropy)
            y, bits, digits = y << _MORE_BITS | entropy.getrandbits(_MORE_BITS), bits + _MORE_BITS, digits + _MORE_DIGITS


def _reach(shape: Density, way: int, point_bits: int) -> int:
    """Return the number of units beyond which points are very rare."""
    units = 1
    while shape.density(np.array(float(way * units))) > 2.0 ** (-0.75 * point_bits):
        units += 1
    return units


@lru_cache(maxsize=32)
def cached_sampler(shape: Density, grid: Grid) -> RejectionSampler:
    """Return the sampler for this density on this grid, built once."""
    return RejectionSampler(shape, grid)


def random_words(n: int, entropy: Entropy) -> NDArray[np.uint64]:
    """Draw ``n`` uniform words of 64 bits."""
    full, rest = divmod(n, _WORDS_PER_CALL)
    sizes = [_WORDS_PER_CALL] * full + [rest] * (rest > 0)
    drawn = [entropy.getrandbits(64 * size).to_bytes(8 * size, "little") for size in sizes]
    return np.frombuffer(b"".join(drawn), dtype="<u8").astype(np.uint64, copy=False)


def random_integers(bound: int, n: int, entropy: Entropy) -> Integers:
    """Draw ``n`` uniform integers in [0, bound), for a bound of at most 2^62; values outside are drawn again."""
    bits = (bound - 1).bit_length()
    found = np.zeros(n, dtype=np.int64)
    missing = np.arange(n if bits else 0)
    while missing.size:
        found[missing] = (random_words(missing.size, entropy) >> np.uint64(64 - bits)).astype(np.int64)
        missing = missing[found[missing] >= bound]
    return found
