"""Outward rounding of numbers for people and JSON."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privselect._util.rounding import finite_or_none, format_digits_down, format_digits_up, round_down, round_up

NUMBERS = st.floats(min_value=1e-300, max_value=1e300)


@given(NUMBERS, st.integers(1, 8))
def test_rounding_is_outward_and_close(value, digits):
    low, high = round_down(value, digits), round_up(value, digits)
    assert low <= value <= high
    assert high - low <= value * 10.0 ** (1 - digits) * (1 + 1e-9)


@given(NUMBERS)
def test_formatted_bounds_enclose_the_exact_value(value):
    assert Fraction(format_digits_down(value)) <= Fraction(value) <= Fraction(format_digits_up(value))


@pytest.mark.parametrize(
    ("value", "exact", "shortest"), [(0.1, "0.10001", "0.1"), (1e-7, "1.0000e-7", "1e-7"), (123456.0, "1.2346e+5", "1.2346e+5")]
)
def test_the_shortest_decimal_form_can_be_used(value, exact, shortest):
    assert format_digits_up(value) == exact
    assert format_digits_up(value, shortest=True) == shortest


def test_infinite_values_have_a_word_and_large_integers_digits():
    assert format_digits_up(math.inf) == "infinite"
    assert format_digits_down(10**400 + 1) == "1.0000e+400"


def test_json_has_null_for_numbers_that_are_not_finite():
    given = {"a": math.inf, "b": [1.0, math.nan], "c": np.array([[1.0, np.inf]]), "d": np.float64(2.0), "e": "inf", "f": None}
    assert finite_or_none(given) == {"a": None, "b": [1.0, None], "c": [[1.0, None]], "d": 2.0, "e": "inf", "f": None}
