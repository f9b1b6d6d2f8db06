"""Run report noisy max with exact sampling, so that the mechanism that runs is the one that :class:`NoisyMax` accounts for."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from privselect._util.validation import check_number, format_value, integer_range
from privselect.errors import ParameterError
from privselect.mechanisms import DiscreteGaussian, DiscreteLaplace, Gaussian, Laplace
from privselect.mechanisms.composed import Composed
from privselect.noisy_max.noisy_max import NoisyMax
from privselect.noisy_max.sampling.exact_argmax import exact_argmax
from privselect.noisy_max.sampling.noise_samplers import NoiseSampler, check_entropy, sampler_for
from privselect.noisy_max.scores import Scores, read_scores, read_sensitivity

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from privselect._util.random_bits import Entropy
    from privselect.mechanisms.base import Mechanism
    from privselect.noisy_max.index_only_noise import Noise

    Integers = NDArray[np.int64]

_BATCH = 1 << 18  # samples per batch: small enough for the processor's cache
_VALUE_BITS = 20  # a continuous value is rounded by less than 2^-20 of the noise's scale


def report_noisy_max(  # noqa: PLR0913 - one call states everything that is released
    scores: Any,
    noise: Mechanism | Noise,
    sensitivity: Any = 1,
    *,
    top: int = 1,
    value: Mechanism | None = None,
    insecure_float: bool = False,
    entropy: Entropy | None = None,
) -> int | Integers | NoisyWinner:
    """Add noise to each score and return the index of the largest. Release nothing else.

    ``scores`` is one vector of m scores (the result is an int) or a batch of n vectors (the result is an array of n). One record changes
    each score by at most ``sensitivity``, which is the unit of the noise. The privacy cost is ``NoisyMax(noise, m=m)``. A batch whose
    vectors come from the same records costs ``NoisyMax(noise, m=m, rounds=n)``.

    Scores are exact: integers, fractions, and floats with their exact binary value. The sensitivity must hold for the scores as computed,
    including rounding. The comparison is exact too: as many bits of the noise are drawn as it needs.

    ``top=k`` returns k indices, the best first. These are k rounds with fresh noise, each on the remaining scores. They cost
    ``NoisyMax(noise, m=m, rounds=k)``: a round over fewer scores is a round over m scores of which some cannot win. A batch of n vectors
    has n times as many rounds.

    ``value`` is noise such as gaussian or discrete_laplace, with which the winner's score is also released: see :class:`NoisyWinner`.

    With discrete noise the scores must be integer multiples of the sensitivity; ties are broken uniformly. ``insecure_float`` draws noise
    in floats, for experiments, without the guarantee. ``entropy`` is any object with ``getrandbits``; the default is the operating
    system's. A source with state must not be shared between threads.
    """
    sampler, unit_of_scores = sampler_for(noise), read_sensitivity(sensitivity)
    source = check_entropy(entropy)
    read, single = read_scores(scores)
    rounds = _check_top(top, read.values.shape[1])
    if not isinstance(insecure_float, bool | np.bool_):
        raise ParameterError(f"`insecure_float` must be True or False, got {format_value(insecure_float)}")
    if value is not None:
        if not single or rounds > 1 or insecure_float:
            raise ParameterError("`value` needs one vector of scores, top=1 and insecure_float=False. Call once for each vector.")
        return _noisy_winner(read, noise, value, unit_of_scores, source)
    if insecure_float:
        indices = _top_indices(read, rounds, _float_argmax(sampler, unit_of_scores))
    else:
        indices = _top_indices(read, rounds, lambda part: exact_argmax(part, sampler.unit(unit_of_scores), sampler.sampler, source))
    if rounds == 1:
        return int(indices[0, 0]) if single else indices[:, 0]
    return indices[0] if single else indices


@dataclass(frozen=True, slots=True)
class NoisyWinner:
    """The winner's index, its score with fresh noise, and the mechanism that releases both.

    With discrete noise the value is an integer, or a fraction if the sensitivity is not an integer. With continuous noise the real number
    is rounded down to a multiple of a power of two, then to a float. The power of two depends on the noise's scale and the sensitivity
    only. So the value is a function of the real number, and its digits reveal nothing about the computation.

    ``mechanism`` assumes that one record may move every score in either direction. If it moves fewer scores, or all in one direction,
    compose the ``NoisyMax`` with these settings and the same noise.
    """

    index: int
    value: int | float | Fraction
    mechanism: Mechanism


def _noisy_winner(scores: Scores, noise: Mechanism | Noise, value: Mechanism, sensitivity: Fraction, entropy: Entropy) -> NoisyWinner:
    """Release the winner of one vector with its noisy score."""
    if not isinstance(value, Gaussian | Laplace | DiscreteGaussian | DiscreteLaplace):
        kinds = "gaussian, laplace, discrete_gaussian or discrete_laplace"
        raise ParameterError(f"`value` must be noise whose noisy score may be released ({kinds}), got {format_value(value)}")
    index_noise, value_noise = sampler_for(noise), sampler_for(value)
    mechanism = Composed((NoisyMax(noise, m=scores.values.shape[1]), value))
    unit = value_noise.unit(sensitivity)
    if value_noise.integer:
        scores.integer_gaps(unit)  # raises if a score is not a multiple of the unit
    index = int(exact_argmax(scores, index_noise.unit(sensitivity), index_noise.sampler, entropy)[0])
    box = value_noise.sampler.sample(1, entropy).box(0, value_noise.sampler.grid)
    score = scores.exact(0, index)
    if value_noise.integer:
        exact = score + box.start * unit
        return NoisyWinner(index, exact.numerator if exact.denominator == 1 else exact, mechanism)
    step = _power_of_two_below(unit) / 2**_VALUE_BITS
    while (down := (score + box.start * unit) // step) != (up := (score + box.end * unit) // step):
        if up == down + 1 and score + box.end * unit == up * step:
            break  # the upper bound is not part of the box
        box.refine(entropy)
    return NoisyWinner(index, _as_float(down * step), mechanism)


def _power_of_two_below(x: Fraction) -> Fraction:
    """Return the largest power of two that is at most x, or half of it."""
    return Fraction(2) ** (x.numerator.bit_length() - x.denominator.bit_length() - 1)


def _as_float(x: Fraction) -> float:
    try:
        return float(x)
    except OverflowError:
        return math.inf if x > 0 else -math.inf


def _check_top(top: Any, m: int) -> int:
    rounds = int(check_number("top", top, integer_range(1)))
    if rounds > m:
        raise ParameterError(f"`top` must be at most the number of scores, {m}, got {format_value(top)}")
    return rounds


def _top_indices(scores: Scores, rounds: int, argmax: Callable[[Scores], Integers]) -> Integers:
    """Return the winner of each round among the remaining scores, one row for each vector."""
    n, m = scores.values.shape
    found = np.empty((n, rounds), dtype=np.int64)
    size = max(1, _BATCH // m)
    for start in range(0, n, size):
        rows = slice(start, start + size)
        part = scores.select(rows)
        left = np.broadcast_to(np.arange(m), part.values.shape)
        for turn in range(rounds):
            column = argmax(Scores(np.take_along_axis(part.values, left, axis=1)))[:, None]
            found[rows, turn] = np.take_along_axis(left, column, axis=1)[:, 0]
            left = left[np.arange(left.shape[1]) != column].reshape(len(left), -1)
    return found


def _float_argmax(sampler: NoiseSampler, sensitivity: Fraction) -> Callable[[Scores], Integers]:
    if sampler.integer:
        raise ParameterError("`insecure_float` needs continuous noise: discrete noise is drawn in integers, without rounding")

    def argmax(part: Scores) -> Integers:
        return np.asarray((part.gaps(sampler.unit(sensitivity)) + sampler.sample_floats(part.values.shape)).argmax(axis=1))

    return argmax
