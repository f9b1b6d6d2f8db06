r"""Exact sampling: a uniform point under a staircase, kept if it lies under the weights.

The staircase stands over the weights w(k), relative to w(mode) = 1, in whole multiples of 2^-bits: one step per k near the mode,
broader ones further out, and past those an endless tail whose steps have one length and halve in height. A point under it
is a k and a height y; keeping it when y < w(k) gives k with probability exactly proportional to w(k). No normaliser is needed.

Nothing is rounded off. The point is drawn in whole numbers; y is known to lie in an interval [y, y+1) 2^-e and w(k) in
an enclosure, and while the two overlap, y is given more bits and w(k) more digits. Each step also has a height that all
its weights reach, so that hardly any draw evaluates a weight at all.
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

_BITS = 128  # of a height, at least
_GUARD = 64  # further bits while walking from one weight to the next, lost at less than one a step
_SINGLE = 4096  # steps of one k each, at most
_FAINT = 88  # walking, and laying broad steps, ends where less than 2^-88 is left
_DIGITS = 12  # a weight looked at is first enclosed this closely


class Stair(NamedTuple):
    """The stair over start <= k < start + length: no weight is above ``height`` units, none below ``sure``."""

    start: int
    length: int
    height: int
    sure: int


class Sampler:
    """Draws from weights under a staircase. It holds the stairs, never what was drawn."""

    def __init__(self, steps: Iterable[Stair], terms: PmfWeights | None = None, tail: Stair | None = None, bits: int = 0) -> None:
        self._terms, self._tail, self._bits = terms, tail, bits
        self._steps = [step for step in steps if step.height > 0]
        areas = [step.length * step.height for step in self._steps]
        if tail is not None:
            areas.append(2 * tail.length * tail.height)  # 1 + 1/2 + 1/4 + ...
        self._ends = list(accumulate(areas))

    @classmethod
    def of_weights(cls, weights: Iterable[tuple[int, int]]) -> Sampler:
        """For pairs of a value and its whole weight."""
        return cls(Stair(k, 1, weight, weight) for k, weight in weights)

    @classmethod
    def under(cls, terms: PmfWeights) -> Sampler:
        """For the weights of a law."""
        mode = terms.mode()
        # A heavy tail reaches far with tiny weights: the unit must be finer than any that matters, at any breadth of step.
        scale = terms.halving(mode + 1) if terms.last is None else terms.last
        bits = _BITS + 2 * scale.bit_length()
        right, left = list(_walk_up(terms, mode, bits)), list(_walk_down(terms, mode - 1, bits))
        broad, tail = _stairs_up(terms, mode + len(right), bits)
        return cls([*right, *left, *broad, *_stairs_down(terms, mode - 1 - len(left), bits)], terms, tail, bits)

    def draw(self, entropy: Entropy) -> int:
        """One k, with probability exactly proportional to its weight."""
        ends, tail = self._ends, self._tail
        while True:
            point = uniform_below(ends[-1], entropy)
            place = bisect_right(ends, point)
            if tail is not None and place == len(self._steps):
                k, y, bits = self._point_under(tail, entropy)
            else:
                start, _, height, sure = self._steps[place]
                offset, y = divmod(point - (ends[place - 1] if place else 0), height)
                k, bits = start + offset, self._bits
                if y < sure:
                    return k
            if self._is_under(k, y, bits, entropy):
                return k

    def _point_under(self, tail: Stair, entropy: Entropy) -> tuple[int, int, int]:
        """A uniform point under the tail: its k, and its height as y of 2^-bits."""
        halvings = 0
        while entropy.getrandbits(1):
            halvings += 1
        k = tail.start + halvings * tail.length + uniform_below(tail.length, entropy)
        return k, uniform_below(tail.height, entropy), self._bits + halvings

    def _is_under(self, k: int, y: int, bits: int, entropy: Entropy) -> bool:
        """Whether a height uniform in [y, y+1) 2^-bits is below w(k); its bits are drawn as they are needed."""
        if self._terms is None:
            return False  # whole weights: a point not surely under is not under
        digits = _DIGITS
        while True:
            low, high = self._terms.weight(k, bits, digits)
            if y < low:
                return True
            if y >= high:
                return False
            digits *= 2
            more = max(0, 4 * digits - y.bit_length())  # the height is known a little finer than the weight
            if more:
                y, bits = y << more | entropy.getrandbits(more), bits + more


def _walk_up(terms: PmfWeights, mode: int, bits: int) -> Iterator[Stair]:
    """Steps of one k each from the mode upwards, by the exact ratios, rounded outward."""
    low = high = 1 << bits + _GUARD
    for k in range(mode, mode + _SINGLE):
        yield _single(k, low, high)
        if k == terms.last or high >> _GUARD + bits - _FAINT == 0:
            return
        top, bottom = terms.ratio(k)
        low, high = low * top // bottom, -(-high * top // bottom)


def _walk_down(terms: PmfWeights, start: int, bits: int) -> Iterator[Stair]:
    low = high = 1 << bits + _GUARD
    for k in range(start, max(start - _SINGLE, terms.first - 1), -1):
        top, bottom = terms.ratio(k)
        low, high = low * bottom // top, -(-high * bottom // top)
        yield _single(k, low, high)
        if high >> _GUARD + bits - _FAINT == 0:
            return


def _single(k: int, low: int, high: int) -> Stair:
    return Stair(k, 1, -(-high >> _GUARD), low >> _GUARD)


def _stairs_up(terms: PmfWeights, start: int, bits: int) -> tuple[list[Stair], Stair | None]:
    """Broad steps from ``start`` upwards over falling weights, and the tail after them."""
    steps: list[Stair] = []
    last = terms.last
    if last is not None and start > last:
        return steps, None
    k, length, (least, height) = start, 1, terms.weight(start, bits, _DIGITS)
    while True:
        reach = terms.halving(k) if last is None else last - k + 1
        if height * reach >> bits - _FAINT == 0:
            break
        length = _suitable(terms, k, length, reach)
        if last is not None and k + length > last:
            return [*steps, Stair(k, length, height, 0)], None
        least, next_height = terms.weight(k + length, bits, _DIGITS)
        steps.append(Stair(k, length, height, least))
        k, height = k + length, next_height
    if last is None:
        return steps, Stair(k, reach, height, 0)
    return [*steps, Stair(k, reach, height, 0)], None


def _stairs_down(terms: PmfWeights, start: int, bits: int) -> list[Stair]:
    """Broad steps from ``start`` downwards over falling weights, the last one reaching to the first k."""
    steps: list[Stair] = []
    if start < terms.first:
        return steps
    k, length, height = start, 1, terms.weight(start, bits, _DIGITS)[1]
    while True:
        reach = k - terms.first + 1
        length = _suitable(terms, k, length, -reach) if height * reach >> bits - _FAINT else reach
        if length == reach:
            return [*steps, Stair(terms.first, reach, height, 0)]
        least, next_height = terms.weight(k - length, bits, _DIGITS)
        steps.append(Stair(k - length + 1, length, height, least))
        k, height = k - length, next_height


def _suitable(terms: PmfWeights, k: int, length: int, room: int) -> int:
    """A length, at most ``room``, over which the weight falls by a factor of about 3/4; negative room lies downwards."""
    way = 1 if room > 0 else -1
    length = min(2 * length, abs(room))
    while length > 1 and terms.fall(k, way * length) > 0.35:
        length //= 2
    return length
