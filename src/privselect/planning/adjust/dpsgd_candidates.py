"""Candidates of DP-SGD that differ in their noise: what a trial may draw, and what it costs when each takes its steps."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from privselect._util.validation import POSITIVE, PROBABILITY, check_fraction, check_number, check_sequence, format_value, format_sum_near_one
from privselect.errors import ParameterError
from privselect.mechanisms import DPSGD, Mixture
from privselect.selection import Selection
from privselect.text_forms import Weighted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from privselect.counts.base import Count
    from privselect.interval import Interval


@dataclass(frozen=True, slots=True)
class Candidates:
    """Noise levels, the law by which a trial draws one of them, and the part of delta that each may spend."""

    noise_multipliers: tuple[float, ...]
    sampling_probability: float
    probabilities: tuple[Fraction, ...]
    shares: tuple[Fraction, ...]

    def candidate(self, place: int, steps: int) -> DPSGD:
        """One of them, alone."""
        return DPSGD(noise_multiplier=self.noise_multipliers[place], sampling_probability=self.sampling_probability, steps=steps)

    def mixture(self, steps: Sequence[int]) -> Mixture:
        """What one trial leaks."""
        return Mixture(tuple(Weighted(weight, self.candidate(place, steps[place])) for place, weight in enumerate(self.probabilities)))

    def usual_steps(self, place: int, mu: float) -> float:
        """About the number of steps that leak as much as N(mu, 1) against N(0, 1), by the central limit theorem: where to look first."""
        # mu^2 / (q^2 (exp(1/s^2) - 1)), in logs
        squared = min(max(self.noise_multipliers[place], 0.05), 1e100) ** -2.0
        log_steps = 2.0 * (math.log(mu) - math.log(self.sampling_probability)) - math.log(math.expm1(squared))
        return math.exp(min(max(log_steps, 0.0), 100.0))


class Price:
    """The epsilon of the selection, for numbers of steps of each candidate; each found once."""

    def __init__(self, candidates: Candidates, count: Count, delta: float) -> None:
        self.candidates, self.count, self.delta = candidates, count, delta
        self._known: dict[tuple[int, ...], Interval] = {}

    def of(self, steps: Sequence[int]) -> Interval:
        """By the accountant, as for any other mechanism."""
        key = tuple(steps)
        if key not in self._known:
            self._known[key] = Selection(self.candidates.mixture(key), self.count).epsilon_at(self.delta)
        return self._known[key]

    def upper(self, steps: Sequence[int]) -> float:
        """What is proved."""
        return float(self.of(steps).upper)


def check_candidates(noise_multipliers: object, sampling_probability: object, probabilities: object, shares: object) -> Candidates:
    """Candidates as a user names them, or one clear sentence."""
    noise = tuple(check_number("noise_multipliers", entry, POSITIVE) for entry in _several("noise_multipliers", noise_multipliers))
    if not noise:
        raise ParameterError("`noise_multipliers` must hold at least one number, got none")
    for value in noise:
        if noise.count(value) > 1:
            raise ParameterError(f"`noise_multipliers` must differ from each other, got {value:g} {noise.count(value)} times")
    rate = check_number("sampling_probability", sampling_probability, PROBABILITY)
    law, parts = _weights("probabilities", probabilities, len(noise)), _weights("shares", shares, len(noise))
    if sum(law) != 1:
        raise ParameterError(f"`probabilities` must sum to 1, got {format_sum_near_one(sum(law, Fraction(0)))}")
    return Candidates(noise, rate, law, tuple(part / sum(parts) for part in parts))


def _weights(name: str, values: object, number: int) -> tuple[Fraction, ...]:
    if values is None:
        return (Fraction(1, number),) * number
    weights = tuple(check_fraction(name, entry) for entry in _several(name, values))
    if len(weights) != number:
        raise ParameterError(f"`{name}` must hold one number for each of the {number} noise levels, got {len(weights)}")
    for weight in weights:
        if weight <= 0:
            raise ParameterError(f"`{name}` must be positive, got {format_value(weight)}")
    return weights


def _several(name: str, values: object) -> tuple[object, ...]:
    return check_sequence(name, values, "a list of numbers")
