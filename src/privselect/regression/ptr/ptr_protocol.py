"""Propose, test, release: the run, for whatever has a local sensitivity that can be tested in private.

An instance says how its proposal is tested (:meth:`Proposal.propose`) and what is released if the test passes (:meth:`Proposal.release`).
What it leaks follows (:attr:`Proposal.mechanism`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

from privselect.regression.ptr.propose_test_release import ProposeTestRelease

if TYPE_CHECKING:
    from privselect.mechanisms import Mechanism
    from privselect.regression.gaussian_sampler import Normals

Data = TypeVar("Data")
Plan = TypeVar("Plan")
Released = TypeVar("Released")


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """The outcome where the test does not pass. It holds nothing: why it did not pass is not known in public."""


NO_ANSWER = NoAnswer()


@dataclass(frozen=True, kw_only=True)
class Proposal(ABC, Generic[Data, Plan, Released]):
    """Something that proposes, tests in private and releases; a subclass sets ``calibrated`` by what its test does.

    ``test`` is what the outcome of :meth:`propose` leaks, ``target`` what :meth:`release` leaks at most where the plan is right for the
    data, ``failure`` the greatest chance, on any data, of a plan that is not. Where it is not ``calibrated``, the proposal is fixed: a
    plan says no more than that the test has passed, and it is right or wrong for the data before any noise is drawn.
    See :class:`ProposeTestRelease` for the proofs.
    """

    calibrated: ClassVar[bool] = False

    test: Mechanism
    target: Mechanism
    failure: float

    def __post_init__(self) -> None:
        # Refused at once, not when it is accounted for; and a number is kept as the mechanism reads it.
        object.__setattr__(self, "failure", self.mechanism.failure)

    @property
    def mechanism(self) -> ProposeTestRelease:
        """What one answer leaks, "no answer" among them."""
        return ProposeTestRelease(self.test, self.target, failure=self.failure, calibrated=self.calibrated)

    @abstractmethod
    def propose(self, data: Data, source: Normals) -> Plan | None:
        """The outcome of the private test: what may be released, and how; None for no answer. It may be made public."""

    @abstractmethod
    def release(self, data: Data, plan: Plan, source: Normals) -> Released:
        """The release that the plan allows, with noise of its own: ``target`` must cover it where the plan is right for the data.

        It must not fail, nor answer in another form, where the plan is wrong: that would be seen without noise.
        """

    def answer(self, data: Data, source: Normals) -> Released | NoAnswer:
        """One run: what is released, or that there is no answer."""
        plan = self.propose(data, source)
        return NO_ANSWER if plan is None else self.release(data, plan, source)
