"""A training function as an objective of ``tune``: each training is the planned one, or nothing is released."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from privselect._util.validation import check_number, format_value, integer_range
from privselect.errors import MissingExtraError, ParameterError
from privselect.mechanisms import DPSGD
from privselect.tuning.ledger import FINAL
from privselect.tuning.plan_ids import plan_id

if TYPE_CHECKING:
    from collections.abc import Callable

    from privselect.integrations.opacus.session import TrainingSession
    from privselect.tuning.randomness import Randomness
    from privselect.tuning.space import Candidate

_MAX_RECORDS = 10**12
_DEVICES = ("cpu", "cuda")

INVALID_PLAN = "the plan of a training is missing, or is not a DPSGD with at least one record expected in a batch"
_NO_FINAL = "`plan` must be left out when a final training follows: each stage then trains with the mechanism that the run states for it"

# Notes for the certificate; they must not depend on data.
_CHECKED = (
    "every training, of a trial or the final one, is done by Opacus, and nothing is released unless each followed its plan: its "
    "accountant's history is exactly the planned DP-SGD, each step used as many records as its Poisson batch of the planned rate contains, "
    "and nothing else changed the model's parameters"
)
_PROBED = (
    "before any private data was used, the training function ran on synthetic batches: the gradient of a record did not change, beyond "
    "rounding, with the other records of its batch or their number, and the settings of the optimizer, such as its learning rate, did not "
    "change with the records"
)
_PROBE_LIMITS = (
    "this probe saw the first steps of a few candidates, on batches as large as planned but of at most 1024 records; it misses a loss, "
    "model or learning rate that depends on the records of a batch only in later steps, in larger batches, or for other records or "
    "candidates; dropout was off, so it misses a dropout whose rate depends on the batch"
)
_OWN_NOISE = "noise and batches depend on plan and candidate too, so two trainings with different ones never share their noise"
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
    "these are checked only as far as Opacus validates models and as the probe sees: that the loss is the mean of one term for each "
    "record, and that no layer, training function or collate function mixes records or changes their order between layers"
)
_UNITS = "that an entry of the dataset is one unit of privacy, and that a step uses exactly the records of its batch, is not checked"
_OTHER_CODE = "the training function's other code, such as statistics of the data or another model, is not checked"


@plan_id("opacus_trial")
@dataclass(frozen=True)
class OpacusTrial:
    """An objective of :func:`privselect.tune` that trains with Opacus.

    ``train(candidate, data, private)`` makes its model and optimizer private with ``private.make_private``. It takes one step on each
    batch of the returned loader and returns the score and the artifact. ``records`` is the approximate number of records: a public
    number that normalises the gradients.

    Without ``plan``, the run states the DP-SGD of each stage. A search without a final training may have its own ``plan``: the DP-SGD
    that a trial runs, or a function from the candidate to it.

    If a training visibly deviates from its plan, the whole run ends without a release. Before any private data is used, :meth:`probe`
    checks on synthetic data that no record changes the gradients of other records.
    """

    train: Callable[[Candidate, Any, TrainingSession], Any]
    plan: DPSGD | Callable[[Candidate], DPSGD] | None = None
    records: int = field(kw_only=True)
    device: str = "cpu"
    threads: int = 1  # of torch per trial: with several workers, more than one thread each is slower

    may_violate_plan: ClassVar[bool] = True
    mechanism_claimed: ClassVar[bool] = False  # each training is checked
    requires_synthetic: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if find_spec("torch") is None or find_spec("opacus") is None:
            raise MissingExtraError("OpacusTrial needs Opacus; install it with: pip install 'privselect[opacus]'")
        if not callable(self.train):
            raise ParameterError(f"`train` must be a function of (candidate, data, private), got {format_value(self.train)}")
        object.__setattr__(self, "records", int(check_number("records", self.records, integer_range(1, _MAX_RECORDS))))
        object.__setattr__(self, "threads", int(check_number("threads", self.threads, integer_range(1, 1024))))
        if not isinstance(self.device, str) or self.device.partition(":")[0] not in _DEVICES:
            raise ParameterError(f"`device` must be cpu, cuda or a device such as cuda:1, got {format_value(self.device)}")
        if self.plan is not None and not callable(self.plan):
            self._check_plan("plan", self.plan)

    @property
    def runs(self) -> Callable[..., Any]:
        """The training function, by which the plan identifies the objective."""
        return self.train

    @property
    def mechanism(self) -> DPSGD | None:
        """The mechanism of every trial; None if it depends on the candidate or if the run states it."""
        return self.plan if isinstance(self.plan, DPSGD) else None

    @property
    def mechanism_of(self) -> Callable[[Candidate], DPSGD] | None:
        """The mechanism of a trial as a function of the candidate; None if the run states it."""
        return None if self.plan is None else self._own_plan

    @property
    def final_mechanism_of(self) -> Callable[[Candidate], DPSGD] | None:
        """A function that refuses a final training after a search with the trial's own plan; None if the run states both plans."""
        return None if self.plan is None else _refuse_final

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for the certificate, one line each."""
        generator = _CPU_GENERATOR if self.device == "cpu" else _DEVICE_GENERATOR.format(device=self.device)
        declared = _DECLARED.format(records=self.records)
        return (_CHECKED, _PROBED, _PROBE_LIMITS, _FLOATS, generator, _OWN_NOISE, declared, _MIXING, _UNITS, _OTHER_CODE)

    def __call__(self, candidate: Candidate, data: Any, randomness: Randomness, mechanism: Any = None, stage: str | None = None) -> Any:
        """Run one training, with the given mechanism of its stage unless the trial has its own plan."""
        from privselect.integrations.opacus.session import TrainingSession, isolated_torch
        from privselect.tuning.plan_violation import PlanViolation
        from privselect.tuning.randomness import seeded_globals

        try:
            plan = self.plan_of(dict(candidate), mechanism, stage)
        except Exception as error:  # noqa: BLE001 - a function of the user's
            raise PlanViolation(INVALID_PLAN, str(error)) from None
        # A runner that reused the randomness of a trial in another training would still not reuse its noise.
        own = randomness.derived(f"opacus {plan} {json.dumps(candidate, sort_keys=True, default=repr)}")
        with isolated_torch(self.threads), seeded_globals(own):
            private = TrainingSession(plan, self.records, self.device, own)
            try:
                returned = self.train(candidate, data, private)
            finally:
                private.raise_violation()  # includes one that the training function caught
            private.check()
        return returned

    def probe(self, synthetic: Any, candidate: Candidate, mechanism: Any = None, stage: str | None = None) -> None:
        """Refuse a training function in which a record changes the gradients of other records, as a summed loss does.

        ``synthetic`` is data of the same form that is not private. Nothing is spent. A run probes some candidates itself.
        """
        from privselect.integrations.opacus.gradient_probe import check_gradients

        plan = self.plan_of(dict(candidate), mechanism, stage)
        check_gradients(self, plan, synthetic, dict(candidate))

    def plan_of(self, candidate: Candidate, mechanism: Any = None, stage: str | None = None) -> DPSGD:
        """Return the DP-SGD of a training: the trial's own plan, or the mechanism of the stage."""
        if self.plan is None:
            if mechanism is None:
                raise ParameterError(
                    "`plan` is required where no run states the mechanism: pass mechanism=..., such as dpsgd(...), to tune, or plan=... to "
                    "OpacusTrial"
                )
            return self._check_plan("mechanism", mechanism)
        return _refuse_final(candidate) if stage == FINAL else self._own_plan(candidate)

    def _own_plan(self, candidate: Candidate) -> DPSGD:
        given: Any = self.plan
        return given if isinstance(given, DPSGD) else self._check_plan("plan", given(candidate))

    def _check_plan(self, name: str, plan: Any) -> DPSGD:
        if not isinstance(plan, DPSGD):
            raise ParameterError(f"`{name}` must be a DPSGD, or a function of the candidate that returns one, got {format_value(plan)}")
        if plan.sampling_probability * self.records < 1:
            raise ParameterError(
                f"`{name}` must expect at least one record in a batch, sampling_probability * records >= 1, got "
                f"{plan.sampling_probability:g} * {self.records}"
            )
        return plan


def _refuse_final(_: Candidate) -> NoReturn:
    raise ParameterError(_NO_FINAL)
