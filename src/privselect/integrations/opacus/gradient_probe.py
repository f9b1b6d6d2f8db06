"""Probe a training function on synthetic records: the gradient of a record must not depend on the other records of its batch.

This module imports torch and Opacus.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment
from scipy.stats import wilcoxon

from privselect.errors import ParameterError
from privselect.integrations.opacus.controlled_session import (
    Control,
    ControlledSession,
    StartingPoint,
    TrainingStoppedError,
    WithoutDropout,
    full_precision,
)
from privselect.integrations.opacus.session import isolated_torch
from privselect.tuning.randomness import Randomness, derive_key, seeded_globals

if TYPE_CHECKING:
    from collections.abc import Callable

    from privselect.integrations.opacus.controlled_session import Batch
    from privselect.integrations.opacus.trial import OpacusTrial
    from privselect.mechanisms import DPSGD

    Pair = tuple[Batch, Batch]

_PROBED = 4  # records that both batches of a comparison contain
_OTHERS = 16  # records of which only one of the batches contains each
_LEAST_RECORDS = 2 * _PROBED
# The shares of the others in the first and the second batch. In the first step, batches differ in size too.
_SHARES = ((1 / 4, 3 / 4), (1 / 2, 1 / 2), (3 / 4, 1 / 4), (0.0, 1.0), (1.0, 0.0), (1 / 2, 1 / 4))
LARGEST_BATCH = 1024  # records; the last comparison is with a batch as large as those of the plan
_STEPS_OF_RANDOM_MODELS = 100
_UNITS, _UNITS_OF_LONGEST = 1000, 100  # of rounding
_FALSE_ALARM = 1e-6  # of the test on random models
_SHORTEST_SEED = 1  # bits: the trial on synthetic data refuses trainers that need a shorter seed than declared

# All sentences are shown: they are about synthetic data.
SUMMED = (
    "the gradients grow with the size of the batch, as with reduction='sum', so clipping does not bound what one record changes: the loss "
    "must be the mean over the batch of one term for each record"
)
MIXED = (
    "the gradient of a record depends on the other records of its batch or on their number, so clipping does not bound what one record "
    "changes: the loss must be the mean over the batch of one term for each record, and no layer or collate function may mix records"
)
SETTINGS = (
    "the learning rate or another setting of the optimizer depends on the records of a batch, such as on their number or their loss, which "
    "no noise hides: only public numbers may set it"
)
UNSEEDED = "the training function gave different gradients with the same randomness: it must take all its randomness from its trial"
UNVARIED = "the gradients of all synthetic records are equal, which shows nothing: pass synthetic data that differs between records"
NO_STEPS = "the training function must take one step on each batch of the private loader, got fewer"


def check_gradients(trial: OpacusTrial, plan: DPSGD, synthetic: Any, candidate: dict[str, Any]) -> None:
    """Refuse a training function whose loss or model makes the gradient of a record depend on other records of its batch.

    Each comparison trains on two batches that share some records, with equal weights and randomness. The gradients of the shared records
    must be equal up to rounding. Their batches have other companions, other sizes and other positions, at the initial weights and
    near them; each step compares another pair of batches, and the steps before it had other batches too. One batch is as large as those
    of the plan. The settings of the optimizer must be equal in every step.
    """
    probe = _Probe(trial, plan, synthetic, candidate)
    varied = [probe.compare(StartingPoint(shifted)) for shifted in (False, True)]
    if not any(varied):
        raise ParameterError(UNVARIED)


class _Probe:
    """The controlled trainings of one candidate."""

    def __init__(self, trial: OpacusTrial, plan: DPSGD, synthetic: Any, candidate: dict[str, Any]) -> None:
        self._trial, self._plan, self._synthetic, self._candidate = trial, plan, synthetic, candidate
        self._precision = 0.0
        expected = plan.sampling_probability * trial.records
        largest = min(math.ceil(expected + 3 * math.sqrt(expected)), LARGEST_BATCH)  # nearly all Poisson samples are smaller
        self._batches = functools.partial(_varied_batches, largest=largest)
        self._settings: list[Any] = []  # of the last trainings

    def compare(self, start: StartingPoint) -> bool:
        """Compare batches from one starting point, and return whether the gradients differ between records at all."""
        first = self._gradients(start, 0, self._batches, 0)
        settings = [self._settings]
        second = self._gradients(start, 0, self._batches, 1)
        settings.append(self._settings)
        if not self._are_shared(first, second):
            self._explain(start, first, second)
        if settings[0] != settings[1]:
            raise ParameterError(SETTINGS)
        return not self._are_equal(first, [rows.roll(1, 0) for rows in first])

    def _explain(self, start: StartingPoint, first: list[Any], second: list[Any]) -> None:
        """Raise the reason why gradients of shared records differ; return if the only reason is that the model is random."""
        if self._are_equal(first, self._gradients(start, 1, self._batches, 0)):
            by_size = ([rows / len(rows) for rows in batches] for batches in (first, second))
            raise ParameterError(SUMMED if self._are_shared(*by_size) else MIXED)
        if not self._are_equal(first, self._gradients(start, 0, self._batches, 0)):
            raise ParameterError(UNSEEDED)
        # Noise that is drawn for a whole batch is the same in batches of one size, at the same positions.
        first, second = (self._gradients(start, 0, _aligned_batches, place) for place in (0, 1))
        if not self._are_equal([rows[:_PROBED] for rows in first], [rows[:_PROBED] for rows in second]):
            raise ParameterError(MIXED)
        if self._grows(*(self._gradients(start, place, _small_and_large_batches, place) for place in (0, 1))):
            raise ParameterError(MIXED)

    @staticmethod
    def _grows(small: list[Any], large: list[Any]) -> bool:
        """Return whether gradients are longer in small or in large batches, by Wilcoxon's signed-rank test on the steps."""
        one, other = ([float(rows[:_PROBED].norm(dim=1).sum()) for rows in batches] for batches in (small, large))
        return bool(wilcoxon(one, other, zero_method="zsplit").pvalue < _FALSE_ALARM)

    # -- trainings ------------------------------------------------------------------------------------------------------------

    def _gradients(self, start: StartingPoint, seed: int, choose: Callable[[int], list[Pair]], place: int) -> list[Any]:
        """Return the gradients of each batch: one row for each record. Several trainings, if the plan has fewer steps than batches."""
        found: list[Any] = []
        self._settings = []
        wanted = math.inf

        def batches(records: int) -> list[Batch]:
            nonlocal wanted
            if records < _LEAST_RECORDS:
                raise ParameterError(f"`synthetic` must have at least {_LEAST_RECORDS} records for a probe of the loss, got {records}")
            chosen = [pair[place] for pair in choose(records)]
            wanted = len(chosen)
            return chosen[len(found) : len(found) + self._plan.steps]

        while len(found) < wanted:
            found += self._run(start, derive_key(bytes([seed]) * 32, "probe", len(found)), batches)
        return found

    def _run(self, start: StartingPoint, key: bytes, choose: Callable[[int], list[Batch]]) -> list[Any]:
        randomness, trial = Randomness(key, _SHORTEST_SEED), self._trial
        session = ControlledSession(Control(start, choose), self._plan, trial.records, trial.device, randomness)
        with isolated_torch(trial.threads), full_precision(), seeded_globals(randomness), WithoutDropout():
            try:
                trial.train(dict(self._candidate), self._synthetic, session)
            except TrainingStoppedError:
                pass
            except Exception:
                if session.gradients is None:  # otherwise the function caught the end of the training and failed afterwards
                    raise
        session.raise_violation()
        if session.gradients is None:
            raise ParameterError(NO_STEPS)
        self._precision = max(self._precision, session.precision)
        self._settings += session.settings
        return session.gradients

    # -- comparisons ----------------------------------------------------------------------------------------------------------

    def _are_shared(self, first: list[Any], second: list[Any]) -> bool:
        return all(self._shared(one, other) >= _PROBED for one, other in zip(first, second, strict=True))

    def _shared(self, first: Any, second: Any) -> int:
        """Return how many gradients two batches share. A collate function may reorder a batch, so positions are not compared."""
        distances = torch.cdist(first, second, compute_mode="donot_use_mm_for_euclid_dist")
        equal = (distances <= self._tolerance(first, second)).double().numpy()
        return int(equal[linear_sum_assignment(equal, maximize=True)].sum())

    def _are_equal(self, first: list[Any], second: list[Any]) -> bool:
        """Return whether gradients are equal position by position."""
        return all(
            bool(((one - other).norm(dim=1) <= self._tolerance(one, other).diagonal()).all())
            for one, other in zip(first, second, strict=True)
        )

    def _tolerance(self, first: Any, second: Any) -> Any:
        """Return the difference that rounding explains, for each pair of gradients.

        Batches of other sizes are summed in another order, which changes the last bits of each sum. Measured with float32 on a CPU, a
        gradient then changes by at most 5 units in the last place (ResNet-18, an LSTM over 200 steps, 40 dense layers); 1000 units, 1e-4,
        leave room for other machines. A gradient that is a small difference of large numbers has a larger error, hence the second term.
        What stays below the tolerance changes the sum of these batches by less than 1% of a clipping norm.
        """
        norms = first.norm(dim=1), second.norm(dim=1)
        longest = max(float(norm.max()) for norm in norms)
        return self._precision * (_UNITS * torch.maximum(norms[0][:, None], norms[1][None]) + _UNITS_OF_LONGEST * longest)


