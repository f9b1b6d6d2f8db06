r"""Exact sampling: draw a uniform point under a staircase, and accept it if it lies under the weights.

The staircase lies above the weights w(k), relative to w(mode) = 1, with heights in integer multiples of 2^-bits. There is one stair per
k near the mode, wider stairs further out, and an infinite tail of stairs of equal length whose heights halve. A point under it is a k
and a height y. Accepting it if y < w(k) gives k with probability exactly proportional to w(k). No normalizer is needed.

There is no rounding. The point consists of integers: y lies in an interval [y, y+1) 2^-e, and w(k) in an enclosure. While the two
overlap, more bits of y are drawn and w(k) is computed to more digits. Each stair also has a height below all of its weights, so most
draws do not evaluate a weight.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from privselect._util.random_bits import uniform_below

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from privselect._util.random_bits import Entropy
    from privselect.counts.sampling.pmf_ratios import PmfWeights

_HEIGHT_BITS = 128  # of a height, at least
_GUARD_BITS = 64  # extra bits while walking from weight to weight; each stair loses less than one bit
_MAX_SINGLE_STAIRS = 4096  # largest number of stairs of one k on each side
_NEGLIGIBLE_BITS = 88  # stop when less than 2^-88 of the mass is left
_FIRST_DIGITS = 12  # of the first enclosure of a weight


class Stair(NamedTuple):
    """Stair over start <= k < start + length: every weight is at most ``height`` units and at least ``certain`` units."""

    start: int
    length: int
    height: int
    certain: int


class Sampler:
    """Sampler for weights under a staircase. It stores the stairs, never a drawn value."""

    def __init__(self, stairs: Iterable[Stair], weights: PmfWeights | None = None, tail: Stair | None = None, bits: int = 0) -> None:
        self._weights, self._tail, self._bits = weights, tail, bits
        self._stairs = [stair for stair in stairs if stair.height > 0]
        areas = [stair.length * stair.height for stair in self._stairs]
        if tail is not None:
            areas.append(2 * tail.length * tail.height)  # 1 + 1/2 + 1/4 + ...
        self._cumulative_areas = list(accumulate(areas))

    @classmethod
    def of_weights(cls, weights: Iterable[tuple[int, int]]) -> Sampler:
        """Create a sampler from pairs (value, integer weight)."""
        return cls(Stair(k, 1, weight, weight) for k, weight in weights)

    @classmethod
    def under(cls, weights: PmfWeights) -> Sampler:
        """Create a sampler for the weights of a law of K."""
        mode = weights.mode()
        # A heavy tail has tiny weights far out: the unit must be finer than all relevant weights, for stairs of any length.
        scale = weights.halving_length(mode + 1) if weights.last is None else weights.last
        bits = _HEIGHT_BITS + 2 * scale.bit_length()
        right, left = list(_single_stairs_up(weights, mode, bits)), list(_single_stairs_down(weights, mode - 1, bits))
        broad, tail = _broad_stairs_up(weights, mode + len(right), bits)
        return cls([*right, *left, *broad, *_broad_stairs_down(weights, mode - 1 - len(left), bits)], weights, tail, bits)

    def draw(self, entropy: Entropy) -> int:
        """Draw one k with probability exactly proportional to its weight."""
        ends, tail = self._cumulative_areas, self._tail
        while True:
            point = uniform_below(ends[-1], entropy)
            place = bisect_right(ends, point)
            if tail is not None and place == len(self._stairs):
                k, y, bits = self._point_under(tail, entropy)
            else:
                start, _, height, certain = self._stairs[place]
                offset, y = divmod(point - (ends[place - 1] if place else 0), height)
                k, bits = start + offset, self._bits
                if y < certain:
                    return k
            if self._is_under(k, y, bits, entropy):
                return k

    def _point_under(self, tail: Stair, entropy: Entropy) -> tuple[int, int, int]:
        """Draw a uniform point under the tail; return k and the height as y and bits: y 2^-bits."""
        halvings = 0
        while entropy.getrandbits(1):
            halvings += 1
        k = tail.start + halvings * tail.length + uniform_below(tail.length, entropy)
        return k, uniform_below(tail.height, entropy), self._bits + halvings

    def _is_under(self, k: int, y: int, bits: int, entropy: Entropy) -> bool:
        """Return whether a height uniform in [y, y+1) 2^-bits is below w(k); further bits are drawn on demand."""
        if self._weights is None:
            return False  # integer weights: a point is under the weight or above it
        digits = _FIRST_DIGITS
        while True:
            low, high = self._weights.weight(k, bits, digits)
            if y < low:
                return True
            if y >= high:
                return False
            digits *= 2
            more = max(0, 4 * digits - y.bit_length())  # the height gets slightly finer than the weight
            if more:
                y, bits = y << more | entropy.getrandbits(more), bits + more


def _single_stairs_up(weights: PmfWeights, mode: int, bits: int) -> Iterator[Stair]:
    """Yield stairs of one k each from the mode upwards, by exact ratios, rounded outward."""
    low = high = 1 << bits + _GUARD_BITS
    for k in range(mode, mode + _MAX_SINGLE_STAIRS):
        yield _single_stair(k, low, high)
        if k == weights.last or high >> _GUARD_BITS + bits - _NEGLIGIBLE_BITS == 0:
            return
        top, bottom = weights.ratio(k)
        low, high = low * top // bottom, -(-high * top // bottom)


def _single_stairs_down(weights: PmfWeights, start: int, bits: int) -> Iterator[Stair]:
    low = high = 1 << bits + _GUARD_BITS
    for k in range(start, max(start - _MAX_SINGLE_STAIRS, weights.first - 1), -1):
        top, bottom = weights.ratio(k)
        low, high = low * bottom // top, -(-high * bottom // top)
        yield _single_stair(k, low, high)
        if high >> _GUARD_BITS + bits - _NEGLIGIBLE_BITS == 0:
            return


def _single_stair(k: int, low: int, high: int) -> Stair:
    return Stair(k, 1, -(-high >> _GUARD_BITS), low >> _GUARD_BITS)


def _broad_stairs_up(weights: PmfWeights, start: int, bits: int) -> tuple[list[Stair], Stair | None]:
    """Return wide stairs from ``start`` upwards over falling weights, and the tail after them."""
    stairs: list[Stair] = []
    last = weights.last
    if last is not None and start > last:
        return stairs, None
    k, length, (smallest, height) = start, 1, weights.weight(start, bits, _FIRST_DIGITS)
    while True:
        reach = weights.halving_length(k) if last is None else last - k + 1
        if height * reach >> bits - _NEGLIGIBLE_BITS == 0:
            break
        length = _stair_length(weights, k, length, reach)
        if last is not None and k + length > last:
            return [*stairs, Stair(k, length, height, 0)], None
        smallest, next_height = weights.weight(k + length, bits, _FIRST_DIGITS)
        stairs.append(Stair(k, length, height, smallest))
        k, height = k + length, next_height
    if last is None:
        return stairs, Stair(k, reach, height, 0)
    return [*stairs, Stair(k, reach, height, 0)], None


def _broad_stairs_down(weights: PmfWeights, start: int, bits: int) -> list[Stair]:
    """Return wide stairs from ``start`` downwards over falling weights; the last one ends at the first k."""
    stairs: list[Stair] = []
    if start < weights.first:
        return stairs
    k, length, height = start, 1, weights.weight(start, bits, _FIRST_DIGITS)[1]
    while True:
        reach = k - weights.first + 1
        length = _stair_length(weights, k, length, -reach) if height * reach >> bits - _NEGLIGIBLE_BITS else reach
        if length == reach:
            return [*stairs, Stair(weights.first, reach, height, 0)]
        smallest, next_height = weights.weight(k - length, bits, _FIRST_DIGITS)
        stairs.append(Stair(k - length + 1, length, height, smallest))
        k, height = k - length, next_height


def _stair_length(weights: PmfWeights, k: int, length: int, room: int) -> int:
    """Return a length, at most ``room``, over which the weight falls by a factor of about 3/4; negative room means downwards."""
    way = 1 if room > 0 else -1
    length = min(2 * length, abs(room))
    while length > 1 and weights.log_fall(k, way * length) > 0.35:
        length //= 2
    return length
