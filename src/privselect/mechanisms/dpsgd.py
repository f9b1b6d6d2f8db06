"""DP-SGD: many Gaussian steps, each on a Poisson sample of the records."""

from __future__ import annotations

import logging
import math
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from privselect._util.validation import POSITIVE, PROBABILITY, integer_range, parameter
from privselect.mechanisms.base import MAX_RUNS, Mechanism, check_orders
from privselect.mechanisms.factors import composed_brackets
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
_TINY_NOISE = 0.013  # the two centres are 77 deviations apart: beyond the midpoint the tails underflow
_LOWEST_CELL = 1e-9  # width of the lowest cell, relative to the sampling probability


@register
@dataclass(frozen=True, slots=True)
class DPSGD(Mechanism):
    """Many Gaussian steps, each on a Poisson sample of the records; neighbours add or remove one record.

    Each of the ``steps`` steps has noise of ``noise_multiplier`` times the clipping norm and includes each record with
    ``sampling_probability``.

    The pair of one step, in the order "remove", is (1-q) N(0, s^2) + q N(1, s^2) against N(0, s^2). Its loss ``log(1 - q + q e^y)``,
    ``y = (2x - 1)/(2 s^2)``, increases with the output x, so cells of x are cells of the loss.
    """

    text_name = "dpsgd"
    sensitivity = "clipping norm 1"
    is_factor = True

    noise_multiplier: float = parameter(POSITIVE, leaks="less")
    sampling_probability: float = parameter(PROBABILITY, leaks="more")
    steps: int = parameter(integer_range(1, MAX_RUNS), leaks="more")

    @property
    def neighbours(self) -> str:
        """Adding or removing one record: the relation of the analysis of Poisson sampling."""
        return ADD_REMOVE

    def composition_steps(self) -> tuple[tuple[Mechanism, int], ...]:
        """Return single steps; without sampling they are Gaussian mechanisms."""
        if self.sampling_probability == 1.0:
            return ((Gaussian(sigma=self.noise_multiplier), self.steps),)
        return ((replace(self, steps=1), self.steps),)

    def repeated(self, times: int) -> DPSGD:
        """Return one training with the steps of all runs."""
        return replace(self, steps=self.steps * times)

    def _make_brackets(self, accuracy: float, /) -> tuple[Bracket, ...]:
        if self.steps > 1 or self.sampling_probability == 1.0:
            return composed_brackets(self.composition_steps(), accuracy)
        if self.noise_multiplier < _TINY_NOISE:
            bracket = _bracket_of_tiny_noise(self.sampling_probability)
            return bracket, bracket.reverse
        step = _PoissonSampledStep(self.noise_multiplier, self.sampling_probability)
        bracket = step.bracket(step.knots(0.4 * CELL_WIDTH * (accuracy / ACCURACY) ** 0.5))
        return bracket, bracket.reverse

    def composition_step(self) -> CompositionStep:
        """Return one step, with cells on multiples of the lattice spacing."""
        if self.noise_multiplier < _TINY_NOISE:
            return CompositionStep(_bracket_of_tiny_noise(self.sampling_probability))
        step = _PoissonSampledStep(self.noise_multiplier, self.sampling_probability)
        return CompositionStep(step.bracket(step.knots(CELL_WIDTH)), lambda resolution: step.bracket(step.knots_on(resolution)))

    def renyi_at(self, alpha: ArrayLike) -> Floats:
        """Compute the divergence of one step by dp-accounting, times the number of steps."""
        orders = check_orders(alpha)
        step = _step_divergences(self.noise_multiplier, self.sampling_probability, tuple(orders.ravel().tolist()))
        return self.steps * step.reshape(orders.shape)


@lru_cache(maxsize=128)
def _step_divergences(noise: float, rate: float, orders: tuple[float, ...]) -> Floats:
    from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent
    from dp_accounting.rdp import RdpAccountant

    accountant = RdpAccountant(np.array(orders))
    with _suppress_warnings("absl"):  # dp-accounting warns and returns infinity for orders that it cannot compute
        accountant.compose(PoissonSampledDpEvent(rate, GaussianDpEvent(noise)))
    return np.asarray(accountant._rdp, dtype=np.float64)  # noqa: SLF001


@contextmanager
def _suppress_warnings(name: str) -> Iterator[None]:
    """Raise the level of a logger above its warnings."""
    logger = logging.getLogger(name)
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


