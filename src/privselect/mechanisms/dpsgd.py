"""DP-SGD: many noisy steps, each on a random sample of the data."""

from __future__ import annotations

import logging
import math
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from privselect._util.validation import POSITIVE, PROBABILITY, parameter, integer_range
from privselect.mechanisms.base import MAX_RUNS, Mechanism, check_orders
from privselect.mechanisms.composed import composed_brackets
from privselect.mechanisms.gaussian import CELL_WIDTH, Gaussian, normal_cells
from privselect.mechanisms.neighbours import ADD_REMOVE
from privselect.pairs import Bracket, DominatingPair, connect_the_dots, merge_cells
from privselect.pairs.compose import ACCURACY, CompositionStep
from privselect.pairs.discretize import LARGEST_LOSS
from privselect.text_forms import register

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import ArrayLike, NDArray

    from privselect.pairs.lattice_resolution import Resolution

    Floats = NDArray[np.float64]

_REACH = 20.0  # standard deviations: a normal tail beyond them is below 1e-88
_TINY = 0.013  # noise for which the two centres are 77 deviations apart: no float tells the tails beyond the middle from 0
_LEAST = 1e-9  # width of the lowest cell, relative to the sampling probability


@register
@dataclass(frozen=True, slots=True)
class DPSGD(Mechanism):
    """Many Gaussian steps, each on a Poisson sample of the records; neighbours by adding or removing one record.

    ``steps`` steps with noise of ``noise_multiplier`` times the clipping norm, each record in a step with ``sampling_probability``.

    One step's pair, in the order "remove", is (1-q) N(0, s^2) + q N(1, s^2) against N(0, s^2); its loss ``log(1 - q + q e^y)``,
    ``y = (2x - 1)/(2 s^2)``, grows with the output x, so cells of x are cells of the loss.
    """

    text_name = "dpsgd"
    sensitivity = "clipping norm 1"

    noise_multiplier: float = parameter(POSITIVE, leaks="less")
    sampling_probability: float = parameter(PROBABILITY, leaks="more")
    steps: int = parameter(integer_range(1, MAX_RUNS), leaks="more")

    @property
    def neighbours(self) -> str:
        """Adding or removing one record: what Poisson sampling is analysed for."""
        return ADD_REMOVE

    def composition_steps(self) -> tuple[tuple[Mechanism, int], ...]:
        """Single steps; without sampling they are plain Gaussians."""
        if self.sampling_probability == 1.0:
            return ((Gaussian(sigma=self.noise_multiplier), self.steps),)
        return ((replace(self, steps=1), self.steps),)

    def _make_brackets(self, accuracy: float, /) -> tuple[Bracket, ...]:
        if self.steps > 1 or self.sampling_probability == 1.0:
            return composed_brackets(self.composition_steps(), accuracy)
        if self.noise_multiplier < _TINY:
            bracket = _nearly_told(self.sampling_probability)
            return bracket, bracket.reverse
        step = _SampledGaussian(self.noise_multiplier, self.sampling_probability)
        bracket = step.bracket(step.knots(0.4 * CELL_WIDTH * (accuracy / ACCURACY) ** 0.5))
        return bracket, bracket.reverse

    def composition_step(self) -> CompositionStep:
        """One step, with cells between multiples of the lattice's spacing."""
        if self.noise_multiplier < _TINY:
            return CompositionStep(_nearly_told(self.sampling_probability))
        step = _SampledGaussian(self.noise_multiplier, self.sampling_probability)
        return CompositionStep(step.bracket(step.knots(CELL_WIDTH)), lambda resolution: step.bracket(step.knots_on(resolution)))

    def renyi_at(self, alpha: ArrayLike) -> Floats:
        """By dp-accounting's analysis of the sampled Gaussian: that of one step, as many times as there are steps."""
        orders = check_orders(alpha)
        step = _step_divergences(self.noise_multiplier, self.sampling_probability, tuple(orders.ravel().tolist()))
        return self.steps * step.reshape(orders.shape)


@lru_cache(maxsize=128)
def _step_divergences(noise: float, rate: float, orders: tuple[float, ...]) -> Floats:
    from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent
    from dp_accounting.rdp import RdpAccountant

    accountant = RdpAccountant(np.array(orders))
    with _hushed("absl"):  # an order that it gives up on is infinite: that says it all
        accountant.compose(PoissonSampledDpEvent(rate, GaussianDpEvent(noise)))
    return np.asarray(accountant._rdp, dtype=np.float64)  # noqa: SLF001


