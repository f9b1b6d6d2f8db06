"""Gaussian DP with a leak."""

from __future__ import annotations

from dataclasses import dataclass

from privselect.mechanisms.base import StatedMechanism
from privselect.mechanisms.gaussian import gaussian_bracket
from privselect.pairs import Bracket, DominatingPair
from privselect.parameters import POSITIVE, Range, parameter
from privselect.text import register


@register
@dataclass(frozen=True, slots=True)
class GaussianDP(StatedMechanism):
    """(mu, delta)-approximate Gaussian DP: with probability ``delta`` everything leaks, otherwise at most N(mu, 1) against N(0, 1)."""

    text_name = "gdp"

    mu: float = parameter(POSITIVE)
    delta: float = parameter(Range(0.0, 1.0), default=0.0)

    def _make_brackets(self) -> tuple[Bracket, ...]:
        clean = gaussian_bracket(self.mu)
        return (Bracket(self._leaking(clean.upper), tuple(map(self._leaking, clean.lowers))),)

    def _leaking(self, pair: DominatingPair) -> DominatingPair:
        kept = 1.0 - self.delta
        return DominatingPair(kept * pair.p, kept * pair.q, kept * pair.p_only + self.delta, kept * pair.q_only + self.delta)
