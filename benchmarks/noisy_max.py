"""Benchmarks of report noisy max: accounting, exact and float sampling of a batch, and one round of a vote."""

from __future__ import annotations

import numpy as np
from lines import Line, seconds

import privselect as ps

BATCH = np.random.default_rng(7).integers(0, 100, (100_000, 10))
NOISES = (
    ps.Gaussian(sigma=4),
    ps.Laplace(scale=4),
    ps.Gumbel(scale=4),
    ps.Exponential(scale=4),
    ps.DiscreteGaussian(sigma=4),
    ps.DiscreteLaplace(scale=4),
)
ROUNDS = 1000
ROUNDED = ps.NoisyMax(ps.Gaussian(sigma=40), m=10, rounds=ROUNDS)


def noisy_max_lines() -> list[Line]:
    ps.report_noisy_max(BATCH[:10], NOISES[0])  # trigger imports that happen on first use
    ps.NoisyMax(NOISES[0], m=3, rounds=2).epsilon_at(1e-6)
    exact = [Line(f"noisy max: 100,000 vectors of 10, exact, {noise}", batch(noise), "s", 30.0) for noise in NOISES]
    votes = ps.NoisyVotes(NOISES[0], m=10, rounds=ROUNDS)
    ballots = np.arange(250) % 10
    one = seconds(lambda: [votes.run_round(ballots) for _ in range(ROUNDS)]) / ROUNDS
    return [
        Line("noisy max: epsilon, m = 1000", seconds(lambda: ps.NoisyMax(ps.Gaussian(sigma=4.1), m=1000).epsilon_at(1e-6)), "s", 0.1),
        Line("noisy max: epsilon, m = 10, 1000 rounds", seconds(lambda: ROUNDED.epsilon_at(1e-6)), "s", 2.0),
        *exact,
        Line(f"noisy max: the same with float noise, {NOISES[0]}", batch(NOISES[0], insecure_float=True), "s", 1.0),
        Line("noisy max: one vote of 250 over 10 classes, exact", 1e3 * one, "ms"),
    ]


def batch(noise: ps.Mechanism | ps.Gumbel | ps.Exponential, *, insecure_float: bool = False) -> float:
    return seconds(lambda: ps.report_noisy_max(BATCH, noise, insecure_float=insecure_float))


if __name__ == "__main__":
    for line in noisy_max_lines():
        print(*line.cells(), sep="  ")
