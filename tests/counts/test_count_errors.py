"""Errors of the laws of K, with value and range, and their text forms."""

import pickle
from fractions import Fraction

import pytest
from counts_laws import ONE, SMALL_LAWS, laws
from hypothesis import given
from hypothesis import strategies as st

from privselect import parse
from privselect.counts import Binomial, Finite, Fixed, Geometric, Logarithmic, NegativeBinomial, Poisson
from privselect.errors import ParameterError, PrivselectError, TextFormError

NAN, INF = float("nan"), float("inf")
HUGE = 10**5000  # more digits than Python writes
LOWEST_TERMS = "the weights of a pmf, as integers in lowest terms, must sum to at most 1e300"

REFUSED = [
    (lambda: NegativeBinomial(eta=-1, mean=3), "`eta` must be in (-1, 1e+06], got -1"),
    (lambda: NegativeBinomial(eta=-2, mean=3), "`eta` must be in (-1, 1e+06], got -2"),
    (lambda: NegativeBinomial(eta=NAN, mean=3), "`eta` must be in (-1, 1e+06], got nan"),
    (
        lambda: NegativeBinomial(eta=-0.99, mean=1e9),
        "`mean` must be in [1, 9.9] at eta=-0.99, where gamma falls below 1e-100, got 1000000000",
    ),
    (lambda: Geometric(mean=0.5), "`mean` must be in [1, 1e+15], got 0.5"),
    (lambda: Geometric(mean=INF), "`mean` must be in [1, 1e+15], got inf"),
    (lambda: Geometric(mean=NAN), "`mean` must be in [1, 1e+15], got nan"),
    (lambda: Geometric(mean=True), "`mean` must be in [1, 1e+15], got True"),
    (lambda: Geometric(mean="30"), "`mean` must be in [1, 1e+15], got '30'"),
    (lambda: Geometric(gamma=0), "`gamma` must be in [1e-100, 1], got 0"),
    (lambda: Logarithmic(gamma=1.2), "`gamma` must be in [1e-100, 1], got 1.2"),
    (Geometric, "`geometric` needs exactly one of `mean` and `gamma`, got neither"),
    (lambda: Logarithmic(mean=30, gamma=0.5), "`logarithmic` needs exactly one of `mean` and `gamma`, got mean=30 and gamma=0.5"),
    (lambda: NegativeBinomial(eta=0.5), "`negative_binomial` needs exactly one of `mean` and `gamma`, got neither"),
    (lambda: Geometric(mean=30, cap=0), "`cap` must be an integer >= 1 and <= 1000000000000000, got 0"),
    (lambda: Geometric(mean=30, cap=2.5), "`cap` must be an integer >= 1 and <= 1000000000000000, got 2.5"),
    (lambda: Poisson(mean=0), "`mean` must be in (0, 1e+15], got 0"),
    (lambda: Poisson(mean=-1), "`mean` must be in (0, 1e+15], got -1"),
    (lambda: Poisson(mean=1e9, cap=200_000), "`cap` must keep P(K <= cap) above e^-2000, got 200000, which keeps e^-998096568"),
    (lambda: Binomial(n=20, p=0), "`p` must be in (0, 1], got 0"),
    (lambda: Binomial(n=20, p=1.0001), "`p` must be in (0, 1], got 1.0001"),
    (lambda: Binomial(n=20, p=NAN), "`p` must be in (0, 1], got nan"),
    (lambda: Binomial(n=0, p=0.5), "`n` must be an integer >= 1 and <= 1000000000000000, got 0"),
    (lambda: Binomial(n=2.5, p=0.5), "`n` must be an integer >= 1 and <= 1000000000000000, got 2.5"),
    (lambda: Binomial(n=20, p=1, cap=5), "`cap` must be at least 20, the smallest K that binomial can draw here, got 5"),
    (lambda: Fixed(k=0), "`k` must be an integer >= 1 and <= 1000000000000000, got 0"),
    (lambda: Fixed(k=8, cap=4), "`cap` must be at least k = 8, the only K that fixed draws, got 4"),
    (lambda: Finite({0: 1, 5: 9}, cap=4), "`cap` must be at least 5, the smallest K >= 1 with a positive weight, got 4"),
    (lambda: Finite({0: 0.25, 5: 0.5}), "a pmf must sum to 1, got 0.75"),
    (lambda: Finite({0: 0.1, 5: 0.9000000000000001}), "a pmf must sum to 1, got 1 + 1e-16"),
    (lambda: Finite({0: 1}), "a pmf must give some k >= 1 a positive weight, got {0: 1}"),
    (lambda: Finite({0: 1, 5: 0}), "a pmf must give some k >= 1 a positive weight, got {0: 1, 5: 0}"),
    (lambda: Finite({}), "a pmf must give some k >= 1 a positive weight, got {}"),
    (lambda: Finite({-1: 1}), "`k` must be an integer >= 0 and <= 1000000000000000, got -1"),
    (lambda: Finite({1.5: 1}), "`k` must be an integer >= 0 and <= 1000000000000000, got 1.5"),
    (lambda: Finite({1: -1, 2: 2}), "each weight of a pmf must be >= 0, got -1"),
    (lambda: Finite({1: NAN}), "`weight` must be a finite number, got nan"),
    (lambda: Finite([1, 2]), "`pmf` must be a table such as {0: 1, 5: 9}, got [1, 2]"),
    (lambda: Finite(((1, 2), (1, 3))), "`pmf` must be a table such as {0: 1, 5: 9}, got ((1, 2), (1, 3))"),
    (lambda: Finite((([1], 1),)), "`pmf` must be a table such as {0: 1, 5: 9}, got (([1], 1),)"),
    (lambda: Finite([HUGE]), "`pmf` must be a table such as {0: 1, 5: 9}, got a list"),
    (lambda: Finite({1: 10**500, 2: 1}), "each weight of a pmf must be at most 1e300, got 1e+500"),
    (lambda: Finite({1: HUGE, 2: 1}), "each weight of a pmf must be at most 1e300, got 1e+5000"),
    (lambda: Finite({1: -HUGE, 2: 1}), "each weight of a pmf must be >= 0, got -1e+5000"),
    (lambda: Finite({HUGE: 1}), "`k` must be an integer >= 0 and <= 1000000000000000, got 1e+5000"),
    (lambda: Finite({1: 10**300, 2: 1}), f"{LOWEST_TERMS}, got 1.00001e+300"),
    (lambda: Finite({1: Fraction(1, HUGE), 2: 1 - Fraction(1, HUGE)}), f"{LOWEST_TERMS}, got 1e+5000"),
    (lambda: Finite({1: Fraction(1, HUGE), 2: 1}), "a pmf must sum to 1, got 1 + 1e-5000"),
    (lambda: Fixed(k=HUGE), "`k` must be an integer >= 1 and <= 1000000000000000, got 1e+5000"),
    (lambda: NegativeBinomial(eta=HUGE, mean=3), "`eta` must be in (-1, 1e+06], got 1e+5000"),
    (lambda: Geometric(mean=3).log_pmf("a"), "`k` must be a number, got 'a'"),
    (lambda: Fixed(k=3).log_pmf("3"), "`k` must be a number, got '3'"),
    (lambda: Finite({1: 1}).log_pmf([None]), "`k` must be a number, got [None]"),
    (lambda: Geometric(mean=3).quantile(0), "`q` must be in (0, 1], got 0"),
    (lambda: Geometric(mean=3).quantile(1), "`q` must be in (0, 1) because geometric(mean=3) has no largest K, got 1"),
    (lambda: Geometric(mean=3).log_dpgf(-0.1), "`u` must be in [0, 1], got -0.1"),
    (lambda: Poisson(mean=3).log_dpgf([0.5, 1.5]), "`u` must be in [0, 1], got 1.5"),
    (lambda: Fixed(k=3).log_dpgf(NAN), "`u` must be in [0, 1], got nan"),
    (lambda: Finite({1: 1}).log_dpgf(2), "`u` must be in [0, 1], got 2.0"),
]


