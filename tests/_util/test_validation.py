"""Validation of numbers, and formatting of values in error messages."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from privselect._util.validation import (
    NON_NEGATIVE,
    OPEN_UNIT,
    POSITIVE,
    REAL,
    UNIT,
    check_array,
    check_fraction,
    check_number,
    format_value,
    integer_range,
)
from privselect.errors import ParameterError

HUGE = 10**5000  # more digits than Python will write
HALVES = [0.5, Decimal("0.5"), Fraction(1, 2), np.float32(0.5), np.float64(0.5), np.array(0.5), np.array(Decimal("0.5"))]
FOURS = [4, 4.0, Decimal(4), Fraction(4), np.int8(4), np.array(4), np.array(4.0)]
NO_NUMBERS = [None, True, np.bool_(True), np.array(True), "0.5", b"0.5", np.array("0.5"), 0.5j, [0.5], np.array([0.5]), Decimal("sNaN")]


def kind_and_value(value: object) -> str:
    return f"{type(value).__name__} {value!r}"


@pytest.mark.parametrize("value", HALVES, ids=kind_and_value)
def test_every_number_type_is_accepted(value):
    assert check_number("x", value, POSITIVE) == 0.5
    assert type(check_number("x", value, POSITIVE)) is float
    assert check_fraction("x", value) == Fraction(1, 2)
    assert check_array("x", value, UNIT).tolist() == 0.5


@pytest.mark.parametrize("value", FOURS, ids=kind_and_value)
def test_every_integer_type_is_accepted(value):
    assert check_number("n", value, integer_range(1)) == 4
    assert type(check_number("n", value, integer_range(1))) is int


@pytest.mark.parametrize("value", NO_NUMBERS, ids=kind_and_value)
def test_values_that_are_not_numbers_are_refused(value):
    with pytest.raises(ParameterError, match=r"^`x` must be in \(0, inf\), got "):
        check_number("x", value, POSITIVE)
    with pytest.raises(ParameterError, match=r"^`n` must be an integer >= 1, got "):
        check_number("n", value, integer_range(1))
    with pytest.raises(ParameterError, match=r"^`x` must be a finite number, got "):
        check_fraction("x", value)


@pytest.mark.parametrize("value", [3 + Fraction(1, 10**30), Decimal("3.0000000000000000000000000001"), 3.5, Decimal("NaN")])
def test_numbers_close_to_an_integer_are_refused(value):
    with pytest.raises(ParameterError, match="must be an integer"):
        check_number("n", value, integer_range(1))


@pytest.mark.parametrize(
    "values",
    ["1e-6", b"1e-6", ["0.5"], [0.5, "0.5"], np.array(["0.5"], dtype=object), [Decimal(1), None], None, True, 0.5j, [[0.5], [0.5, 0.5]]],
    ids=lambda values: repr(values)[:30],
)
def test_arrays_with_other_entries_are_refused(values):
    with pytest.raises(ParameterError, match=r"^`delta` must be in \(0, 1\), got "):
        check_array("delta", values, OPEN_UNIT)


def test_arrays_of_fractions_and_decimals():
    assert check_array("x", [Fraction(1, 2), Decimal("0.25"), 1], REAL).tolist() == [0.5, 0.25, 1.0]
    assert check_array("x", [], REAL).tolist() == []
    with pytest.raises(ParameterError, match="got a list"):
        check_array("x", [1, HUGE], REAL)


@pytest.mark.parametrize("tiny", [Fraction(1, HUGE), Decimal("1e-400"), Fraction(1, 10**400)], ids=["1e-5000", "Decimal", "1e-400"])
def test_a_number_below_every_float_does_not_become_zero(tiny):
    with pytest.raises(ParameterError, match=r"must be in \[0, inf\) and, if not 0, at least 4.94066e-324, got 1"):
        check_number("delta", tiny, NON_NEGATIVE)
    assert check_number("delta", Decimal("0e-400"), NON_NEGATIVE) == 0.0


@pytest.mark.parametrize("text", ["1e999999999", "-1e999999999", "1e-999999999"])
def test_a_huge_decimal_is_refused_immediately(text):
    with pytest.raises(ParameterError, match=r"must be a finite number, got -?1E"):
        check_fraction("weight", Decimal(text))
    with pytest.raises(ParameterError, match=r"got -?1E"):
        check_number("x", Decimal(text), POSITIVE)
    with pytest.raises(ParameterError, match=r"got -?1E"):
        check_number("n", Decimal(text), integer_range(1))
    assert check_fraction("weight", Decimal("0e999999999")) == 0


SHOWN = [
    (HUGE, "1e+5000"),
    (-HUGE, "-1e+5000"),
    (12345678 * HUGE, "1.23457e+5007"),
    (10**20, "1" + "0" * 20),
    (Fraction(1, 3), str(1 / 3)),
    (Fraction(2, HUGE), "2e-5000"),
    (Fraction(HUGE, 3), "3.33334e+4999"),
    ([HUGE], "a list"),
    ("a" * 100, "'" + "a" * 77 + "...'"),
    (np.zeros((2, 2)), "[[0. 0.] [0. 0.]]"),
    (None, "None"),
    (True, "True"),
]


@pytest.mark.parametrize(("value", "text"), SHOWN, ids=[text for _, text in SHOWN])
def test_a_value_is_shown_short_and_on_one_line(value, text):
    assert format_value(value) == text
