"""Benchmark plans, in evaluations of the accountant, and designs, in seconds and megabytes."""

from __future__ import annotations

import itertools
from statistics import median

from lines import Line, seconds
from memory import peak_of

import privselect as ps

DELTA = 1e-6
MOST_EVALUATIONS = 25.0
DPSGD = "dpsgd(noise_multiplier={}, sampling_probability={}, steps={})"
GEOMETRIC = "geometric(mean=30)"
PROBLEMS = {
    "noise_multiplier": (DPSGD.format("?", 0.01, 4000), GEOMETRIC, 2.0),
    "steps": (DPSGD.format(1.3, 0.01, "?"), GEOMETRIC, 4.0),
    "sampling_probability": (DPSGD.format(1.3, "?", 4000), GEOMETRIC, 4.0),
    "mean": (DPSGD.format(1.3, 0.01, 4000), "geometric(mean=?)", 4.0),
    "noise_multiplier, 14063 steps": (DPSGD.format("?", 256 / 60_000, 14_063), GEOMETRIC, 3.0),
    "noise_multiplier, q = 0.33": (DPSGD.format("?", 16384 / 50_000, 250), "geometric(mean=300)", 2.0),
}
DESIGN = {"epsilon": 2.0317, "delta": 1e-6, "tau": 0.01, "cap": 500, "mean": 99}
LONGEST, LARGEST = 60.0, 1000.0  # seconds, MB
_FRESH = itertools.count(1)


def planning_lines() -> list[Line]:
    return [*(_plan_line(name, *problem) for name, problem in PROBLEMS.items()), *_design_lines()]


def _design_lines() -> list[Line]:
    found = []
    spent = seconds(lambda: found.append(ps.design(ps.Gaussian(sigma=4), **DESIGN)))
    return [
        Line("design with cap 500", spent, "s", LONGEST),
        Line("design with cap 500: gap to the upper bound of every law", 100.0 * found[0].gap, "%", 2.0),
        Line("peak memory: design with cap 500", peak_of(f"ps.design(ps.Gaussian(sigma=4), **{DESIGN!r})"), "MB", LARGEST),
    ]


def _plan_line(name: str, mechanism: str, count: str, epsilon: float) -> Line:
    """Return the time of a plan with its baselines, relative to one uncached evaluation at its solution."""
    ratios = []
    for _ in range(3):
        found: list[ps.Plan] = []
        # A slightly different budget and mechanism, so that no cache helps.
        nudge = 1.0 + 1e-4 * next(_FRESH)
        spent = seconds(lambda: found.append(ps.plan(mechanism, count, epsilon=epsilon * nudge, delta=DELTA)))  # noqa: B023
        trial = found[0].mechanism
        fresh = ps.DPSGD(trial.noise_multiplier * (1.0 + 1e-9), trial.sampling_probability, trial.steps)  # type: ignore[attr-defined]
        ratios.append(spent / seconds(lambda: ps.Selection(fresh, found[0].count).epsilon_at(DELTA)))  # noqa: B023
    return Line(f"plan for {name}: evaluations of the accountant", median(ratios), "x", MOST_EVALUATIONS)