@pytest.mark.parametrize(("attempt", "sentence"), REFUSED, ids=[sentence for _, sentence in REFUSED])
def test_refused_in_one_sentence(attempt, sentence):
    with pytest.raises(ParameterError) as caught:
        attempt()
    assert str(caught.value) == sentence
    assert isinstance(caught.value, ValueError)


WRITTEN = [
    (NegativeBinomial(eta=-0.5, mean=30), "negative_binomial(eta=-0.5, mean=30)"),
    (NegativeBinomial(eta=5, gamma=0.1, cap=7), "negative_binomial(eta=5, gamma=0.1, cap=7)"),
    (Geometric(mean=300), "geometric(mean=300)"),
    (Geometric(mean=30, cap=200), "geometric(mean=30, cap=200)"),
    (Logarithmic(gamma=1e-100), "logarithmic(gamma=1e-100)"),
    (Poisson(mean=10), "poisson(mean=10)"),
    (Binomial(n=20, p=0.5), "binomial(n=20, p=0.5)"),
    (Fixed(k=8), "fixed(k=8)"),
    (Finite({0: 1, 5: 9}), "finite({0: 1, 5: 9})"),
    (Finite({5: 0.9, 0: 0.1}, cap=6), "finite({0: 1, 5: 9}, cap=6)"),
    (Finite({1: 10**300 - 1, 2: 1}), f"finite({{1: {10**300 - 1}, 2: 1}})"),
]


