"""Instances on two levels: their probabilities against enumeration and closed forms, and what they say about other bounds."""

import math
from itertools import product

import numpy as np
import pytest
from scipy import stats

import privselect as ps
from privselect.noisy_max import Exponential, Gumbel, NoisyMax
from privselect.noisy_max.accounting.lower_bounds import two_group_instances
from privselect.noisy_max.accounting.max_comparison import Offsets, estimate_win_probabilities, win_probability_bounds
from privselect.noisy_max.accounting.noise_accounting import ScoreChange, accounting_of

NOISES = [ps.Gaussian(sigma=3), ps.Laplace(scale=3), Gumbel(scale=3), Exponential(scale=3), ps.DiscreteLaplace(scale=3)]
NOISES += [ps.DiscreteGaussian(sigma=3), ps.DiscreteLaplace(scale=0.3)]


def chance_of_winning(weights, ahead, size, rivals):
    """That one of ``size`` level scores wins against rivals that are ``ahead``, ties broken evenly: by enumeration of all noises."""
    total = sum(weights.values())
    chance = 0.0
    for noises in product(weights, repeat=size + rivals):
        scores = [*noises[:size], *(noise + ahead for noise in noises[size:])]
        top = max(scores)
        chance += scores[:size].count(top) / scores.count(top) * math.prod(weights[noise] / total for noise in noises)
    return chance


@pytest.mark.parametrize("groups", [(1, 1), (1, 2), (2, 1)])
@pytest.mark.parametrize("noise", [ps.DiscreteLaplace(scale=0.4), ps.DiscreteGaussian(sigma=0.8)], ids=str)
def test_probabilities_against_all_noises(noise, groups):
    """Noise beyond 10 has less than 1e-10 in all."""
    if isinstance(noise, ps.DiscreteLaplace):
        weights = {k: math.exp(-abs(k) / 0.4) for k in range(-10, 11)}
    else:
        weights = {k: math.exp(-k * k / (2 * 0.8**2)) for k in range(-10, 11)}
    offsets, gap = Offsets(-1.0, 1.0, 4), 2
    moved, still = win_probability_bounds(accounting_of(noise), groups, offsets, gap)
    for x, low, high in zip(offsets.values().astype(int).tolist(), moved, still, strict=True):
        true_moved, true_still = (chance_of_winning(weights, ahead, *groups) for ahead in (x - gap, x))
        assert low <= true_moved + 1e-9
        assert true_moved == pytest.approx(low, rel=5e-3)
        assert high >= true_still - 1e-9
        assert true_still == pytest.approx(high, rel=2e-2)


def test_probabilities_of_two_laplace_scores():
    """The difference of two has the tail ``(2 + x/b) e^(-x/b)/4``."""
    offsets = Offsets(1.0, 2.5, 12)
    moved, still = win_probability_bounds(accounting_of(ps.Laplace(scale=2)), (1, 1), offsets, 1)

    def tail(x):
        return 0.25 * (2.0 + x / 2.0) * np.exp(-x / 2.0)

    x = offsets.values()
    assert np.all(moved <= tail(x - 1.0))
    assert np.all(still >= tail(x))
    np.testing.assert_allclose(moved, tail(x - 1.0), rtol=1e-3)
    np.testing.assert_allclose(still, tail(x), rtol=1e-3)


@pytest.mark.parametrize("groups", [(1, 10**9 - 1), (10**9 - 1, 1), (5 * 10**8, 5 * 10**8)])
def test_probabilities_of_many_gumbel_scores(groups):
    """The largest of n is one of them moved up by log n: its probability is the share of its weight."""
    shift = np.log(groups[1] / groups[0])
    offsets = Offsets(-shift - 8.0, 1.0, 30)
    moved, still = win_probability_bounds(accounting_of(Gumbel(scale=1)), groups, offsets, 2)
    x = offsets.values() + shift
    np.testing.assert_array_less(moved, 1.0 / (1.0 + np.exp(x - 2.0)))
    np.testing.assert_array_less(1.0 / (1.0 + np.exp(x)), still)
    np.testing.assert_allclose(moved, 1.0 / (1.0 + np.exp(x - 2.0)), rtol=2.1e-3)
    np.testing.assert_allclose(still, 1.0 / (1.0 + np.exp(x)), rtol=2.1e-3)


@pytest.mark.parametrize("noise", NOISES, ids=str)
@pytest.mark.parametrize("m", [2, 10, 10**6])
def test_a_rough_probability_lies_between(noise, m):
    groups, offsets = (1, m - 1), Offsets(-6.0, 1.0, 12)
    rough, sure = (find(accounting_of(noise), groups, offsets, 1) for find in (estimate_win_probabilities, win_probability_bounds))
    assert np.all(sure[0] <= rough[0] * 1.01 + 1e-9)
    assert np.all(sure[1] >= rough[1] * 0.99 - 1e-9)


@pytest.mark.parametrize("gap", [1, 2])
@pytest.mark.parametrize("noise", NOISES, ids=str)
@pytest.mark.parametrize("m", [2, 3, 10, 1000, 10**9])
def test_from_below_is_never_above(noise, m, gap):
    known = accounting_of(noise)
    found = two_group_instances(known, ScoreChange(m, m, gap))
    epsilon = np.linspace(0.0, 1.5, 31)
    lower = found.delta(epsilon)
    upper = np.minimum(
        (m - 1) * known.shift_bracket(gap).upper.hockey_stick(epsilon, side=1), known.index_delta(ScoreChange(m, m, gap), epsilon)
    )
    assert np.all(lower <= upper)
    assert lower[0] > 0.01
    assert 1 <= len(found.as_pairs()) <= 15


