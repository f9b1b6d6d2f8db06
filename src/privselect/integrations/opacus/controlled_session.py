"""A training with controlled batches: it records the gradient of each record, and the model keeps its initial weights.

This module imports torch and Opacus.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import torch
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from privselect.errors import ParameterError
from privselect.integrations.opacus.session import PoissonBatches, TrainingSession
from privselect.integrations.opacus.training_monitor import MonitoredOptimizer, TrainingMonitor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from privselect.mechanisms import DPSGD
    from privselect.tuning.randomness import Randomness

Batch: TypeAlias = list[int]

_SKETCH = 4096  # numbers kept of each gradient
_BLOCK = 2**24  # numbers of gradients that are sketched at a time
_SIGNS_SEED, _SHIFT_SEED = 1, 2  # public: they decide nothing that is released
_SHIFT = 0.3
_DROPOUTS = {
    *(functional.dropout, functional.dropout1d, functional.dropout2d, functional.dropout3d),
    *(functional.alpha_dropout, functional.feature_alpha_dropout),
    *(torch.dropout, torch.feature_dropout, torch.alpha_dropout, torch.feature_alpha_dropout),
}


class TrainingStoppedError(BaseException):
    """Raised to stop a controlled training after its last batch. ``except Exception`` in a training function does not catch it."""


_FunctionMode: Any = TorchFunctionMode  # for mypy, which has torch's types only where torch is installed


class WithoutDropout(_FunctionMode):  # type: ignore[misc]
    """Turn dropout off: its masks are drawn for a whole batch, so a record's mask depends on the size of the batch."""

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Return the input of a dropout unchanged."""
        named = kwargs or {}
        if function in _DROPOUTS:
            return args[0] if args else named["input"]
        return function(*args, **named)


@contextlib.contextmanager
def full_precision() -> Iterator[None]:
    """Turn off the rounding of GPUs to 11 bits (TF32), which a real training may use."""
    settings: tuple[Any, ...] = (torch.backends.cuda.matmul, torch.backends.cudnn)
    before = [setting.allow_tf32 for setting in settings]
    try:
        for setting in settings:
            setting.allow_tf32 = False
        yield
    finally:
        for setting, value in zip(settings, before, strict=True):
            setting.allow_tf32 = value


@dataclass
class StartingPoint:
    """The weights from which all trainings of a comparison start; the first training sets them.

    A ``shifted`` point is the user's initial point plus noise: at the initial point itself some weights may be 0 and hide a dependence.
    """

    shifted: bool
    _weights: list[Any] = field(default_factory=list)

    def apply(self, model: Any, trained: set[Any]) -> None:
        """Give the model these weights."""
        tensors = [*model.parameters(), *model.buffers()]
        if not self._weights:
            generator = torch.Generator().manual_seed(_SHIFT_SEED)
            shift = _shifted if self.shifted else _copied
            self._weights = [shift(tensor, generator) if tensor in trained else _copied(tensor) for tensor in tensors]
        if [tensor.shape for tensor in tensors] != [kept.shape for kept in self._weights]:
            raise ParameterError("the training function must make the same model each time, got models of different shapes")
        with torch.no_grad():
            for tensor, kept in zip(tensors, self._weights, strict=True):
                tensor.copy_(kept)


def _copied(tensor: Any, _: Any = None) -> Any:
    return tensor.detach().clone()


def _shifted(tensor: Any, generator: Any) -> Any:
    """Add noise of about a third of the weights' size; weights that are all 0 get the size of usual initial weights."""
    size = float(tensor.detach().square().mean().sqrt()) or (len(tensor) / tensor.numel() if tensor.ndim else 1.0) ** 0.5
    noise = torch.randn(tensor.shape, generator=generator, dtype=tensor.dtype)
    return tensor.detach() + _SHIFT * size * noise.to(tensor.device)


class ControlledBatches(PoissonBatches):
    """Chosen batches instead of Poisson samples."""

    def __init__(self, batches: list[Batch], records: int, plan: DPSGD) -> None:
        super().__init__(records, plan, None)
        self._batches = batches

    def __iter__(self) -> Iterator[Batch]:
        while not self.are_over:
            batch = self._batches[self.drawn]
            self.drawn, self.size = self.drawn + 1, len(batch)
            yield list(batch)

    @property
    def are_over(self) -> bool:
        """Whether all chosen batches were drawn; ``len`` is that of the plan, as in a real training."""
        return self.drawn >= len(self._batches)