@pytest.mark.parametrize(("law", "text"), WRITTEN, ids=[text for _, text in WRITTEN])
def test_text_forms(law, text):
    assert str(law) == text
    assert parse(text) == law


def test_fractions_are_read():
    assert parse("binomial(n=20, p=1/3)") == Binomial(n=20, p=1 / 3)
    assert parse("finite({0: 1/3, 4: 2/3})") == Finite({0: 1, 4: 2})


@pytest.mark.parametrize("law", [*SMALL_LAWS, *ONE], ids=str)
def test_text_and_pickle_lose_nothing(law):
    assert parse(str(law)) == law
    assert pickle.loads(pickle.dumps(law)) == law  # noqa: S301 -- our own bytes


@given(laws)
def test_text_loses_nothing(law):
    again = parse(str(law))
    assert again == law
    assert hash(again) == hash(law)


BAD_TEXT = [
    "geometric(30)",
    "geometric(mean=0)",
    "geometric(mean=30, limit=5)",
    "negative_binomial(mean=30)",
    "fixed()",
    "finite()",
    "finite(3)",
    "finite({0: 0.3, 5: 0.3})",
    "binomial(n=20)",
    "poisson(mean=1e400)",
]


@pytest.mark.parametrize("text", BAD_TEXT)
def test_bad_text_is_refused_in_one_sentence(text):
    with pytest.raises(PrivselectError) as caught:
        parse(text)
    assert isinstance(caught.value, (ParameterError, TextFormError))
    assert "\n" not in str(caught.value)


@given(st.one_of(st.floats(), st.integers(), st.booleans(), st.text(), st.none()))
def test_any_value_is_accepted_or_refused(value):
    for make in (
        lambda: Geometric(mean=value),
        lambda: Geometric(gamma=value),
        lambda: NegativeBinomial(eta=value, mean=2),
        lambda: Poisson(mean=value),
        lambda: Binomial(n=value, p=0.5),
        lambda: Binomial(n=3, p=value),
        lambda: Fixed(k=value),
        lambda: Finite({value: 1}),
        lambda: Finite({1: value}),
        lambda: Geometric(mean=3, cap=value),
    ):
        try:
            law = make()
        except ParameterError:
            continue
        assert law.expected() > 0
