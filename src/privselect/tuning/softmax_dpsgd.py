"""The built-in trainer: DP-SGD for softmax regression, in numpy alone.

It is small enough to read whole, and what it runs is what is accounted: the numbers of its mechanism are those of its loop.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from privselect._util.validation import POSITIVE, PROBABILITY, check_number, parameter, integer_range
from privselect.errors import ParameterError
from privselect.mechanisms import DPSGD
from privselect.tuning.exact_rows import GRID, MOST_FEATURES, on_grid, rows_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from privselect.tuning.exact_rows import Rows

    Floats = NDArray[np.float64]

NOTES = (
    "the noise of DP-SGD is numpy's floating-point Gaussian, rounded to a grid; that its law is not exactly Gaussian is not accounted for",
    "the noise and the samples of DP-SGD come from a numpy generator, which is seeded with enough bits but is not cryptographic",
)


class Randomness(Protocol):
    """Where a trial's random numbers come from."""

    def numpy(self) -> np.random.Generator:
        """A generator seeded with 128 bits or more: a released model lets anyone test a guessed seed."""


@dataclass(frozen=True, slots=True)
class SoftmaxDPSGD:
    """Softmax regression by DP-SGD: in each step a Poisson sample, gradients clipped one by one, and Gaussian noise on their sum.

    ``records`` is the declared, public size of the training data: the noisy sum is divided by ``sampling_probability * records``.
    How many records there are, and how many a step has drawn, is private and divides nothing.

    Holds when: the data's form (arrays of numbers, so many columns) is public. What a record holds is not: one with features that are
    not finite, or a label that is no class, adds 0, and none adds more than the clipping norm. That bound is exact for samples of up
    to half a million records, see :mod:`privselect.tuning.exact_rows`. The Gaussian noise is not: it is made of floats, as in every common
    library, and attacks on the last digits of such noise are known. It is rounded to the grid of the sum, which hides those digits
    but proves nothing; ``notes`` says so for the certificate.
    """

    noise_multiplier: float = parameter(POSITIVE)
    sampling_probability: float = parameter(PROBABILITY)
    steps: int = parameter(integer_range(1))
    records: int = parameter(integer_range(1, 2**53))
    classes: int = parameter(integer_range(2, 10**6))
    features: int = parameter(integer_range(1, MOST_FEATURES))

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            object.__setattr__(self, field.name, check_number(field.name, getattr(self, field.name), field.metadata["range"]))
        _ = self.mechanism  # what cannot be accounted is not made

    @property
    def mechanism(self) -> DPSGD:
        """What one training leaks, for any learning rate and any clipping norm."""
        return DPSGD(self.noise_multiplier, self.sampling_probability, self.steps)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a certificate of a run with this trainer must say, one line each."""
        return NOTES

    def train(
        self, features: NDArray[Any], labels: NDArray[Any], *, learning_rate: float, clip: float, randomness: Randomness
    ) -> dict[str, Floats]:
        """A private model: ``weights`` (features by classes) and ``bias``.

        ``clip`` bounds the norm of one record's gradient over weights and bias together. The noise grows with it, so that all
        values of ``clip`` and ``learning_rate`` leak the same. A model whose numbers overflow is an outcome like any other.
        """
        rows = rows_of(_checked_features(features, self.features))
        return self.train_rows(rows, _checked_labels(labels, features), learning_rate=learning_rate, clip=clip, randomness=randomness)

    def train_rows(
        self, rows: Rows, labels: NDArray[Any], *, learning_rate: float, clip: float, randomness: Randomness
    ) -> dict[str, Floats]:
        """The same for records that are rows already, as where many models are trained on the same ones; ``labels`` has one for each."""
        rate = check_number("learning_rate", learning_rate, POSITIVE)
        norm = check_number("clip", clip, POSITIVE)
        targets = labels[:, None] == np.arange(self.classes)
        rng = randomness.numpy()
        model = np.zeros((self.features + 1, self.classes))
        with np.errstate(all="ignore"):  # a warning would tell of the data
            step_size = rate * norm / (self.sampling_probability * self.records)
            for _ in range(self.steps):
                chosen = poisson_sample(rng, self.sampling_probability, len(rows))
                total = clipped_sum(rows[chosen], targets[chosen], model, norm)
                model -= step_size * noisy(rng, total, self.noise_multiplier)
        return {"weights": model[:-1].copy(), "bias": model[-1].copy()}


def poisson_sample(rng: np.random.Generator, probability: float, records: int) -> NDArray[np.intp]:
    """The records drawn, each by itself and with this probability.

    64 random bits are compared with the probability: exact from 2^-11 on, and never above it.
    """
    draws = rng.integers(0, 2**64, size=records, dtype=np.uint64)
    return np.flatnonzero(draws < int(Fraction(probability) * 2**64))


def clipped_sum(rows: Rows, targets: NDArray[np.bool_], model: Floats, clip: float) -> Floats:
    """The sum of the clipped gradients of these records, in units of ``clip / GRID^2``.

    A record's gradient is the outer product of ``[x, 1]`` and ``r = softmax([x, 1] @ model) - target``, so its norm is the product of
    theirs, and no gradient is ever written out. Clipped, it is that of a direction and of a vector of at most ``clip``: both are on a
    grid with norms proved to be at most 1 and ``clip``, so the sum of the products is exact, and with one record more or less it
    moves by at most ``clip``.
    """
    with np.errstate(all="ignore"):
        logits = rows.logits(model) * rows.lengths[:, None]
        odds = np.exp(logits - logits.max(axis=1, keepdims=True))
        residuals = odds / odds.sum(axis=1, keepdims=True) - targets
        norms = np.sqrt(np.square(residuals).sum(axis=1))
        factors = np.minimum(rows.lengths / clip, 1.0 / norms)
        residuals, _ = on_grid(residuals * factors[:, None])
        residuals[~targets.any(axis=1)] = 0.0
        return np.asarray(rows.directions.T @ residuals)


def noisy(rng: np.random.Generator, total: Floats, noise_multiplier: float) -> Floats:
    """A sum in units of ``clip / GRID^2`` with Gaussian noise of so many ``clip`` on each number, in units of ``clip``."""
    noise = np.rint(rng.normal(0.0, noise_multiplier, size=total.shape) * GRID**2)
    return np.asarray((total + noise) / GRID**2)


def predict(model: Mapping[str, Floats], features: NDArray[Any]) -> NDArray[np.intp]:
    """The likeliest class of each record, by its own features and the model alone; -1 where they are not finite."""
    return predict_rows(model, rows_of(_checked_features(features, np.shape(model["weights"])[0])))


def predict_rows(model: Mapping[str, Floats], rows: Rows) -> NDArray[np.intp]:
    """The same for records that are rows already."""
    with np.errstate(all="ignore"):
        likeliest = rows.logits(np.vstack([np.asarray(model["weights"], dtype=np.float64), model["bias"]])).argmax(axis=1)
    return np.where(rows.usable, likeliest, -1)


def correct(model: Mapping[str, Floats], features: NDArray[Any], labels: NDArray[Any]) -> NDArray[np.bool_]:
    """Whether each record's label is the predicted one; their number is a score that one record moves by at most 1."""
    predicted = predict(model, features)
    return np.asarray((predicted == _checked_labels(labels, features)) & (predicted >= 0))


