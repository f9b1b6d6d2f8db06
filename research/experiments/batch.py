"""Train many candidates at once, for banks: the mechanisms of ``trainers.py`` in floats of 32 bits, four to eight times as fast.

A step takes one Poisson sample for all models of a call. Each candidate has its own noise, which its noise levels share. These models are
for simulations only: their sums are not rounded to a grid as those of the library are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from research.experiments.problems import SIDE, pooled
from research.experiments.settings import SAMPLING
from research.experiments.trainers import HIDDEN, POOL, preprocessed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from privselect.tuning.space import Candidate
    from research.experiments.problems import Part

    Array = NDArray[Any]

_PREPROCESSING = ("pool", "scale", "shift", "exponent")
_JUDGED_ROWS = 4000  # rows of a part that are judged at once
_TINY = np.float32(1e-30)


@dataclass(frozen=True, slots=True, eq=False)
class Runs:
    """Trainings of the same number of steps: ``rate`` and ``noise`` have a row for each candidate and a column for each level."""

    candidates: Sequence[Candidate]
    rate: Array
    noise: Array

    @classmethod
    def at_levels(cls, candidates: Sequence[Candidate], noise: Sequence[float], factors: Sequence[float]) -> Runs:
        """Return every candidate at every level; a level has a noise multiplier and a factor of the learning rate."""
        rates = np.array([candidate["learning_rate"] for candidate in candidates])
        return cls(candidates, rates[:, None] * np.array(factors), np.broadcast_to(np.array(noise), (len(candidates), len(noise))))

    @classmethod
    def one_each(cls, candidates: Sequence[Candidate], noise: Sequence[float], factors: Sequence[float]) -> Runs:
        """Return every candidate once, with its own noise multiplier and factor of the learning rate."""
        rates = np.array([candidate["learning_rate"] for candidate in candidates])
        return cls(candidates, (rates * np.array(factors))[:, None], np.array(noise)[:, None])

    @property
    def clip(self) -> Array:
        """The clipping norm of each run."""
        clips = np.array([candidate["clip"] for candidate in self.candidates])
        return np.broadcast_to(clips[:, None], self.rate.shape)


class BatchTrainer(Protocol):
    """Trains and evaluates many candidates on the parts of one repetition."""

    def right(self, runs: Runs, steps: int, generator: np.random.Generator, trained: str, judged: str) -> Array:
        """Return the number of correct answers on the ``judged`` part of each run, trained on the ``trained`` part."""


class Inputs:
    """Model inputs of candidates. Means over blocks of pixels are kept, because many candidates share them."""

    def __init__(self, parts: Mapping[str, Part]) -> None:
        self._parts = parts
        self._kept: dict[tuple[str, int], Array] = {}

    def rows(self, name: str, asked: Sequence[Candidate], few: slice = slice(None)) -> Array:
        """Return the inputs of some records of a part for each asked candidate, with a last column of ones."""
        return _with_one(np.stack([self._input(name, candidate, few) for candidate in asked]))

    def _input(self, name: str, candidate: Candidate, few: slice) -> Array:
        pool = candidate.get("pool", POOL)
        images = self._parts[name].features.shape[1] == SIDE * SIDE
        if (name, pool) not in self._kept:
            features = self._parts[name].features
            self._kept[name, pool] = (pooled(features, pool) if images else features).astype(np.float32)
        kept = self._kept[name, pool][few]
        return preprocessed(kept, candidate) if images else kept


class BatchSoftmax:
    """Softmax regressions. Candidates with the same width of input are trained together."""

    def __init__(self, parts: Mapping[str, Part], classes: int) -> None:
        self._parts, self._classes, self._inputs = parts, classes, Inputs(parts)

    def right(self, runs: Runs, steps: int, generator: np.random.Generator, trained: str, judged: str) -> Array:
        """Return the number of correct answers on the ``judged`` part of each run, trained on the ``trained`` part."""
        found = np.zeros(runs.rate.shape)
        for group in _groups(runs.candidates, self._parts[trained]):
            shared = len({_preprocessing(runs.candidates[place]) for place in group}) == 1
            asked = [runs.candidates[group[0]]] if shared else [runs.candidates[place] for place in group]
            shape = (1, len(group)) if shared else (len(group), 1)

            def grouped(values: Array, group: Sequence[int] = group, shape: tuple[int, int] = shape) -> Array:
                return values[group].reshape(*shape, -1).astype(np.float32)

            rows = self._inputs.rows(trained, asked)
            rate, clip, noise = (grouped(values) for values in (runs.rate, runs.clip, runs.noise))
            models = self._trained(rows, self._parts[trained].labels, (rate, clip, noise), steps, generator)
            found[group] = self._right(models, asked, judged).reshape(len(group), -1)
        return found

    def _trained(self, rows: Array, labels: Array, runs: tuple[Array, Array, Array], steps: int, generator: np.random.Generator) -> Array:
        """Return models of the shape (sets of rows, features, candidates, levels, classes)."""
        rate, clip, noise = runs
        models = np.zeros((len(rows), rows.shape[2], *rate.shape[1:], self._classes), np.float32)
        lengths = np.sqrt(np.square(rows).sum(axis=2))
        step = (rate / (SAMPLING * len(labels)))[:, None, :, :, None].astype(np.float32)
        spread = (noise * clip)[:, None, :, :, None]
        for chosen in _samples(generator, steps, len(labels)):
            own = np.ascontiguousarray(rows[:, chosen])
            total = softmax_sums(own, lengths[:, chosen], labels[chosen], models, clip)
            draws = generator.standard_normal((*models.shape[:3], 1, self._classes), dtype=np.float32)
            models -= step * (total + spread * draws)
        return models

    def _right(self, models: Array, asked: Sequence[Candidate], judged: str) -> Array:
        labels = self._parts[judged].labels
        counts = np.zeros((models.shape[0], *models.shape[2:4]))
        for begin in range(0, len(labels), _JUDGED_ROWS):
            few = slice(begin, begin + _JUDGED_ROWS)
            logits = _products(self._inputs.rows(judged, asked, few), models)
            counts += (logits.argmax(axis=-1) == labels[few, None, None]).sum(axis=1)
        return counts


def softmax_sums(rows: Array, lengths: Array, labels: Array, models: Array, clip: Array) -> Array:
    """Return the sums of the clipped gradients of softmax models of the shape (sets of rows, features, candidates, levels, classes)."""
    residuals = _products(rows, models)
    _to_residuals(residuals, labels)
    norms = np.sqrt(np.square(residuals).sum(axis=-1)) * lengths[:, :, None, None]
    residuals *= np.minimum(clip[:, None] / np.maximum(norms, _TINY), np.float32(1.0))[..., None]
    sums = rows.transpose(0, 2, 1) @ residuals.reshape(*residuals.shape[:2], math.prod(residuals.shape[2:]))  # -1 fails on an empty sample
    return np.asarray(sums.reshape(models.shape))


class BatchNetwork:
    """Networks with one hidden layer of tanh units, initialized as torch does."""

    def __init__(self, parts: Mapping[str, Part], classes: int) -> None:
        self._classes = classes
        inputs = Inputs(parts)
        self._parts = {name: (inputs.rows(name, [{}])[0], part.labels) for name, part in parts.items()}

    def right(self, runs: Runs, steps: int, generator: np.random.Generator, trained: str, judged: str) -> Array:
        """Return the number of correct answers on the ``judged`` part of each run, trained on the ``trained`` part."""
        rows, labels = self._parts[trained]
        first, second = self._untrained(generator, runs.rate.shape, rows.shape[1])
        scale = (runs.rate / (SAMPLING * len(labels))).astype(np.float32).reshape(-1, 1, 1)
        clip = runs.clip.astype(np.float32).reshape(-1, 1)
        spread = (runs.noise * runs.clip).astype(np.float32).reshape(-1, 1, 1)
        levels = runs.rate.shape[1]
        for chosen in _samples(generator, steps, len(labels)):
            sums = network_sums(rows[chosen], labels[chosen], first, second, clip)
            for layer, total in zip((first, second), sums, strict=True):
                draws = generator.standard_normal((len(runs.candidates), *layer.shape[1:]), dtype=np.float32)
                np.subtract(layer, scale * (total + spread * np.repeat(draws, levels, axis=0)), out=layer)
        rows, labels = self._parts[judged]
        logits = _with_one(np.tanh(rows @ first)) @ second
        return np.asarray((logits.argmax(axis=2) == labels).sum(axis=1).reshape(runs.rate.shape), dtype=np.float64)

    def _untrained(self, generator: np.random.Generator, shape: tuple[int, ...], width: int) -> tuple[Array, Array]:
        """Return both layers of every run, the last row of each the bias; the levels of a candidate start from the same network."""
        layers = []
        for inputs, outputs in ((width, HIDDEN), (HIDDEN + 1, self._classes)):
            bound = 1.0 / np.sqrt(inputs - 1)
            drawn = generator.uniform(-bound, bound, (shape[0], inputs, outputs)).astype(np.float32)
            layers.append(np.repeat(drawn, shape[1], axis=0))
        return layers[0], layers[1]


def network_sums(rows: Array, labels: Array, first: Array, second: Array, clip: Array) -> tuple[Array, Array]:
    """Return the sums of the clipped gradients of both layers of each network; a gradient's norm is over both layers."""
    hidden = np.tanh(rows @ first)
    inner = _with_one(hidden)
    residuals = inner @ second
    _to_residuals(residuals, labels)
    back = (residuals @ second[:, :-1].transpose(0, 2, 1)) * (1.0 - np.square(hidden))
    norms = np.square(rows).sum(axis=1) * np.square(back).sum(axis=2) + np.square(inner).sum(axis=2) * np.square(residuals).sum(axis=2)
    factors = np.minimum(clip / np.maximum(np.sqrt(norms), _TINY), np.float32(1.0))[:, :, None]
    return rows.T @ (factors * back), inner.transpose(0, 2, 1) @ (factors * residuals)


