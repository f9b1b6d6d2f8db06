"""Private median by propose-test-release (Dwork and Lei 2009): little noise if the middle records lie close together."""

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
from privselect.regression.noise_source import FLOATING_POINT_NOTE, INSECURE_SEED_NOTE, make_noise_source
from privselect.regression.ptr.distance_test import Noise, check_noise, threshold
from privselect.regression.ptr.propose_test_release import NoAnswer, PTRProtocol

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from privselect.regression.noise_source import NoiseSource
    from privselect.regression.ptr.propose_test_release import ProposeTestRelease

    Floats = NDArray[np.float64]


@dataclass(frozen=True)
class MedianAnswer:
    """Result of :func:`private_median`: ``value`` is None if there is no answer. ``mechanism`` covers both outcomes."""

    value: float | None
    mechanism: ProposeTestRelease
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class PrivateMedian(PTRProtocol["Floats", Literal[True], float]):
    """Median of numbers in [low, high], under the proposal that adding or removing one record moves it by at most ``step``.

    The median of n sorted numbers ``x_1 <= ... <= x_n`` is ``x_ceil(n/2)``, the lower one of two. Positions beyond the data hold the
    bounds: ``x_i`` is ``low`` for i < 1 and ``high`` for i > n. So the median of no numbers is ``low``.

    ``test`` is the noise on :meth:`distance`, and ``target`` the noise on the median in units of ``step``. The data is good if its local
    sensitivity is at most ``step``, which means a distance of at least 1. Then its median and that of any neighbour differ by at most
    ``step``, and the target covers the release in both orders. A distance of 0 passes with probability at most ``failure``.

    All methods except :meth:`clip_and_sort` take the array that :meth:`clip_and_sort` returns.
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
            raise ParameterError(f"`low` must be below `high`, with a finite difference, got {self.low} and {self.high}")
        # No median moves by more than the width, so a larger step would not be a proposal.
        object.__setattr__(self, "step", check_number("step", self.step, Range(0.0, width, low_open=True)))
        check_noise("test", self.test)
        if not isinstance(self.target, Gaussian) or self.target.neighbours != ADD_REMOVE:
            raise ParameterError(f"`target` must be gaussian(sigma=..., neighbours=add_remove), got {format_value(self.target)}")
        check_number("failure", self.failure, OPEN_UNIT)
        super().__post_init__()
        threshold(self.test, self.failure)  # raises now if there is none

    def clip_and_sort(self, values: ArrayLike) -> Floats:
        """Return the numbers clipped to the bounds, in ascending order."""
        try:
            numbers = as_float_array("values", values, "")
        except ParameterError:
            numbers = np.array(math.nan)
        if numbers.ndim != 1 or not np.isfinite(numbers).all():
            raise ParameterError("`values` must be a list of finite numbers")  # the message must not show private values
        return np.sort(np.clip(numbers, self.low, self.high))

    def median(self, data: Floats) -> float:
        """Return the median, the lower one of two if n is even."""
        return self._order_statistic(data, -(-len(data) // 2))

    def local_sensitivity(self, data: Floats) -> Fraction:
        """Return how far adding or removing one record can move the median: the width of the middle gap.

        Claim: ``x_(m+1) - x_m`` with ``m = floor(n/2)``.

        Proof: the median is one end of that gap, the upper one if n is odd and the lower one if n is even. Removing a record keeps it or
        moves it to the other end. Adding v moves it to v, or to the end of the gap nearest to v. So the median stays in the gap, and it
        reaches the other end for v = low or v = high.
        """
        middle = len(data) // 2
        return Fraction(self._order_statistic(data, middle + 1)) - Fraction(self._order_statistic(data, middle))

    def distance(self, data: Floats) -> int:
        """Return how many records must be added or removed until the local sensitivity exceeds ``step``; 0 if it already does.

        Claim: let ``r_i`` be the number of records above ``x_i + step``, and i the first of 0, ..., n with ``r_i <= i``. Then the distance
        is ``n - 2i`` if ``r_i = i``, and ``n - 2i + 1`` otherwise. Proof: docs/derivations/median.md. One record changes a distance by at
        most 1.
        """
        n = len(data)
        first = bisect_left(range(n), 1, key=lambda i: int(self._count_above(data, i) <= i))  # it is n if no smaller i qualifies
        return n - 2 * first + (self._count_above(data, first) < first)

    def propose(self, data: Floats, source: NoiseSource) -> Literal[True] | None:
        """Return True if the noisy distance reaches the threshold."""
        noisy = self.distance(data) + self.test.sample(source)
        return True if noisy >= threshold(self.test, self.failure) else None

    def release(self, data: Floats, plan: Literal[True], source: NoiseSource) -> float:  # noqa: ARG002 - the plan only says "passed"
        """Return the median with noise."""
        return self.median(data) + self.step * self.target.sigma * float(source.standard_normals(1)[0])

    def _order_statistic(self, data: Floats, i: int) -> float:
        """Return ``x_i``."""
        if i < 1:
            return self.low
        return float(data[i - 1]) if i <= len(data) else self.high

    def _count_above(self, data: Floats, i: int) -> int:
        """Return the number of records above ``x_i + step``, in exact fractions: a rounded sum may fall on the wrong side of a record."""
        bound = Fraction(self._order_statistic(data, i)) + Fraction(self.step)
        return len(data) - bisect_right(range(len(data)), bound, key=lambda index: Fraction(float(data[index])))


def private_median(  # noqa: PLR0913 - keyword-only numbers
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
    """Return the median with Gaussian noise of standard deviation ``sigma * step``, or no answer if one record may move it further.

    ``values`` are clipped to [low, high]. All other arguments must be chosen without looking at the values. ``test`` is DiscreteLaplace or
    DiscreteGaussian noise on the distance to a data set whose median may move by more than ``step``. ``failure`` is an upper bound on the
    probability that such a data set is answered. The ``mechanism`` of the answer covers adding or removing one record.
    """
    target = Gaussian(sigma=sigma, neighbours=ADD_REMOVE)
    protocol = PrivateMedian(test=test, target=target, failure=failure, low=low, high=high, step=step)
    source = make_noise_source(insecure_seed)
    answer = protocol.answer(protocol.clip_and_sort(values), source)
    notes = (FLOATING_POINT_NOTE,) if insecure_seed is None else (FLOATING_POINT_NOTE, INSECURE_SEED_NOTE)
    return MedianAnswer(None if isinstance(answer, NoAnswer) else answer, protocol.mechanism, notes)
