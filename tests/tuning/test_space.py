"""Search spaces: laws that are exactly what they say, each draw anew."""

import itertools
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import privselect as ps
from privselect.errors import ParameterError
from privselect.tuning.distributions import read_distribution
from privselect.tuning.randomness import Stream, derive_key
from privselect.tuning.runner import RunDraws
from privselect.tuning.space import Space
from privselect.tuning.suggest import Suggest

SECRET = bytes(range(32))
FALSE_ALARM = 1e-6  # of each statistical test here; the secret is fixed, so that a run that passed passes again


def draws(laws, count):
    drawn = RunDraws(SECRET, count, Space(laws))
    return [drawn.candidate(slot) for slot in range(count)]


def test_choices_have_their_exact_weights():
    # A chi-square of 6000 draws, false alarm 1e-6.
    law = ps.Choice(["a", "b", "c", "d"], ["1/2", Fraction(1, 3), 0.1, "1/15"])
    assert law.weights == (Fraction(1, 2), Fraction(1, 3), Fraction(1, 10), Fraction(1, 15))
    counts = Counter(candidate["x"] for candidate in draws({"x": law}, 6000))
    assert stats.chisquare([counts[option] for option in "abcd"], [3000, 2000, 600, 400]).pvalue > FALSE_ALARM


def test_weights_need_not_sum_to_one():
    assert ps.Choice([1, 2], [3, 1]).weights == (Fraction(3, 4), Fraction(1, 4))
    assert ps.Choice([1, 2, 3]).listed() == [(Fraction(1, 3), 1), (Fraction(1, 3), 2), (Fraction(1, 3), 3)]


def test_whole_numbers_are_uniform_with_both_ends():
    # A chi-square of 5000 draws, false alarm 1e-6.
    counts = Counter(candidate["n"] for candidate in draws({"n": ps.Integer(-2, 4)}, 5000))
    assert set(counts) == set(range(-2, 5))
    assert stats.chisquare(list(counts.values())).pvalue > FALSE_ALARM


def test_reals_are_uniform_in_themselves_or_in_their_logarithm():
    # Kolmogorov-Smirnov of 5000 draws each, false alarm 1e-6.
    found = draws({"a": ps.Uniform(-1, 3), "b": ps.LogUniform(1e-4, 1e2)}, 5000)
    a, b = (np.array([candidate[name] for candidate in found]) for name in "ab")
    assert stats.kstest((a + 1) / 4, "uniform").pvalue > FALSE_ALARM
    assert stats.kstest((np.log10(b) + 4) / 6, "uniform").pvalue > FALSE_ALARM


class Extreme:
    def __init__(self, ones):
        self.ones = ones

    def getrandbits(self, k):
        return self.ones * (2**k - 1)


@pytest.mark.parametrize("law", [ps.Uniform(0.1, 0.3), ps.LogUniform(0.1, 0.7), ps.Uniform(-1e308, 1e308), ps.LogUniform(5e-324, 1e308)])
def test_ends_are_reached_and_never_passed(law):
    low, high = (law.draw(Extreme(ones)) for ones in (0, 1))
    assert law.low <= low <= law.high
    assert law.low <= high <= law.high
    assert low == pytest.approx(law.low, rel=1e-12)  # log and exp round
    assert high == pytest.approx(law.high, rel=1e-12)


def test_one_value_is_a_law_too():
    assert draws({"a": ps.Uniform(2, 2), "b": ps.LogUniform(2, 2), "c": ps.Integer(2, 2), "d": ps.Choice([2])}, 1) == [
        {"a": 2.0, "b": 2.0, "c": 2, "d": 2}
    ]


def test_candidates_are_independent_and_with_replacement():
    # Pairs of neighbouring slots over 3 x 3 options: a chi-square of 3000 pairs, false alarm 1e-6.
    found = [candidate["x"] for candidate in draws({"x": ps.Choice([0, 1, 2])}, 6000)]
    pairs = Counter(zip(found[::2], found[1::2], strict=True))
    assert stats.chisquare([pairs[a, b] for a in range(3) for b in range(3)]).pvalue > FALSE_ALARM


def test_parts_of_one_candidate_are_independent():
    # 3000 candidates of two parts, false alarm 1e-6.
    pairs = Counter((c["a"], c["b"]) for c in draws({"a": ps.Choice([0, 1, 2]), "b": ps.Integer(0, 2)}, 3000))
    assert stats.chisquare([pairs[a, b] for a in range(3) for b in range(3)]).pvalue > FALSE_ALARM


