"""Noise distributions that are private for the index of the largest score only, not for a noisy score itself."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from privselect._util.validation import Range, parameter
from privselect.mechanisms.neighbours import ANY, check_relation
from privselect.pairs.discretize import LARGEST_LOSS
from privselect.text_forms import Spec, register

_SCALES = Range(1.0 / LARGEST_LOSS, math.inf)


@dataclass(frozen=True, slots=True)
class Noise(Spec):
    """Base class of noise on scores that one record changes by at most 1 each."""

    neighbours: str = field(default=ANY, kw_only=True)

    def __post_init__(self) -> None:
        Spec.__post_init__(self)
        check_relation(self.neighbours)


@register
@dataclass(frozen=True, slots=True)
class Gumbel(Noise):
    """Gumbel noise, with density ``exp(-z - exp(-z))``, ``z = x/scale``: the exponential mechanism.

    Index i wins with probability proportional to ``exp(score_i/scale)``.
    """

    text_name = "gumbel"

    scale: float = parameter(_SCALES, leaks="less")


@register
@dataclass(frozen=True, slots=True)
class Exponential(Noise):
    """Exponential noise, with density ``exp(-x/scale)/scale`` for x >= 0: permute-and-flip (McKenna and Sheldon 2020)."""

    text_name = "exponential"

    scale: float = parameter(_SCALES, leaks="less")
