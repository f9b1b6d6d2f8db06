"""Banks for two-stage tuning: short search trainings and full final trainings of many candidates on one subset of the data.

A bank has the candidates and the subset of the bank of ``bank.py`` for the same setting and repetition, followed by the defaults. All
seeds are fixed and public: a bank is not private.
"""

from __future__ import annotations

import io
import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from privselect._util.atomic_files import atomic_write
from privselect.tuning.randomness import Stream, derive_key
from research.experiments.bank import repetition_key, repetition_parts
from research.experiments.batch import BATCH_TRAINERS, Runs
from research.experiments.problems import load
from research.experiments.settings import DEFAULTS, EPSILONS, SAMPLING, SPACES, STEPS, untuned_noise

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from privselect.tuning.space import Candidate
    from research.experiments.settings import Setting

    Floats = NDArray[np.float64]

SEARCH_STEPS = 60
SEARCH_LEVELS = (0.65, 1.1, 1.8, 3.0)  # noise multipliers of search trainings, relative to the untuned noise
SPLITS = (1.04, 1.07, 1.15, 1.3)  # noise multipliers of final trainings, relative to the untuned noise
# Factors of the learning rate of final trainings for each split. The first is `transfer_factor` for geometric K with mean 20, rounded; the
# second covers laws of K that need more noise in the search. Between and near both, the accuracy is interpolated.
RATES = {
    1.0: ((0.64, 0.96), (0.48, 0.72), (0.33, 0.495), (0.23, 0.345)),
    3.0: ((0.41, 0.615), (0.34, 0.51), (0.27, 0.405), (0.22, 0.33)),
}
VALIDATIONS = ("public", "paid")
JUDGED = {"public": "public", "paid": "held"}
TRAINED = {"public": "train", "paid": "all"}  # records of the final training: it may use those of a private hold-out too


@dataclass(frozen=True, slots=True)
class Task:
    """The bank of one setting, repetition, epsilon and validation."""

    setting: Setting
    repetition: int
    epsilon: float
    validation: str

    def file(self, folder: Path) -> Path:
        """Return the file of the bank."""
        return folder / f"stages-{self.setting.name}-{self.epsilon:g}-{self.validation}-{self.repetition}.npz"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class StageBank:
    """``scores[level, candidate]`` counts correct answers of search trainings on the validation records.

    ``accuracy[split, rate, candidate]`` is the test accuracy of final trainings at each of the :data:`RATES`. The defaults are the last
    candidates.
    ``trivial`` is the test accuracy of the most frequent public class.
    """

    search_noise: Floats
    scores: Floats
    accuracy: Floats
    trivial: float


def transfer_factor(search_noise: float, final_noise: float) -> float:
    """Return the factor of the learning rate at which final and search trainings accumulate the same noise."""
    return search_noise * float(np.sqrt(SEARCH_STEPS)) / (final_noise * float(np.sqrt(STEPS)))


def candidates_of(setting: Setting, repetition: int) -> list[Candidate]:
    """Return the drawn candidates of a bank and the defaults."""
    key, space = repetition_key(setting, repetition), SPACES[setting.space]
    return [*(space.draw(Stream(derive_key(key, "candidate", place))) for place in range(setting.candidates)), *DEFAULTS]


def trained_stage_bank(task: Task, data: str | None) -> StageBank:
    """Train all models of one bank."""
    setting, key = task.setting, repetition_key(task.setting, task.repetition)
    problem, parts = load(setting.problem, data), repetition_parts(setting, task.repetition, data)
    trainer = BATCH_TRAINERS[setting.model](parts, problem.classes)
    candidates, untuned = candidates_of(setting, task.repetition), untuned_noise(task.epsilon)

    at = EPSILONS.index(task.epsilon)
    search = Runs.at_levels(candidates, [level * untuned for level in SEARCH_LEVELS], [1.0] * len(SEARCH_LEVELS))
    scores = trainer.right(search, SEARCH_STEPS, generator_of(key, "search", at), "train", JUDGED[task.validation])
    levels = [(split * untuned, rate) for split, rates in zip(SPLITS, RATES[task.epsilon], strict=True) for rate in rates]
    final = Runs.at_levels(candidates, *zip(*levels, strict=True))
    right = trainer.right(final, STEPS, generator_of(key, "final", at), TRAINED[task.validation], "test")
    usual = np.bincount(problem.public.labels, minlength=problem.classes).argmax()
    accuracy = (right.T / len(problem.test)).reshape(len(SPLITS), -1, len(candidates))
    return StageBank(search.noise[0], scores.T, accuracy, float((problem.test.labels == usual).mean()))


def generator_of(key: bytes, name: str, number: int) -> np.random.Generator:
    """Return a numpy generator for simulations."""
    return np.random.Generator(np.random.PCG64DXSM(int.from_bytes(derive_key(key, name, number), "big")))


def stored_stage_bank(folder: Path, task: Task) -> StageBank | None:
    """Read a bank trained earlier with identical settings; return None if it is missing or damaged."""
    try:
        with task.file(folder).open("rb") as file, np.load(file) as stored:
            if str(stored["description"]) != _description(task):
                return None
            return StageBank(stored["search_noise"], stored["scores"], stored["accuracy"], float(stored["trivial"]))
    except Exception:  # noqa: BLE001 - a file may be broken in any way
        return None


def train_stage_bank(task: Task, data: str | None, folder: Path) -> None:
    """Train one bank and store it atomically."""
    content, description = io.BytesIO(), np.array(_description(task))
    np.savez_compressed(content, allow_pickle=False, description=description, **asdict(trained_stage_bank(task, data)))
    atomic_write(task.file(folder), content.getvalue())


def _description(task: Task) -> str:
    """Return everything a bank depends on except the code and the data."""
    description: dict[str, Any] = {
        "task": asdict(task),
        "candidates": candidates_of(task.setting, task.repetition),
        "untuned": f"{untuned_noise(task.epsilon):.5g}",
        "search": (SAMPLING, SEARCH_STEPS, SEARCH_LEVELS),
        "final": (SAMPLING, STEPS, SPLITS, RATES[task.epsilon]),
    }
    return json.dumps(description, sort_keys=True, default=str)
