"""Models of a bank: softmax regression with the built-in trainer, and a small network with Opacus.

A trainer gets the parts of one repetition and returns the number of correct answers for each candidate, noise and randomness.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from privselect.tuning.softmax_dpsgd import SoftmaxDPSGD, predict_rows, to_grid_rows
from research.experiments.problems import SIDE, pooled
from research.experiments.settings import SAMPLING, STEPS, training

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from privselect.tuning.randomness import Randomness
    from privselect.tuning.softmax_dpsgd import GridRows
    from privselect.tuning.space import Candidate
    from research.experiments.problems import Part

    Floats = NDArray[np.float64]

POOL = 2  # pixels per side of a block, unless the candidate sets it
HIDDEN = 32


class Trainer(Protocol):
    """Trains and evaluates candidates on the parts of one repetition."""

    def right(self, candidate: Candidate, noise: float, randomness: Randomness, trained: str, judged: Sequence[str]) -> list[int]:
        """Return the number of correct answers on each ``judged`` part of a model trained on the ``trained`` part."""


def features_of(part: Part, candidate: Candidate) -> Floats:
    """Return the model input: images in blocks, each mean ``scale * mean^exponent + shift``; other records unchanged.

    The input depends only on the candidate and the record, so it is part of the training that is accounted for.
    """
    if part.features.shape[1] != SIDE * SIDE:
        return part.features
    return preprocessed(pooled(part.features, candidate.get("pool", POOL)), candidate)


def preprocessed(means: NDArray[Any], candidate: Candidate) -> NDArray[Any]:
    """Return ``scale * mean^exponent + shift`` of each mean; each number is 1, 1 or 0 unless the candidate sets it."""
    return np.asarray(candidate.get("scale", 1.0) * means ** candidate.get("exponent", 1.0) + candidate.get("shift", 0.0))


class SoftmaxBank:
    """Softmax regression. Candidates with the same features share their prepared rows."""

    def __init__(self, parts: Mapping[str, Part], classes: int) -> None:
        self._parts, self._classes = parts, classes
        self._seen: tuple[object, ...] = ()
        self._rows: dict[str, GridRows] = {}

    def right(self, candidate: Candidate, noise: float, randomness: Randomness, trained: str, judged: Sequence[str]) -> list[int]:
        """Return the number of correct answers on each ``judged`` part of a model trained on the ``trained`` part."""
        model = SoftmaxDPSGD(noise, SAMPLING, STEPS, len(self._parts[trained]), self._classes, self._prepared(trained, candidate).width)
        weights = model.train_rows(
            self._prepared(trained, candidate),
            self._parts[trained].labels,
            learning_rate=candidate["learning_rate"],
            clip=candidate["clip"],
            randomness=randomness,
        )
        return [int((predict_rows(weights, self._prepared(one, candidate)) == self._parts[one].labels).sum()) for one in judged]

    def _prepared(self, part: str, candidate: Candidate) -> GridRows:
        seen = tuple(candidate.get(name) for name in ("pool", "scale", "exponent", "shift"))
        if seen != self._seen:
            self._seen, self._rows = seen, {}
        if part not in self._rows:
            self._rows[part] = to_grid_rows(features_of(self._parts[part], candidate))
        return self._rows[part]


class NetworkBank:
    """A network with one hidden layer, trained with Opacus; ``OpacusTrial`` enforces its plan."""

    def __init__(self, parts: Mapping[str, Part], classes: int) -> None:
        import torch

        self._classes = classes
        self._tensors = {
            name: (torch.tensor(features_of(part, {}), dtype=torch.float32), torch.tensor(part.labels)) for name, part in parts.items()
        }

    def right(self, candidate: Candidate, noise: float, randomness: Randomness, trained: str, judged: Sequence[str]) -> list[int]:
        """Return the number of correct answers on each ``judged`` part of a model trained on the ``trained`` part."""
        import torch

        from privselect.integrations.opacus import OpacusTrial

        data = self._tensors[trained]
        network = OpacusTrial(self._train, plan=training(noise), records=len(data[1]))(candidate, data, randomness)
        with torch.no_grad():
            return [int((network(features).argmax(1) == labels).sum()) for features, labels in (self._tensors[one] for one in judged)]

    def _train(self, candidate: Candidate, data: Any, private: Any) -> Any:
        import torch
        from torch.nn.functional import cross_entropy

        layers = torch.nn.Linear(data[0].shape[1], HIDDEN), torch.nn.Tanh(), torch.nn.Linear(HIDDEN, self._classes)
        network = torch.nn.Sequential(*layers)
        optimizer = torch.optim.SGD(network.parameters(), lr=candidate["learning_rate"])
        dataset = torch.utils.data.TensorDataset(*data)
        model, optimizer, loader = private.make_private(network, optimizer, dataset, max_grad_norm=candidate["clip"])
        for features, labels in loader:
            optimizer.zero_grad()
            loss: Any = cross_entropy(model(features), labels)
            loss.backward()
            optimizer.step()
        return network


TRAINERS: dict[str, Callable[[Mapping[str, Part], int], Trainer]] = {"softmax": SoftmaxBank, "network": NetworkBank}
