"""Intervals refuse NaN and crossed bounds."""

import math

import numpy as np
import pytest

from privselect.errors import ParameterError
from privselect.interval import Interval


@pytest.mark.parametrize(
    "ends", [(2.0, 1.0), (math.nan, 1.0), (0.0, math.nan), (None, math.nan), (np.array([0.0, 2.0]), np.array([1.0, 1.0]))]
)
def test_bounds_must_be_ordered_numbers(ends):
    with pytest.raises(ParameterError, match="lower <= upper"):
        Interval(*ends)


def test_intervals_of_arrays_compare_all_entries_and_are_read_only():
    one = Interval(np.array([0.0, 1.0]), np.array([1.0, 2.0]))
    assert one == Interval(np.array([0.0, 1.0]), np.array([1.0, 2.0]))
    assert one != Interval(np.array([0.0, 1.0]), np.array([1.0, 3.0]))
    assert Interval(None, 1.0) == Interval(None, 1.0) != Interval(0.5, 1.0)
    assert one != 3
    with pytest.raises(ValueError, match="read-only"):
        one.upper[0] = 0.0
