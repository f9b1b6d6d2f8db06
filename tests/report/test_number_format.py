"""Upper bounds are rounded up and lower bounds down."""

import math
from fractions import Fraction

from hypothesis import example, given
from hypothesis import strategies as st

from privselect.report.number_format import (
    factor_up,
    format_interval,
    format_upper,
    join_words,
    one_in,
    percent_down,
    percent_up,
    ratio_down,
)

POSITIVE = st.floats(1e-12, 1e6)


def number(text):
    return Fraction(text.replace(",", ""))


@given(POSITIVE)
@example(3.0000004)
def test_bounds_go_outward(value):
    lower, upper = format_interval(value, value).removeprefix("between ").split(" and ")
    assert upper == format_upper(value)
    assert number(lower) <= Fraction(value) <= number(upper)
    assert number(upper) - number(lower) <= Fraction(value) / 10**3


@given(st.floats(0.0, 1.0))
@example(0.001)
@example(1.0)
def test_shares_are_rounded_up_or_down(share):
    up, down = (number(text.removesuffix("%")) / 100 for text in (percent_up(share), percent_down(share)))
    assert down <= Fraction(share) <= up
    assert up - down <= Fraction(1, 1000)


@given(st.floats(0.0, 700.0))
def test_the_factor_is_not_too_small(epsilon):
    assert math.exp(epsilon) <= float(factor_up(epsilon)) <= math.exp(epsilon) * 1.002


@given(POSITIVE, st.floats(1e-3, 1e3))
def test_a_ratio_is_not_too_large(value, exact):
    assert number(ratio_down(value, exact)) <= Fraction(value) / Fraction(exact) < number(ratio_down(value, exact)) + Fraction(1, 100)


def test_the_ratio_of_equal_numbers_is_one():
    assert ratio_down(0.1, 0.1) == "1.00"


def test_one_in_n_is_not_less_than_the_probability():
    assert one_in(1e-5) == "1 in 100,000"
    assert one_in(3e-6) == "1 in 333,333"
    assert one_in(0.7) == "1 in 1"
    assert one_in(1e-30) == "1 in 1.0000e+30"


def test_intervals_and_lists():
    assert format_interval(1.0, "infinite") == "between 1 and infinite"
    assert format_interval(None, 2.00001) == "at most 2.0001"
    assert [join_words(words) for words in (["a"], ["a", "b"], ["a", "b", "c"])] == ["a", "a and b", "a, b and c"]
