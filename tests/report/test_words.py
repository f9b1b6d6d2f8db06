"""Every number is rounded to the side that claims less."""

import math
from fractions import Fraction

from hypothesis import example, given
from hypothesis import strategies as st

from privselect.report.number_format import at_least, at_most, factor_up, interval, listed, one_in, percent_down, percent_up, times_down

POSITIVE = st.floats(1e-12, 1e6)


def number(text):
    return Fraction(text.replace(",", ""))


@given(POSITIVE)
@example(3.0000004)
def test_ends_go_outward(value):
    assert number(at_least(value)) <= Fraction(value) <= number(at_most(value))
    assert number(at_most(value)) - number(at_least(value)) <= Fraction(value) / 10**3


@given(st.floats(0.0, 1.0))
@example(0.001)
@example(1.0)
def test_shares_go_their_way(share):
    up, down = (number(text.removesuffix("%")) / 100 for text in (percent_up(share), percent_down(share)))
    assert down <= Fraction(share) <= up
    assert up - down <= Fraction(1, 1000)


@given(st.floats(0.0, 700.0))
def test_the_factor_is_no_less(epsilon):
    assert math.exp(epsilon) <= float(factor_up(epsilon)) <= math.exp(epsilon) * 1.002


@given(POSITIVE, st.floats(1e-3, 1e3))
def test_others_are_said_to_charge_no_more_than_they_do(value, exact):
    assert number(times_down(value, exact)) <= Fraction(value) / Fraction(exact) < number(times_down(value, exact)) + Fraction(1, 100)


def test_what_equals_the_exact_price_is_once_as_much():
    assert times_down(0.1, 0.1) == "1.00"


def test_a_chance_is_one_in_no_more_than_it_is():
    assert one_in(1e-5) == "1 in 100,000"
    assert one_in(3e-6) == "1 in 333,333"
    assert one_in(0.7) == "1 in 1"
    assert one_in(1e-30) == "1 in 1.0000e+30"


def test_intervals_and_lists():
    assert interval(1.0, "infinite") == "between 1 and infinite"
    assert interval(None, 2.00001) == "at most 2.0001"
    assert [listed(words) for words in (["a"], ["a", "b"], ["a", "b", "c"])] == ["a", "a and b", "a, b and c"]
