"""Run propose-test-release for any function whose local sensitivity can be tested privately.

A subclass implements the test (:meth:`PTRProtocol.propose`) and the release (:meth:`PTRProtocol.release`). The mechanism that accounts for
both follows (:attr:`PTRProtocol.mechanism`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

from privselect.regression.ptr.propose_test_release import ProposeTestRelease

if TYPE_CHECKING:
    from privselect.mechanisms import Mechanism
    from privselect.regression.noise_source import NoiseSource

Data = TypeVar("Data")
Plan = TypeVar("Plan")
Released = TypeVar("Released")


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
