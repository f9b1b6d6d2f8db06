"""Gumbel noise is the exponential mechanism, exponential noise is permute-and-flip."""

from itertools import permutations

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import softmax

from privselect.noisy_max import Exponential, Gumbel, NoisyMax
from privselect.noisy_max.accounting.gumbel_noise import gumbel_delta

SCORES = [[0.0, 1.0], [3.0, 2.5, -1.0], [0.0, 0.0, 0.0, 4.0], [1.0, -2.0, 0.3, 0.7, 2.2]]


def hockey(p, q, epsilon):
    return float(np.maximum(np.asarray(p) - np.exp(epsilon) * np.asarray(q), 0.0).sum())


@pytest.mark.parametrize("most", [1e-3, 0.3, 2.0, 30.0])
def test_delta_is_the_largest_over_all_probabilities(most):
    chances = np.concatenate([np.geomspace(1e-18, 0.5, 200_000), 1.0 - np.geomspace(1e-18, 0.5, 200_000)])
    moved = chances * np.exp(most) / (1.0 + chances * np.expm1(most))
    for epsilon in most * np.array([-1.0, -0.5, 0.0, 0.3, 0.9]):
        brute = float(np.maximum(moved - np.exp(epsilon) * chances, 0.0).max())
        assert brute <= float(gumbel_delta(most, epsilon)) * (1 + 1e-12) + 1e-15
        assert brute == pytest.approx(float(gumbel_delta(most, epsilon)), rel=1e-6)


@pytest.mark.parametrize("most", [1e-9, 0.3, 2.0, 300.0])
def test_delta_keeps_its_digits_and_is_rounded_up(most):
    with mpmath.workdps(60):
        g = mpmath.mpf(most)
        for share in (-1.5, -0.7, 0.0, 0.5, 0.999999, 1 - 1e-12):
            epsilon = share * most
            e = mpmath.mpf(epsilon)
            true = (mpmath.exp(g / 2) - mpmath.exp(e / 2)) ** 2 / mpmath.expm1(g) if e > -g else -mpmath.expm1(e)
            found = float(gumbel_delta(most, epsilon))
            assert min(true, 1) <= found
            assert found == pytest.approx(float(true), rel=1e-13)
    assert float(gumbel_delta(most, most)) == 0.0


@given(st.lists(st.tuples(st.floats(-5, 5), st.floats(-1, 1)), min_size=2, max_size=8), st.floats(0.2, 5), st.floats(-1, 1))
def test_no_scores_leak_more(scores, scale, share):
    before = np.array([score for score, _ in scores])
    after = before + np.array([change for _, change in scores])
    most = 2.0 / scale
    epsilon = share * most
    worst = hockey(softmax(before / scale), softmax(after / scale), epsilon)
    assert worst <= float(gumbel_delta(most, epsilon)) + 1e-14
    assert worst <= float(NoisyMax(Gumbel(scale=scale), m=len(scores)).delta_at(epsilon).upper) + 1e-14


@pytest.mark.parametrize("m", [2, 7, 10**9])
def test_both_bounds_are_the_exponential_mechanism(m):
    mechanism = NoisyMax(Gumbel(scale=4), m=m)
    for epsilon in (0.0, 0.1, 0.4, 0.499):
        found = mechanism.delta_at(epsilon)
        true = float(gumbel_delta(0.5, epsilon))
        assert found.lower <= true <= found.upper
        assert found.lower == pytest.approx(true, rel=1e-4)
        assert found.upper == pytest.approx(true, rel=1e-4)
    assert mechanism.epsilon_at(1e-12).upper <= 0.5 * (1 + 1e-12)


@pytest.mark.parametrize("scores", SCORES, ids=len)
@pytest.mark.parametrize("scale", [0.7, 3.0])
def test_gumbel_noise_draws_the_exponential_mechanism(scores, scale):
    """In ``v = exp(-x/scale)``, index i wins at v with density ``w_i exp(-v sum w)``: by quadrature, of the noisy max as it is defined."""
    weights = [mpmath.exp(mpmath.mpf(score) / scale) for score in scores]

    def wins(i):
        def density(x):
            z = (x - scores[i]) / scale
            others = mpmath.fsum(mpmath.exp(-(x - s) / scale) for j, s in enumerate(scores) if j != i)
            return mpmath.exp(-z - mpmath.exp(-z) - others) / scale

        middle = max(scores)
        return mpmath.quad(
            density, [middle - 8 * scale, middle - 2 * scale, middle, middle + 3 * scale, middle + 12 * scale, middle + 60 * scale]
        )

    for i, weight in enumerate(weights):
        assert abs(wins(i) - weight / mpmath.fsum(weights)) < 1e-12


def permute_and_flip(scores, scale):
    """In a random order, take each with probability ``exp((score - largest)/scale)``, until one is taken."""
    coins = [mpmath.exp(mpmath.mpf(score - max(scores)) / scale) for score in scores]
    taken = [mpmath.mpf(0)] * len(scores)
    orders = list(permutations(range(len(scores))))
    for order in orders:
        left = mpmath.mpf(1)
        for i in order:
            taken[i] += left * coins[i] / len(orders)
            left *= 1 - coins[i]
    return taken


def exponential_winner(scores, scale):
    """The probability of each index, by quadrature over the winner's noisy score."""
    top = max(scores)

    def wins(i):
        def density(x):
            others = mpmath.fprod(-mpmath.expm1(-(x - s) / scale) for j, s in enumerate(scores) if j != i)
            return mpmath.exp(-(x - scores[i]) / scale) / scale * others

        return mpmath.quad(density, [top, top + 2 * scale, top + 10 * scale, top + 100 * scale])

    return [wins(i) for i in range(len(scores))]


@pytest.mark.parametrize("scores", SCORES, ids=len)
@pytest.mark.parametrize("scale", [0.7, 3.0])
def test_exponential_noise_is_permute_and_flip(scores, scale):
    for drawn, taken in zip(exponential_winner(scores, scale), permute_and_flip(scores, scale), strict=True):
        assert abs(drawn - taken) < 1e-12


@pytest.mark.parametrize("m", [2, 3, 5])
def test_permute_and_flip_never_leaks_more_than_is_said(m):
    random = np.random.default_rng(m)
    for monotone, gap in ((True, 1), (False, 2)):
        mechanism = NoisyMax(Exponential(scale=2), m=m, monotone=monotone)
        for _ in range(20):
            before = random.normal(0.0, 2.0, m)
            after = before + (random.integers(0, 2, m) if monotone else random.choice([-1.0, 1.0], m))
            p, q = (np.array(permute_and_flip(scores.tolist(), 2.0), dtype=float) for scores in (before, after))
            assert np.max(p / q) <= np.exp(gap / 2) * (1 + 1e-12)
            for epsilon in (0.0, 0.2, 0.45):
                assert max(hockey(p, q, epsilon), hockey(q, p, epsilon)) <= float(mechanism.delta_at(epsilon).upper) + 1e-14
        assert mechanism.epsilon_at(1e-9).upper <= gap / 2 * (1 + 1e-9)
