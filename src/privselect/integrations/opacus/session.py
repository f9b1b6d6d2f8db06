"""One trial's private training: the parts of Opacus with the numbers of the plan. This loads torch and Opacus."""

from __future__ import annotations

import contextlib
import warnings
from typing import TYPE_CHECKING, Any

import torch
from opacus.grad_sample import AbstractGradSampleModule, GradSampleModule
from opacus.layers.dp_rnn import DPRNNBase, RNNLinear
from opacus.optimizers import DPOptimizer
from opacus.validators import ModuleValidator

from privselect._util.validation import POSITIVE, check_number
from privselect.errors import ParameterError
from privselect.integrations.opacus.poisson_loader import private_loader
from privselect.integrations.opacus.training_monitor import FLOATS, Watch, WatchedOptimizer
from privselect.integrations.opacus.violation_messages import AGAIN, CLIP, DEVICE, MODEL, NEVER, PLAIN, PRECISION, SEED
from privselect.tuning.plan_violation import PlanViolation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from privselect.mechanisms import DPSGD
    from privselect.tuning.randomness import Randomness

_SEED_BITS = 64  # of a generator that is not on the CPU


class Session:
    """Handed to the training function: ``plan`` is what is to be run, ``randomness`` the trial's own."""

    def __init__(self, plan: DPSGD, records: int, device: str, randomness: Randomness) -> None:
        self.plan, self.records, self.device, self.randomness = plan, records, device, randomness
        self._watch: Watch | None = None
        self._breach: PlanViolation | None = None

    def __repr__(self) -> str:
        return f"Session({self.plan})"

    @property
    def accountant(self) -> Any:
        """Opacus's own, of the steps so far; None before ``make_private``."""
        return None if self._watch is None else self._watch.accountant

    def make_private(self, model: Any, optimizer: Any, data: Any, *, max_grad_norm: float) -> tuple[Any, Any, Any]:
        """The private model, optimizer and loader.

        ``data`` is a dataset of torch, or a plain loader, of which the dataset and the way to collate are taken. The loader gives the
        planned number of batches in all: one pass gives all that are left. Each is to make one step of the optimizer; an empty one too.
        The loss must be a mean over the batch.
        """
        try:
            return self._make_private(model, optimizer, data, max_grad_norm)
        except PlanViolation as breach:
            self._breach = self._breach or breach
            raise

    def _make_private(self, model: Any, optimizer: Any, data: Any, max_grad_norm: Any) -> tuple[Any, Any, Any]:
        if self._watch is not None:
            raise PlanViolation(AGAIN)
        trained = _checked_parts(model, optimizer, torch.device(self.device))
        try:
            clip = check_number("max_grad_norm", max_grad_norm, POSITIVE)
        except ParameterError as error:
            raise PlanViolation(CLIP, str(error)) from None
        loader, batches = private_loader(data, self.plan, self.randomness.torch())
        private = GradSampleModule(model, batch_first=True, loss_reduction="mean")
        self._watch = Watch(self.plan, batches, model, trained)
        model.register_forward_pre_hook(self._watch.forward)
        for layer in model.modules():
            if isinstance(layer, DPRNNBase):
                layer.register_forward_pre_hook(self._watch.recurrent, with_kwargs=True)
        for layer in private.iterate_submodules(model):
            if not isinstance(layer, (DPRNNBase, RNNLinear)):  # these may see fewer records at each step in time, the first ones
                self._watch.add_layer(layer)
        watched = WatchedOptimizer(
            optimizer,
            self._watch,
            noise_multiplier=self.plan.noise_multiplier,
            max_grad_norm=clip,
            expected_batch_size=self.plan.sampling_probability * self.records,
            loss_reduction="mean",
            generator=_noise_generator(self.randomness, torch.device(self.device)),
            secure_mode=False,
        )
        return private, watched, loader

    def raise_breach(self) -> None:
        """What has already been found, whether or not the training function has let it pass."""
        breach = self._breach or (None if self._watch is None else self._watch.breach)
        if breach is not None:
            raise breach from None

    def check(self) -> None:
        """Whether the training was the planned one, now that it is over."""
        if self._watch is None:
            raise PlanViolation(NEVER)
        self._watch.check()


@contextlib.contextmanager
def alone(threads: int) -> Iterator[None]:
    """So many threads of torch, and none of the warnings of Opacus and torch, which say nothing about the code of a user.

    What a trial sets for all of torch is undone: the next one must not depend on it.
    """
    before, dtype = torch.get_num_threads(), torch.get_default_dtype()
    with warnings.catch_warnings(), torch.enable_grad():
        warnings.filterwarnings("ignore", module=r"(opacus|torch)(\.|$)")
        warnings.filterwarnings("ignore", message="Full backward hook is firing")  # said in the name of whoever called torch
        torch.set_num_threads(threads)
        try:
            yield
        finally:
            torch.set_num_threads(before)
            torch.set_default_dtype(dtype)


def _checked_parts(model: Any, optimizer: Any, device: torch.device) -> set[Any]:
    """The parameters that are trained."""
    if not isinstance(model, torch.nn.Module) or isinstance(model, AbstractGradSampleModule):
        raise PlanViolation(PLAIN, type(model).__name__)
    if not isinstance(optimizer, torch.optim.Optimizer) or isinstance(optimizer, DPOptimizer):
        raise PlanViolation(PLAIN, type(optimizer).__name__)
    trained = {parameter for group in optimizer.param_groups for parameter in group["params"]}
    if not trained <= set(model.parameters()):
        raise PlanViolation(PLAIN, "the optimizer has parameters that the model has not")
    if any(parameter.device.type != device.type for parameter in model.parameters()):
        raise PlanViolation(DEVICE, str(device))
    if any(parameter.dtype not in FLOATS for parameter in trained):
        raise PlanViolation(PRECISION)
    faults = [*ModuleValidator.validate(model, strict=False), *GradSampleModule.validate(model, strict=False)]
    # The validator looks at trainable layers of the very classes it knows; a frozen one, or one without parameters, mixes records as well.
    faults += [layer for layer in model.modules() if isinstance(layer, torch.nn.modules.batchnorm._BatchNorm)]  # noqa: SLF001 - their base
    if faults:
        raise PlanViolation(MODEL, "; ".join(str(fault) for fault in faults))
    return trained


def _noise_generator(randomness: Randomness, device: torch.device) -> Any:
    if device.type == "cpu":
        return randomness.torch()
    try:
        seed = randomness.integer(_SEED_BITS)
    except ParameterError as error:
        raise PlanViolation(SEED, str(error)) from None
    return torch.Generator(device=device).manual_seed(seed)
