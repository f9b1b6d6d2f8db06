"""The private training of one trial: Opacus with the numbers of the plan. This module imports torch and Opacus."""

from __future__ import annotations

import contextlib
import math
import warnings
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from opacus.data_loader import wrap_collate_with_empty
from opacus.grad_sample import AbstractGradSampleModule, GradSampleModule
from opacus.layers.dp_rnn import DPRNNBase, RNNLinear
from opacus.optimizers import DPOptimizer
from opacus.utils.uniform_sampler import UniformWithReplacementSampler
from opacus.validators import ModuleValidator
from torch.utils.data import BatchSampler, DataLoader, Dataset, IterableDataset, SequentialSampler
from torch.utils.data.dataloader import default_collate

from privselect._util.validation import POSITIVE, check_number
from privselect.errors import ParameterError
from privselect.integrations.opacus.training_monitor import FLOATS, WRONG_PRECISION, MonitoredOptimizer, TrainingMonitor
from privselect.tuning.plan_violation import PlanViolation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from privselect.mechanisms import DPSGD
    from privselect.tuning.randomness import Randomness

_SEED_BITS = 64  # of a generator that is not on the CPU
_RATE_BITS = 53

# Messages of plan violations: fixed texts that depend on no record.
UNSUPPORTED_LAYER = "the model has a layer that Opacus cannot train privately, such as BatchNorm, which mixes the records of a batch"
NOT_PLAIN = "make_private needs a plain torch model, and a plain torch optimizer over parameters of that model"
WRONG_DEVICE = "the model is not on the device that was declared to OpacusTrial"
MISSING_SEED_BITS = "noise on this device comes from a seed of 64 bits: declare it with seed_bits=64 in tune"
INVALID_CLIP = "make_private needs one positive number as max_grad_norm"
INVALID_DATASET = "make_private needs a torch dataset with a length, or a data loader over such a dataset"
OWN_SAMPLER = "the data loader shuffles or has its own sampler, but the plan needs Poisson samples: pass the dataset or a plain loader"
SECOND_CALL = "make_private was called more than once in a trial: the plan is for one training"
NO_CALL = "the training function did not call make_private"


class PoissonBatches(UniformWithReplacementSampler):  # type: ignore[misc]  # Opacus has no types
    """The planned number of Poisson samples in total: each record is in each batch with the planned probability, independently.

    A pass yields all batches that are left, whatever the number of passes. Opacus compares floats of 24 bits with the rate; here the
    rate is exact to 53 bits, rounded down.
    """

    def __init__(self, records: int, plan: DPSGD, generator: Any) -> None:
        super().__init__(num_samples=records, sample_rate=plan.sampling_probability, generator=None, steps=plan.steps)
        self.drawn = 0
        self.size = 0  # of the last batch
        # Separate from Opacus's public fields: the history would not show a change of those.
        self._threshold = math.floor(Fraction(plan.sampling_probability) * 2**_RATE_BITS)
        self._source = records, generator

    def __reduce_ex__(self, _: object) -> Any:
        """Refuse copies: the generator reveals which records were drawn."""
        raise TypeError("the batches of a private loader cannot be copied or pickled")

    def __len__(self) -> int:
        return int(self.steps - self.drawn)

    def __iter__(self) -> Iterator[list[int]]:
        records, generator = self._source
        while self.drawn < self.steps:
            chosen = torch.randint(2**_RATE_BITS, (records,), generator=generator) < self._threshold
            batch = chosen.nonzero().reshape(-1).tolist()
            self.drawn, self.size = self.drawn + 1, len(batch)
            yield batch


def private_loader(given: Any, draw: Callable[[int], PoissonBatches]) -> tuple[Any, PoissonBatches]:
    """Return a loader over a dataset, or over the dataset of a plain loader with its collate function, and its batches.

    ``draw`` returns the batches of a number of records. The loader has no worker processes, which would draw batches ahead.
    """
    collate = default_collate
    if isinstance(given, DataLoader):
        if not isinstance(given.sampler, SequentialSampler) or type(given.batch_sampler) not in (BatchSampler, type(None)):
            raise PlanViolation(OWN_SAMPLER, type(given.sampler).__name__)
        given, collate = given.dataset, given.collate_fn if given.batch_sampler is not None else default_collate
    if not isinstance(given, Dataset) or isinstance(given, IterableDataset) or not hasattr(given, "__len__"):
        raise PlanViolation(INVALID_DATASET, type(given).__name__)
    collate = wrap_collate_with_empty(collate_fn=collate)
    collate([given[0]])  # an empty batch, even if it is the first, then has the structure of a full one
    batches = draw(len(given))
    return DataLoader(given, batch_sampler=batches, collate_fn=collate), batches


