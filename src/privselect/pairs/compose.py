"""Composition: bounds on the pair of many private steps whose outputs are all released."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from privselect.pairs.composed_distributions import composed_distributions
from privselect.pairs.dominating_pair import Bracket, DominatingPair
from privselect.pairs.enumerate_composition import can_enumerate, compose_by_enumeration
from privselect.pairs.from_profile import pair_from_profile
from privselect.pairs.lattice_resolution import Resolution, limit_runs, resolution_for
from privselect.pairs.loss_lattice import LatticeProfile
from privselect.pairs.subnormal_masses import merge_subnormal
from privselect.pairs.tilted_fft import FLOOR, LARGEST_COMPOSED_LOSS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from privselect.pairs.tilted_fft import DenseDistribution

    Floats = NDArray[np.float64]
    Parts = Sequence[tuple["CompositionStep", int]]
    Pairs = Sequence[tuple[DominatingPair, int]]

ACCURACY = 1e-4  # default relative accuracy of epsilon
_EXP_ROUNDING = 1e-12  # relative, of the exponentials that undo a tilt
_KNOT_SHARE = 0.02  # the knots of a curve are kept if it has this share of the sum there
_INNER_SHARE, _OUTER_SHARE = 0.3, 0.6  # shares of the accuracy for the two rounds
_MANY_RUNS = 100_000  # runs of one step beyond which composition takes two rounds
_LARGEST_CLOSABLE_GAP = 30.0  # in units of the accuracy: a finer lattice is unlikely to close a larger gap
_PROBE_DELTAS = (1e-5, 1e-9, 1e-14, 1e-25)  # deltas at which the accuracy is checked
_COARSE_ACCURACY = 5e-4  # at this accuracy or a coarser one, the smallest probe delta is skipped
_NO_PRIVACY = DominatingPair(np.array([]), np.array([]), 1.0, 1.0)


@dataclass(frozen=True, slots=True, eq=False)
class CompositionStep:
    """Private step with bounds ``bracket``; ``refine``, if given, returns tighter bounds for a resolution."""

    bracket: Bracket
    refine: Callable[[Resolution], Bracket] | None = None

    def at(self, resolution: Resolution) -> Bracket:
        """Return the bracket to compose on a lattice of this resolution."""
        return self.bracket if self.refine is None else self.refine(resolution)


def compose(parts: Parts, accuracy: float = ACCURACY) -> Bracket:
    """Return the bracket of the composition of ``parts``, pairs (step, number of runs).

    Its direction is "remove" if any step has that direction, otherwise "both".

    Upper: connecting the dots of a step gives a pair that dominates it, and compositions of dominating pairs dominate. Lower: the
    same with dominated pairs. The lattice is refined until both epsilons agree to the relative ``accuracy``.
    """
    if len(parts) == 1 and parts[0][1] == 1:
        return parts[0][0].bracket
    if len(parts) == 1 and _can_enumerate_step(*parts[0]):
        step, times = parts[0]
        return _enumerate(step.bracket, times)
    rounds = _compose_in_rounds(parts, _INNER_SHARE * accuracy) if all(len(step.bracket.upper.p) for step, _ in parts) else list(parts)
    if any(len(step.bracket.upper.p) == 0 for step, _ in rounds):
        # The upper pair of one step allows any leak. The lower bound is that of this step alone.
        worst = next(step.bracket for step, _ in rounds if len(step.bracket.upper.p) == 0)
        return Bracket(_NO_PRIVACY, worst.lowers, _direction(parts))
    resolution, found = _compose_once(rounds, accuracy if rounds == list(parts) else _OUTER_SHARE * accuracy)
    if all(step.refine is not None or _relative_gap(step.bracket, accuracy) < accuracy for step, _ in rounds):
        # Only the lattice causes the gap: try a finer one if it may close the gap.
        gap = _relative_gap(found, accuracy)
        for _ in range(2):
            finer = resolution.finer(math.sqrt(0.7 * accuracy / gap)) if accuracy < gap < _LARGEST_CLOSABLE_GAP * accuracy else None
            if finer is None:
                break
            again = _compose_at(rounds, finer)
            now = _relative_gap(again, accuracy)
            if now < gap:
                found = again
            if now > 0.8 * gap:
                break
            resolution, gap = finer, now
    return found


def _compose_once(parts: Parts, accuracy: float) -> tuple[Resolution, Bracket]:
    resolution = resolution_for([(step.bracket.upper, times) for step, times in parts], accuracy, (FLOOR, LARGEST_COMPOSED_LOSS))
    return resolution, _compose_at(parts, resolution)


def _compose_at(parts: Parts, resolution: Resolution) -> Bracket:
    brackets = [(step.at(resolution), times) for step, times in parts]
    # The two bounds are independent, and spend most time in transforms and array arithmetic, which release the interpreter lock.
    with ThreadPoolExecutor(1) as executor:
        try:
            lowers = executor.submit(_lower_pairs, brackets, resolution).result
        except RuntimeError:  # no thread available, for example at interpreter exit
            lowers = partial(_lower_pairs, brackets, resolution)
        upper = compose_upper([(bracket.upper, times) for bracket, times in brackets], resolution)
        return Bracket(upper, lowers(), _direction(parts))


def compose_upper(parts: Pairs, resolution: Resolution) -> DominatingPair:
    """Return a pair that dominates the composition.

    Claim: replace each step by a pair on the lattice that dominates it. The composed masses, enlarged by bounds on rounding and on
    wrap-around, give upper bounds on the hockey stick at knots. Losses beyond the range of the lattice count as infinite.

    Holds when each step is dominated by its pair for every output of the steps before it. Label: **Composition** (upper).
    """
    leaks, slack = [_infinite_loss_probability(parts, only) for only in ("p_only", "q_only")], 0.0
    halves: tuple[list[LatticeProfile], list[LatticeProfile]] = ([], [])
    for dense, part_slack in composed_distributions(parts, resolution, 1):
        slack = max(slack, part_slack)
        leaks = [leak + dense.lost_p + dense.lost_q + 2.0 * FLOOR for leak in leaks]  # + FLOOR: inner transforms
        for half, profile in zip(halves, (LatticeProfile.of(dense), LatticeProfile.reversed(dense)), strict=True):
            half.append(profile)
    if max(leaks) >= 1.0 or slack > 1.0:
        return _NO_PRIVACY
    knots = np.unique(np.concatenate([_merged_knots(half, resolution.knot_tolerance) for half in halves]))
    # Losses have an error of up to the slack, and masses the same relative error: shift the knots by it and scale the values.
    factor = math.exp(2.0 * slack) * (1.0 + _EXP_ROUNDING)
    values = [np.minimum(_sum_at(half, knots) * factor + leak, 1.0) for half, leak in zip(halves, leaks, strict=True)]
    for value in values:
        value[0] = min(value[0] + 2.0 * slack, 1.0)  # the first knot must stay 0: add the mass that the shift would have covered
    return pair_from_profile(np.concatenate([[0.0], knots[1:] + slack]), *values)


def compose_lower(parts: Pairs, resolution: Resolution) -> DominatingPair:
    """Return a pair that the composition dominates.

    Claim: replace each step by a pair on the lattice that it dominates, compose their masses, reduce them by the bounds on rounding
    and wrap-around, and merge neighbouring outcomes into cells. The missing mass is one further outcome, which is not listed: the
    masses may sum to less than 1.

    Holds when each step dominates its pair. Label: **Composition** (lower).
    """
    slack, p, q = 0.0, [np.zeros(0)], [np.zeros(0)]
    for dense, part_slack in composed_distributions(parts, resolution, -1):
        slack = max(slack, part_slack)
        starts = _cell_starts(dense, resolution.knot_tolerance)
        p.append(np.add.reduceat(dense.p, starts))
        q.append(np.add.reduceat(dense.q, starts))
    leaks = _infinite_loss_probability(parts, "p_only"), _infinite_loss_probability(parts, "q_only")
    return merge_subnormal(np.concatenate(p), np.concatenate(q), leaks, rounding=2.0 * slack + _EXP_ROUNDING)


def _merged_knots(half: list[LatticeProfile], fine: float) -> Floats:
    """Return the knots for the sum of the curves: those of each curve at which it has a notable share of the sum."""
    chosen = [np.zeros(1)]
    for profile in half:
        knots = profile.knots(fine)
        chosen.append(knots[profile.at(knots) >= _KNOT_SHARE * _sum_at(half, knots)] if len(half) > 1 else knots)
    return np.concatenate(chosen)


def _sum_at(half: list[LatticeProfile], epsilon: Floats) -> Floats:
    return np.asarray(sum(profile.at(epsilon) for profile in half))


def _cell_starts(dense: DenseDistribution, fine: float) -> NDArray[np.int64]:
    """Return the first index of each cell to merge."""
    knots = np.concatenate([-LatticeProfile.reversed(dense).knots(fine), LatticeProfile.of(dense).knots(fine)])
    index = np.rint(knots / dense.spacing).astype(np.int64) - dense.first
    return np.unique(np.clip(np.append(index, 0), 0, len(dense.p) - 1))


def _lower_pairs(brackets: Sequence[tuple[Bracket, int]], resolution: Resolution) -> tuple[DominatingPair, ...]:
    """Return one lower pair for each choice of the steps' lower pairs; none if a step has none."""
    if not all(bracket.lowers for bracket, _ in brackets):
        return ()
    choices = max(len(bracket.lowers) for bracket, _ in brackets)
    found = []
    for choice in range(choices):
        pairs = [(bracket.lowers[min(choice, len(bracket.lowers) - 1)], times) for bracket, times in brackets]
        few = len(pairs) == 1 and can_enumerate(*pairs[0])
        found.append(
            compose_by_enumeration(*pairs[0], side=-1) if few else compose_lower(limit_runs(pairs, LARGEST_COMPOSED_LOSS), resolution)
        )
    return tuple(found)


