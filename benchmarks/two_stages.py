"""A search followed by a final training: one evaluation and whole plans, as ratios to one composition of the final training."""

from __future__ import annotations

import itertools
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Any

from lines import Line, side_by_side

import privselect as ps

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

RATE, SEARCH_STEPS, FINAL_STEPS = 1024 / 60_000, 60, 600
FINAL_NOISE = 1.9
EPSILON, DELTA = 1.0, 1e-5
COUNT = ps.Geometric(mean=30)
ROUNDS = 5
_FRESH = itertools.count(1)
NAME = "two stages (60 steps by geometric(mean=30), then 600)"


def two_stage_lines() -> list[Line]:
    composed, warm, tilted, split, advice = map(median, side_by_side(_rounds(_compose, _warm, _final_changes, _plan, _advise)))
    return [
        Line(f"{NAME}: one composition of the final training", composed, "s"),
        Line(f"{NAME}: epsilon, the search is new", warm, "s", 0.3),
        Line(f"{NAME}: epsilon, the search is new / that composition", warm / composed, "x", 7.0),
        Line(f"{NAME}: epsilon, the final training is new / that composition", tilted / composed, "x", 2.0),
        Line(f'{NAME}: plan with split="auto"', split, "s", 5.0),
        Line(f'{NAME}: plan with split="auto" / that composition', split / composed, "x", 60.0),
        Line(f"{NAME}: advice, four plans / that composition", advice / composed, "x", 30.0),
    ]


def _rounds(*works: Callable[[float], object]) -> Iterator[tuple[Callable[[], object], ...]]:
    """Each work of each round gets a noise never seen before, so that no cache answers; one round to warm up."""
    for i in range(-1, ROUNDS):
        calls = tuple(partial(work, 1.0 + 1e-6 * next(_FRESH)) for work in works)
        if i < 0:
            for call in calls:
                call()
        else:
            yield calls


def _training(noise: Any, steps: int) -> Any:
    return ps.DPSGD(noise_multiplier=noise, sampling_probability=RATE, steps=steps)


def _both(search_noise: float, final_noise: float) -> object:
    return ps.search_then_train(_training(search_noise, SEARCH_STEPS), COUNT, _training(final_noise, FINAL_STEPS)).epsilon_at(DELTA)


def _compose(factor: float) -> object:
    return _training(FINAL_NOISE * factor, FINAL_STEPS).epsilon_at(DELTA)


def _warm(factor: float) -> object:
    return _both(3.04 * factor, FINAL_NOISE)


def _final_changes(factor: float) -> object:
    return _both(3.04, FINAL_NOISE * factor)


def _plan(factor: float) -> object:
    search, final = (_training(ps.UNKNOWN, steps) for steps in (SEARCH_STEPS, FINAL_STEPS))
    return ps.plan(search, COUNT, final=final, split="auto", epsilon=EPSILON * factor, delta=DELTA)


def _advise(factor: float) -> object:
    return ps.advise(_training(ps.UNKNOWN, FINAL_STEPS), epsilon=EPSILON * factor, delta=DELTA)


if __name__ == "__main__":
    for line in two_stage_lines():
        print(*line.cells(), sep="  ")
