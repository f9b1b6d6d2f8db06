"""A private optimizer under watch: each step is what was planned, and nothing but steps changes the model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from opacus.accountants import PRVAccountant
from opacus.optimizers import DPOptimizer
from torch.nn.utils.rnn import PackedSequence

from privselect.integrations.opacus.history import mechanism_from_history
from privselect.integrations.opacus.violation_messages import (
    CHANGED,
    FOREIGN,
    HISTORY,
    OUTSIDE,
    PASSED_OVER,
    PRECISION,
    REORDERED,
    TWICE,
    UNEVEN,
    UNNOISED,
)
from privselect.tuning.plan_violation import PlanViolation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from privselect.integrations.opacus.poisson_loader import PoissonBatches
    from privselect.mechanisms import DPSGD

FLOATS = (torch.float32, torch.float64)


class WatchedOptimizer(DPOptimizer):  # type: ignore[misc]  # Opacus has no types
    """Opacus's optimizer, told apart in two ways: it is watched, and no record can bring a gradient that is not a number."""

    def __init__(self, optimizer: Any, watch: Watch, **fields: Any) -> None:
        super().__init__(optimizer, **fields)
        self._watch, self._fields = watch, fields
        self._noise_state = self.generator.get_state()
        self.attach_step_hook(watch.noised)
        optimizer.register_step_pre_hook(watch.before)
        optimizer.register_step_post_hook(watch.after)

    def __reduce_ex__(self, _: object) -> Any:
        """No copies: they would draw the same noise. And torch, restoring one, changes the class, by which later trials fail."""
        raise TypeError("a private optimizer cannot be copied or pickled")

    def clip_and_accumulate(self) -> None:
        """Clip the gradients of a batch, or of a part of one."""
        kept = self._kept_gradients()
        exact = all(gradients.dtype in FLOATS for gradients in kept)
        self._watch.clipping(len(self.grad_samples[0]), unchanged=self._unchanged(), exact=exact)
        for gradients in kept:
            # Clipping leaves them as they are, and whether the model is lost would tell of that one record.
            gradients.nan_to_num_(0.0, 0.0, 0.0)
        super().clip_and_accumulate()

    def add_noise(self) -> None:
        """Add the noise, and remember where its generator stands."""
        super().add_noise()
        self._noise_state = self.generator.get_state()

    def _kept_gradients(self) -> list[Any]:
        """The tensors themselves, where ``grad_samples`` may be copies."""
        kept = [parameter.grad_sample for parameter in self.params]
        return [tensor for entry in kept for tensor in (entry if isinstance(entry, list) else [entry])]

    def _unchanged(self) -> bool:
        as_given = all(getattr(self, name) == value for name, value in self._fields.items())
        # A generator that was set to a seed on the way would make noise that others know.
        return as_given and self.step_hook == self._watch.noised and torch.equal(self.generator.get_state(), self._noise_state)