def by_run(suggest):
    if suggest.choice("kind", ["plain", "deep"], [3, 1]) == "deep":
        suggest.integer("layers", 2, 3)
        suggest.log_uniform("rate", 0.01, 1.0)
    suggest.uniform("momentum", 0.0, 1.0)


def test_a_space_can_depend_on_its_own_draws():
    found = draws(by_run, 2000)
    shapes = Counter(tuple(candidate) for candidate in found)
    assert set(shapes) == {("kind", "momentum"), ("kind", "layers", "rate", "momentum")}
    # A binomial test of 2000 draws at 1/4, false alarm 1e-6.
    assert stats.binomtest(shapes["kind", "layers", "rate", "momentum"], 2000, 0.25).pvalue > FALSE_ALARM
    assert Space(by_run).listed() is None
    assert Space(by_run).as_dict() == {"function": f"{__name__}:by_run"}


def test_a_name_is_drawn_once():
    suggest = Suggest(Stream(derive_key(SECRET, "test")))
    suggest.uniform("a", 0, 1)
    with pytest.raises(ParameterError, match="each name once, got 'a' twice"):
        suggest.uniform("a", 0, 1)


def test_every_candidate_of_a_finite_space_is_listed_with_its_chance():
    listed = Space({"a": ps.Choice(["x", "y"], ["1/3", "2/3"]), "b": ps.Integer(1, 2)}).listed()
    assert listed == [
        (Fraction(1, 6), {"a": "x", "b": 1}),
        (Fraction(1, 6), {"a": "x", "b": 2}),
        (Fraction(1, 3), {"a": "y", "b": 1}),
        (Fraction(1, 3), {"a": "y", "b": 2}),
    ]
    assert Space({"a": ps.Integer(1, 40), "b": ps.Integer(1, 40)}).listed() is None


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: ps.Uniform(1, 0), "`low` must be at most `high`, got 1.0 and 0.0"),
        (lambda: ps.Uniform(0, float("inf")), "`high` must be"),
        (lambda: ps.Uniform("a", 1), "`low` must be"),
        (lambda: ps.LogUniform(0, 1), "`low` must be"),
        (lambda: ps.Integer(0.5, 1), "`low` must be an integer"),
        (lambda: ps.Integer(3, 1), "`low` must be at most `high`, got 3 and 1"),
        (lambda: ps.Choice([]), "`options` must be a list"),
        (lambda: ps.Choice("abc"), "`options` must be a list"),
        (lambda: ps.Choice([{1: 2}]), "an option must be"),
        (lambda: ps.Choice([[1, [float("inf")]]]), "an option must be"),
        (lambda: ps.Choice([float("nan")]), "an option must be"),
        (lambda: ps.Choice([1, 2], [1]), "`weights` must be a list of 2 weights"),
        (lambda: ps.Choice([1, 2], [1, 0]), "a weight must be positive"),
        (lambda: ps.Choice([1, 2], [1, -1]), "a weight must be positive"),
        (lambda: ps.Choice([1, 2], ["1/0", 1]), "a weight must be a positive number or fraction"),
        (lambda: ps.Choice([1, 2], ["1e9", 1]), "a weight must be a positive number or fraction"),
        (lambda: ps.Choice([1, 2], [float("inf"), 1]), "`weight` must be a finite number"),
        (lambda: Space({}), "`space` must have at least one hyperparameter"),
        (lambda: Space(3), "`space` must be a dict of distributions or a function"),
        (lambda: Space({"a": 3}), "`a` of the space must be Uniform, LogUniform, Integer or Choice"),
        (lambda: Space({"a b": ps.Integer(1, 2)}), "a hyperparameter's name must be an identifier"),
        (lambda: Space({3: ps.Integer(1, 2)}), "a hyperparameter's name must be an identifier"),
        (lambda: read_distribution("a", {"normal": [0, 1]}), "`a` of the space must be one of"),
        (lambda: read_distribution("a", {"uniform": [0, 1], "integer": [0, 1]}), "`a` of the space must be one of"),
        (lambda: read_distribution("a", {"uniform": [1, 0]}), "`a` of the space: `low` must be at most `high`"),
        (lambda: read_distribution("a", {"uniform": [1]}), r"`uniform` must be \[low, high\]"),
        (lambda: read_distribution("a", {"uniform": [0, 1], "weights": [1]}), "`a` of the space must be one of"),
    ],
    ids=itertools.count(),
)
def test_a_bad_space_is_refused_in_one_sentence(make, said):
    with pytest.raises(ParameterError, match=said) as caught:
        make()
    assert "\n" not in str(caught.value)
