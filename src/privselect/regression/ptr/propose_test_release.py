"""Generalized propose-test-release: the mechanism that accounts for it, and the protocol that runs it.

A protocol implements the test (:meth:`PTRProtocol.propose`) and the release (:meth:`PTRProtocol.release`); its mechanism follows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

import numpy as np

from privselect._util.validation import NON_NEGATIVE, UNIT, check_bool, check_number, format_value, parameter
from privselect.errors import ParameterError
from privselect.mechanisms import Composed
from privselect.mechanisms.base import Mechanism
from privselect.mechanisms.neighbours import common_relation
from privselect.pairs import Bracket, DominatingPair, pair_from_profile
from privselect.pairs.discretize import LARGEST_LOSS
from privselect.pairs.envelope import envelope, envelope_per_order
from privselect.pairs.from_profile import distinct_indices
from privselect.text_forms import register

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from privselect.regression.noise_source import NoiseSource

    Floats = NDArray[np.float64]

Data = TypeVar("Data")
Plan = TypeVar("Plan")
Released = TypeVar("Released")

_PAST_LAST_LOSS = 1e-12  # larger than the rounding of the last loss


def thm_gptr(release: tuple[float, float], test: tuple[float, float], failure: float) -> tuple[float, float]:
    """Return one (epsilon, delta) of propose-test-release from one (epsilon, delta) of the release and one of the test.

    Claim: let a test be ``(eh, dh)``-DP and pass bad proposals with probability at most d', and let a release be ``(e, d)``-DP whenever the
    proposal is good. Together they are ``(e + eh, dh + max(d, d'))``-DP. The published statement has ``d + d'`` instead of the maximum.
    Its proof gives the maximum: a data set is good or bad, never both.

    Holds when the test passes bad proposals with probability at most d' on each data set. Label: thm:gptr.
    """
    epsilon, delta = check_number("epsilon", release[0], NON_NEGATIVE), check_number("delta", release[1], UNIT)
    test_epsilon, test_delta = check_number("epsilon", test[0], NON_NEGATIVE), check_number("delta", test[1], UNIT)
    wrong = check_number("failure", failure, UNIT)
    return (epsilon + test_epsilon) * (1.0 + 1e-15), min((test_delta + max(delta, wrong)) * (1.0 + 1e-15), 1.0)


@register
@dataclass(frozen=True, slots=True)
class ProposeTestRelease(Mechanism):
    """Propose, test privately, and release only if the test passes ("no answer" otherwise).

    ``test`` covers the outcome of the test. ``target`` covers the release whenever the proposal is good for the data. ``failure`` is an
    upper bound d' on the probability that the test is wrong. The mechanism has the whole profile, while ``thm:gptr`` has one point:

    - Fixed proposal: a bad data set passes with probability at most d'.
      Claim: ``delta(e) = max(delta_{test, target}(e), d' + delta_test(e))``, where "test, target" is the composition.
      Proof: on a good data set the run is covered by the composition. On a bad one the release counts for at most d', and "no answer"
      leaks what the test leaks.
    - ``calibrated``: the test releases bounds one after the other. On each data set, any of them is wrong for the data with probability
      at most d'. Each bound and the release may depend on the earlier bounds.
      Claim: ``delta(e) = d' + delta_{test, target}(e)``.
      Proof: stop the runs on both data sets at the first bound that is wrong for the first data set. Until then every step leaks what is
      stated, whatever came before, so the stopped runs are the composition. Later steps may leak everything, but they happen with
      probability at most d'. So the guarantee of a later bound is needed only if the earlier bounds are right.

    Both claims are for e >= 0 and each order of the neighbours. This is sufficient: the reverse pair at -e gives the values at e < 0.

    Holds when the target covers the release at every good data set (one whose bounds hold) against each of its neighbours, in both
    orders. The first of two neighbours decides. Label: **Propose-test-release**.
    """

    text_name = "ptr"

    test: Mechanism = field(metadata={"positional": True})
    target: Mechanism = field(metadata={"positional": True})
    failure: float = parameter(UNIT, leaks="more", kw_only=True)
    calibrated: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        for name in ("test", "target"):
            if not isinstance(getattr(self, name), Mechanism):
                raise ParameterError(f"`{name}` must be a mechanism such as gaussian(sigma=4), got {format_value(getattr(self, name))}")
        Mechanism.__post_init__(self)
        object.__setattr__(self, "calibrated", check_bool("calibrated", self.calibrated))
        common_relation((part.neighbours, part) for part in (self.test, self.target))

    @property
    def neighbours(self) -> str:
        """The neighbouring relation that both parts share."""
        return common_relation((part.neighbours, part) for part in (self.test, self.target))

    def _make_brackets(self, accuracy: float, /) -> tuple[Bracket, ...]:
        # No lower bound: the mechanism also covers a test that is never wrong and a release that leaks less.
        both = Composed((self.test, self.target)).brackets_within(accuracy)
        if self.calibrated:
            return tuple(Bracket(_add_delta(bracket.upper, self.failure), (), bracket.direction) for bracket in both)
        tests = envelope_per_order(self.test.brackets_within(accuracy))
        return tuple(
            Bracket(
                envelope([bracket.upper, _add_delta((tests.get(bracket.direction) or tests["both"]).upper, self.failure)]),
                (),
                bracket.direction,
            )
            for bracket in both
        )


def _add_delta(pair: DominatingPair, delta: float) -> DominatingPair:
    """Return a pair whose hockey-stick divergences are larger by ``delta``, and at most 1."""
    losses = np.concatenate([pair.losses, pair.losses[-1:] + _PAST_LAST_LOSS, -pair.losses, -pair.losses[:1] + _PAST_LAST_LOSS])
    knots = np.unique(np.concatenate([[0.0], losses[(losses > 0.0) & (losses <= LARGEST_LOSS)]]))
    knots = knots[distinct_indices(knots)]
    forward, backward = (np.minimum(side.hockey_stick(knots, side=1) + delta, 1.0) for side in (pair, pair.reverse))
    return pair_from_profile(knots, forward, backward)


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """The outcome if the test does not pass. It holds nothing: the reason is not public."""


NO_ANSWER = NoAnswer()


@dataclass(frozen=True, kw_only=True)
class PTRProtocol(ABC, Generic[Data, Plan, Released]):
    """Propose, test privately and release; a subclass sets ``calibrated`` according to what its test returns.

    ``test`` covers the outcome of :meth:`propose`. ``target`` covers :meth:`release` whenever the plan is right for the data. ``failure``
    is an upper bound on the probability, on any data, of a plan that is wrong.

    Without ``calibrated`` the proposal is fixed: a plan only says that the test passed, and it is right or wrong for the data before any
    noise is drawn. See :class:`ProposeTestRelease` for the proofs.
    """

    calibrated: ClassVar[bool] = False

    test: Mechanism
    target: Mechanism
    failure: float

    def __post_init__(self) -> None:
        # Building the mechanism here rejects invalid parameters early; it also normalises the number.
        object.__setattr__(self, "failure", self.mechanism.failure)

    @property
    def mechanism(self) -> ProposeTestRelease:
        """What one run leaks, including the outcome "no answer"."""
        return ProposeTestRelease(self.test, self.target, failure=self.failure, calibrated=self.calibrated)

    @abstractmethod
    def propose(self, data: Data, source: NoiseSource) -> Plan | None:
        """Run the private test and return what may be released, and how; None means no answer. The plan may be made public."""

    @abstractmethod
    def release(self, data: Data, plan: Plan, source: NoiseSource) -> Released:
        """Release what the plan allows, with fresh noise: ``target`` must cover it if the plan is right for the data.

        If the plan is wrong, this method must not fail and must not return another type: both would be visible without noise.
        """

    def answer(self, data: Data, source: NoiseSource) -> Released | NoAnswer:
        """Run the protocol once and return the release, or that there is no answer."""
        plan = self.propose(data, source)
        return NO_ANSWER if plan is None else self.release(data, plan, source)
