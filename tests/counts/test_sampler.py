"""Samplers draw exactly from their distribution: checked with integer arithmetic and with statistical tests."""

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
from privselect.counts.capped import _log_cdf_at_cap
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
    """Entropy that returns the given numbers."""

    def __init__(self, *numbers):
        self.numbers = list(numbers)

    def getrandbits(self, k):
        assert self.numbers[0] < 2**k
        return self.numbers.pop(0)


class Stream:
    """Entropy from the bits of one number, followed by zeros; ``first`` numbers are returned before them."""

    def __init__(self, number, bits, first=()):
        self.number, self.bits, self.served, self.first = number, bits, 0, list(first)

    def getrandbits(self, k):
        if self.first:
            return self.first.pop(0)
        self.served += k
        return (self.number << self.served >> self.bits) & (2**k - 1)


def seeded(seed):
    return random.Random(seed)  # noqa: S311 -- a reproducible test


def cdf(law, k):
    if k < 0:
        return 0.0
    if law.largest is not None and k >= law.largest:
        return 1.0
    if k < 20_000:
        return float(math.fsum(np.exp(law.log_pmf(np.arange(k + 1)))))
    return math.exp(law._log_cdf(k) - _log_cdf_at_cap(law))


def p_value(law, draws, entropy, draw=None):
    """Return the p-value of a chi-square test of ``draws`` draws, over cells chosen from a few other draws."""
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
        return 1.0  # a single cell
    wanted = draws * np.array([*cells, 1.0 - so_far])
    found = Counter(bisect_left(ends, draw(entropy)) for _ in range(draws))
    square = sum((found[i] - w) ** 2 / w for i, w in enumerate(wanted))
    return float(gammaincc(len(ends) / 2, square / 2))


@pytest.mark.parametrize("law", SMALL_LAWS, ids=str)
def test_draws_follow_the_law(law):
    """With seeded entropy the result is fixed: it can fail only after a change of the draws, then with probability 1e-5."""
    assert p_value(law, DRAWS, seeded(20240)) > 1e-5