# -- batches -------------------------------------------------------------------------------------------------------------------


def _varied_batches(records: int, largest: int) -> list[Pair]:
    """Return pairs of batches that share some records, in the order of the data set, as in Poisson samples.

    The last pair is a small batch and one of ``largest`` records, in which records are repeated if there are too few.
    """
    pairs = []
    for number, shares in enumerate(_SHARES):
        probed, others = _drawn(records, number)
        first, second = (round(share * len(others)) for share in shares)
        pairs.append((sorted(probed + others[:first]), sorted(probed + others[len(others) - second :])))
    probed, others = _drawn(records, len(_SHARES), records)
    if largest > _PROBED + _OTHERS:
        pairs.append((sorted(probed + others[: _OTHERS // 2]), sorted(probed + np.resize(others, largest - _PROBED).tolist())))
    return pairs


def _aligned_batches(records: int) -> list[Pair]:
    """Return pairs of batches of equal size with the shared records at the same positions."""
    pairs = []
    for number in range(len(_SHARES)):
        probed, others = _drawn(records, number)
        half = len(others) // 2
        pairs.append((probed + others[:half], probed + others[half : 2 * half]))
    return pairs


def _small_and_large_batches(records: int) -> list[Pair]:
    """Return pairs of a small and a large batch with the shared records at the same positions."""
    drawn = [_drawn(records, number) for number in range(_STEPS_OF_RANDOM_MODELS)]
    return [(probed, probed + others) for probed, others in drawn]


def _drawn(records: int, number: int, most: int = _PROBED + _OTHERS) -> tuple[Batch, Batch]:
    """Draw the shared records and the others, at most ``most`` together."""
    order = np.random.default_rng(number).permutation(records)[:most].tolist()
    return order[:_PROBED], order[_PROBED:]
