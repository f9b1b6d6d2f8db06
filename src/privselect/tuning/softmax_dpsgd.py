"""The built-in trainer: DP-SGD for softmax regression in numpy, with exact sums of clipped gradients.

The trainer is short enough to read in full, and its mechanism has exactly the numbers of its loop.

A sum of floats depends on its order, and a product of matrices on the number of rows. With one record more, the contributions of all
others change in their last digits, and the sum changes by more than that record's contribution. Here, every row and every model is
first rounded to a grid. The sums of products are then integers below 2^53, the same in any order. The remaining operations are
elementwise (a quotient, a root, an exponential) or along one row, and do not depend on the row's position; tests check numpy for it.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from privselect._util.validation import POSITIVE, PROBABILITY, check_number, integer_range, parameter
from privselect.errors import ParameterError
from privselect.mechanisms import DPSGD

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

GRID = 2.0**17  # steps from 0 to 1 of a row: a sum of products of two rows is exact for half a million rows
_MODEL_GRID = 2.0**26
_SHRINK = 1.0 - 2.0**-40  # reduces a norm by more than rounding can add
_MAX_LENGTH = 1e200  # a longer row counts as one of this length, so its logits do not overflow
NOTES = (
    "the noise of DP-SGD is numpy's floating-point Gaussian rounded to a grid; its difference from a Gaussian is not accounted for",
    "the noise and the samples of DP-SGD come from a numpy generator, which is seeded with enough bits but is not cryptographic",
)


class Randomness(Protocol):
    """The source of a trial's random numbers."""

    def numpy(self) -> np.random.Generator:
        """Return a generator seeded with 128 bits or more: a released model allows anyone to test a guessed seed."""


@dataclass(frozen=True, slots=True)
class SoftmaxDPSGD:
    """Softmax regression by DP-SGD: each step takes a Poisson sample, clips each gradient, and adds Gaussian noise to their sum.

    ``records`` is the declared, public size of the training data: the noisy sum is divided by ``sampling_probability * records``.
    The true number of records, and the number in a sample, are private and divide nothing.

    Holds when the form of the data (arrays of numbers, the number of columns) is public. The content of a record is private: one with
    features that are not finite, or an unknown label, adds 0, and none adds more than the clipping norm. That bound is exact for
    samples of up to half a million records. The Gaussian noise is not exact: it consists of floats, as in every common library, and
    attacks on the last digits of such noise are known. Rounding the noise to the grid of the sum hides those digits but proves
    nothing; ``notes`` states this for the certificate.
    """

    notes: ClassVar[tuple[str, ...]] = NOTES
    noise_multiplier: float = parameter(POSITIVE)
    sampling_probability: float = parameter(PROBABILITY)
    steps: int = parameter(integer_range(1))
    records: int = parameter(integer_range(1, 2**53))
    classes: int = parameter(integer_range(2, 10**6))
    features: int = parameter(integer_range(1, 10**6))  # a row times a model stays below 2^53

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            object.__setattr__(self, field.name, check_number(field.name, getattr(self, field.name), field.metadata["range"]))
        _ = self.mechanism  # raises if these parameters have no accounting

    @property
    def mechanism(self) -> DPSGD:
        """What one training leaks, for any learning rate and any clipping norm."""
        return DPSGD(self.noise_multiplier, self.sampling_probability, self.steps)

    def train(
        self, features: NDArray[Any], labels: NDArray[Any], *, learning_rate: float, clip: float, randomness: Randomness
    ) -> dict[str, Floats]:
        """Train a private model and return its ``weights`` (features by classes) and ``bias``.

        ``clip`` bounds the norm of one record's gradient over weights and bias together. The noise grows with it, so all values of
        ``clip`` and ``learning_rate`` leak the same. A model whose numbers overflow is an outcome like any other.
        """
        rows = to_grid_rows(_check_features(features, self.features))
        return self.train_rows(rows, _check_labels(labels, features), learning_rate=learning_rate, clip=clip, randomness=randomness)

    def train_rows(
        self, rows: GridRows, labels: NDArray[Any], *, learning_rate: float, clip: float, randomness: Randomness
    ) -> dict[str, Floats]:
        """Train on records that are already rows, to train many models on the same records; ``labels`` has one label per row."""
        rate = check_number("learning_rate", learning_rate, POSITIVE)
        norm = check_number("clip", clip, POSITIVE)
        targets = labels[:, None] == np.arange(self.classes)
        rng = randomness.numpy()
        model = np.zeros((self.features + 1, self.classes))
        with np.errstate(all="ignore"):  # a warning would reveal something about the data
            step_size = rate * norm / (self.sampling_probability * self.records)
            for _ in range(self.steps):
                chosen = poisson_sample(rng, self.sampling_probability, len(rows))
                total = clipped_sum(rows[chosen], targets[chosen], model, norm)
                model -= step_size * add_noise(rng, total, self.noise_multiplier)
        return {"weights": model[:-1].copy(), "bias": model[-1].copy()}


def poisson_sample(rng: np.random.Generator, probability: float, records: int) -> NDArray[np.intp]:
    """Return the indices of the sampled records, each sampled independently with this probability.

    64 random bits are compared with the probability: exact from 2^-11 on, and never above it.
    """
    draws = rng.integers(0, 2**64, size=records, dtype=np.uint64)
    return np.flatnonzero(draws < int(Fraction(probability) * 2**64))


