"""Report noisy max as a mechanism."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

import privselect.noisy_max.accounting.discrete_noise
import privselect.noisy_max.accounting.gaussian_noise
import privselect.noisy_max.accounting.gumbel_noise
import privselect.noisy_max.accounting.laplace_noise
import privselect.noisy_max.accounting.log_concave_noise  # noqa: F401 - each import registers its accounting
from privselect._util.validation import REAL, check_array, check_bool, integer_range, parameter
from privselect.interval import Interval
from privselect.mechanisms.base import MAX_RUNS, Mechanism, check_orders, scalar_or_array
from privselect.mechanisms.factors import composed_brackets
from privselect.mechanisms.gaussian import Gaussian
from privselect.mechanisms.pure import Pure
from privselect.noisy_max.accounting.bounds import BOUNDS, full_release_mechanism, lem_zhu_lemma5
from privselect.noisy_max.accounting.noise_accounting import LOSS_ROUNDING, NoiseAccounting, ScoreChange, accounting_of
from privselect.pairs import Bracket, DominatingPair, pair_from_profile
from privselect.pairs.compose import CompositionStep, compose
from privselect.pairs.discretize import LARGEST_LOSS
from privselect.pairs.from_profile import place_knots
from privselect.text_forms import register

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from privselect.noisy_max.accounting.lower_bounds import Instances
    from privselect.noisy_max.index_only_noise import Noise

    Floats = NDArray[np.float64]

MAX_SCORES = 10**12
_IDENTICAL = DominatingPair(np.ones(1), np.ones(1))
_FALL, _FAR_FALL = 0.05, 0.5  # of log delta from knot to knot, above and below e^-70
_SMALLEST_DELTA = 1e-250  # the profile ends where m - 1 times the profile of one noisy score is about this small
# Up to this many changed scores, a full release can be the smallest bound; the second number is for noise with bounded loss.
_MAX_RELEASED, _MAX_RELEASED_BOUNDED = 100, 6
_UP = 1.0 + 1e-12
_SAME_PROFILE = 1.0 + 1e-9


@register
@dataclass(frozen=True, slots=True)
class NoisyMax(Mechanism):
    """Add ``noise`` to each of ``m`` scores and release the index of the largest, ``rounds`` times, each time on new scores.

    One record changes each score by at most 1, the unit of the noise. ``monotone`` means that it moves all scores in the same direction
    or not at all. ``changes`` is the number of scores that it moves at most; None means all. A ballot that moves to another class
    changes 2.
    """

    text_name = "noisy_max"

    noise: Mechanism | Noise = field(metadata={"positional": True})
    m: int = parameter(integer_range(1, MAX_SCORES), leaks="more")
    rounds: int = parameter(integer_range(1, MAX_RUNS), default=1, leaks="more")
    changes: int | None = parameter(integer_range(1, MAX_SCORES), default=None, leaks="more")
    monotone: bool = False

    def __post_init__(self) -> None:
        accounting_of(self.noise)
        Mechanism.__post_init__(self)
        object.__setattr__(self, "monotone", check_bool("monotone", self.monotone))

    @property
    def neighbours(self) -> str:
        """The neighbouring relation of the noise."""
        return self.noise.neighbours

    @property
    def accounting(self) -> NoiseAccounting:
        """The accounting of the noise."""
        return accounting_of(self.noise)

    @property
    def one_round(self) -> NoisyMax:
        """The same mechanism with a single round."""
        return replace(self, rounds=1)

    @property
    def changed_scores(self) -> int:
        """The largest number of scores that one record changes."""
        return self.m if self.changes is None else min(self.changes, self.m)

    @property
    def gap(self) -> int:
        """How far one score can move against another."""
        return 1 if self.monotone or self.changed_scores == 1 else 2

    @property
    def score_change(self) -> ScoreChange:
        """The largest effect of one record on the scores."""
        return ScoreChange(self.m, self.changed_scores if self.gap == 1 else self.m, self.gap)

    def composition_steps(self) -> tuple[tuple[Mechanism, int], ...]:
        """Return one round, and the number of rounds."""
        return ((self.one_round, self.rounds),)

    def composition_step(self) -> CompositionStep:
        """Return the step, with refinable cells if an equivalent choice between two scores is known."""
        equivalent = self._two_score_mechanism()
        bracket, refine = self.brackets[0], None if equivalent is None or self.rounds > 1 else equivalent.composition_step().refine
        return CompositionStep(bracket, None if refine is None else lambda resolution: replace(refine(resolution), lowers=bracket.lowers))

    def _two_score_mechanism(self) -> Mechanism | None:
        """Return a mechanism with the profile of one round, if the worst case is a choice between two scores; else None."""
        # Without the common part of a move, the longest move of two scores is one up and one down (docs/derivations/noisy_max.md).
        if self.m == 2 or (self.changed_scores == 2 and self.gap == 2):
            return self.accounting.two_score_mechanism(self.gap)
        return None

    def _make_brackets(self, accuracy: float, /) -> tuple[Bracket, ...]:
        if self.m == 1:
            return (Bracket(_IDENTICAL, (_IDENTICAL,)),)
        equivalent = self._two_score_mechanism()
        if equivalent is not None:
            upper = composed_brackets(((equivalent, self.rounds),), accuracy)[0].upper
            return (Bracket(upper, tuple(_compose_lower(low, self.rounds) for low in _instances(self).as_pairs())),)
        if self.rounds > 1:
            return composed_brackets(((self.one_round, self.rounds),), accuracy)
        return (_one_round_bracket(self),)

    def delta_at(self, epsilon: ArrayLike) -> Interval:
        """Compute delta of all rounds together, for one or many real epsilons."""
        found = Mechanism.delta_at(self, epsilon)
        eps = check_array("epsilon", epsilon, REAL)
        upper, lower = np.asarray(found.upper), found.lower
        if (released := full_release_mechanism(self) if isinstance(self.noise, Gaussian) else None) is not None:
            upper = np.minimum(upper, released.delta_at(eps).upper)
        if self.rounds == 1 and lower is not None and self.m > 1:
            # The other order of the neighbours leaks as much: delta(-e) = 1 - e^-e + e^-e delta(e).
            worst = _instances(self).delta(np.abs(eps))
            worst = np.where(eps < 0.0, np.exp(-np.abs(eps)) * worst - np.expm1(-np.abs(eps)) - 1e-15, worst)
            lower = np.maximum(lower, worst)
        return Interval(None if lower is None else scalar_or_array(np.minimum(lower, upper)), scalar_or_array(upper))

    def _epsilon_within(self, delta: Floats, accuracy: float) -> Interval:
        found = Mechanism._epsilon_within(self, delta, accuracy)  # noqa: SLF001 - super() does not work in a class with slots
        if self.m == 1:
            return found
        others = np.reshape([self._smallest_other_bound(d) for d in delta.ravel().tolist()], delta.shape)
        upper, lower = np.minimum(found.upper, others), found.lower
        if self.rounds == 1 and lower is not None:
            lower = np.maximum(lower, _instances(self).epsilon(delta))
        return Interval(None if lower is None else scalar_or_array(np.minimum(lower, upper)), scalar_or_array(upper))

    def _smallest_other_bound(self, delta: float) -> float:
        """Return the smallest of the closed-form bounds, which do not depend on the knots and cells of the profile."""
        # With other noise these bounds are composed numerically like the profile, which lies below them.
        names = ("full_release", "renyi", "paper", "closed_form") if isinstance(self.noise, Gaussian) else ("renyi",)
        others = [BOUNDS[name](self, delta) for name in names]
        return min((bound for bound in others if bound is not None), default=math.inf)

    def bounds(self, delta: float) -> dict[str, float | None]:
        """Return epsilon at delta by each proved upper bound, by name; None if a bound is infinite or does not apply."""
        if self.m == 1:
            return dict.fromkeys(BOUNDS, 0.0)
        return {name: bound(self, delta) for name, bound in BOUNDS.items()}

    def renyi_at(self, alpha: ArrayLike) -> Floats:
        """Return the smallest of the bounds by the profile of one round, lem:zhu_lemma5 and a full release, times the rounds."""
        orders = check_orders(alpha)
        if self.m == 1:
            return np.zeros(orders.shape)
        one = self.one_round
        known = [Mechanism.renyi_at(one, orders), lem_zhu_lemma5(lambda a: self.accounting.renyi(self.gap, a), self.m, orders)]
        released = full_release_mechanism(one)
        if released is not None:
            known.append(released.renyi_at(orders))
        return np.asarray(self.rounds * np.minimum.reduce(known))


@lru_cache(maxsize=32)
def _instances(mechanism: NoisyMax) -> Instances:
    """Return instances of one round. Unmoved scores may lie so far below that they never win, which leaves only the others."""
    m = mechanism.m if mechanism.gap == 1 else mechanism.changed_scores
    change = mechanism.score_change
    return mechanism.accounting.instances(replace(change, m=m, changed=min(change.changed, m)))


def _compose_lower(low: DominatingPair, rounds: int) -> DominatingPair:
    """Compose one instance over all rounds. The envelope of instances is not an instance, so composing it would not be a lower bound."""
    return compose([(CompositionStep(Bracket(low, (low,))), rounds)]).lowers[0]


def _one_round_bracket(mechanism: NoisyMax) -> Bracket:
    """Return the minimum of the proved profiles of one round as a pair; the other order of the neighbours leaks as much."""
    known = mechanism.accounting.index_bracket(mechanism.gap)
    if known is not None:
        return known
    accounting, change = mechanism.accounting, mechanism.score_change
    shifted = accounting.shift_bracket(mechanism.gap).upper
    max_released = _MAX_RELEASED if shifted.p_only > 0.0 else _MAX_RELEASED_BOUNDED
    released = full_release_mechanism(mechanism) if mechanism.changed_scores <= max_released else None

    def profile(epsilon: Floats) -> Floats:
        # At least one score does not win, so m - 1 scores are enough in thm:max_sel. lem:zhu_lemma5 is never smaller: order by order, it
        # gives m times what the same Renyi divergence gives for the noise.
        values = np.minimum((mechanism.m - 1) * shifted.hockey_stick(epsilon, side=1), accounting.index_delta(change, epsilon))
        if released is not None:
            values = np.minimum(values, released.delta_at(epsilon).upper)
        return np.asarray(np.minimum.accumulate(np.minimum(values, 1.0)))

    end = min(float(shifted.epsilon_at(_SMALLEST_DELTA, side=1)), LARGEST_LOSS)
    knots = place_knots(profile, end, _FALL, _FAR_FALL)
    values = np.minimum(profile(knots) * _UP, 1.0)
    upper = _randomised_response(accounting.largest_loss(mechanism.gap), knots, values) or pair_from_profile(knots, values, values)
    return Bracket(upper, _instances(mechanism).as_pairs())


def _randomised_response(most: float | None, knots: Floats, values: Floats) -> DominatingPair | None:
    """Return randomised response with odds e^most if it is the smallest bound at every knot; it composes without a lattice."""
    if most is None or most > LARGEST_LOSS:
        return None
    pair = Pure(epsilon=most).brackets[0].upper
    # This pair is always valid. The knots lie below by the rounding of a loss where the profile ends at 0.
    return pair if np.all(pair.hockey_stick(knots + 2.0 * LOSS_ROUNDING) <= values * _SAME_PROFILE) else None
