"""Discrete Laplace noise of any scale, drawn exactly."""

import math
import random

import pytest
from scipy.stats import chisquare

import privselect as ps


@pytest.mark.parametrize("scale", [0.2, 1.0 / 3.0, 0.7, 1.0, 2.5, 7.0])
def test_the_noise_has_its_distribution(scale):
    """By chi-square, over outcomes expected 50 times or more and the rest: six times a false alarm of probability 1e-7, over all seeds."""
    noise, runs = ps.DiscreteLaplace(scale=scale), 20_000
    entropy = random.Random(11)  # noqa: S311 - the same draws in every run of the test
    draws = [noise.sample(entropy) for _ in range(runs)]
    t = math.exp(-1.0 / scale)
    expected = {k: runs * (1.0 - t) / (1.0 + t) * t ** abs(k) for k in range(-200, 201)}
    kept = [k for k, times in expected.items() if times >= 50.0]
    seen = [draws.count(k) for k in kept]
    wanted = [expected[k] for k in kept]
    rest = runs - sum(wanted)
    if rest >= 5.0:
        seen, wanted = [*seen, runs - sum(seen)], [*wanted, rest]
    else:
        assert runs - sum(seen) < 60
        wanted = [times * sum(seen) / sum(wanted) for times in wanted]
    assert chisquare(seen, wanted).pvalue > 1e-7


@pytest.mark.parametrize("scale", [1.0 / 700.0, 1e-2])
def test_noise_far_below_one_is_none(scale):
    assert {ps.DiscreteLaplace(scale=scale).sample() for _ in range(50)} == {0}


def test_huge_noise_is_huge():
    draws = [abs(ps.DiscreteLaplace(scale=1e30).sample()) for _ in range(40)]
    assert 1e27 < max(draws) < 1e32  # beyond with probability 40 e^-100, below with (1e-3)^40
