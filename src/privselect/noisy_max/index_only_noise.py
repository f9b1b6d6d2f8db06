"""Noise that is fit for choosing an index and nothing else: released on its own it would tell too much."""

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
    """Noise on scores of which one record changes each by at most 1."""

    neighbours: str = field(default=ANY, kw_only=True)

    def __post_init__(self) -> None:
        Spec.__post_init__(self)
        check_relation(self.neighbours)


@register
@dataclass(frozen=True, slots=True)
class Gumbel(Noise):
    """Density ``exp(-z - exp(-z))`` with ``z = x/scale``: index i wins with chance proportional to ``exp(score_i/scale)``."""

    text_name = "gumbel"

    scale: float = parameter(_SCALES, leaks="less")


@register
@dataclass(frozen=True, slots=True)
class Exponential(Noise):
    """Density ``exp(-x/scale)/scale`` for x >= 0: the winner is that of permute-and-flip (McKenna and Sheldon 2020)."""

    text_name = "exponential"

    scale: float = parameter(_SCALES, leaks="less")
