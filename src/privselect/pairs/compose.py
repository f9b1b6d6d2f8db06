"""Composition: many private steps, all their outputs released, caught between discrete pairs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from privselect.pairs.bracket import Bracket
from privselect.pairs.curve import pair_from_curve
from privselect.pairs.dominating import DominatingPair
from privselect.pairs.few import are_few, compose_few
from privselect.pairs.lattice import lattice_above, lattice_below
from privselect.pairs.profile import Profile
from privselect.pairs.resolution import Resolution, resolution_for, within_reach
from privselect.pairs.tilted import convolved
from privselect.pairs.tiny import merge_tiny

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from privselect.pairs.lattice import LatticePair

    Parts = Sequence[tuple["Step", int]]
    Pairs = Sequence[tuple[DominatingPair, int]]

FLOOR = 1e-60  # mass at either end of the composed losses that is not looked into
LARGEST = 520.0  # of a composed loss: the second law's mass there, 1e-60 e^-520, is still a proper float
ACCURACY = 1e-4  # asked of epsilon, relative, unless told otherwise
_ROUNDING = 1e-12  # of the exponentials that undo a tilt
_LONG = 100_000  # runs of one step beyond which they are composed in two rounds
_PROBES = (1e-5, 1e-9, 1e-14, 1e-25)  # deltas at which the accuracy is looked at
_EVERYTHING = DominatingPair(np.array([]), np.array([]), 1.0, 1.0)


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """One private step. ``bracket`` is what is known of it; ``on``, where given, brackets it more closely for a resolution."""

    bracket: Bracket
    on: Callable[[Resolution], Bracket] | None = None

    def at(self, resolution: Resolution) -> Bracket:
        """The bracket to compose on a lattice of this resolution."""
        return self.bracket if self.on is None else self.on(resolution)


def compose(parts: Parts, accuracy: float = ACCURACY) -> Bracket:
    """The bracket of all steps, each as many times as it says; for the order "remove" if any step has one.

    Upper: connecting the dots of a step gives a pair that dominates it, and compositions of dominating pairs dominate. Lower: the
    same from below, with pairs that are dominated. The lattice is refined until both agree to the asked accuracy in epsilon.
    """
    if len(parts) == 1 and parts[0][1] == 1:
        return parts[0][0].bracket
    if len(parts) == 1 and _is_listed(*parts[0]):
        step, times = parts[0]
        return _listed(step.bracket, times)
    if any(len(step.bracket.upper.p) == 0 for step, _ in parts):
        # One step alone leaks everything, as far as is known: from below, that step alone is what is told.
        worst = next(step.bracket for step, _ in parts if len(step.bracket.upper.p) == 0)
        return Bracket(_EVERYTHING, worst.lowers, _direction(parts))
    parts = _in_rounds(parts, accuracy)
    resolution = resolution_for([(step.bracket.upper, times) for step, times in parts], accuracy, (FLOOR, LARGEST))
    found = _on_lattice(parts, resolution)
    if all(step.on is not None for step, _ in parts):
        # What is known of the steps grows with the lattice: look again, more finely, where that was not enough.
        for _ in range(2):
            gap = _gap(found)
            finer = resolution.finer(math.sqrt(0.7 * accuracy / gap)) if gap > accuracy else None
            if finer is None:
                break
            resolution, found = finer, _on_lattice(parts, finer)
    return found


def _on_lattice(parts: Parts, resolution: Resolution) -> Bracket:
    brackets = [(step.at(resolution), times) for step, times in parts]
    upper = compose_above([(bracket.upper, times) for bracket, times in brackets], resolution.spacing)
    return Bracket(upper, _lowers(brackets, resolution.spacing), _direction(parts))


def compose_above(parts: Pairs, spacing: float) -> DominatingPair:
    """A pair that dominates the composition."""
    laws = [(lattice_above(pair, spacing), times) for pair, times in parts]
    dense = convolved(laws, FLOOR, LARGEST, 1)
    slack = _slack(laws)
    leaks = [_leak(laws, "p_only") + dense.lost_p + FLOOR, _leak(laws, "q_only") + dense.lost_q + FLOOR]
    if max(leaks) >= 1.0 or slack > 1.0:
        return _EVERYTHING
    # A loss may be off by the slack, and a mass by as much of itself: what is found at a knot holds that much further out.
    grown = math.exp(2.0 * slack) * (1.0 + _ROUNDING)
    halves = Profile.of(dense), Profile.reversed(dense)
    knots = np.union1d(halves[0].knots(), halves[1].knots())
    values = [np.minimum(half.at(knots) * grown + leak, 1.0) for half, leak in zip(halves, leaks, strict=True)]
    for value in values:
        value[0] = min(value[0] + 2.0 * slack, 1.0)  # the first knot is 0 and stays there: at most that much of all mass is missed
    epsilons = knots * spacing + slack
    epsilons[0] = 0.0
    return pair_from_curve(epsilons, *values)


def compose_below(parts: Pairs, spacing: float) -> DominatingPair:
    """A pair that the composition dominates: a part of each composed outcome, the neighbours merged into cells.

    What is left of the outcomes is one more outcome, which is not listed: the masses may sum to less than 1.
    """
    laws = [(lattice_below(pair, spacing), times) for pair, times in parts]
    dense = convolved(laws, FLOOR, LARGEST, -1)
    knots = np.union1d(-Profile.reversed(dense).knots(), Profile.of(dense).knots())
    starts = np.unique(np.clip(np.concatenate([[dense.first], knots]) - dense.first, 0, len(dense.p) - 1))
    p, q = (np.add.reduceat(masses, starts) for masses in (dense.p, dense.q))
    return merge_tiny(p, q, _leak(laws, "p_only"), _leak(laws, "q_only"), rounding=2.0 * _slack(laws) + _ROUNDING)


def _lowers(brackets: Sequence[tuple[Bracket, int]], spacing: float) -> tuple[DominatingPair, ...]:
    """One lower pair for each choice at hand of a lower pair of every step; none where a step has none."""
    if not all(bracket.lowers for bracket, _ in brackets):
        return ()
    choices = max(len(bracket.lowers) for bracket, _ in brackets)
    found = []
    for choice in range(choices):
        pairs = [(bracket.lowers[min(choice, len(bracket.lowers) - 1)], times) for bracket, times in brackets]
        found.append(compose_below(within_reach(pairs, LARGEST), spacing))
    return tuple(found)


def _in_rounds(parts: Parts, accuracy: float) -> Parts:
    """Very many runs of one step as fewer runs of some of them together: the lattice may be the coarser the wider its law."""
    found: list[tuple[Step, int]] = []
    for step, times in parts:
        if times <= _LONG:
            found.append((step, times))
            continue
        outer = _outer(times)
        inner = compose([(step, times // outer)], 0.5 * accuracy)
        found += [(Step(inner), outer)] + ([(step, times % outer)] if times % outer else [])
    return found


def _outer(times: int) -> int:
    """A number of rounds near the square root that leaves few runs over, which the coarse lattice of the rounds does not suit."""
    near = min(math.isqrt(times), 400)
    return min(range(near // 2, near + 1), key=lambda rounds: (times % rounds, -rounds))


def _is_listed(step: Step, times: int) -> bool:
    return all(are_few(pair, times) for pair in (step.bracket.upper, *step.bracket.lowers))


def _listed(bracket: Bracket, times: int) -> Bracket:
    lowers = tuple(compose_few(low, times, side=-1) for low in bracket.lowers)
    return Bracket(compose_few(bracket.upper, times, side=1), lowers, bracket.direction)


def _direction(parts: Parts) -> str:
    return "both" if all(step.bracket.direction == "both" for step, _ in parts) else "remove"


def _slack(laws: Sequence[tuple[LatticePair, int]]) -> float:
    return sum(times * law.slack for law, times in laws)


def _leak(laws: Sequence[tuple[LatticePair, int]], only: str) -> float:
    """The chance that some step has an infinite loss."""
    if any(getattr(law, only) >= 1.0 for law, _ in laws):
        return 1.0
    return -math.expm1(sum(times * math.log1p(-getattr(law, only)) for law, times in laws))


def _gap(bracket: Bracket) -> float:
    """How far the two ends of epsilon are apart, relative, at its worst over a few deltas."""
    uppers = np.maximum(*(pair.epsilon_at(_PROBES, side=1) for pair in (bracket.upper, bracket.upper.reverse)))
    lowers = np.maximum.reduce([pair.epsilon_at(_PROBES, side=-1) for low in bracket.lowers for pair in (low, low.reverse)])
    known = np.isfinite(uppers) & (lowers > 0.0)
    return float((uppers[known] / lowers[known] - 1.0).max(initial=0.0))