def _compose_in_rounds(parts: Parts, accuracy: float) -> list[tuple[CompositionStep, int]]:
    """Group very many runs of a step into fewer composed steps: the wider their distribution, the coarser the lattice may be."""
    found: list[tuple[CompositionStep, int]] = []
    for step, times in parts:
        if times <= _MANY_RUNS:
            found.append((step, times))
            continue
        outer = _outer_rounds(times)
        _, inner = _compose_once([(step, times // outer)], accuracy)
        found += [(CompositionStep(inner), outer)] + ([(step, times % outer)] if times % outer else [])
    return found


def _outer_rounds(times: int) -> int:
    """Return a number of groups near the square root that leaves few single runs: these do not suit the coarse lattice of the groups."""
    near = min(math.isqrt(times), 400)
    return min(range(near // 2, near + 1), key=lambda rounds: (times % rounds, -rounds))


def _can_enumerate_step(step: CompositionStep, times: int) -> bool:
    return all(can_enumerate(pair, times) for pair in (step.bracket.upper, *step.bracket.lowers))


def _enumerate(bracket: Bracket, times: int) -> Bracket:
    lowers = tuple(compose_by_enumeration(low, times, side=-1) for low in bracket.lowers)
    return Bracket(compose_by_enumeration(bracket.upper, times, side=1), lowers, bracket.direction)


def _direction(parts: Parts) -> str:
    return "both" if all(step.bracket.direction == "both" for step, _ in parts) else "remove"


def _infinite_loss_probability(parts: Pairs, only: str) -> float:
    """Return the probability that some step has an infinite loss."""
    if any(getattr(pair, only) >= 1.0 for pair, _ in parts):
        return 1.0
    return -math.expm1(sum(times * math.log1p(-getattr(pair, only)) for pair, times in parts))


def _relative_gap(bracket: Bracket, accuracy: float) -> float:
    """Return the largest relative gap between the bounds on epsilon over a few deltas."""
    if not bracket.lowers:
        return math.inf
    probes = _PROBE_DELTAS if accuracy < _COARSE_ACCURACY else _PROBE_DELTAS[:-1]
    uppers = np.maximum(*(pair.epsilon_at(probes, side=1) for pair in (bracket.upper, bracket.upper.reverse)))
    lowers = np.maximum.reduce([pair.epsilon_at(probes, side=-1) for low in bracket.lowers for pair in (low, low.reverse)])
    known = np.isfinite(uppers) & (lowers > 0.0)
    return float((uppers[known] / lowers[known] - 1.0).max(initial=0.0))