def clipped_sum(rows: GridRows, targets: NDArray[np.bool_], model: Floats, clip: float) -> Floats:
    """Return the sum of the clipped gradients of these records, in units of ``clip / GRID^2``.

    A record's gradient is the outer product of ``[x, 1]`` and ``r = softmax([x, 1] @ model) - target``. Its norm is the product of their
    norms, so no gradient needs to be computed in full. A clipped gradient is the outer product of a direction and a vector of norm at
    most ``clip``. Both are on a grid, with norms proved to be at most 1 and ``clip``. So the sum of the products is exact, and adding
    or removing one record changes the sum by at most ``clip``.
    """
    with np.errstate(all="ignore"):
        logits = rows.logits(model) * rows.lengths[:, None]
        odds = np.exp(logits - logits.max(axis=1, keepdims=True))
        residuals = odds / odds.sum(axis=1, keepdims=True) - targets
        norms = np.sqrt(np.square(residuals).sum(axis=1))
        factors = np.minimum(rows.lengths / clip, 1.0 / norms)
        residuals, _ = round_to_grid(residuals * factors[:, None])
        residuals[~targets.any(axis=1)] = 0.0
        return np.asarray(rows.directions.T @ residuals)


def add_noise(rng: np.random.Generator, total: Floats, noise_multiplier: float) -> Floats:
    """Add Gaussian noise of ``noise_multiplier * clip`` to a sum in units of ``clip / GRID^2``; return it in units of ``clip``."""
    noise = np.rint(rng.normal(0.0, noise_multiplier, size=total.shape) * GRID**2)
    return np.asarray((total + noise) / GRID**2)


def predict(model: Mapping[str, Floats], features: NDArray[Any]) -> NDArray[np.intp]:
    """Return the most probable class of each record, from its own features and the model only; -1 if they are not finite."""
    return predict_rows(model, to_grid_rows(_check_features(features, np.shape(model["weights"])[0])))


def predict_rows(model: Mapping[str, Floats], rows: GridRows) -> NDArray[np.intp]:
    """Return the most probable class of records that are already rows."""
    with np.errstate(all="ignore"):
        most_probable = rows.logits(np.vstack([np.asarray(model["weights"], dtype=np.float64), model["bias"]])).argmax(axis=1)
    return np.where(rows.usable, most_probable, -1)


def correct(model: Mapping[str, Floats], features: NDArray[Any], labels: NDArray[Any]) -> NDArray[np.bool_]:
    """Return whether each record's label is predicted; one record changes the number of correct predictions by at most 1."""
    predicted = predict(model, features)
    return np.asarray((predicted == _check_labels(labels, features)) & (predicted >= 0))


def _check_features(features: object, columns: int) -> Floats:
    """Return the features as floats. An error text mentions only their form, never a record's content or the number of records."""
    allowed = f"`features` must be a numpy array of numbers with one row for each record and {columns} columns"
    rows = _check_numbers(allowed, features, 2)
    if rows.shape[1] != columns:
        raise ParameterError(f"{allowed}, got {rows.shape[1]}")
    with np.errstate(all="ignore"):
        return np.asarray(rows, dtype=np.float64)


def _check_labels(labels: object, features: NDArray[Any]) -> NDArray[Any]:
    allowed = "`labels` must be a numpy array of numbers, one for each record"
    numbers = _check_numbers(allowed, labels, 1)
    if len(numbers) != len(features):
        raise ParameterError(f"{allowed}, got a different number of labels than rows of `features`")
    return numbers


def _check_numbers(allowed: str, values: object, dimensions: int) -> NDArray[Any]:
    if not isinstance(values, np.ndarray) or values.dtype.kind not in "biuf":
        got = f"one of {values.dtype.name}" if isinstance(values, np.ndarray) else f"a {type(values).__name__}"
        raise ParameterError(f"{allowed}, got {got}")
    if values.ndim != dimensions:
        raise ParameterError(f"{allowed}, got {values.ndim} dimensions")
    return np.asarray(values)


# -- rows on a grid, for exact sums --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class GridRows:
    """Each record's ``[x, 1]`` as a length and a direction of norm at most 1, the direction in integer steps of 1/GRID.

    A record whose features are not all finite has the direction 0 and is not ``usable``.
    """

    directions: Floats
    lengths: Floats
    usable: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def width(self) -> int:
        """The number of features."""
        return int(self.directions.shape[1]) - 1

    def __getitem__(self, chosen: NDArray[np.intp]) -> GridRows:
        return GridRows(self.directions[chosen], self.lengths[chosen], self.usable[chosen])

    def logits(self, model: Floats) -> Floats:
        """Return ``[x, 1] @ model / length``; each row's values depend on that row and the model only."""
        scale = np.exp2(np.ceil(np.log2(np.abs(model).max(initial=2.0**-1000))))
        return np.asarray(self.directions @ np.rint(model / scale * _MODEL_GRID) * (scale / (GRID * _MODEL_GRID)))


def to_grid_rows(features: Floats) -> GridRows:
    """Return the rows of any features: nothing overflows, nothing raises."""
    with np.errstate(all="ignore"):
        extended = np.ones((features.shape[0], features.shape[1] + 1))
        extended[:, :-1] = features
        largest = np.abs(extended).max(axis=1)
        extended /= largest[:, None]
        norms = np.sqrt(np.square(extended).sum(axis=1))
        directions, usable = round_to_grid(extended / norms[:, None])
        return GridRows(directions, np.minimum(largest * norms, _MAX_LENGTH), usable)


def round_to_grid(vectors: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """Return vectors of norm at most 1 in integer steps of 1/GRID, and which of them are proved to be so short; the others are 0.

    The proof compares integers: the squares of the steps sum to at most GRID^2. NaN and infinities fail the comparison.
    """
    steps = np.trunc(vectors * (GRID * _SHRINK))
    short = np.square(steps).sum(axis=1) <= GRID * GRID
    steps[~short] = 0.0
    return steps, short