@contextmanager
def _hushed(name: str) -> Iterator[None]:
    """Without the warnings of this logger."""
    logger = logging.getLogger(name)
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


def _nearly_told(rate: float) -> Bracket:
    """With next to no noise, a step tells whether the record was drawn.

    Above: it does. Below: it is only seen whether the output is nearer to 1 than to 0, which without the record has a chance under 1e-290.
    """
    told = DominatingPair(np.array([1.0 - rate]), np.array([1.0]), rate, 0.0)
    seen = DominatingPair(np.array([1.0 - rate, rate * (1.0 - 1e-12)]), np.array([1.0, 1e-290]))
    return Bracket(told, (seen,), "remove")


@dataclass(frozen=True, slots=True)
class _SampledGaussian:
    """One step: noise s and sampling probability q, below 1."""

    noise: float
    rate: float

    def loss(self, output: Floats) -> Floats:
        """``log(1 - q + q e^y)``."""
        with np.errstate(over="ignore"):
            y = (output - 0.5) / self.noise / self.noise
        return np.logaddexp(math.log1p(-self.rate), math.log(self.rate) + y)

    def output(self, losses: Floats) -> Floats:
        """The output x of each loss; minus infinity for losses that are too low to occur."""
        above = np.expm1(losses) + self.rate
        with np.errstate(divide="ignore", invalid="ignore"):
            y = np.where(losses < 1.0, np.log(above), losses + np.log1p((self.rate - 1.0) * np.exp(-losses))) - math.log(self.rate)
        return np.where(above > 0.0, y * self.noise * self.noise + 0.5, -np.inf)

    def ends(self) -> tuple[float, float]:
        """Losses between which all but a tail of either law lies; the lower one may not occur at all."""
        low, high = self.loss(np.array([-_REACH * self.noise, 1.0 + _REACH * self.noise]))
        return max(float(low), -LARGEST_LOSS), min(float(high), LARGEST_LOSS)

    def knots(self, cell: float) -> Floats:
        """Cells of x so many standard deviations wide."""
        x = np.arange(-_REACH * self.noise, 1.0 + (_REACH + cell) * self.noise, cell * self.noise)
        losses = self.loss(x)
        lowest = math.log1p(-self.rate)
        losses = losses[(losses > lowest + _LEAST * self.rate) & (losses < LARGEST_LOSS)]
        return np.concatenate([[math.nextafter(lowest, -math.inf)], losses[np.diff(losses, append=math.inf) > 0.0]])

    def knots_on(self, resolution: Resolution) -> Floats:
        """Multiples of the spacing: all of them around 0, fewer further out."""
        low, high = (end / resolution.spacing for end in self.ends())
        least = max(int(_LEAST * self.rate / resolution.spacing), 1)
        most = max(int(resolution.widest_cell / resolution.spacing), least)
        up = _spread(math.ceil(high), least, most, resolution.cell_growth)
        down = -_spread(math.ceil(-low) + 1, least, most, resolution.cell_growth)[::-1]
        return np.concatenate([down, [0], up]) * resolution.spacing

    def bracket(self, knots: Floats) -> Bracket:
        """Between the dots and the cells."""
        z = self.output(knots) / self.noise
        centred, shifted = normal_cells(z), normal_cells(z - 1.0 / self.noise)
        mixed = (1.0 - self.rate) * centred + self.rate * shifted
        return Bracket(connect_the_dots(knots, mixed, centred), (merge_cells(mixed, centred),), "remove")


def _spread(end: int, least: int, most: int, growth: float) -> NDArray[np.int64]:
    """Whole numbers from 1 to at least ``end``: steps of ``least``, growing with the distance from 0, of at most ``most``."""
    dense = np.arange(least, min(int(2 * least / growth), end) + 1, least)
    if len(dense) == 0:
        return np.array([max(end, 1)])
    grown = [int(dense[-1])]
    while grown[-1] < end and (step := int(growth * grown[-1])) < most:
        grown.append(grown[-1] + max(step, least))
    return np.concatenate([dense, np.array(grown[1:], dtype=np.int64), np.arange(grown[-1] + most, end + most, most)])