BATCH_TRAINERS: dict[str, Callable[[Mapping[str, Part], int], BatchTrainer]] = {"softmax": BatchSoftmax, "network": BatchNetwork}


def _samples(generator: np.random.Generator, steps: int, records: int) -> Iterator[Array]:
    for _ in range(steps):
        yield np.flatnonzero(generator.random(records) < SAMPLING)


def _with_one(values: Array) -> Array:
    return np.concatenate([values, np.ones((*values.shape[:-1], 1), values.dtype)], axis=-1)


def _products(rows: Array, models: Array) -> Array:
    """Return the logits, of the shape (sets of rows, rows, candidates, levels, classes)."""
    products = rows @ models.reshape(*models.shape[:2], -1)
    return np.asarray(products.reshape(*rows.shape[:2], *models.shape[2:]))


def _to_residuals(logits: Array, labels: Array) -> None:
    """Replace the logits of each row by the derivatives of its loss: probabilities, minus 1 at the label."""
    logits -= logits.max(axis=-1, keepdims=True)
    np.exp(logits, out=logits)
    logits /= logits.sum(axis=-1, keepdims=True)
    logits[:, np.arange(len(labels)), ..., labels] -= 1.0


def _groups(candidates: Sequence[Candidate], part: Part) -> list[list[int]]:
    """Return the places of candidates with inputs of the same width."""
    images = part.features.shape[1] == SIDE * SIDE
    groups: dict[int, list[int]] = {}
    for place, candidate in enumerate(candidates):
        groups.setdefault(candidate.get("pool", POOL) if images else 0, []).append(place)
    return list(groups.values())


def _preprocessing(candidate: Candidate) -> tuple[object, ...]:
    return tuple(candidate.get(name) for name in _PREPROCESSING)
