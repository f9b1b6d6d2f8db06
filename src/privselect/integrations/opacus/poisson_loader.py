"""Batches as DP-SGD is analysed for: each record is in each batch with the planned probability, independently."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import torch
from opacus.data_loader import wrap_collate_with_empty
from opacus.utils.uniform_sampler import UniformWithReplacementSampler
from torch.utils.data import BatchSampler, DataLoader, Dataset, IterableDataset, SequentialSampler
from torch.utils.data.dataloader import default_collate

from privselect.integrations.opacus.violation_messages import DATASET, SAMPLER
from privselect.tuning.plan_violation import PlanViolation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from privselect.mechanisms import DPSGD

_BITS = 53


class PoissonBatches(UniformWithReplacementSampler):  # type: ignore[misc]  # Opacus has no types
    """The planned number of Poisson samples in all, however many passes are made: a pass gives all that are left.

    Opacus compares floats of 24 bits with the rate; here the rate is exact to 53 bits, rounded down.
    """

    def __init__(self, records: int, plan: DPSGD, generator: Any) -> None:
        super().__init__(num_samples=records, sample_rate=plan.sampling_probability, generator=None, steps=plan.steps)
        self.drawn = 0
        self.size = 0  # of the batch that was drawn last
        # Apart from the fields of Opacus, which anybody may set: the history would not tell.
        self._below = math.floor(Fraction(plan.sampling_probability) * 2**_BITS)
        self._own = records, generator

    def __reduce_ex__(self, _: object) -> Any:
        """No copies: who has the generator knows which records were drawn."""
        raise TypeError("the batches of a private loader cannot be copied or pickled")

    def __len__(self) -> int:
        return int(self.steps - self.drawn)

    def __iter__(self) -> Iterator[list[int]]:
        records, generator = self._own
        while self.drawn < self.steps:
            chosen = torch.randint(2**_BITS, (records,), generator=generator) < self._below
            batch = chosen.nonzero().reshape(-1).tolist()
            self.drawn, self.size = self.drawn + 1, len(batch)
            yield batch


def private_loader(given: Any, plan: DPSGD, generator: Any) -> tuple[Any, PoissonBatches]:
    """The loader and its batches, over a dataset or over that of a plain loader, with its way to collate.

    It has no workers, so that no batch is drawn ahead.
    """
    collate = default_collate
    if isinstance(given, DataLoader):
        if not isinstance(given.sampler, SequentialSampler) or type(given.batch_sampler) not in (BatchSampler, type(None)):
            raise PlanViolation(SAMPLER, type(given.sampler).__name__)
        given, collate = given.dataset, given.collate_fn if given.batch_sampler is not None else default_collate
    if not isinstance(given, Dataset) or isinstance(given, IterableDataset) or not hasattr(given, "__len__"):
        raise PlanViolation(DATASET, type(given).__name__)
    collate = wrap_collate_with_empty(collate_fn=collate)
    collate([given[0]])  # so that an empty batch has the form of a full one, also where it is the first
    batches = PoissonBatches(len(given), plan, generator)
    return DataLoader(given, batch_sampler=batches, collate_fn=collate), batches
