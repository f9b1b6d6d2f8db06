"""Composition: many private steps, all their outputs released, caught between discrete pairs."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from privselect.pairs.bracket import Bracket
from privselect.pairs.composed_distributions import composed_laws
from privselect.pairs.dominating_pair import DominatingPair
from privselect.pairs.enumerate_composition import are_few, compose_few
from privselect.pairs.from_profile import pair_from_curve
from privselect.pairs.lattice_profile import Profile
from privselect.pairs.lattice_resolution import Resolution, resolution_for, within_reach
from privselect.pairs.subnormal_masses import merge_tiny
from privselect.pairs.tilted_fft import FLOOR, LARGEST

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from privselect.pairs.tilted_fft import Dense

    Floats = NDArray[np.float64]
    Parts = Sequence[tuple["Step", int]]
    Pairs = Sequence[tuple[DominatingPair, int]]

ACCURACY = 1e-4  # asked of epsilon, relative, unless told otherwise
_ROUNDING = 1e-12  # of the exponentials that undo a tilt
_COUNTS = 0.02  # share of the sum from which the knots of one of its curves are kept
_INNER, _OUTER = 0.3, 0.6  # of the accuracy, for each of the two
_LONG = 100_000  # runs of one step beyond which they are composed in two rounds
_HOPELESS = 30.0  # times the accuracy: a gap that a finer lattice is not likely to close
_PROBES = (1e-5, 1e-9, 1e-14, 1e-25)  # deltas at which the accuracy is looked at
_FEW_DIGITS = 5e-4  # whoever asks for an accuracy no better than this asks at usual deltas: the deepest is not looked at
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
    rounds = _in_rounds(parts, _INNER * accuracy) if all(len(step.bracket.upper.p) for step, _ in parts) else list(parts)
    if any(len(step.bracket.upper.p) == 0 for step, _ in rounds):
        # One step alone leaks everything, as far as is known: from below, that step alone is what is told.
        worst = next(step.bracket for step, _ in rounds if len(step.bracket.upper.p) == 0)
        return Bracket(_EVERYTHING, worst.lowers, _direction(parts))
    resolution, found = _roughly(rounds, accuracy if rounds == list(parts) else _OUTER * accuracy)
    if all(step.on is not None or _gap(step.bracket, accuracy) < accuracy for step, _ in rounds):
        # Only the lattice keeps the two ends apart: look again, more finely, where that may be enough.
        gap = _gap(found, accuracy)
        for _ in range(2):
            finer = resolution.finer(math.sqrt(0.7 * accuracy / gap)) if accuracy < gap < _HOPELESS * accuracy else None
            if finer is None:
                break
            again = _on_lattice(rounds, finer)
            now = _gap(again, accuracy)
            if now < gap:
                found = again
            if now > 0.8 * gap:
                break
            resolution, gap = finer, now
    return found


def _roughly(parts: Parts, accuracy: float) -> tuple[Resolution, Bracket]:
    resolution = resolution_for([(step.bracket.upper, times) for step, times in parts], accuracy, (FLOOR, LARGEST))
    return resolution, _on_lattice(parts, resolution)


def _on_lattice(parts: Parts, resolution: Resolution) -> Bracket:
    brackets = [(step.at(resolution), times) for step, times in parts]
    # The two ends share nothing, and most of their time goes into transforms and array arithmetic, which leave the interpreter free.
    with ThreadPoolExecutor(1) as beside:
        try:
            lowers = beside.submit(_lowers, brackets, resolution).result
        except RuntimeError:  # no thread to be had, as when the interpreter is about to end
            lowers = partial(_lowers, brackets, resolution)
        upper = compose_above([(bracket.upper, times) for bracket, times in brackets], resolution)
        return Bracket(upper, lowers(), _direction(parts))


def compose_above(parts: Pairs, resolution: Resolution) -> DominatingPair:
    """A pair that dominates the composition.

    Claim: each step is replaced by a pair on the lattice that dominates it; their composed masses, enlarged by bounds on rounding and on
    what wraps around, give values of the hockey stick at knots, rounded up, and what lies beyond the ends is charged as infinite loss.

    Holds when each step is dominated by its pair whatever the steps before gave. Label: **Composition** (upper).
    """
    leaks, slack = [_leak(parts, only) for only in ("p_only", "q_only")], 0.0
    halves: tuple[list[Profile], list[Profile]] = ([], [])
    for dense, unsure in composed_laws(parts, resolution, 1):
        slack = max(slack, unsure)
        leaks = [leak + dense.lost_p + dense.lost_q + 2.0 * FLOOR for leak in leaks]  # the last for what was left out on the way
        for half, profile in zip(halves, (Profile.of(dense), Profile.reversed(dense)), strict=True):
            half.append(profile)
    if max(leaks) >= 1.0 or slack > 1.0:
        return _EVERYTHING
    knots = np.unique(np.concatenate([_needed(half, resolution.fine) for half in halves]))
    # A loss may be off by the slack, and a mass by as much of itself: what is found at a knot holds that much further out.
    grown = math.exp(2.0 * slack) * (1.0 + _ROUNDING)
    values = [np.minimum(_total(half, knots) * grown + leak, 1.0) for half, leak in zip(halves, leaks, strict=True)]
    for value in values:
        value[0] = min(value[0] + 2.0 * slack, 1.0)  # the first knot is 0 and stays there: at most that much of all mass is missed
    return pair_from_curve(np.concatenate([[0.0], knots[1:] + slack]), *values)


def compose_below(parts: Pairs, resolution: Resolution) -> DominatingPair:
    """A pair that the composition dominates: a part of each composed outcome, the neighbours merged into cells.

    Claim: the same with pairs that are dominated, and masses reduced by the bounds. What is left of the outcomes is one more outcome,
    which is not listed: the masses may sum to less than 1.

    Holds when each step dominates its pair. Label: **Composition** (lower).
    """
    slack, p, q = 0.0, [np.zeros(0)], [np.zeros(0)]
    for dense, unsure in composed_laws(parts, resolution, -1):
        slack = max(slack, unsure)
        starts = _starts(dense, resolution.fine)
        p.append(np.add.reduceat(dense.p, starts))
        q.append(np.add.reduceat(dense.q, starts))
    leaks = _leak(parts, "p_only"), _leak(parts, "q_only")
    return merge_tiny(np.concatenate(p), np.concatenate(q), leaks, rounding=2.0 * slack + _ROUNDING)


def _needed(half: list[Profile], fine: float) -> Floats:
    """Where the sum of the curves must be known: each one's own knots, where it counts."""
    chosen = [np.zeros(1)]
    for profile in half:
        knots = profile.knots(fine)
        chosen.append(knots[profile.at(knots) >= _COUNTS * _total(half, knots)] if len(half) > 1 else knots)
    return np.concatenate(chosen)


