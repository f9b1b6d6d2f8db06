"""Text forms: exact numbers, and error messages."""

import math
from fractions import Fraction

import pytest

import privselect as ps
from privselect.errors import ParameterError, PrivselectError, TextFormError
from privselect.text_forms import parse_number

NINES = "9" * 50
TYPED = [
    # Each of these once took very long, filled the memory, or gave an error that showed another text than the typed one.
    ("gaussian(sigma=0e99999999)", "gaussian: `sigma` must be in (0, inf), got 0e99999999"),
    (f"gaussian(sigma=0e{NINES})", f"gaussian: `sigma` must be in (0, inf), got 0e{NINES}"),
    (f"gaussian(sigma=0.00e-{NINES})", f"gaussian: `sigma` must be in (0, inf), got 0.00e-{NINES}"),
    (f"gaussian(sigma=1e{NINES})", f"gaussian: `sigma` must be in (0, inf), got 1e{NINES}"),
    (f"gaussian(sigma=-1e-{NINES})", f"gaussian: `sigma` must be in (0, inf), got -1e-{NINES}"),
    (f"gaussian(sigma=1/1e{NINES})", f"gaussian: `sigma` must be in (0, inf), got 1/1e{NINES}"),
    ("gaussian(sigma=1e400)", "gaussian: `sigma` must be in (0, inf), got 1e400"),
    ("gaussian(sigma=1e-400)", "gaussian: `sigma` must be in (0, inf), got 1e-400"),
    ("gaussian(sigma=1e-308/1e308)", "gaussian: `sigma` must be in (0, inf), got 1e-308/1e308"),
    ("gaussian(sigma= - 0.50 )", "gaussian: `sigma` must be in (0, inf), got - 0.50"),
    ("gdp(mu=1, delta=1e-400)", "gdp: `delta` must be in [0, 1) and, if not 0, at least 4.94066e-324, got 1e-400"),
    ("geometric(mean=1e300)", "geometric: `mean` must be in [1, 1e+15], got 1e300"),
    (f"fixed(k=1e{NINES})", f"fixed: `k` must be an integer >= 1 and <= 1000000000000000, got 1e{NINES}"),
    (f"fixed(k={'9' * 350})", "fixed: `k` must be an integer >= 1 and <= 1000000000000000, got 1e+350"),
    ("finite({1: 1e400, 2: 1})", "finite: each weight of a pmf must be at most 1e300, got 1e400"),
    (f"finite({{1e{NINES}: 1}})", f"finite: `k` must be an integer >= 0 and <= 1000000000000000, got 1e{NINES}"),
    (f"mixture(1e{NINES}*gaussian(sigma=4))", f"a weight must be in (0, 1], got 1e{NINES}"),
    ("mixture(1.50*gaussian(sigma=4))", "`mixture` needs weights in (0, 1], got 1.50"),
    (f"gaussian(sigma={'9' * 100_000})", f"a number may have at most 400 characters, got {'9' * 20}... with 100000"),
    ("gaussian(sigma=1/0e99999999)", "division by zero in 'gaussian(sigma=1/0e99999999)'"),
    ("finite((1, 2))", "finite: `pmf` must be a table such as {0: 1, 5: 9}, got (1, 2)"),
    # Digits that are not ASCII.
    ("gaussian(sigma=１)", "numbers are written with the digits 0 to 9, got '１' in 'gaussian(sigma=１)'"),  # noqa: RUF001
    ("gaussian(sigma=٣)", "numbers are written with the digits 0 to 9, got '٣' in 'gaussian(sigma=٣)'"),
    ("gaussian(sigma=1２)", "numbers are written with the digits 0 to 9, got '２' in 'gaussian(sigma=1２)'"),  # noqa: RUF001
    # Missing parts.
    ("", "the text form is empty; write something like gaussian(sigma=4)"),
    (" \n", "the text form is empty; write something like gaussian(sigma=4)"),
    ("-", "expected a number but found the end in '-'"),
    ("gaussian(sigma=-)", "expected a number but found ')' at character 17 in 'gaussian(sigma=-)'"),
    ("gaussian(sigma=", "expected a value but found the end in 'gaussian(sigma='"),
    ("mixture()", "`mixture` needs at least one part such as 1*gaussian(sigma=4), got none"),
    ("geometric()", "`geometric` needs exactly one of `mean` and `gamma`, got neither"),
    ("points()", "`points` needs at least one (epsilon, delta), got none"),
    ("points(3)", "points: each point must be a pair (epsilon, delta), got 3"),
    ("renyi()", "`renyi` needs at least one (alpha, epsilon), got none"),
    ("renyi(2)", "renyi: each order must be a pair (alpha, epsilon), got 2"),
    ("renyi((1.0, 2))", "renyi: `alpha` must be in (1, inf), got 1.0"),
    ("discrete_gaussian(sigma=1e7)", "discrete_gaussian: `sigma` must be in (0, 1e+06], got 1e7"),
    ("discrete_laplace(scale=0)", "discrete_laplace: `scale` must be in [0.00142857, inf), got 0"),
    (
        "sampled_gaussian(noise_multiplier=1, batch_size=9, records=3)",
        "sampled_gaussian: `batch_size` must be at most `records`, got 9 of 3",
    ),
    ("1e400", "expected something like gaussian(sigma=4), got '1e400'"),
]


@pytest.mark.parametrize(("text", "sentence"), TYPED, ids=[text[:40] for text, _ in TYPED])
def test_the_error_shows_the_text_as_typed(text, sentence):
    with pytest.raises(PrivselectError) as caught:
        ps.parse(text)
    assert str(caught.value) == sentence
    assert isinstance(caught.value, (ParameterError, TextFormError))


@pytest.mark.parametrize("text", ["{}", "{}()", "gaussian({}=1)", "gaussian(sigma=4) {}", "gaussian(sigma={})", "mixture(1*{})"])
def test_the_error_is_short_for_any_text(text):
    with pytest.raises(PrivselectError) as caught:
        ps.parse(text.format("a" * 100_000))
    assert len(str(caught.value)) < 500  # mostly the registered names


@pytest.mark.parametrize("zero", ["0", "0.0", "0e5", "0e99999999", "0e-99999999", f"0.000E+{NINES}", "-0e99999999"])
def test_zero_is_zero_at_any_exponent(zero):
    assert ps.parse(f"finite({{0: {zero}, 1: 1}})") == ps.Finite({1: 1})


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("4", 4),
        (" +4 ", 4),
        ("-4.", -4),
        (".5", Fraction(1, 2)),
        ("1e-3", Fraction(1, 1000)),
        ("1E0000000000000000000002", 100),
        ("256/60000", Fraction(256, 60000)),
        ("-1 / 3", Fraction(-1, 3)),
        ("1e400/1e399", 10),
        (f"1e{NINES}", None),
        (f"-1e-{NINES}", None),
        (f"1e{NINES}/1e{NINES}", None),
    ],
)
def test_a_number_is_read_exactly(text, value):
    assert parse_number(text) == value


@pytest.mark.parametrize("text", ["", "nan", "inf", "1_000", "1 2", "0x10", "１", "1/0", "gaussian(sigma=4)"])  # noqa: RUF001
def test_other_texts_are_refused(text):
    with pytest.raises(TextFormError):
        parse_number(text)


def test_the_largest_and_the_smallest_float_are_read():
    for sigma in (5e-324, math.nextafter(math.inf, 0.0)):
        assert ps.parse(f"gaussian(sigma={sigma!r})") == ps.Gaussian(sigma=sigma)
