"""The samplers draw the law they name: exactly, shown by whole-number arithmetic, and by counting draws."""

import math
import os
import random
from bisect import bisect_left
from collections import Counter
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from counts_laws import SMALL_LAWS
from counts_reference import exact
from scipy.special import gammaincc

from privselect._util.random_bits import uniform_below
from privselect.counts import Binomial, Finite, Fixed, Geometric, Logarithmic, NegativeBinomial, Poisson
from privselect.counts.capped import _log_kept
from privselect.counts.sampling import sampler
from privselect.counts.sampling.interval_arithmetic import IntervalArithmetic
from privselect.counts.sampling.sampler import Sampler

DRAWS = int(os.environ.get("PRIVSELECT_DRAWS", "100000"))

LARGE_LAWS = [
    Geometric(mean=3000),
    Geometric(mean=1e9),
    Geometric(mean=1e9, cap=10**6),
    Logarithmic(mean=1e6),
    NegativeBinomial(eta=-0.9, mean=1e9),
    NegativeBinomial(eta=5, mean=1e6),
    NegativeBinomial(eta=5, mean=1e5, cap=90_000),
    Poisson(mean=1e9),
    Poisson(mean=1e6, cap=10**6),
    Binomial(n=10**9, p=0.3),
    Binomial(n=10**6, p=0.999),
]


class Scripted:
    """Entropy that hands out what it was given, and nothing more."""

    def __init__(self, *numbers):
        self.numbers = list(numbers)

    def getrandbits(self, k):
        assert self.numbers[0] < 2**k
        return self.numbers.pop(0)


class Stream:
    """Entropy from the bits of one number, and zeros after them; and whole answers before them."""

    def __init__(self, number, bits, first=()):
        self.number, self.bits, self.served, self.first = number, bits, 0, list(first)

    def getrandbits(self, k):
        if self.first:
            return self.first.pop(0)
        self.served += k
        return (self.number << self.served >> self.bits) & (2**k - 1)


def seeded(seed):
    return random.Random(seed)  # noqa: S311 -- a test that can be run again


def cdf(law, k):
    if k < 0:
        return 0.0
    if law.largest is not None and k >= law.largest:
        return 1.0
    if k < 20_000:
        return float(math.fsum(np.exp(law.log_pmf(np.arange(k + 1)))))
    return math.exp(law._log_cdf(k) - _log_kept(law))


def p_value(law, draws, entropy, draw=None):
    """The chi-square test of ``draws`` draws, over cells that a few other draws have marked off."""
    draw = draw or law.sample
    pilot = sorted(draw(entropy) for _ in range(400))
    ends, cells, so_far = [], [], 0.0
    for k in sorted(set(pilot[10:-10:10])):
        share = cdf(law, k) - so_far
        if share * draws > 50 and (1.0 - so_far - share) * draws > 50:
            ends.append(k)
            cells.append(share)
            so_far += share
    if not ends:
        return 1.0  # nothing to tell apart
    wanted = draws * np.array([*cells, 1.0 - so_far])
    found = Counter(bisect_left(ends, draw(entropy)) for _ in range(draws))
    square = sum((found[i] - w) ** 2 / w for i, w in enumerate(wanted))
    return float(gammaincc(len(ends) / 2, square / 2))


@pytest.mark.parametrize("law", SMALL_LAWS, ids=str)
def test_draws_follow_the_law(law):
    """With seeded entropy this is one fixed computation: it fails only if the code changes the draws, then once in 1e5."""
    assert p_value(law, DRAWS, seeded(20240)) > 1e-5


