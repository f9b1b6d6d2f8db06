"""Monitoring of a private training: each step is the planned one, and only these steps change the model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from opacus.accountants import PRVAccountant
from opacus.optimizers import DPOptimizer
from torch.nn.utils.rnn import PackedSequence

from privselect.integrations.opacus.history import mechanism_from_history
from privselect.tuning.plan_violation import PlanViolation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from privselect.integrations.opacus.session import PoissonBatches
    from privselect.mechanisms import DPSGD

FLOATS = (torch.float32, torch.float64)

# Messages of plan violations: fixed texts that depend on no record.
WRONG_PRECISION = "the trained parameters and their gradients must be floats of 32 or 64 bits"
OPTIMIZER_CHANGED = "the private optimizer was changed: its noise, clipping, batch size, generator or accountant is not the planned one"
WRONG_BATCH = "a step was not taken on exactly the next batch of the private loader"
SKIPPED_BATCH = "a batch of the private loader was skipped: take one step on each batch"
SECOND_FORWARD = "the model was run more than once for one step, so a record may count more than once"
UNEVEN_LAYERS = "the layers were run on different numbers of records in one step, so Opacus may assign gradients to the wrong record"
REORDERED_SEQUENCES = (
    "sequences were packed in a different order than in their batch, so gradients of different records are clipped as one: sort them "
    "in the collate function and pack them with enforce_sorted=True"
)
STEP_WITHOUT_NOISE = "the optimizer took a step without noise"
MODEL_CHANGED = "the model's parameters or buffers were changed by something other than private steps"
WRONG_HISTORY = "the accountant's history is not the planned training"


class MonitoredOptimizer(DPOptimizer):  # type: ignore[misc]  # Opacus has no types
    """Opacus's optimizer with two differences: it is monitored, and gradients of a record that are not numbers count as 0."""

    def __init__(self, optimizer: Any, monitor: TrainingMonitor, **fields: Any) -> None:
        super().__init__(optimizer, **fields)
        self._monitor, self._fields = monitor, fields
        self._noise_state = self.generator.get_state()
        self.attach_step_hook(monitor.after_noise)
        optimizer.register_step_pre_hook(monitor.before_step)
        optimizer.register_step_post_hook(monitor.after_step)

    def __reduce_ex__(self, _: object) -> Any:
        """Refuse copies: they would draw the same noise. Restoring one also changes the class, which breaks later trials."""
        raise TypeError("a private optimizer cannot be copied or pickled")

    def clip_and_accumulate(self) -> None:
        """Clip the gradients of a batch, or of a part of one."""
        gradients = self._sample_gradients()
        exact = all(tensor.dtype in FLOATS for tensor in gradients)
        self._monitor.before_clipping(len(self.grad_samples[0]), unchanged=self._is_unchanged(), exact=exact)
        for tensor in gradients:
            # Clipping does not remove NaN or infinity, and a lost model would reveal that one record.
            tensor.nan_to_num_(0.0, 0.0, 0.0)
        super().clip_and_accumulate()

    def add_noise(self) -> None:
        """Add the noise, and remember the state of its generator."""
        super().add_noise()
        self._noise_state = self.generator.get_state()

    def _sample_gradients(self) -> list[Any]:
        """Return the original tensors; ``grad_samples`` may return copies."""
        entries = [parameter.grad_sample for parameter in self.params]
        return [tensor for entry in entries for tensor in (entry if isinstance(entry, list) else [entry])]

    def _is_unchanged(self) -> bool:
        as_given = all(getattr(self, name) == value for name, value in self._fields.items())
        # A generator that was reseeded would produce noise that others can reproduce.
        return as_given and self.step_hook == self._monitor.after_noise and torch.equal(self.generator.get_state(), self._noise_state)