def _checked_features(features: object, columns: int) -> Floats:
    """As floats. A message tells of the form alone, never of what a record holds or of how many there are."""
    wanted = f"`features` must be a numpy array of numbers with one row for each record and {columns} columns"
    if not isinstance(features, np.ndarray) or features.dtype.kind not in "biuf":
        raise ParameterError(f"{wanted}, got {_kind(features)}")
    if features.ndim != 2:
        raise ParameterError(f"{wanted}, got {features.ndim} dimensions")
    if features.shape[1] != columns:
        raise ParameterError(f"{wanted}, got {features.shape[1]}")
    with np.errstate(all="ignore"):
        return np.asarray(features, dtype=np.float64)


def _checked_labels(labels: object, features: NDArray[Any]) -> NDArray[Any]:
    wanted = "`labels` must be a numpy array of numbers, one for each record"
    if not isinstance(labels, np.ndarray) or labels.dtype.kind not in "biuf":
        raise ParameterError(f"{wanted}, got {_kind(labels)}")
    if labels.ndim != 1:
        raise ParameterError(f"{wanted}, got {labels.ndim} dimensions")
    if len(labels) != len(features):
        raise ParameterError(f"{wanted}, got a number that is not that of the rows of `features`")
    return np.asarray(labels)


def _kind(value: object) -> str:
    return f"one of {value.dtype.name}" if isinstance(value, np.ndarray) else f"a {type(value).__name__}"
