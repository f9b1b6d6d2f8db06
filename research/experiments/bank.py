"""A bank of trained models: many candidates at every noise level on one subset of the data.

Selections are simulated on banks. A candidate has the same randomness at every noise level, so noise levels are compared on the same draws.
Candidates and repetitions have different randomness. All seeds are fixed and public: a bank is not private.
"""

from __future__ import annotations

import io
import json
from dataclasses import asdict, dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np

from privselect._util.atomic_files import atomic_write
from privselect.tuning.randomness import Randomness, Stream, derive_key
from research.experiments.problems import Part, load
from research.experiments.settings import DEFAULTS, EPSILONS, SAMPLING, SPACES, STEPS, untuned_noise
from research.experiments.trainers import TRAINERS

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from research.experiments.settings import Setting

    Floats = NDArray[np.float64]

_JUDGED = ("public", "held", "test")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Bank:
    """Numbers of correct answers of all models of one bank.

    ``right[part, level, candidate]`` counts correct answers on the public, the held-out and the test part; ``sizes`` are the sizes of
    these parts. ``defaults[epsilon, records, default]`` is the test accuracy of untuned models for each epsilon, trained without and
    with the held-out records. ``trivial`` is the test accuracy of the most frequent public class.
    """

    noise: Floats
    right: Floats
    sizes: Floats
    defaults: Floats
    trivial: float

    @property
    def test_accuracy(self) -> Floats:
        """The test accuracy of each noise level and candidate."""
        return np.asarray(self.right[_JUDGED.index("test")] / self.sizes[_JUDGED.index("test")])

    def scores(self, part: str) -> Floats:
        """Return the number of correct answers of each noise level and candidate on one part."""
        return np.asarray(self.right[_JUDGED.index(part)])


def bank_file(folder: Path, setting: Setting, repetition: int) -> Path:
    """Return the file of a bank."""
    return folder / f"{setting.name}-{repetition}.npz"


def stored_bank(folder: Path, setting: Setting, repetition: int) -> Bank | None:
    """Read a bank trained earlier with identical settings; return None if it is missing or damaged."""
    try:
        with bank_file(folder, setting, repetition).open("rb") as file, np.load(file) as stored:
            bank = Bank(stored["noise"], stored["right"], stored["sizes"], stored["defaults"], float(stored["trivial"]))
            same = str(stored["description"]) == _description(setting, repetition) and bank.sizes[_JUDGED.index("held")] == setting.held
            return bank if same else None
    except Exception:  # noqa: BLE001 - a file may be broken in any way
        return None


def train_bank(setting: Setting, repetition: int, data: str | None, folder: Path) -> None:
    """Train one bank and store it atomically."""
    bank = trained_bank(setting, repetition, data)
    content = io.BytesIO()
    np.savez_compressed(
        content,
        description=np.array(_description(setting, repetition)),
        noise=bank.noise,
        right=bank.right,
        sizes=bank.sizes,
        defaults=bank.defaults,
        trivial=np.array(bank.trivial),
    )
    atomic_write(bank_file(folder, setting, repetition), content.getvalue())


def trained_bank(setting: Setting, repetition: int, data: str | None) -> Bank:
    """Train all models of one bank."""
    problem, key = load(setting.problem, data), repetition_key(setting, repetition)
    parts = repetition_parts(setting, repetition, data)
    trainer = TRAINERS[setting.model](parts, problem.classes)
    noise, space = np.array(setting.noise), SPACES[setting.space]
    right = np.zeros((len(_JUDGED), len(noise), setting.candidates))
    for place in range(setting.candidates):
        candidate = space.draw(Stream(derive_key(key, "candidate", place)))
        for level, multiplier in enumerate(setting.noise):
            seed = derive_key(key, "trial", place)  # equal at every noise level
            right[:, level, place] = trainer.right(candidate, multiplier, Randomness(seed), "train", _JUDGED)
    defaults = np.zeros((len(EPSILONS), 2, len(DEFAULTS)))
    for at, epsilon in enumerate(EPSILONS):
        for more, trained in enumerate(("train", "all")):
            for place, candidate in enumerate(DEFAULTS):
                seed = derive_key(key, "default", place)
                defaults[at, more, place] = trainer.right(candidate, untuned_noise(epsilon), Randomness(seed), trained, ("test",))[0]
    sizes = np.array([len(parts[part]) for part in _JUDGED], dtype=np.float64)
    usual = np.bincount(problem.public.labels, minlength=problem.classes).argmax()
    return Bank(noise, right, sizes, defaults / len(problem.test), float((problem.test.labels == usual).mean()))


def repetition_parts(setting: Setting, repetition: int, data: str | None) -> dict[str, Part]:
    """Return a random subset of the private records, split in two, and the other parts unchanged."""
    problem, key = load(setting.problem, data), repetition_key(setting, repetition)
    generator = np.random.Generator(np.random.PCG64DXSM(int.from_bytes(derive_key(key, "subset"), "big")))
    drawn = generator.permutation(len(problem.private))[: setting.records + setting.held]
    return {
        "train": problem.private.at(drawn[: setting.records]),
        "held": problem.private.at(drawn[setting.records :]),
        "all": problem.private.at(drawn),
        "public": problem.public,
        "test": problem.test,
    }


def repetition_key(setting: Setting, repetition: int) -> bytes:
    """Return the public key from which all seeds of a repetition are derived."""
    return blake2b(f"{setting.name} {repetition}".encode(), digest_size=32).digest()


def _description(setting: Setting, repetition: int) -> str:
    """Return everything a bank depends on except the code and the data."""
    description: dict[str, Any] = {
        "setting": asdict(setting),
        "noise": setting.noise,
        "repetition": repetition,
        "space": SPACES[setting.space].as_dict(),
        "defaults": DEFAULTS,
        "untuned": [untuned_noise(epsilon) for epsilon in EPSILONS],
        "training": (SAMPLING, STEPS),
    }
    return json.dumps(description, sort_keys=True, default=str)
