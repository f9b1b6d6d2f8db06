"""A training function as an objective of ``tune``: what is run is what is planned, or nothing is released."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar

from privselect._util.validation import check_number, format_value, integer_range
from privselect.errors import MissingExtraError, ParameterError
from privselect.integrations.opacus.certificate_notes import notes
from privselect.integrations.opacus.violation_messages import PLAN
from privselect.mechanisms import DPSGD
from privselect.tuning.plan_ids import plan_id

if TYPE_CHECKING:
    from collections.abc import Callable

    from privselect.integrations.opacus.session import Session
    from privselect.tuning.randomness import Randomness
    from privselect.tuning.space import Candidate

_MOST_RECORDS = 10**12
_DEVICES = ("cpu", "cuda")


@plan_id("opacus_trial")
@dataclass(frozen=True)
class OpacusTrial:
    """An objective of :func:`privselect.tune` that trains with Opacus.

    ``train(candidate, data, private)`` makes its model and optimizer private by ``private.make_private``, takes one step on each batch
    of the loader that it gets, and returns the score and the artifact. ``plan`` is the DP-SGD that a trial runs, or a function of the
    candidate that tells it. ``records`` is how many records there are about: a public number, by which gradients are normalised.

    A trial that does anything else than its plan, as far as that can be seen, gives the whole run up without a release.
    """

    train: Callable[[Candidate, Any, Session], Any]
    plan: DPSGD | Callable[[Candidate], DPSGD]
    records: int
    device: str = "cpu"
    threads: int = 1  # of torch in a trial: with several workers more than one each is slower

    may_violate_plan: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if find_spec("torch") is None or find_spec("opacus") is None:
            raise MissingExtraError("OpacusTrial needs Opacus; install it with: pip install 'privselect[opacus]'")
        if not callable(self.train):
            raise ParameterError(f"`train` must be a function of (candidate, data, private), got {format_value(self.train)}")
        object.__setattr__(self, "records", int(check_number("records", self.records, integer_range(1, _MOST_RECORDS))))
        object.__setattr__(self, "threads", int(check_number("threads", self.threads, integer_range(1, 1024))))
        if not isinstance(self.device, str) or self.device.partition(":")[0] not in _DEVICES:
            raise ParameterError(f"`device` must be cpu, cuda or one such as cuda:1, got {format_value(self.device)}")
        if not callable(self.plan):
            self._checked(self.plan)

    @property
    def runs(self) -> Callable[..., Any]:
        """The function that tells one such objective from another."""
        return self.train

    @property
    def mechanism(self) -> DPSGD | None:
        """What every trial runs; None where that depends on the candidate."""
        return self.plan if isinstance(self.plan, DPSGD) else None

    @property
    def notes(self) -> tuple[str, ...]:
        """For the certificate."""
        return notes(self.records, self.device)

    def mechanism_of(self, candidate: Candidate) -> DPSGD:
        """What a trial of this candidate runs."""
        return self.plan if isinstance(self.plan, DPSGD) else self._checked(self.plan(candidate))

    def _checked(self, plan: Any) -> DPSGD:
        if not isinstance(plan, DPSGD):
            raise ParameterError(f"`plan` must be a DPSGD, or a function of the candidate that returns one, got {format_value(plan)}")
        if plan.sampling_probability * self.records < 1:
            raise ParameterError(
                "`plan` must expect at least one record in a batch, sampling_probability * records >= 1, got "
                f"{plan.sampling_probability:g} * {self.records}"
            )
        return plan

    def __call__(self, candidate: Candidate, data: Any, randomness: Randomness) -> Any:
        """One trial."""
        from privselect.integrations.opacus.session import Session, alone
        from privselect.tuning.plan_violation import PlanViolation
        from privselect.tuning.randomness import seeded_globals

        try:
            plan = self.mechanism_of(dict(candidate))
        except Exception as error:  # noqa: BLE001 - a function of the user's
            raise PlanViolation(PLAN, str(error)) from None
        with alone(self.threads), seeded_globals(randomness):
            private = Session(plan, self.records, self.device, randomness)
            try:
                returned = self.train(candidate, data, private)
            finally:
                private.raise_breach()  # also one that the training function has caught on its way
            private.check()
        return returned