def _total(half: list[Profile], epsilon: Floats) -> Floats:
    return np.asarray(sum(profile.at(epsilon) for profile in half))


def _starts(dense: Dense, fine: float) -> NDArray[np.int64]:
    """Where the cells to merge begin."""
    knots = np.concatenate([-Profile.reversed(dense).knots(fine), Profile.of(dense).knots(fine)])
    index = np.rint(knots / dense.spacing).astype(np.int64) - dense.first
    return np.unique(np.clip(np.append(index, 0), 0, len(dense.p) - 1))


def _lowers(brackets: Sequence[tuple[Bracket, int]], resolution: Resolution) -> tuple[DominatingPair, ...]:
    """One lower pair for each choice at hand of a lower pair of every step; none where a step has none."""
    if not all(bracket.lowers for bracket, _ in brackets):
        return ()
    choices = max(len(bracket.lowers) for bracket, _ in brackets)
    found = []
    for choice in range(choices):
        pairs = [(bracket.lowers[min(choice, len(bracket.lowers) - 1)], times) for bracket, times in brackets]
        few = len(pairs) == 1 and are_few(*pairs[0])
        found.append(compose_few(*pairs[0], side=-1) if few else compose_below(within_reach(pairs, LARGEST), resolution))
    return tuple(found)


def _in_rounds(parts: Parts, accuracy: float) -> list[tuple[Step, int]]:
    """Very many runs of one step as fewer runs of some of them together: the lattice may be the coarser the wider its law."""
    found: list[tuple[Step, int]] = []
    for step, times in parts:
        if times <= _LONG:
            found.append((step, times))
            continue
        outer = _outer(times)
        _, inner = _roughly([(step, times // outer)], accuracy)
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


def _leak(parts: Pairs, only: str) -> float:
    """The chance that some step has an infinite loss."""
    if any(getattr(pair, only) >= 1.0 for pair, _ in parts):
        return 1.0
    return -math.expm1(sum(times * math.log1p(-getattr(pair, only)) for pair, times in parts))


def _gap(bracket: Bracket, accuracy: float) -> float:
    """How far the two ends of epsilon are apart, relative, at its worst over a few deltas."""
    if not bracket.lowers:
        return math.inf
    probes = _PROBES if accuracy < _FEW_DIGITS else _PROBES[:-1]
    uppers = np.maximum(*(pair.epsilon_at(probes, side=1) for pair in (bracket.upper, bracket.upper.reverse)))
    lowers = np.maximum.reduce([pair.epsilon_at(probes, side=-1) for low in bracket.lowers for pair in (low, low.reverse)])
    known = np.isfinite(uppers) & (lowers > 0.0)
    return float((uppers[known] / lowers[known] - 1.0).max(initial=0.0))
