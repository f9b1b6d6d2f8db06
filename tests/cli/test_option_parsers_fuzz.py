"""Whatever is typed is either read, and written back without loss, or refused on purpose."""

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privselect._util.validation import OPEN_UNIT, REAL
from privselect.cli.options import parse_count, parse_mechanism
from privselect.errors import PrivselectError
from privselect.text_forms import parse_parameter

LEGAL = [
    "gaussian(sigma=4)",
    "laplace(scale=0.5)",
    "points((0.1, 1e-3), (1, 1e-9))",
    "dpsgd(noise_multiplier=1.1, sampling_probability=256/60000, steps=14063)",
    "mixture(0.5*gaussian(sigma=4), 1/2*gaussian(sigma=8))",
    "selection(gaussian(sigma=4), geometric(mean=30, cap=200))",
    "negative_binomial(eta=-0.5, mean=30)",
    "binomial(n=20, p=0.5)",
    "finite({0: 1, 5: 9})",
]
PIECES = ["(", ")", "{", "}", ",", ":", "=", "*", "/", "-", "+", "0", "1", "1e400", "1e-400", "nan", "inf", "cap", "sigma", "mean", *LEGAL]


@st.composite
def near_legal(draw: st.DrawFn) -> str:
    """A legal text form with a few pieces cut out and others put in."""
    text = draw(st.sampled_from(LEGAL))
    for _ in range(draw(st.integers(0, 3))):
        start = draw(st.integers(0, len(text)))
        end = draw(st.integers(start, min(len(text), start + 8)))
        text = text[:start] + draw(st.sampled_from(PIECES) | st.text(max_size=3)) + text[end:]
    return text


TEXTS = near_legal() | st.lists(st.sampled_from(PIECES)).map("".join) | st.text()


def check_reading(text: str) -> None:
    for read in (parse_mechanism, parse_count):
        try:
            described = read(text)
        except PrivselectError:
            continue
        assert read(str(described)) == described
    for read_number in (partial(parse_parameter, name, allowed=allowed) for name, allowed in (("delta", OPEN_UNIT), ("epsilon", REAL))):
        try:
            number = read_number(text)
        except PrivselectError:
            continue
        assert read_number(repr(number)) == number


@given(TEXTS)
def test_any_text_is_read_or_refused(text):
    check_reading(text)


@pytest.mark.soak
@given(TEXTS)
def test_any_text_is_read_or_refused_campaign(text):
    check_reading(text)