def test_the_epsilons_of_gaussian_noise():
    """Those of the finer route for Gaussian noise, to 0.2%."""
    for m, epsilon in ((2, 1.5436), (3, 1.7600), (5, 1.9171), (10, 2.0993), (30, 2.3164), (100, 2.5008), (300, 2.6401)):
        found = float(two_group_instances(accounting_of(ps.Gaussian(sigma=4)), ScoreChange(m, m, 2)).epsilon(np.array(1e-6)))
        assert 0.998 * epsilon <= found <= 1.0001 * epsilon


def test_few_that_move_leak_less():
    known, epsilon = accounting_of(ps.DiscreteGaussian(sigma=4)), np.array([0.0, 0.3, 0.8])
    one, all_of_them = (two_group_instances(known, ScoreChange(100, together, 1)).delta(epsilon) for together in (1, 100))
    assert np.all(one <= all_of_them * (1 + 1e-9))
    assert np.any(one < 0.9 * all_of_them)


def test_noise_too_wide_for_cells_says_nothing():
    assert len(two_group_instances(accounting_of(ps.Laplace(scale=1e9)), ScoreChange(10, 10, 2)).moved) == 0


def test_integer_noise_has_integer_offsets():
    """At offset 1/2, discrete noise of a tiny scale would tell far more than any two integer scores can."""
    noise = ps.DiscreteLaplace(scale=0.05)
    found = NoisyMax(noise, m=2).delta_at(np.array([0.0, 5.0, 20.0, 39.0]))
    assert np.all(found.lower <= found.upper)


PLACES = np.linspace(-60.0, 60.0, 8001)


def one_against(law, rivals, epsilon, gap=2.0):
    """P(it wins, moved up) - e^epsilon P(it wins): one score at 0 against rivals, given as (mean, how many)."""
    greatest = np.prod([law.cdf(PLACES - mean) ** count for mean, count in rivals], axis=0)
    gain = law.sf(PLACES - gap) - np.exp(epsilon) * law.sf(PLACES)
    return float(np.diff(greatest) @ (0.5 * (gain[1:] + gain[:-1])))


def level_rivals(law, count, epsilon, offsets):
    """D1: the largest over all offsets of rivals that are level."""
    return max(one_against(law, [(offset, count)], epsilon) for offset in offsets)


@pytest.mark.parametrize(("epsilon", "near", "offset"), [(0.4, 3, 0.6), (0.6, 4, 0.7), (0.8, 5, 1.0)])
def test_laplace_noise_violates_d1(epsilon, near, offset):
    """Of ten rivals, some near and the others far below are 7% worse than ten on any level: D1 is a bound for Gaussian noise only."""
    law = stats.laplace(scale=2)
    level = level_rivals(law, 10, epsilon, np.arange(-6.0, 6.0, 0.05))
    assert one_against(law, [(offset, near), (offset - 20.0, 10 - near)], epsilon) > 1.07 * level


def test_gaussian_noise_satisfies_d1():
    random = np.random.default_rng(7)
    law = stats.norm(scale=2)
    for epsilon in (0.3, 1.5):
        level = level_rivals(law, 10, epsilon, np.arange(-8.0, 8.0, 0.1))
        for _ in range(30):
            spread = random.choice([0.1, 1.0, 4.0])
            means = random.normal(random.uniform(-5.0, 3.0), spread, 10)
            assert one_against(law, [(mean, 1) for mean in means], epsilon) <= level * (1 + 1e-3)


def winners(weights, scores):
    """The probability of each index, ties broken evenly, by enumeration of all noises."""
    places = np.array(list(weights))
    masses = np.array(list(weights.values())) / sum(weights.values())
    grids = np.meshgrid(*(places + score for score in scores), indexing="ij")
    joint = np.prod(np.meshgrid(*[masses] * len(scores), indexing="ij"), axis=0)
    top = np.maximum.reduce(grids)
    ties = sum((grid == top).astype(float) for grid in grids)
    return np.array([float((joint * (grid == top) / ties).sum()) for grid in grids])


@pytest.mark.parametrize("changes", [None, 1, 2])
@pytest.mark.parametrize("monotone", [True, False])
@pytest.mark.parametrize("noise", [ps.DiscreteLaplace(scale=1.2), ps.DiscreteGaussian(sigma=1.1)], ids=str)
def test_no_integer_scores_leak_more(noise, monotone, changes):
    """Noise beyond 20 is cut off, which has less than 1e-6 in all."""
    rate = (lambda k: abs(k) / 1.2) if isinstance(noise, ps.DiscreteLaplace) else (lambda k: k * k / (2 * 1.1**2))
    weights = {k: math.exp(-rate(k)) for k in range(-20, 21)}
    mechanism, random = NoisyMax(noise, m=3, monotone=monotone, changes=changes), np.random.default_rng(5)
    epsilon = np.array([0.0, 0.2, 0.5, 0.8, 1.2])
    upper = np.asarray(mechanism.delta_at(epsilon).upper)
    for _ in range(12):
        before = random.integers(-3, 4, 3)
        step = np.ones(3, dtype=int) if monotone else random.choice([-1, 1], 3)
        step[random.permutation(3)[: 3 - (changes or random.integers(1, 4))]] = 0
        p, q = winners(weights, before), winners(weights, before + step)
        for first, second in ((p, q), (q, p)):
            worst = [float(np.maximum(first - math.exp(e) * second, 0.0).sum()) for e in epsilon]
            assert np.all(worst <= upper + 4e-6)
