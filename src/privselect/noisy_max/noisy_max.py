"""Report noisy max as a mechanism."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

import privselect.noisy_max.accounting.discrete_gaussian_noise
import privselect.noisy_max.accounting.discrete_laplace_noise
import privselect.noisy_max.accounting.exponential_noise
import privselect.noisy_max.accounting.gaussian_noise
import privselect.noisy_max.accounting.gumbel_noise
import privselect.noisy_max.accounting.laplace_noise
import privselect.noisy_max.accounting.log_concave_noise  # noqa: F401 - each of these makes its noise known
from privselect._util.validation import REAL, check_array, check_bool, parameter, integer_range
from privselect.interval import Interval
from privselect.mechanisms.base import MOST_RUNS, Mechanism, check_orders, plain
from privselect.mechanisms.composed import composed_brackets
from privselect.mechanisms.gaussian import Gaussian
from privselect.mechanisms.profile_knots import falling_knots
from privselect.mechanisms.pure import Pure
from privselect.noisy_max.accounting.bounds import BOUNDS, released_scores
from privselect.noisy_max.accounting.noise_accounting import LOSS_ROUNDING, Additive, additive
from privselect.noisy_max.accounting.paper_bounds import lem_zhu_lemma5
from privselect.noisy_max.accounting.score_sensitivity import Moves
from privselect.pairs import Bracket, DominatingPair, pair_from_curve
from privselect.pairs.compose import ACCURACY, Step, compose
from privselect.pairs.discretize import LARGEST_LOSS
from privselect.text_forms import register

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from privselect.noisy_max.accounting.lower_bounds import Instances
    from privselect.noisy_max.index_only_noise import Noise

    Floats = NDArray[np.float64]

MOST_SCORES = 10**12
_SAME = DominatingPair(np.ones(1), np.ones(1))
_FALL, _FAR_FALL = 0.05, 0.5  # of log delta from knot to knot, above and below e^-70
_DEEPEST = 1e-250  # the curve ends where the least of the simple bounds is there
_MOST_RELEASED, _MOST_BOUNDED = 100, 6  # scores, whose full release can be the least bound somewhere; the second for noise of bounded loss
_UP = 1.0 + 1e-12
_SAME_CURVE = 1.0 + 1e-9


@register
@dataclass(frozen=True, slots=True)
class NoisyMax(Mechanism):
    """Add ``noise`` to each of ``m`` scores and release the index of the greatest, ``rounds`` times, each time on scores of their own.

    One record changes each score by at most 1, the noise's unit. ``monotone`` says that it moves all scores the same way, or not at
    all; ``changes`` that it moves at most so many of them (a ballot that goes from one class to another changes 2; None: all).
    """

    text_name = "noisy_max"

    noise: Mechanism | Noise = field(metadata={"positional": True})
    m: int = parameter(integer_range(1, MOST_SCORES), leaks="more")
    rounds: int = parameter(integer_range(1, MOST_RUNS), default=1, leaks="more")
    changes: int | None = parameter(integer_range(1, MOST_SCORES), default=None, leaks="more")
    monotone: bool = False

    def __post_init__(self) -> None:
        additive(self.noise)
        Mechanism.__post_init__(self)
        object.__setattr__(self, "monotone", check_bool("monotone", self.monotone))

    @property
    def neighbours(self) -> str:
        """That of the noise."""
        return self.noise.neighbours

    @property
    def account(self) -> Additive:
        """What is known of the noise."""
        return additive(self.noise)

    @property
    def one_round(self) -> NoisyMax:
        """The same with a single round."""
        return replace(self, rounds=1)

    @property
    def changed(self) -> int:
        """How many scores one record changes, at most."""
        return self.m if self.changes is None else min(self.changes, self.m)

    @property
    def gap(self) -> int:
        """How far one score can move against another."""
        return 1 if self.monotone or self.changed == 1 else 2

    @property
    def moves(self) -> Moves:
        """What one record may do to the scores, at most."""
        return Moves(self.m, self.changed if self.gap == 1 else self.m, self.gap)

    def as_parts(self) -> tuple[tuple[Mechanism, int], ...]:
        """One round, as many times."""
        return ((self.one_round, self.rounds),)

    def as_step(self) -> Step:
        """With the cells of what leaks at least as much, where there is such a thing."""
        alike = self._between_two()
        bracket, cells = self.brackets[0], None if alike is None or self.rounds > 1 else alike.as_step().on
        return Step(bracket, None if cells is None else lambda resolution: replace(cells(resolution), lowers=bracket.lowers))

    def _between_two(self) -> Mechanism | None:
        """A mechanism whose curve is that of one round, where the worst case is a choice between two scores, whatever the others are."""
        # One up and one down is the longest move of two scores once what all have in common is left out (docs/derivations/noisy_max.md).
        if self.m == 2 or (self.changed == 2 and self.gap == 2):
            return self.account.between_two(self.gap)
        return None

    def _make_brackets(self) -> tuple[Bracket, ...]:
        return self._make_brackets_within(ACCURACY)

    def _make_brackets_within(self, accuracy: float) -> tuple[Bracket, ...]:
        if self.m == 1:
            return (Bracket(_SAME, (_SAME,)),)
        alike = self._between_two()
        if alike is not None:
            upper = composed_brackets(((alike, self.rounds),), accuracy)[0].upper
            return (Bracket(upper, tuple(_repeated(low, self.rounds) for low in _instances(self).chosen())),)
        if self.rounds > 1:
            return composed_brackets(((self.one_round, self.rounds),), accuracy)
        return (_one_round(self),)

    def delta_at(self, epsilon: ArrayLike) -> Interval:
        """The rounds are (epsilon, delta)-DP together: delta for one or many real epsilons."""
        found = Mechanism.delta_at(self, epsilon)
        eps = check_array("epsilon", epsilon, REAL)
        upper, lower = np.asarray(found.upper), found.lower
        if (released := released_scores(self) if isinstance(self.noise, Gaussian) else None) is not None:
            upper = np.minimum(upper, released.delta_at(eps).upper)
        if self.rounds == 1 and lower is not None and self.m > 1:
            # The other order of the neighbours leaks as much: delta(-e) = 1 - e^-e + e^-e delta(e).
            worst = _instances(self).delta(np.abs(eps))
            worst = np.where(eps < 0.0, np.exp(-np.abs(eps)) * worst - np.expm1(-np.abs(eps)) - 1e-15, worst)
            lower = np.maximum(lower, worst)
        return Interval(None if lower is None else plain(np.minimum(lower, upper)), plain(upper))

    def _epsilon_within(self, delta: Floats, accuracy: float) -> Interval:
        found = Mechanism._epsilon_within(self, delta, accuracy)  # noqa: SLF001 - what it overrides
        if self.m == 1:
            return found
        upper, lower = np.minimum(found.upper, np.reshape([self._least_other(d) for d in delta.ravel().tolist()], delta.shape)), found.lower
        if self.rounds == 1 and lower is not None:
            lower = np.maximum(lower, _instances(self).epsilon(delta))
        return Interval(None if lower is None else plain(np.minimum(lower, upper)), plain(upper))

    def _least_other(self, delta: float) -> float:
        """The least of the bounds that do not go by the curve, and so not by its knots and cells, where they are in closed form."""
        # Of other noise these are composed numerically as the curve is, and that lies below them.
        names = ("full_release", "renyi", "paper", "closed_form") if isinstance(self.noise, Gaussian) else ("renyi",)
        others = [BOUNDS[name](self, delta) for name in names]
        return min((bound for bound in others if bound is not None), default=math.inf)

    def bounds(self, delta: float) -> dict[str, float | None]:
        """Epsilon at delta by each proved upper bound, by name; None where it says nothing."""
        if self.m == 1:
            return dict.fromkeys(BOUNDS, 0.0)
        return {name: bound(self, delta) for name, bound in BOUNDS.items()}

    def renyi_at(self, alpha: ArrayLike) -> Floats:
        """The least of what the curve of one round, lem:zhu_lemma5 and a full release say, times the rounds."""
        orders = check_orders(alpha)
        if self.m == 1:
            return np.zeros(orders.shape)
        one = self.one_round
        known = [Mechanism.renyi_at(one, orders), lem_zhu_lemma5(lambda a: self.account.renyi(self.gap, a), self.m, orders)]
        released = released_scores(one)
        if released is not None:
            known.append(released.renyi_at(orders))
        return np.asarray(self.rounds * np.minimum.reduce(known))


@lru_cache(maxsize=32)
def _instances(choice: NoisyMax) -> Instances:
    """Real scores for one round. Scores that do not move may lie so far below that they never win: then only the others are left."""
    left = choice.m if choice.gap == 1 else choice.changed
    return choice.account.instances(replace(choice.moves, m=left, together=min(choice.moves.together, left)))


def _repeated(low: DominatingPair, rounds: int) -> DominatingPair:
    """One and the same instance in all rounds: the envelope over instances is no instance, and composed it would be too much."""
    return compose([(Step(Bracket(low, (low,))), rounds)]).lowers[0]


def _one_round(choice: NoisyMax) -> Bracket:
    """The least of the proved curves of one round, as a pair; the other order of the neighbours leaks just as much."""
    known = choice.account.choice(choice.gap)
    if known is not None:
        return known
    account, moves = choice.account, choice.moves
    moved = account.shifted(choice.gap).upper
    released = released_scores(choice) if choice.changed <= (_MOST_RELEASED if moved.p_only > 0.0 else _MOST_BOUNDED) else None

    def least(epsilon: Floats) -> Floats:
        # Of all scores at least one does not win, so m - 1 of them are enough in thm:max_sel. lem:zhu_lemma5 is never below it: order by
        # order, what it allows is m times what the same Renyi divergence allows the noise.
        values = np.minimum((choice.m - 1) * moved.hockey_stick(epsilon, side=1), account.choice_delta(moves, epsilon))
        if released is not None:
            values = np.minimum(values, released.delta_at(epsilon).upper)
        return np.asarray(np.minimum.accumulate(np.minimum(values, 1.0)))

    end = min(float(moved.epsilon_at(_DEEPEST, side=1)), LARGEST_LOSS)
    knots = falling_knots(least, end, _FALL, _FAR_FALL)
    values = np.minimum(least(knots) * _UP, 1.0)
    upper = _response(account.most(choice.gap), knots, values) or pair_from_curve(knots, values, values)
    return Bracket(upper, _instances(choice).chosen())


def _response(most: float | None, knots: Floats, values: Floats) -> DominatingPair | None:
    """Randomised response of odds e^most, where it is the least known at every knot: two outcomes, which compose without a lattice."""
    if most is None or most > LARGEST_LOSS:
        return None
    pair = Pure(epsilon=most).brackets[0].upper
    # It holds whatever the knots say. They lie a rounding of the loss lower, where they end at 0.
    return pair if np.all(pair.hockey_stick(knots + 2.0 * LOSS_ROUNDING) <= values * _SAME_CURVE) else None
