"""The median, by propose-test-release (Dwork and Lei 2009): little noise where the records in the middle lie close together."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from privselect._util.validation import OPEN_UNIT, REAL, Range, as_float_array, check_number, format_value
from privselect.errors import ParameterError
from privselect.mechanisms import Gaussian
from privselect.mechanisms.neighbours import ADD_REMOVE
from privselect.regression.byte_bits import ByteBits
from privselect.regression.gaussian_sampler import FLOATS, SEEDED, normals_from
from privselect.regression.ptr.distance_test import Noise, check_noise, threshold
from privselect.regression.ptr.ptr_protocol import NoAnswer, Proposal

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from privselect.regression.gaussian_sampler import Normals
    from privselect.regression.ptr.propose_test_release import ProposeTestRelease

    Floats = NDArray[np.float64]


@dataclass(frozen=True)
class MedianAnswer:
    """What :func:`private_median` releases: ``value`` is None where there is no answer. ``mechanism`` is what it leaks, in either case."""

    value: float | None
    mechanism: ProposeTestRelease
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class PrivateMedian(Proposal["Floats", Literal[True], float]):
    """The median of numbers within [low, high], proposed to move by at most ``step`` when one record is added or removed.

    Of n sorted numbers ``x_1 <= ... <= x_n`` the median is ``x_ceil(n/2)``, the lower one where there are two. Beyond the data the bounds
    stand for records: ``x_i`` is ``low`` for i < 1 and ``high`` for i > n. So the median of no numbers is ``low``.

    ``test`` is the noise on :meth:`distance`, ``target`` the noise on the median, in units of ``step``. The data is good where its own
    local sensitivity is at most ``step``, which is where the distance is 1 or more; then the medians of it and of any neighbour are at
    most ``step`` apart, and the target covers the release in both orders. A distance of 0 passes with chance at most ``failure``.

    All methods but :meth:`sorted_within` take what that one returns.
    """

    test: Noise
    target: Gaussian
    low: float
    high: float
    step: float

    def __post_init__(self) -> None:
        for name in ("low", "high"):
            object.__setattr__(self, name, check_number(name, getattr(self, name), REAL))
        width = self.high - self.low
        if not 0.0 < width < math.inf:
            raise ParameterError(f"`low` must be below `high`, and not by more than floats can tell, got {self.low} and {self.high}")
        # From the width on it is no proposal: no median moves further.
        object.__setattr__(self, "step", check_number("step", self.step, Range(0.0, width, low_open=True)))
        check_noise("test", self.test)
        if not isinstance(self.target, Gaussian) or self.target.neighbours != ADD_REMOVE:
            raise ParameterError(f"`target` must be gaussian(sigma=..., neighbours=add_remove), got {format_value(self.target)}")
        check_number("failure", self.failure, OPEN_UNIT)
        super().__post_init__()
        threshold(self.test, self.failure)  # refused at once where there is none

    def sorted_within(self, values: ArrayLike) -> Floats:
        """The numbers, clipped to the bounds, in ascending order."""
        try:
            numbers = as_float_array("values", values, "")
        except ParameterError:
            numbers = np.array(math.nan)
        if numbers.ndim != 1 or not np.isfinite(numbers).all():
            raise ParameterError("`values` must be a list of finite numbers, got something else")  # no more is said: they are private
        return np.sort(np.clip(numbers, self.low, self.high))

    def median(self, data: Floats) -> float:
        """The lower one of the two where n is even."""
        return self._at(data, -(-len(data) // 2))

    def sensitivity(self, data: Floats) -> Fraction:
        """How far adding or removing one record can move the median: the gap in the middle.

        Claim: ``x_(m+1) - x_m`` with ``m = floor(n/2)``.

        Proof: the median stands at one end of that gap, at the upper one where n is odd and at the lower one where n is even. Removing a
        record leaves it there or moves it to the other end. Adding v moves it to v, or to the end of the gap that is nearest to v. So it
        stays in the gap, and reaches the other end by v = low or v = high.
        """
        middle = len(data) // 2
        return Fraction(self._at(data, middle + 1)) - Fraction(self._at(data, middle))

    def distance(self, data: Floats) -> int:
        """How many records must be added or removed until the local sensitivity exceeds ``step``; 0 where it does already.

        Claim: let ``r_i`` be the number of records above ``x_i + step``, and i the first of 0, ..., n with ``r_i <= i``. Then the distance
        is ``n - 2i`` where ``r_i = i``, and ``n - 2i + 1`` elsewhere. See docs/derivations/median.md for the proof. One record moves it
        by at most 1, as it does any distance.
        """
        n = len(data)
        first = bisect_left(range(n), 1, key=lambda i: int(self._above(data, i) <= i))  # n itself is one
        return n - 2 * first + (self._above(data, first) < first)

    def propose(self, data: Floats, source: Normals) -> Literal[True] | None:
        """That the test has passed: the noisy distance has reached the threshold."""
        noisy = self.distance(data) + self.test.sample(ByteBits(source.read))
        return True if noisy >= threshold(self.test, self.failure) else None

    def release(self, data: Floats, plan: Literal[True], source: Normals) -> float:  # noqa: ARG002 - it says no more than its type
        """The median, with noise."""
        return self.median(data) + self.step * self.target.sigma * float(source.draw(1)[0])

    def _at(self, data: Floats, place: int) -> float:
        if place < 1:
            return self.low
        return float(data[place - 1]) if place <= len(data) else self.high

    def _above(self, data: Floats, place: int) -> int:
        """How many records lie more than a step above ``x_place``; in fractions, as a rounded sum may fall on the wrong side of one."""
        end = Fraction(self._at(data, place)) + Fraction(self.step)
        return len(data) - bisect_right(range(len(data)), end, key=lambda index: Fraction(float(data[index])))


def private_median(  # noqa: PLR0913 - a number each, by name
    values: ArrayLike,
    *,
    low: float,
    high: float,
    step: float,
    sigma: float,
    test: Noise,
    failure: float,
    insecure_seed: Any = None,
) -> MedianAnswer:
    """The median with Gaussian noise of deviation ``sigma * step``, or no answer where a record may move it by more than ``step``.

    ``values`` are clipped to [low, high]; all else must be chosen without a look at them. ``test`` is DiscreteLaplace or DiscreteGaussian
    noise on the distance to a data set whose median may move further, ``failure`` the chance that such a data set is answered.
    The answer's ``mechanism`` says what it leaks, for neighbours with one record more or less.
    """
    target = Gaussian(sigma=sigma, neighbours=ADD_REMOVE)
    proposal = PrivateMedian(test=test, target=target, failure=failure, low=low, high=high, step=step)
    source = normals_from(insecure_seed)
    answer = proposal.answer(proposal.sorted_within(values), source)
    notes = (FLOATS,) if insecure_seed is None else (FLOATS, SEEDED)
    return MedianAnswer(None if isinstance(answer, NoAnswer) else answer, proposal.mechanism, notes)
