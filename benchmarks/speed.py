"""Time per answer, as ratios within one run against dp-accounting."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from dp_accounting import GaussianDpEvent
from dp_accounting.dp_event import RepeatAndSelectDpEvent
from dp_accounting.pld import privacy_loss_distribution
from dp_accounting.rdp import RdpAccountant
from lines import Line, side_by_side

import privselect as ps

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

DELTA = 1e-6
MEAN = 300
STEPS = 14_063
RATE = 256 / 60_000
SPACING = 1e-4  # of dp-accounting's lattice
MILLI = 1e3


def gaussian_lines() -> list[Line]:
    """Gaussian base, geometric K: each round asks about a sigma never seen before, so no cache can answer."""
    times = side_by_side(_gaussian_rounds(4.0, 25))
    cold, warm, rdp = map(median, times)
    return [
        Line("gaussian + geometric: dp-accounting, RDP", rdp * MILLI, "ms"),
        Line("gaussian + geometric: privselect, the pair built anew", cold * MILLI, "ms", 100.0),
        Line("gaussian + geometric: privselect, the pair at hand", warm * MILLI, "ms", 100.0),
        Line("gaussian + geometric: privselect, slowest of all rounds", max(times[0] + times[1]) * MILLI, "ms", 100.0),
        Line("gaussian + geometric: privselect (pair built anew) / RDP", cold / rdp, "x", 2.0),
        Line("gaussian + geometric: privselect (pair at hand) / RDP", warm / rdp, "x", 2.0),
    ]


def _gaussian_rounds(sigma: float, rounds: int) -> Iterator[tuple[Callable[[], object], ...]]:
    for i in range(-2, rounds):  # two rounds to warm up: the first is run here, unmeasured
        # The second sigma's pair is built beforehand, and kept: an equal mechanism finds it again.
        one, other = sigma * (1.0 + 2e-3 * i), sigma * (1.001 + 2e-3 * i)
        contenders = (lambda s=one: _exact(ps.Gaussian(sigma=s)), lambda s=other: _exact(ps.Gaussian(sigma=s)), lambda s=one: _rdp(s))
        _ = ps.Gaussian(sigma=other).brackets
        if i < 0:
            for work in contenders:
                work()
        else:
            yield contenders


def _exact(mechanism: ps.Mechanism) -> ps.Interval:
    return ps.Selection(mechanism, ps.Geometric(mean=MEAN)).epsilon_at(delta=DELTA)


def _rdp(sigma: float) -> float:
    accountant = RdpAccountant()
    accountant.compose(RepeatAndSelectDpEvent(GaussianDpEvent(sigma), MEAN, 1))
    return float(accountant.get_epsilon(DELTA))


def dpsgd_lines(rounds: int = 5) -> list[Line]:
    """DP-SGD base: the whole answer against only building dp-accounting's loss distribution."""
    ours, theirs = map(median, side_by_side(_dpsgd_rounds(rounds)))
    return [
        Line("dpsgd (14063 steps): dp-accounting, its PLD alone", theirs, "s"),
        Line("dpsgd (14063 steps): privselect, epsilon of the selection", ours, "s"),
        Line("dpsgd (14063 steps): privselect / PLD", ours / theirs, "x", 1.5),
    ]


def _dpsgd_rounds(rounds: int) -> Iterator[tuple[Callable[[], object], ...]]:
    for i in range(-1, rounds):
        mechanism = ps.DPSGD(noise_multiplier=1.1 * (1.0 + 1e-5 * i), sampling_probability=RATE, steps=STEPS)
        contenders = (lambda m=mechanism: _exact(m), lambda m=mechanism: _pld(m))
        if i < 0:
            for work in contenders:
                work()
        else:
            yield contenders


def _pld(mechanism: ps.DPSGD) -> object:
    step = privacy_loss_distribution.from_gaussian_mechanism(
        mechanism.noise_multiplier,
        sampling_prob=mechanism.sampling_probability,
        value_discretization_interval=SPACING,
    )
    return step.self_compose(mechanism.steps)
