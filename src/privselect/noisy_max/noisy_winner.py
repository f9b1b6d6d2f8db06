"""The winner's score released beside its index, with noise of its own."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from privselect._util.validation import format_value
from privselect.errors import ParameterError
from privselect.mechanisms import DiscreteGaussian, DiscreteLaplace, Gaussian, Laplace
from privselect.mechanisms.composed import Composed
from privselect.noisy_max.noisy_max import NoisyMax
from privselect.noisy_max.sampling.exact_argmax import winners
from privselect.noisy_max.sampling.noise_samplers import drawing

if TYPE_CHECKING:
    from privselect._util.random_bits import Entropy
    from privselect.mechanisms.base import Mechanism
    from privselect.noisy_max.index_only_noise import Noise
    from privselect.noisy_max.scores import Scores

_GRID = 20  # a continuous value is rounded to less than 2^-20 of the noise's scale


@dataclass(frozen=True, slots=True)
class NoisyWinner:
    """The winner's index, its score with fresh noise, and what the two cost together.

    With discrete noise the value is a whole number (a fraction, where the sensitivity is no whole number). With continuous noise it is
    the real number rounded down to a multiple of a power of two that is fixed by the noise's scale and the sensitivity, then to a float: a
    function of the real number alone, so that no digit of it tells how it was computed.
    ``mechanism`` takes it that one record may move every score either way; where it moves fewer, or all the same way, compose the
    ``NoisyMax`` that says so with the same noise.
    """

    index: int
    value: int | float | Fraction
    mechanism: Mechanism


def noisy_winner(scores: Scores, noise: Mechanism | Noise, value: Mechanism, sensitivity: Fraction, entropy: Entropy) -> NoisyWinner:
    """Of one vector."""
    if not isinstance(value, Gaussian | Laplace | DiscreteGaussian | DiscreteLaplace):
        kinds = "gaussian, laplace, discrete_gaussian or discrete_laplace"
        raise ParameterError(f"`value` must be noise that may be released, {kinds}, got {format_value(value)}")
    how, fresh = drawing(noise), drawing(value)
    mechanism = Composed((NoisyMax(noise, m=scores.values.shape[1]), value))
    unit = fresh.unit(sensitivity)
    if fresh.whole:
        scores.whole_gaps(unit)  # refuses what is no multiple
    index = int(winners(scores, how.unit(sensitivity), how.staircase, entropy)[0])
    lattice = fresh.staircase.lattice
    place = fresh.staircase.draw(1, entropy).place(0, lattice)
    score = scores.exact(0, index)
    if fresh.whole:
        exact = score + place.start * unit
        return NoisyWinner(index, exact.numerator if exact.denominator == 1 else exact, mechanism)
    step = _power_of_two_below(unit) / 2**_GRID
    while (down := (score + place.start * unit) // step) != (up := (score + place.end * unit) // step):
        if up == down + 1 and score + place.end * unit == up * step:
            break  # the end is not part of the box
        place.narrow(entropy)
    return NoisyWinner(index, _as_float(down * step), mechanism)


def _power_of_two_below(x: Fraction) -> Fraction:
    """The greatest that is at most x, or half of it."""
    return Fraction(2) ** (x.numerator.bit_length() - x.denominator.bit_length() - 1)


def _as_float(x: Fraction) -> float:
    try:
        return float(x)
    except OverflowError:
        return math.inf if x > 0 else -math.inf