class TrainingSession:
    """The third argument of the training function: ``plan`` is the planned DP-SGD, ``randomness`` that of the training."""

    def __init__(self, plan: DPSGD, records: int, device: str, randomness: Randomness) -> None:
        self.plan, self.records, self.device, self.randomness = plan, records, device, randomness
        self._monitor: TrainingMonitor | None = None
        self._violation: PlanViolation | None = None

    def __repr__(self) -> str:
        return f"TrainingSession({self.plan})"

    @property
    def accountant(self) -> Any:
        """Opacus's accountant of the steps so far; None before ``make_private``."""
        return None if self._monitor is None else self._monitor.accountant

    def make_private(self, module: Any, optimizer: Any, data_loader: Any, *, max_grad_norm: float) -> tuple[Any, Any, Any]:
        """Return the private model, optimizer and loader; the arguments have the names that Opacus gives them.

        ``data_loader`` is a plain loader, whose dataset and collate function are used, or a torch dataset. The returned loader yields
        the planned number of batches in total; one pass yields all that are left. Take one optimizer step on each batch, including
        empty ones. The loss must be a mean over the batch.
        """
        try:
            return self._make_private(module, optimizer, data_loader, max_grad_norm)
        except PlanViolation as violation:
            self._violation = self._violation or violation
            raise

    def _make_private(self, model: Any, optimizer: Any, data: Any, max_grad_norm: Any) -> tuple[Any, Any, Any]:
        if self._monitor is not None:
            raise PlanViolation(SECOND_CALL)
        trained = _trained_parameters(model, optimizer, torch.device(self.device))
        try:
            clip = check_number("max_grad_norm", max_grad_norm, POSITIVE)
        except ParameterError as error:
            raise PlanViolation(INVALID_CLIP, str(error)) from None
        loader, batches = private_loader(data, self._draw_batches)
        private = GradSampleModule(model, batch_first=True, loss_reduction="mean")
        self._monitor = self._new_monitor(batches, model, trained)
        model.register_forward_pre_hook(self._monitor.before_model)
        for layer in model.modules():
            if isinstance(layer, DPRNNBase):
                layer.register_forward_pre_hook(self._monitor.before_recurrent_layer, with_kwargs=True)
        for layer in private.iterate_submodules(model):
            if not isinstance(layer, (DPRNNBase, RNNLinear)):  # later time steps of these may see only the first records of a batch
                self._monitor.add_layer(layer)
        monitored = self._optimizer_type(
            optimizer,
            self._monitor,
            noise_multiplier=self.plan.noise_multiplier,
            max_grad_norm=clip,
            expected_batch_size=self.plan.sampling_probability * self.records,
            loss_reduction="mean",
            generator=_noise_generator(self.randomness, torch.device(self.device)),
            secure_mode=False,
        )
        return private, monitored, loader

    # -- the parts that a probe replaces --------------------------------------------------------------------------------------

    _optimizer_type: ClassVar[type[MonitoredOptimizer]] = MonitoredOptimizer

    def _draw_batches(self, records: int) -> PoissonBatches:
        return PoissonBatches(records, self.plan, self.randomness.torch())

    def _new_monitor(self, batches: PoissonBatches, model: Any, trained: set[Any]) -> TrainingMonitor:
        return TrainingMonitor(self.plan, batches, model, trained)

    # -- after the training ---------------------------------------------------------------------------------------------------

    def raise_violation(self) -> None:
        """Raise a violation that was already found, even if the training function caught it."""
        violation = self._violation or (None if self._monitor is None else self._monitor.violation)
        if violation is not None:
            raise violation from None

    def check(self) -> None:
        """Check, after the training, that it was the planned one."""
        if self._monitor is None:
            raise PlanViolation(NO_CALL)
        self._monitor.check()


@contextlib.contextmanager
def isolated_torch(threads: int) -> Iterator[None]:
    """Limit torch to ``threads`` threads, silence warnings of Opacus and torch, and restore torch's global settings afterwards.

    The warnings concern internals, not user code. Restored settings keep the next trial independent of this one.
    """
    before, dtype = torch.get_num_threads(), torch.get_default_dtype()
    with warnings.catch_warnings(), torch.enable_grad():
        warnings.filterwarnings("ignore", module=r"(opacus|torch)(\.|$)")
        warnings.filterwarnings("ignore", message="Full backward hook is firing")  # attributed to the caller of torch
        torch.set_num_threads(threads)
        try:
            yield
        finally:
            torch.set_num_threads(before)
            torch.set_default_dtype(dtype)


def _trained_parameters(model: Any, optimizer: Any, device: torch.device) -> set[Any]:
    """Check the model and the optimizer, and return the parameters that are trained."""
    if not isinstance(model, torch.nn.Module) or isinstance(model, AbstractGradSampleModule):
        raise PlanViolation(NOT_PLAIN, type(model).__name__)
    if not isinstance(optimizer, torch.optim.Optimizer) or isinstance(optimizer, DPOptimizer):
        raise PlanViolation(NOT_PLAIN, type(optimizer).__name__)
    trained = {parameter for group in optimizer.param_groups for parameter in group["params"]}
    if not trained <= set(model.parameters()):
        raise PlanViolation(NOT_PLAIN, "the optimizer has parameters that the model does not have")
    if any(parameter.device.type != device.type for parameter in model.parameters()):
        raise PlanViolation(WRONG_DEVICE, str(device))
    if any(parameter.dtype not in FLOATS for parameter in trained):
        raise PlanViolation(WRONG_PRECISION)
    errors = [*ModuleValidator.validate(model, strict=False), *GradSampleModule.validate(model, strict=False)]
    # The validator checks trainable layers of known classes only; a frozen BatchNorm, or one without parameters, mixes records too.
    errors += [layer for layer in model.modules() if isinstance(layer, torch.nn.modules.batchnorm._BatchNorm)]  # noqa: SLF001 - their base
    if errors:
        raise PlanViolation(UNSUPPORTED_LAYER, "; ".join(str(error) for error in errors))
    return trained


def _noise_generator(randomness: Randomness, device: torch.device) -> Any:
    if device.type == "cpu":
        return randomness.torch()
    try:
        seed = randomness.integer(_SEED_BITS)
    except ParameterError as error:
        raise PlanViolation(MISSING_SEED_BITS, str(error)) from None
    return torch.Generator(device=device).manual_seed(seed)