@pytest.mark.parametrize("law", LARGE_LAWS, ids=str)
def test_draws_follow_large_laws(law):
    assert p_value(law, DRAWS // 10, seeded(20241)) > 1e-5


@pytest.mark.parametrize("law", [Geometric(mean=30), Poisson(mean=10, cap=12), Finite({0: 1, 5: 9})], ids=str)
def test_draws_from_the_operating_system_follow_the_law(law):
    """Three tests with a false alarm of 1e-9 each: one in 3e8 runs."""
    assert p_value(law, DRAWS, None) > 1e-9


@pytest.mark.soak
@pytest.mark.parametrize("law", [*SMALL_LAWS, *LARGE_LAWS], ids=str)
def test_many_draws_follow_the_law(law, campaign):
    """A false alarm of 1e-9 for each of the laws."""
    assert p_value(law, campaign(1_000_000), random.SystemRandom()) > 1e-9


@pytest.mark.parametrize(
    "law",
    [Geometric(mean=30), NegativeBinomial(eta=-0.5, mean=30), NegativeBinomial(eta=5, mean=30), Logarithmic(mean=30), Poisson(mean=30)],
    ids=str,
)
def test_broad_steps_and_the_tail_follow_the_law(law, monkeypatch):
    """The tail is met once in 2^88 draws: here the staircase is made so coarse that it is met often."""
    monkeypatch.setattr(sampler, "_SINGLE", 3)
    monkeypatch.setattr(sampler, "_FAINT", 2)
    coarse = Sampler.under(law._terms())
    assert len(coarse._steps) < 40
    share = 2 * coarse._tail.length * coarse._tail.height / coarse._ends[-1]
    assert share > 0.01
    assert p_value(law, DRAWS // 20, seeded(20242), coarse.draw) > 1e-5


def exact_weights(terms, last):
    """w(k)/w(mode) as fractions."""
    weights = {terms.mode(): Fraction(1)}
    for k in range(terms.mode(), last):
        weights[k + 1] = weights[k] * Fraction(*terms.ratio(k))
    for k in range(terms.mode() - 1, terms.first - 1, -1):
        weights[k] = weights[k + 1] / Fraction(*terms.ratio(k))
    return weights


EXACT_LAWS = [
    Geometric(mean=3.5),
    Geometric(mean=30, cap=50),
    NegativeBinomial(eta=-0.5, mean=3),
    NegativeBinomial(eta=5, mean=4),
    Logarithmic(mean=4),
    Poisson(mean=7.5),
    Poisson(mean=7.5, cap=5),
    Binomial(n=20, p=0.3),
]


@pytest.mark.parametrize("coarse", [False, True])
@pytest.mark.parametrize("law", EXACT_LAWS, ids=str)
def test_the_staircase_stands_over_the_weights(law, coarse, monkeypatch):
    """In whole numbers: each step is over its weights, its sure height under them, and no k is left out or covered twice."""
    if coarse:
        monkeypatch.setattr(sampler, "_SINGLE", 2)
        monkeypatch.setattr(sampler, "_FAINT", 6)
    stairs, terms = Sampler.under(law._terms()), law._terms()
    end = max(step.start + step.length for step in stairs._steps)
    last = terms.last if terms.last is not None else end + 5 * stairs._tail.length
    weights, unit = exact_weights(terms, last), Fraction(1, 2**stairs._bits)
    covered = sorted(k for step in stairs._steps for k in range(step.start, step.start + step.length))
    assert covered == list(range(terms.first, end))
    for step in stairs._steps:
        for k in range(step.start, step.start + step.length):
            assert step.sure * unit <= weights[k] <= step.height * unit
    if stairs._tail is None:
        assert end == terms.last + 1
        return
    tail = stairs._tail
    assert tail.start == end
    for k in range(end, last):
        assert weights[k] <= tail.height * unit / 2 ** ((k - end) // tail.length)


@pytest.mark.parametrize("law", EXACT_LAWS, ids=str)
def test_a_point_on_the_edge_is_refined_until_it_is_decided(law):
    """Heights within one part in 2^256 of a weight, both sides of it: the decision is the exact one, and takes more bits to reach."""
    stairs, terms = Sampler.under(law._terms()), law._terms()
    bits, more = stairs._bits, 256
    weights = exact_weights(terms, 30 if terms.last is None else terms.last)
    for k in sorted(weights)[:12]:
        edge = weights[k] * 2 ** (bits + more)
        if edge.denominator == 1:
            continue  # such a step is full: no point of it is in doubt
        for offset in (-2, -1, 0, 1):
            height = math.floor(edge) + offset
            entropy = Stream(height & (2**more - 1), more)
            assert stairs._is_under(k, height >> more, bits, entropy) == (height < edge)
            assert entropy.served > more - 64  # a decision before that would be a guess


def test_a_draw_on_the_edge_of_a_step():
    """A whole draw: the point falls on the one unit of a step that its weight only partly fills."""
    law = Geometric(mean=30)
    stairs = Sampler.under(law._terms())
    place = 3
    step, start = stairs._steps[place], stairs._ends[place - 1]
    assert step.height == step.sure + 1
    fraction = exact_weights(law._terms(), 4)[4] * 2**stairs._bits - step.sure
    under, over = int(fraction * 2**96) - 2**64, int(fraction * 2**96) + 2**64
    entropy = Stream(under, 96, first=[start + step.sure])
    assert stairs.draw(entropy) == step.start == 4
    assert 0 < entropy.served < 100
    # The same point a little higher is not kept, and all that follows is zero: the next point is under the first step.
    assert stairs.draw(Stream(over, 96, first=[start + step.sure])) == 1


def test_weights_are_enclosed():
    terms = NegativeBinomial(eta=-0.5, mean=300)._terms()
    weights = exact_weights(terms, 400)
    for k in (1, 2, 17, 399):
        for digits in (12, 24, 100):
            low, high = terms.weight(k, 500, digits)
            assert low <= weights[k] * 2**500 <= high
            assert high - low <= 2 + weights[k] * 2**500 / 10**digits
    assert Poisson(mean=1e9)._terms().weight(5, 128, 12) == (0, 1)  # e^-1e9 of the mode: enclosed, and no trouble


@pytest.mark.parametrize(
    ("law", "k"),
    [
        (NegativeBinomial(eta=-0.9, mean=1e9), 10**50),
        (Logarithmic(mean=1e9), 10**10),
        (Poisson(mean=1e9), 10**9 + 12_345),
        (Binomial(n=10**9, p=0.3), 3 * 10**8 - 54_321),
    ],
    ids=str,
)
def test_far_weights_are_enclosed(law, k):
    terms = law._terms()
    with mp.workdps(150):

        def log_weight(k):
            up = sum(mp.loggamma(k + exact(a)) for a in terms.rising)
            down = sum(mp.loggamma(k + exact(b)) for b in terms.falling) + sum(mp.loggamma(exact(c) - k) for c in terms.mirrored)
            return k * mp.log(exact(terms.base)) + up - down

        wanted = mp.exp(log_weight(k) - log_weight(terms.mode())) * mp.mpf(2) ** 400
        low, high = terms.weight(k, 400, 30)
        assert low <= wanted <= high
        assert high - low <= 2 + wanted / 10**30


def test_log_gamma_is_enclosed():
    """Gamma(n) is a factorial, Gamma(n + 1/2) one times a power of pi: their ratios to Gamma(1) and Gamma(1/2) are rational."""
    for digits in (12, 40, 150):
        arithmetic = IntervalArithmetic(digits)
        for x, start, product in ((Fraction(30), Fraction(1), math.factorial(29)), (Fraction(41, 2), Fraction(1, 2), None)):
            wanted = Fraction(product) if product else math.prod((start + i for i in range(int(x - start))), start=Fraction(1))
            low, high = arithmetic.exp(arithmetic.minus(arithmetic.log_gamma(x), arithmetic.log_gamma(start)))
            assert Fraction(low) <= wanted <= Fraction(high)
            assert Fraction(high) - Fraction(low) <= wanted / 10 ** (digits - 8)


def test_whole_numbers_below():
    entropy = seeded(1)
    assert uniform_below(1, Scripted()) == 0
    assert uniform_below(5, Scripted(7, 5, 4)) == 4
    assert {uniform_below(6, entropy) for _ in range(200)} == set(range(6))


@pytest.mark.parametrize("law", [*SMALL_LAWS, *LARGE_LAWS], ids=str)
def test_draws_are_in_range_and_follow_the_entropy(law):
    first, second = seeded(7), seeded(7)
    draws = [law.sample(first) for _ in range(50)]
    assert draws == [law.sample(second) for _ in range(50)]
    assert all(isinstance(k, int) and math.isfinite(float(law.log_pmf(k))) for k in draws)


def test_a_fixed_number_needs_no_entropy():
    nothing = Scripted()
    assert Fixed(k=8).sample(nothing) == Binomial(n=20, p=1).sample(nothing) * 2 // 5 == 8
    assert Geometric(mean=1).sample(nothing) == 1


def test_the_heaviest_tail_can_be_drawn():
    """D(-0.9) with mean 1e9 has K beyond 1e60 now and then: the sampler must reach it, not walk to it."""
    law = NegativeBinomial(eta=-0.9, mean=1e9)
    stairs = Sampler.under(law._terms())
    step = stairs._steps[-1]
    k = stairs.draw(Scripted(stairs._ends[-2] - step.height))
    assert step.start <= k < step.start + step.length
    assert k > 10**60