class TrainingMonitor:
    """Count the batches, records and steps of one training, and keep the model as the last step left it."""

    def __init__(self, plan: DPSGD, batches: PoissonBatches, model: Any, trained: set[Any]) -> None:
        self.plan, self.batches, self._model = plan, batches, model
        self.accountant = PRVAccountant()
        self.violation: PlanViolation | None = None
        self._record_step = self.accountant.get_optimizer_hook_fn(sample_rate=plan.sampling_probability)
        self._steps = 0
        self._gradients = 0  # since the last step, one for each record
        self._forwards = 0  # since the last clipping
        self._layers: set[Any] = set()
        self._batch_sizes: set[int] = set()  # of the layers' inputs since the last clipping
        self._has_noise = False
        self._snapshot = [(tensor, tensor.detach().clone(), tensor in trained) for tensor in self._tensors()]

    def __reduce_ex__(self, _: object) -> Any:
        """Refuse pickling: the monitor holds the generator of the batches, which must not get into an artifact."""
        raise TypeError("a private model cannot be pickled, but its state_dict can")

    def __deepcopy__(self, _: object) -> TrainingMonitor:
        """Return the monitor itself: a copy of the model, for example to average weights, is not monitored."""
        return self

    def before_model(self, model: Any, *_: object) -> None:
        """Count a run of the model that can produce gradients."""
        self._forwards += model is self._model and model.training and torch.is_grad_enabled()

    def add_layer(self, layer: Any) -> None:
        """Monitor a layer whose gradients Opacus computes per record."""
        self._layers.add(layer)
        layer.register_forward_pre_hook(self.before_layer)

    def before_layer(self, layer: Any, inputs: tuple[Any, ...]) -> None:
        """Record the batch size of a monitored layer; copies of a layer are not monitored."""
        if layer in self._layers and layer.training and torch.is_grad_enabled():
            self._batch_sizes.update(len(tensor) for tensor in inputs[-1:] if torch.is_tensor(tensor) and tensor.ndim)

    def before_recurrent_layer(self, _: object, inputs: tuple[Any, ...], named: dict[str, Any]) -> None:
        """Refuse reordered sequences: Opacus keeps gradients in the order of the packed sequences and joins them by position."""
        if any(isinstance(value, PackedSequence) and value.sorted_indices is not None for value in (*inputs, *named.values())):
            self._raise(REORDERED_SEQUENCES)

    def before_clipping(self, gradients: int, *, unchanged: bool, exact: bool) -> None:
        """Check the gradients of a batch, or of a part of one, before they are clipped."""
        if not unchanged:
            self._raise(OPTIMIZER_CHANGED)
        if not exact:
            self._raise(WRONG_PRECISION)
        drawn = self.batches.drawn
        if drawn != self._steps + 1:
            self._raise(WRONG_BATCH if drawn <= self._steps else SKIPPED_BATCH, f"{drawn} batches drawn before step {self._steps + 1}")
        self._gradients += gradients
        if self._gradients > self.batches.size:
            self._raise(WRONG_BATCH, f"{self._gradients} gradients for a batch of {self.batches.size} records")
        if self._forwards > 1:
            self._raise(SECOND_FORWARD)
        if len(self._batch_sizes) > 1:
            self._raise(UNEVEN_LAYERS)
        self._forwards, self._batch_sizes = 0, set()

    def after_noise(self, optimizer: Any) -> None:
        """Record a step: Opacus calls this hook after the noise and before the step."""
        if self._gradients != self.batches.size:
            self._raise(WRONG_BATCH, f"{self._gradients} gradients for a batch of {self.batches.size} records")
        self._record_step(optimizer)
        self._steps, self._gradients, self._has_noise = self._steps + 1, 0, True

    def before_step(self, optimizer: Any, *_: object) -> None:
        """Check each step of the inner optimizer, whatever code calls it."""
        if not self._has_noise:
            self._raise(STEP_WITHOUT_NOISE)
        self._has_noise = False
        self._check_model()
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                if not parameter.requires_grad:
                    parameter.grad = None  # Opacus adds noise to trainable parameters only; one frozen after backward() has none

    def after_step(self, *_: object) -> None:
        """Update the snapshot of the trained parameters."""
        for tensor, kept, trained in self._snapshot:
            if trained:
                kept.copy_(tensor.detach())
        for parameter in self._model.parameters():
            # Both are pickled with a parameter, and accumulate if no optimizer clears them.
            parameter.grad_sample = parameter.summed_grad = None

    def check(self) -> None:
        """Check the model and the history after the training."""
        self._check_model()
        if not self.accountant.history or mechanism_from_history(self.accountant) != self.plan:
            self._raise(WRONG_HISTORY, f"planned {self.plan}, got {self.accountant.history}")

    def _check_model(self) -> None:
        tensors = list(self._tensors())  # listed again: a layer may replace a buffer by a new tensor
        same_objects = len(tensors) == len(self._snapshot) and all(
            tensor is known for tensor, (known, _, _) in zip(tensors, self._snapshot, strict=True)
        )
        if not same_objects or not all(_is_equal(tensor.detach(), kept) for tensor, kept, _ in self._snapshot):
            self._raise(MODEL_CHANGED)

    def _tensors(self) -> Iterator[Any]:
        yield from self._model.parameters()
        yield from self._model.buffers()

    def _raise(self, message: str, details: str = "") -> None:
        if self.violation is None:
            self.violation = PlanViolation(message, details)
        raise self.violation


def _is_equal(tensor: Any, kept: Any) -> bool:
    """Return whether two tensors are equal, with NaN equal to itself: a training that diverged is no violation."""
    return bool(torch.equal(tensor, kept) or ((tensor == kept) | ((tensor != tensor) & (kept != kept))).all())  # noqa: PLR0124