@pytest.mark.parametrize("law", LARGE_LAWS, ids=str)
def test_draws_follow_large_laws(law):
    assert p_value(law, DRAWS // 10, seeded(20241)) > 1e-5


@pytest.mark.parametrize("law", [Geometric(mean=30), Poisson(mean=10, cap=12), Finite({0: 1, 5: 9})], ids=str)
def test_draws_from_the_operating_system_follow_the_law(law):
    """Three tests with a false-alarm probability of 1e-9 each."""
    assert p_value(law, DRAWS, None) > 1e-9


@pytest.mark.soak
@pytest.mark.parametrize("law", [*SMALL_LAWS, *LARGE_LAWS], ids=str)
def test_many_draws_follow_the_law(law, campaign):
    """The false-alarm probability is 1e-9 for each law."""
    assert p_value(law, campaign(1_000_000), random.SystemRandom()) > 1e-9


@pytest.mark.parametrize(
    "law",
    [Geometric(mean=30), NegativeBinomial(eta=-0.5, mean=30), NegativeBinomial(eta=5, mean=30), Logarithmic(mean=30), Poisson(mean=30)],
    ids=str,
)
def test_wide_stairs_and_the_tail_follow_the_law(law, monkeypatch):
    """The tail is reached once in 2^88 draws: a coarser staircase makes it frequent."""
    monkeypatch.setattr(sampler, "_MAX_SINGLE_STAIRS", 3)
    monkeypatch.setattr(sampler, "_NEGLIGIBLE_BITS", 2)
    coarse = Sampler.under(law._pmf_weights())
    assert len(coarse._stairs) < 40
    share = 2 * coarse._tail.length * coarse._tail.height / coarse._cumulative_areas[-1]
    assert share > 0.01
    assert p_value(law, DRAWS // 20, seeded(20242), coarse.draw) > 1e-5


def exact_weights(terms, last):
    """Return w(k)/w(mode) as fractions."""
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
    """In integers: each stair is above its weights, its certain height below them, and each k is covered exactly once."""
    if coarse:
        monkeypatch.setattr(sampler, "_MAX_SINGLE_STAIRS", 2)
        monkeypatch.setattr(sampler, "_NEGLIGIBLE_BITS", 6)
    stairs, terms = Sampler.under(law._pmf_weights()), law._pmf_weights()
    end = max(step.start + step.length for step in stairs._stairs)
    last = terms.last if terms.last is not None else end + 5 * stairs._tail.length
    weights, unit = exact_weights(terms, last), Fraction(1, 2**stairs._bits)
    covered = sorted(k for step in stairs._stairs for k in range(step.start, step.start + step.length))
    assert covered == list(range(terms.first, end))
    for step in stairs._stairs:
        for k in range(step.start, step.start + step.length):
            assert step.certain * unit <= weights[k] <= step.height * unit
    if stairs._tail is None:
        assert end == terms.last + 1
        return
    tail = stairs._tail
    assert tail.start == end
    for k in range(end, last):
        assert weights[k] <= tail.height * unit / 2 ** ((k - end) // tail.length)


@pytest.mark.parametrize("law", EXACT_LAWS, ids=str)
def test_a_point_on_the_edge_is_refined_until_it_is_decided(law):
    """Heights within 2^-256 of a weight, on both sides: the decision is exact, and takes more bits."""
    stairs, terms = Sampler.under(law._pmf_weights()), law._pmf_weights()
    bits, more = stairs._bits, 256
    weights = exact_weights(terms, 30 if terms.last is None else terms.last)
    for k in sorted(weights)[:12]:
        edge = weights[k] * 2 ** (bits + more)
        if edge.denominator == 1:
            continue  # such a stair is full: all its points are accepted
        for offset in (-2, -1, 0, 1):
            height = math.floor(edge) + offset
            entropy = Stream(height & (2**more - 1), more)
            assert stairs._is_under(k, height >> more, bits, entropy) == (height < edge)
            assert entropy.served > more - 64  # an earlier decision would be a guess


def test_a_draw_on_the_edge_of_a_stair():
    """A complete draw: the point falls on the unit of a stair that its weight fills only partly."""
    law = Geometric(mean=30)
    stairs = Sampler.under(law._pmf_weights())
    place = 3
    step, start = stairs._stairs[place], stairs._cumulative_areas[place - 1]
    assert step.height == step.certain + 1
    fraction = exact_weights(law._pmf_weights(), 4)[4] * 2**stairs._bits - step.certain
    under, over = int(fraction * 2**96) - 2**64, int(fraction * 2**96) + 2**64
    entropy = Stream(under, 96, first=[start + step.certain])
    assert stairs.draw(entropy) == step.start == 4
    assert 0 < entropy.served < 100
    # The same point slightly higher is rejected. The following bits are zero, so the next point is under the first stair.
    assert stairs.draw(Stream(over, 96, first=[start + step.certain])) == 1


def test_weights_are_enclosed():
    terms = NegativeBinomial(eta=-0.5, mean=300)._pmf_weights()
    weights = exact_weights(terms, 400)
    for k in (1, 2, 17, 399):
        for digits in (12, 24, 100):
            low, high = terms.weight(k, 500, digits)
            assert low <= weights[k] * 2**500 <= high
            assert high - low <= 2 + weights[k] * 2**500 / 10**digits
    assert Poisson(mean=1e9)._pmf_weights().weight(5, 128, 12) == (0, 1)  # e^-1e9 of the mode: still enclosed


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
    terms = law._pmf_weights()
    with mp.workdps(150):

        def log_weight(k):
            up = sum(mp.loggamma(k + exact(a)) for a in terms.numerator_shifts)
            down = sum(mp.loggamma(k + exact(b)) for b in terms.denominator_shifts) + sum(
                mp.loggamma(exact(c) - k) for c in terms.mirrored_shifts
            )
            return k * mp.log(exact(terms.base)) + up - down

        wanted = mp.exp(log_weight(k) - log_weight(terms.mode())) * mp.mpf(2) ** 400
        low, high = terms.weight(k, 400, 30)
        assert low <= wanted <= high
        assert high - low <= 2 + wanted / 10**30


def test_log_gamma_is_enclosed():
    """The ratios of Gamma(n) to Gamma(1), and of Gamma(n + 1/2) to Gamma(1/2), are rational."""
    for digits in (12, 40, 150):
        arithmetic = IntervalArithmetic(digits)
        for x, start, product in ((Fraction(30), Fraction(1), math.factorial(29)), (Fraction(41, 2), Fraction(1, 2), None)):
            wanted = Fraction(product) if product else math.prod((start + i for i in range(int(x - start))), start=Fraction(1))
            low, high = arithmetic.exp(arithmetic.minus(arithmetic.log_gamma(x), arithmetic.log_gamma(start)))
            assert Fraction(low) <= wanted <= Fraction(high)
            assert Fraction(high) - Fraction(low) <= wanted / 10 ** (digits - 8)


def test_uniform_below():
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
    """D(-0.9) with mean 1e9 has K beyond 1e60 occasionally: the sampler must reach it without enumerating smaller k."""
    law = NegativeBinomial(eta=-0.9, mean=1e9)
    stairs = Sampler.under(law._pmf_weights())
    step = stairs._stairs[-1]
    k = stairs.draw(Scripted(stairs._cumulative_areas[-2] - step.height))
    assert step.start <= k < step.start + step.length
    assert k > 10**60
