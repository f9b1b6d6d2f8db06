"""Composition of a DP-SGD run: time per answer against the other accountants, how it grows, memory, and the gap."""

from __future__ import annotations

import importlib.util
import itertools
from functools import partial
from importlib.metadata import version
from statistics import median
from typing import TYPE_CHECKING

import numpy as np
from dp_accounting.pld import privacy_loss_distribution
from lines import Line, side_by_side
from memory import peak

import privselect as ps

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Contender = Callable[[float], object]

DELTA = 1e-6
NOISE, RATE, STEPS = 1.1, 256 / 60_000, 14_063
LONG_RATE, LONG_STEPS = 1e-4, 1_000_000
SPACING = 1e-4  # of dp-accounting's lattice
EPSILON_ERROR = 1e-2  # of the PRV accountants; their error in delta is delta/1000, as Opacus has it and prv-accountant recommends
SEVEN = (1e-6, 1e-11, 1e-12, 1e-13, 1e-15, 1e-20, 1e-30)
MANY_DELTAS = np.geomspace(1e-12, 1e-3, 50)
MANY_MEANS = np.geomspace(2.0, 1000.0, 50)
NAME = "dpsgd (14063 steps)"
MEMORY, GAP = 1000.0, 5e-4
_FRESH = itertools.count(101)


def composition_lines() -> list[Line]:
    return [*_speed_lines(), *_growth_lines(), *_memory_lines(), *_gap_lines()]


def _speed_lines() -> list[Line]:
    others: dict[str, tuple[str, Contender]] = {
        "dp-accounting's PLD": ("dp-accounting", _pld),
        "prv-accountant": ("prv-accountant", _prv),
        "Opacus's PRV accountant": ("opacus", _opacus),
    }
    there = {name: work for name, (package, work) in others.items() if _installed(package)}
    ours, *theirs = map(median, side_by_side(_rounds(5, _ours, *there.values())))
    times = dict(zip(there, theirs, strict=True))
    lines = [Line(f"{NAME}, epsilon of the composition: privselect", ours, "s")]
    for name, (package, _) in others.items():
        if name not in there:
            lines.append(Line(f"{NAME}, epsilon of the composition: privselect / {name}", None))
            continue
        lines += [
            Line(f"{NAME}, epsilon of the composition: {name} ({version(package)})", times[name], "s"),
            Line(f"{NAME}, epsilon of the composition: privselect / {name}", ours / times[name], "x", 1.0),
        ]
    return lines


def _growth_lines() -> list[Line]:
    one, many_steps, many_deltas = map(median, side_by_side(_rounds(5, _ours, _long, _deltas)))
    selected, many_means = map(median, side_by_side(_rounds(3, _means(MANY_MEANS[:1]), _means(MANY_MEANS))))
    return [
        Line("dpsgd: a million steps (q = 1e-4) / 14063 steps", many_steps / one, "x", 5.0),
        Line(f"{NAME}: epsilon for 50 deltas / for one", many_deltas / one, "x", 2.0),
        Line(f"{NAME}: selection, geometric, composed once: one mean", selected, "s"),
        Line(f"{NAME}: selection, geometric, composed once: 50 means / one", many_means / selected, "x", 2.0),
    ]


def _memory_lines() -> list[Line]:
    cases = {NAME: _training(NOISE), "dpsgd (a million steps)": ps.DPSGD(NOISE, LONG_RATE, LONG_STEPS)}
    return [Line(f"peak memory: {name}, composition alone", peak(str(mechanism)), "MB", MEMORY) for name, mechanism in cases.items()]


def _gap_lines() -> list[Line]:
    found = _training(NOISE).epsilon_at(SEVEN)
    return [
        Line(f"{NAME}, delta {delta:g}: {lower:.6f} to {upper:.6f}, the gap", upper / lower - 1.0, "", GAP)
        for delta, lower, upper in zip(SEVEN, found.lower.tolist(), found.upper.tolist(), strict=True)
    ]


def _rounds(rounds: int, *works: Contender) -> Iterator[tuple[Callable[[], object], ...]]:
    """Each contender of each round asks about a noise never seen before, so that no cache answers; one round to warm up."""
    for i in range(-1, rounds):
        contenders = tuple(partial(work, NOISE * (1.0 + 1e-6 * next(_FRESH))) for work in works)
        if i < 0:
            for contender in contenders:
                contender()
        else:
            yield contenders


def _training(noise: float) -> ps.DPSGD:
    return ps.DPSGD(noise_multiplier=noise, sampling_probability=RATE, steps=STEPS)


def _ours(noise: float) -> object:
    return _training(noise).epsilon_at(DELTA)


def _long(noise: float) -> object:
    return ps.DPSGD(noise_multiplier=noise, sampling_probability=LONG_RATE, steps=LONG_STEPS).epsilon_at(DELTA)


def _deltas(noise: float) -> object:
    return _training(noise).epsilon_at(MANY_DELTAS)


def _means(means: np.ndarray) -> Contender:
    def work(noise: float) -> object:
        trial = _training(noise)
        return [ps.Selection(trial, ps.Geometric(mean=mean)).epsilon_at(DELTA) for mean in means.tolist()]

    return work


def _installed(package: str) -> bool:
    return importlib.util.find_spec(package.replace("-", "_")) is not None


def _pld(noise: float) -> object:
    step = privacy_loss_distribution.from_gaussian_mechanism(noise, sampling_prob=RATE, value_discretization_interval=SPACING)
    return step.self_compose(STEPS).get_epsilon_for_delta(DELTA)


def _prv(noise: float) -> object:
    from prv_accountant import PoissonSubsampledGaussianMechanism, PRVAccountant

    step = PoissonSubsampledGaussianMechanism(sampling_probability=RATE, noise_multiplier=noise)
    accountant = PRVAccountant(step, eps_error=EPSILON_ERROR, delta_error=DELTA / 1000, max_self_compositions=STEPS)
    return accountant.compute_epsilon(DELTA, [STEPS])


def _opacus(noise: float) -> object:
    from opacus.accountants import PRVAccountant

    accountant = PRVAccountant()
    accountant.history = [(noise, RATE, STEPS)]
    return accountant.get_epsilon(DELTA, eps_error=EPSILON_ERROR)