def _bracket_of_tiny_noise(rate: float) -> Bracket:
    """Return the bracket of a step whose noise is so small that it reveals whether the record was drawn.

    The upper pair always reveals it. The lower pair reveals only whether the output is nearer to 1 than to 0, which has a probability
    below 1e-290 without the record.
    """
    revealed = DominatingPair(np.array([1.0 - rate]), np.array([1.0]), rate, 0.0)
    nearer = DominatingPair(np.array([1.0 - rate, rate * (1.0 - 1e-12)]), np.array([1.0, 1e-290]))
    return Bracket(revealed, (nearer,), "remove")


@dataclass(frozen=True, slots=True)
class _PoissonSampledStep:
    """One step with noise s and sampling probability q < 1."""

    noise: float
    rate: float

    def loss(self, output: Floats) -> Floats:
        """Return the loss ``log(1 - q + q e^y)`` of each output."""
        with np.errstate(over="ignore"):
            y = (output - 0.5) / self.noise / self.noise
        return np.logaddexp(math.log1p(-self.rate), math.log(self.rate) + y)

    def output(self, losses: Floats) -> Floats:
        """Return the output x of each loss; minus infinity for losses that are too low to occur."""
        above = np.expm1(losses) + self.rate
        with np.errstate(divide="ignore", invalid="ignore"):
            y = np.where(losses < 1.0, np.log(above), losses + np.log1p((self.rate - 1.0) * np.exp(-losses))) - math.log(self.rate)
        return np.where(above > 0.0, y * self.noise * self.noise + 0.5, -np.inf)

    def loss_range(self) -> tuple[float, float]:
        """Return losses between which all mass except tails lies. The lower one may not occur."""
        low, high = self.loss(np.array([-_REACH * self.noise, 1.0 + _REACH * self.noise]))
        return max(float(low), -LARGEST_LOSS), min(float(high), LARGEST_LOSS)

    def knots(self, cell: float) -> Floats:
        """Return the losses at the edges of cells of x that are ``cell`` standard deviations wide."""
        x = np.arange(-_REACH * self.noise, 1.0 + (_REACH + cell) * self.noise, cell * self.noise)
        losses = self.loss(x)
        lowest = math.log1p(-self.rate)
        losses = losses[(losses > lowest + _LOWEST_CELL * self.rate) & (losses < LARGEST_LOSS)]
        return np.concatenate([[math.nextafter(lowest, -math.inf)], losses[np.diff(losses, append=math.inf) > 0.0]])

    def knots_on(self, resolution: Resolution) -> Floats:
        """Return multiples of the lattice spacing: all of them near 0, fewer further out."""
        low, high = (bound / resolution.spacing for bound in self.loss_range())
        smallest = max(int(_LOWEST_CELL * self.rate / resolution.spacing), 1)
        largest = max(int(resolution.widest_cell / resolution.spacing), smallest)
        up = _growing_steps(math.ceil(high), smallest, largest, resolution.cell_growth)
        down = -_growing_steps(math.ceil(-low) + 1, smallest, largest, resolution.cell_growth)[::-1]
        return np.concatenate([down, [0], up]) * resolution.spacing

    def bracket(self, knots: Floats) -> Bracket:
        """Return the bracket: connected dots above, merged cells below."""
        z = self.output(knots) / self.noise
        centred, shifted = normal_cells(z), normal_cells(z - 1.0 / self.noise)
        mixed = (1.0 - self.rate) * centred + self.rate * shifted
        return Bracket(connect_the_dots(knots, mixed, centred), (merge_cells(mixed, centred),), "remove")


def _growing_steps(end: int, smallest: int, largest: int, growth: float) -> NDArray[np.int64]:
    """Return integers from 1 to at least ``end``, whose steps grow with the distance from 0 from ``smallest`` to ``largest``."""
    dense = np.arange(smallest, min(int(2 * smallest / growth), end) + 1, smallest)
    if len(dense) == 0:
        return np.array([max(end, 1)])
    grown = [int(dense[-1])]
    while grown[-1] < end and (step := int(growth * grown[-1])) < largest:
        grown.append(grown[-1] + max(step, smallest))
    return np.concatenate([dense, np.array(grown[1:], dtype=np.int64), np.arange(grown[-1] + largest, end + largest, largest)])