class RecordingMonitor(TrainingMonitor):
    """Record the gradients of each step, and undo the step, so that all steps see the same model."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.gradients: list[Any] = []  # of each step: one row for each record
        self.settings: list[Any] = []  # of the optimizer, in each step
        self.precision = 0.0
        self._parts: list[Any] = []

    def record(self, gradients: list[Any]) -> None:
        """Record the gradients of a batch, or of a part of one."""
        self.precision = max(self.precision, *(torch.finfo(tensor.dtype).eps for tensor in gradients))
        self._parts.append(sketch(gradients))

    def after_step(self, *arguments: Any) -> None:
        """Undo the step."""
        self.gradients.append(torch.cat(self._parts))
        self._parts = []
        with torch.no_grad():
            for tensor, kept, trained in self._snapshot:
                if trained:
                    tensor.copy_(kept)
        super().after_step(*arguments)


class RecordingOptimizer(MonitoredOptimizer):
    """Record what is clipped, and stop the training after the last chosen batch."""

    _monitor: RecordingMonitor

    def clip_and_accumulate(self) -> None:
        """Record the gradients before they are clipped."""
        super().clip_and_accumulate()
        self._monitor.record([tensor.detach() for tensor in self.grad_samples])

    def step(self, closure: Any = None) -> Any:
        """Take a step, which the monitor undoes."""
        settings = [_settings(group) for group in self.param_groups]
        loss = super().step(closure)
        if not self._is_last_step_skipped:
            self._monitor.settings.append(settings)
        if self._monitor.batches.are_over and not self._is_last_step_skipped:
            raise TrainingStoppedError
        return loss


class Control(NamedTuple):
    """What is controlled in a training."""

    start: StartingPoint
    choose: Callable[[int], list[Batch]]  # the batches of a number of records


class ControlledSession(TrainingSession):
    """The session of a training on chosen batches, from a given starting point."""

    _optimizer_type = RecordingOptimizer

    def __init__(self, control: Control, plan: DPSGD, records: int, device: str, randomness: Randomness) -> None:
        super().__init__(plan, records, device, randomness)
        self._control = control
        self._chosen: list[Batch] = []

    @property
    def gradients(self) -> list[Any] | None:
        """A sketch of the gradient of each record, for each step; None if the training did not take all its steps."""
        monitor: Any = self._monitor
        return None if monitor is None or len(monitor.gradients) < len(self._chosen) else monitor.gradients

    @property
    def settings(self) -> list[Any]:
        """The settings of the optimizer in each step, such as its learning rate."""
        monitor: Any = self._monitor
        return list(monitor.settings)

    @property
    def precision(self) -> float:
        """The distance from 1 to the next float, in the gradients' type."""
        monitor: Any = self._monitor
        return float(monitor.precision)

    def _draw_batches(self, records: int) -> PoissonBatches:
        self._chosen = self._control.choose(records)
        return ControlledBatches(self._chosen, records, self.plan)

    def _new_monitor(self, batches: PoissonBatches, model: Any, trained: set[Any]) -> TrainingMonitor:
        self._control.start.apply(model, trained)
        return RecordingMonitor(self.plan, batches, model, trained)


def sketch(gradients: list[Any]) -> Any:
    """Return one row for each record, which keeps norms and differences of gradients but not their length.

    All numbers of a gradient get random signs and are added up in ``_SKETCH`` places. This is linear, and a norm changes by about 2%.
    """
    generator = torch.Generator().manual_seed(_SIGNS_SEED)
    rows = torch.zeros((len(gradients[0]), _SKETCH), dtype=torch.float64)
    for tensor in gradients:
        flat = tensor.reshape(len(tensor), -1)
        signs = 2 * torch.randint(2, (flat.shape[1],), generator=generator).to(flat) - 1
        size = max(1, _BLOCK // max(1, flat.shape[1]))
        for start in range(0, len(flat), size):  # a batch of gradients may fill much of the memory
            block = flat[start : start + size] * signs
            folded = functional.pad(block, (0, -block.shape[1] % _SKETCH)).reshape(len(block), -1, _SKETCH)
            rows[start : start + size] += folded.sum(1, dtype=torch.float64).cpu()
    return rows


def _settings(group: dict[str, Any]) -> dict[str, Any]:
    """Return the numbers of a parameter group of an optimizer."""
    return {
        name: value.tolist() if torch.is_tensor(value) else value
        for name, value in group.items()
        if torch.is_tensor(value) or isinstance(value, bool | int | float | tuple)
    }
