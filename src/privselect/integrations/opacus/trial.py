"""A training function as an objective of ``tune``: it trains as planned, or nothing is released."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar

from privselect._util.validation import check_number, format_value, integer_range
from privselect.errors import MissingExtraError, ParameterError
from privselect.mechanisms import DPSGD
from privselect.tuning.plan_ids import plan_id

if TYPE_CHECKING:
    from collections.abc import Callable

    from privselect.integrations.opacus.session import TrainingSession
    from privselect.tuning.randomness import Randomness
    from privselect.tuning.space import Candidate

_MAX_RECORDS = 10**12
_DEVICES = ("cpu", "cuda")

INVALID_PLAN = "the plan of a candidate is missing, or is not a DPSGD with at least one record expected in a batch"

# Notes for the certificate; they must not depend on data.
_CHECKED = (
    "every trial is trained by Opacus, and nothing is released unless each trial followed its plan: its accountant's history is "
    "exactly the planned DP-SGD, each step used as many records as its Poisson batch of the planned rate contains, and nothing else "
    "changed the model's parameters"
)
_FLOATS = "the noise of Opacus is in floating point and not hardened (its secure mode is off): attacks on rounding are not covered"
_CPU_GENERATOR = "noise and batches come from torch's Mersenne Twister, which is not cryptographic; its whole state is drawn at random"
_DEVICE_GENERATOR = (
    "the noise comes from a generator on the device {device}, which is not cryptographic and takes a seed of 64 bits; the batches come "
    "from torch's Mersenne Twister, whose whole state is drawn at random"
)
_DECLARED = (
    "the sampling rate comes from the plan, and gradients are divided by the expected batch of {records} records, a declared and public "
    "number; Opacus would compute both from the private data"
)
_MIXING = (
    "these are checked only as far as Opacus validates models: that an entry of the dataset is one unit of privacy, that a step uses "
    "exactly the records of its batch, that the loss is the mean of one term for each record, and that no layer, training function or "
    "collate function mixes records or changes their order between layers"
)
_OTHER_CODE = "the training function's other code, such as statistics of the data or another model, is not checked"


@plan_id("opacus_trial")
@dataclass(frozen=True)
class OpacusTrial:
    """An objective of :func:`privselect.tune` that trains with Opacus.

    ``train(candidate, data, private)`` makes its model and optimizer private with ``private.make_private``. It takes one step on each
    batch of the returned loader and returns the score and the artifact. ``plan`` is the DP-SGD that a trial runs, or a function from
    the candidate to it. ``records`` is the approximate number of records: a public number that normalises the gradients.

    If a trial visibly deviates from its plan, the whole run ends without a release.
    """

    train: Callable[[Candidate, Any, TrainingSession], Any]
    plan: DPSGD | Callable[[Candidate], DPSGD]
    records: int
    device: str = "cpu"
    threads: int = 1  # of torch per trial: with several workers, more than one thread each is slower

    may_violate_plan: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if find_spec("torch") is None or find_spec("opacus") is None:
            raise MissingExtraError("OpacusTrial needs Opacus; install it with: pip install 'privselect[opacus]'")
        if not callable(self.train):
            raise ParameterError(f"`train` must be a function of (candidate, data, private), got {format_value(self.train)}")
        object.__setattr__(self, "records", int(check_number("records", self.records, integer_range(1, _MAX_RECORDS))))
        object.__setattr__(self, "threads", int(check_number("threads", self.threads, integer_range(1, 1024))))
        if not isinstance(self.device, str) or self.device.partition(":")[0] not in _DEVICES:
            raise ParameterError(f"`device` must be cpu, cuda or a device such as cuda:1, got {format_value(self.device)}")
        if not callable(self.plan):
            self._check_plan(self.plan)

    @property
    def runs(self) -> Callable[..., Any]:
        """The training function, by which the plan identifies the objective."""
        return self.train

    @property
    def mechanism(self) -> DPSGD | None:
        """The mechanism of every trial; None if it depends on the candidate."""
        return self.plan if isinstance(self.plan, DPSGD) else None

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for the certificate, one line each."""
        generator = _CPU_GENERATOR if self.device == "cpu" else _DEVICE_GENERATOR.format(device=self.device)
        return (_CHECKED, _FLOATS, generator, _DECLARED.format(records=self.records), _MIXING, _OTHER_CODE)

    def mechanism_of(self, candidate: Candidate) -> DPSGD:
        """Return the mechanism of a trial of this candidate."""
        return self.plan if isinstance(self.plan, DPSGD) else self._check_plan(self.plan(candidate))

    def _check_plan(self, plan: Any) -> DPSGD:
        if not isinstance(plan, DPSGD):
            raise ParameterError(f"`plan` must be a DPSGD, or a function of the candidate that returns one, got {format_value(plan)}")
        if plan.sampling_probability * self.records < 1:
            raise ParameterError(
                "`plan` must expect at least one record in a batch, sampling_probability * records >= 1, got "
                f"{plan.sampling_probability:g} * {self.records}"
            )
        return plan

    def __call__(self, candidate: Candidate, data: Any, randomness: Randomness) -> Any:
        """Run one trial."""
        from privselect.integrations.opacus.session import TrainingSession, isolated_torch
        from privselect.tuning.plan_violation import PlanViolation
        from privselect.tuning.randomness import seeded_globals

        try:
            plan = self.mechanism_of(dict(candidate))
        except Exception as error:  # noqa: BLE001 - a function of the user's
            raise PlanViolation(INVALID_PLAN, str(error)) from None
        with isolated_torch(self.threads), seeded_globals(randomness):
            private = TrainingSession(plan, self.records, self.device, randomness)
            try:
                returned = self.train(candidate, data, private)
            finally:
                private.raise_violation()  # includes one that the training function caught
            private.check()
        return returned
