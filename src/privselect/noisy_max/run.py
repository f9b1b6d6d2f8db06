"""Report noisy max as it runs: what is drawn and compared is the very mechanism that :class:`NoisyMax` accounts for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from privselect._util.validation import check_number, format_value, integer_range
from privselect.errors import ParameterError
from privselect.noisy_max.noisy_winner import NoisyWinner, noisy_winner
from privselect.noisy_max.sampling.exact_argmax import winners
from privselect.noisy_max.sampling.noise_samplers import Drawing, drawing
from privselect.noisy_max.sampling.random_words import check_entropy
from privselect.noisy_max.scores import Scores, read_scores, read_sensitivity

if TYPE_CHECKING:
    from collections.abc import Callable
    from fractions import Fraction

    from numpy.typing import NDArray

    from privselect._util.random_bits import Entropy
    from privselect.mechanisms.base import Mechanism
    from privselect.noisy_max.index_only_noise import Noise

    Wholes = NDArray[np.int64]

_AT_ONCE = 1 << 18  # draws, so that they stay near the processor


def report_noisy_max(  # noqa: PLR0913 - one call says all that is released
    scores: Any,
    noise: Mechanism | Noise,
    sensitivity: Any = 1,
    *,
    top: int = 1,
    value: Mechanism | None = None,
    insecure_float: bool = False,
    entropy: Entropy | None = None,
) -> int | Wholes | NoisyWinner:
    """Add noise to each score and return the index of the greatest, which is all that may be released.

    ``scores`` is one vector of m scores (the answer is an int) or a batch of n of them (an array of n). One record changes each score
    by at most ``sensitivity``, in units of which the noise is stated. It costs ``NoisyMax(noise, m=m)``; of a batch whose vectors
    come from the same records, ``NoisyMax(noise, m=m, rounds=n)``. Scores are exact: whole numbers, fractions, and floats as the numbers
    that they are, so the sensitivity must hold for them as computed, rounding included. So is the comparison: as many bits of the noise
    are drawn as it takes.

    ``top=k`` returns k indices, the best first: k rounds with fresh noise, each on the scores that are left, which together cost
    ``NoisyMax(noise, m=m, rounds=k)`` (a round over fewer scores is one over m in which some have no hope); a batch of n vectors has
    n times as many rounds.

    ``value`` is noise such as gaussian or discrete_laplace, with which the winner's score is released too: see :class:`NoisyWinner`.

    With discrete noise the scores must be whole multiples of the sensitivity; ties are broken uniformly. ``insecure_float`` draws noise
    in floats, for experiments: the guarantee is lost. ``entropy`` is anything with ``getrandbits``, the operating system's by default;
    one that keeps a state serves one thread at a time.
    """
    how, unit_of_scores = drawing(noise), read_sensitivity(sensitivity)
    source = check_entropy(entropy)
    read, single = read_scores(scores)
    rounds = _check_top(top, read.values.shape[1])
    if not isinstance(insecure_float, bool | np.bool_):
        raise ParameterError(f"`insecure_float` must be True or False, got {format_value(insecure_float)}")
    if value is not None:
        if not single or rounds > 1 or insecure_float:
            raise ParameterError("`value` goes with one vector of scores, top=1 and exact noise: ask for each vector on its own")
        return noisy_winner(read, noise, value, unit_of_scores, source)
    if insecure_float:
        indices = _peeled(read, rounds, _float_pick(how, unit_of_scores))
    else:
        indices = _peeled(read, rounds, lambda part: winners(part, how.unit(unit_of_scores), how.staircase, source))
    if rounds == 1:
        return int(indices[0, 0]) if single else indices[:, 0]
    return indices[0] if single else indices


def _check_top(top: Any, m: int) -> int:
    rounds = int(check_number("top", top, integer_range(1)))
    if rounds > m:
        raise ParameterError(f"`top` must be at most the number of scores, {m}, got {format_value(top)}")
    return rounds


def _peeled(scores: Scores, rounds: int, pick: Callable[[Scores], Wholes]) -> Wholes:
    """The winners of each round among the scores that are left, a row for each vector."""
    n, m = scores.values.shape
    found = np.empty((n, rounds), dtype=np.int64)
    size = max(1, _AT_ONCE // m)
    for start in range(0, n, size):
        rows = slice(start, start + size)
        part = scores.part(rows)
        left = np.broadcast_to(np.arange(m), part.values.shape)
        for turn in range(rounds):
            place = pick(Scores(np.take_along_axis(part.values, left, axis=1)))[:, None]
            found[rows, turn] = np.take_along_axis(left, place, axis=1)[:, 0]
            left = left[np.arange(left.shape[1]) != place].reshape(len(left), -1)
    return found


def _float_pick(how: Drawing, sensitivity: Fraction) -> Callable[[Scores], Wholes]:
    if how.whole:
        raise ParameterError("`insecure_float` is for continuous noise: discrete noise is drawn in whole numbers, which have no rounding")

    def pick(part: Scores) -> Wholes:
        return np.asarray((part.gaps(how.unit(sensitivity)) + how.in_floats(part.values.shape)).argmax(axis=1))

    return pick
