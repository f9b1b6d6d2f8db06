r"""Noise drawn exactly, many at a time: a uniform point under a staircase, kept if it lies under the density.

The staircase stands over the density times ``height``: over each cell one step of a whole height that no density in it exceeds, and
past the last cell on either side an endless tail whose steps, one unit broad, halve in height (see :mod:`privselect.noisy_max.accounting.densities`
for why they stay above the density). A cell is chosen with probability proportional to its height by one uniform whole number
below the sum of all heights, whose rest is the whole part y of the point's own height; uniform bits give the box within the cell. So
a point is known to lie in a box times [y, y+1), uniformly. It is kept if all of that lies under the density, dropped if all lies above;
else the box is narrowed and y given more bits, both uniform still, as nothing but the old box has been looked at. For the same reason what
is left open of a kept point is uniform in its box, and may be drawn later. The law is therefore exactly that of the density; no
normaliser is needed, and no rounding enters: floats decide only where they are sure by a wide margin.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from privselect._util.random_bits import uniform_below
from privselect.counts.sampling.interval_arithmetic import Precision
from privselect.noisy_max.sampling.random_words import words

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from privselect._util.random_bits import Entropy
    from privselect.noisy_max.accounting.densities import Shape
    from privselect.noisy_max.sampling.sample_grid import Lattice, Place

    Floats = NDArray[np.float64]
    Wholes = NDArray[np.int64]

# A density in floats is right to 2^-40, relative. The ends of a box are exact, or a whole number over the scale with one rounding; an
# exponent of at most 60 in size has an error below 60 * 4 * 2^-53, and numpy's exp one of a few units of 2^-53. Where the exponent is
# larger, the density is below 2^-80, far below one step: then only the lowest part of a step counts, which floats leave open.
_SLACK = 2.0**-40
_LEAST = 2.0**-20  # of a step: floats never say that the lowest part [0, 1) of a step is empty, so what underflows is left open
_DIGITS = 20
_MORE = 32  # bits, and about 10 digits
_MORE_DIGITS = 12


@dataclass(frozen=True, slots=True, repr=False)
class Drawn:
    """Boxes as an array, and apart those that have been narrowed or lie in a tail, by their index. Secret: no repr."""

    at: Wholes
    apart: dict[int, Place]

    def __len__(self) -> int:
        return len(self.at)

    def place(self, index: int, lattice: Lattice) -> Place:
        """One of them, to be narrowed."""
        return self.apart.get(index) or lattice.place(int(self.at[index]))


class _Tail(NamedTuple):
    """Beyond the box ``edge``, upwards or downwards."""

    edge: int
    way: int
    height: int


class Staircase:
    """The staircase over one density; it holds no secret."""

    def __init__(self, shape: Shape, lattice: Lattice, point_bits: int = 32) -> None:
        """``point_bits`` and the lattice's bits fit together into 64; fewer of them leave more to be settled one by one."""
        self.shape, self.lattice, self._point_bits = shape, lattice, point_bits
        reach = [lattice.cells(_reach(shape, way, point_bits)) if way > 0 or not shape.one_sided else 0 for way in (-1, 1)]
        self._first = -reach[0]
        edges = np.arange(-reach[0], reach[1] + 1, dtype=np.int64) << lattice.place_bits
        density = shape.density(lattice.ends(edges)[0])
        highest = np.where(edges[:-1] >= 0, density[:-1], density[1:])
        sides = [(int(edges[-1]), 1, density[-1])] + ([] if shape.one_sided else [(int(edges[0]), -1, density[0])])
        per_unit = 1 << lattice.unit_bits - lattice.place_bits
        tops = np.append(highest, [2.0 * per_unit * top for _, _, top in sides])  # 1 + 1/2 + 1/4 + ...
        # Rounding up adds at most one to each step, 2 per_unit of them to a tail.
        self.height = int(((1 << point_bits) - len(highest) - 4 * per_unit) / float(tops.sum()) * (1.0 - 2.0**-30))
        self._tails = [_Tail(edge, way, self._whole(top)) for edge, way, top in sides]
        areas = [self._whole(top) for top in highest.tolist()] + [2 * per_unit * tail.height for tail in self._tails]
        self._ends = np.cumsum(areas, dtype=np.int64)
        if self.height < 1 or self._ends[-1] > 1 << point_bits:
            raise ArithmeticError("too few bits for so many steps")
        self._starts = np.append(0, self._ends[:-1])

    def _whole(self, top: float) -> int:
        """A whole height above ``height * top``, whatever the rounding of ``top``."""
        return math.floor(self.height * top * (1.0 + _SLACK)) + 1

    def draw(self, n: int, entropy: Entropy) -> Drawn:
        """``n`` independent draws."""
        at, apart, have = np.empty(n, dtype=np.int64), {}, 0
        while have < n:
            found = self._attempts((n - have) * 17 // 16 + 8, entropy)
            new = min(len(found), n - have)  # the first ones: which are kept does not depend on what they are
            at[have : have + new] = found.at[:new]
            apart.update({have + i: place for i, place in found.apart.items() if i < new})
            have += new
        return Drawn(at, apart)

    def _attempts(self, n: int, entropy: Entropy) -> Drawn:
        """Of ``n`` points those under the density."""
        word = words(n, entropy)
        point = (word >> np.uint64(64 - self._point_bits)).astype(np.int64)
        inside = point < self._ends[-1]
        point, word = point[inside], word[inside]
        step = np.searchsorted(self._ends, point, side="right")
        y = point - self._starts[step]
        at = ((self._first + step) << self.lattice.place_bits) + (word & np.uint64((1 << self.lattice.place_bits) - 1)).astype(np.int64)
        start, end = (self.height * self.shape.density(z) for z in self.lattice.ends(at))
        kept = y + 1 <= np.minimum(start, end) * (1.0 - _SLACK) - _LEAST
        dropped = y >= np.maximum(start, end) * (1.0 + _SLACK) + _LEAST
        beyond = step - (len(self._ends) - len(self._tails))
        settled: dict[int, Place] = {}
        for i in np.flatnonzero(~(kept | dropped) | (beyond >= 0)).tolist():
            place = self._in_tail(beyond[i], entropy) if beyond[i] >= 0 else self._settled(int(at[i]), int(y[i]), 0, entropy)
            kept[i] = place is not None
            if place is not None:
                settled[i] = place
        rank = np.cumsum(kept) - 1
        return Drawn(at[kept], {int(rank[i]): place for i, place in settled.items()})

    def _in_tail(self, which: int, entropy: Entropy) -> Place | None:
        """A uniform point under a tail, if it is kept."""
        tail = self._tails[which]
        halvings = 0
        while entropy.getrandbits(1):
            halvings += 1
        out = (halvings << self.lattice.unit_bits) + entropy.getrandbits(self.lattice.unit_bits)
        at = tail.edge + out if tail.way > 0 else tail.edge - 1 - out
        return self._settled(at, uniform_below(tail.height, entropy), halvings, entropy)

    def _settled(self, at: int, y: int, bits: int, entropy: Entropy) -> Place | None:
        """The place of a point in the box ``at`` whose height is in [y, y+1) 2^-bits, if it lies under the density."""
        place, digits = self.lattice.place(at), _DIGITS
        while True:
            precision = Precision.of(digits)
            both = [self.shape.enclosed(z, precision) for z in self.lattice.exact_ends(place)]  # monotone: no box has 0 inside
            scale = precision.whole(self.height << bits)
            low, high = precision.times((min(low for low, _ in both), max(high for _, high in both)), scale)
            if y + 1 <= low:
                return place
            if y >= high:
                return None
            place.narrow(entropy)
            y, bits, digits = y << _MORE | entropy.getrandbits(_MORE), bits + _MORE, digits + _MORE_DIGITS


def _reach(shape: Shape, way: int, point_bits: int) -> int:
    """So many units that what is left beyond is hardly ever met."""
    units = 1
    while shape.density(np.array(float(way * units))) > 2.0 ** (-0.75 * point_bits):
        units += 1
    return units


@lru_cache(maxsize=32)
def staircase(shape: Shape, lattice: Lattice) -> Staircase:
    """The one for this density on this lattice."""
    return Staircase(shape, lattice)