class Watch:
    """Counts batches, records and steps of one training, and keeps the model as the last step has left it."""

    def __init__(self, plan: DPSGD, batches: PoissonBatches, model: Any, trained: set[Any]) -> None:
        self.plan, self.batches, self._model = plan, batches, model
        self.accountant = PRVAccountant()
        self.breach: PlanViolation | None = None
        self._account = self.accountant.get_optimizer_hook_fn(sample_rate=plan.sampling_probability)
        self._steps = 0
        self._rows = 0  # gradients since the last step, one for each record
        self._forwards = 0  # since gradients were clipped last
        self._layers: set[Any] = set()
        self._sizes: set[int] = set()  # of what the layers were run on since then
        self._noised = False
        self._kept = [(tensor, tensor.detach().clone(), tensor in trained) for tensor in self._tensors()]

    def __reduce_ex__(self, _: object) -> Any:
        """Nothing of it belongs in an artifact: it holds the generator of the batches."""
        raise TypeError("a private model cannot be pickled, but its state_dict can")

    def __deepcopy__(self, _: object) -> Watch:
        """Itself: a copy of the model, as for an average of its weights, is not watched."""
        return self

    def forward(self, model: Any, *_: object) -> None:
        """Before the model is run; what counts is a run from which gradients can come."""
        self._forwards += model is self._model and model.training and torch.is_grad_enabled()

    def add_layer(self, layer: Any) -> None:
        """One of those whose gradients Opacus takes apart by records."""
        self._layers.add(layer)
        layer.register_forward_pre_hook(self.layer)

    def layer(self, layer: Any, inputs: tuple[Any, ...]) -> None:
        """Before such a layer is run; a copy of it is none of them."""
        if layer in self._layers and layer.training and torch.is_grad_enabled():
            self._sizes.update(len(one) for one in inputs[-1:] if torch.is_tensor(one) and one.ndim)

    def recurrent(self, _: object, inputs: tuple[Any, ...], named: dict[str, Any]) -> None:
        """Before a recurrent layer is run: Opacus leaves its gradients in the order of the packed sequences, and joins them by place."""
        if any(isinstance(one, PackedSequence) and one.sorted_indices is not None for one in (*inputs, *named.values())):
            self._give_up(REORDERED)

    def clipping(self, rows: int, *, unchanged: bool, exact: bool) -> None:
        """Before gradients are clipped; those of one batch may come in parts."""
        if not unchanged:
            self._give_up(CHANGED)
        if not exact:
            self._give_up(PRECISION)
        drawn = self.batches.drawn
        if drawn != self._steps + 1:
            self._give_up(FOREIGN if drawn <= self._steps else PASSED_OVER, f"{drawn} batches drawn, and this is step {self._steps + 1}")
        self._rows += rows
        if self._rows > self.batches.size:
            self._give_up(FOREIGN, f"{self._rows} gradients for a batch of {self.batches.size} records")
        if self._forwards > 1:
            self._give_up(TWICE)
        if len(self._sizes) > 1:
            self._give_up(UNEVEN)
        self._forwards, self._sizes = 0, set()

    def noised(self, optimizer: Any) -> None:
        """After the noise, before the step: the hook of Opacus."""
        if self._rows != self.batches.size:
            self._give_up(FOREIGN, f"{self._rows} gradients for a batch of {self.batches.size} records")
        self._account(optimizer)
        self._steps, self._rows, self._noised = self._steps + 1, 0, True

    def before(self, optimizer: Any, *_: object) -> None:
        """Before each step of the optimizer inside, whoever asks for it."""
        if not self._noised:
            self._give_up(UNNOISED)
        self._noised = False
        self._check_model()
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                if not parameter.requires_grad:
                    parameter.grad = None  # Opacus gives noise to what is trained; one frozen after its gradient was made has it bare

    def after(self, *_: object) -> None:
        """After each step of it."""
        for tensor, kept, trained in self._kept:
            if trained:
                kept.copy_(tensor.detach())
        for parameter in self._model.parameters():
            # They are pickled with a parameter, and those that no optimizer clears pile up.
            parameter.grad_sample = parameter.summed_grad = None

    def check(self) -> None:
        """After the training."""
        self._check_model()
        if not self.accountant.history or mechanism_from_history(self.accountant) != self.plan:
            self._give_up(HISTORY, f"{self.accountant.history}, where {self.plan} is planned")

    def _check_model(self) -> None:
        tensors = list(self._tensors())  # anew: a layer may put another tensor in the place of a buffer
        known = len(tensors) == len(self._kept) and all(tensor is one for tensor, (one, _, _) in zip(tensors, self._kept, strict=True))
        if not known or not all(_same(tensor.detach(), kept) for tensor, kept, _ in self._kept):
            self._give_up(OUTSIDE)

    def _tensors(self) -> Iterator[Any]:
        yield from self._model.parameters()
        yield from self._model.buffers()

    def _give_up(self, sentence: str, details: str = "") -> None:
        if self.breach is None:
            self.breach = PlanViolation(sentence, details)
        raise self.breach


def _same(tensor: Any, kept: Any) -> bool:
    """Whether two tensors are equal, where what is not a number equals itself: a training that diverged is no breach."""
    return bool(torch.equal(tensor, kept) or ((tensor == kept) | ((tensor != tensor) & (kept != kept))).all())  # noqa: PLR0124
