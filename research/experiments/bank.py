"""A bank: many candidates, each trained with every noise level on one subset of the data, and how good each model is.

Selections are priced and played on banks. A candidate has the same randomness at every noise level, so that levels are compared on the
same draws; candidates and repetitions have randomness of their own. Its seeds are fixed and public: a bank protects nobody.
"""

from __future__ import annotations

import io
import json
from dataclasses import asdict, dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np

from privselect._util.atomic_files import atomic_write
from privselect.tuning.randomness import Stream, derive_key
from privselect.tuning.randomness import Randomness
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
    """``right[part, level, candidate]``: right answers on the public, the held-out and the test part; ``sizes`` of these.

    ``defaults[epsilon, records, default]`` is the test accuracy of untuned models: at each epsilon, trained without the held-out records
    and with them. ``trivial`` is the test accuracy of the most frequent public class.
    """

    noise: Floats
    right: Floats
    sizes: Floats
    defaults: Floats
    trivial: float

    @property
    def test_accuracy(self) -> Floats:
        """Of each level and candidate."""
        return np.asarray(self.right[_JUDGED.index("test")] / self.sizes[_JUDGED.index("test")])

    def scores(self, part: str) -> Floats:
        """Right answers of each level and candidate on one part."""
        return np.asarray(self.right[_JUDGED.index(part)])


def bank_file(folder: Path, setting: Setting, repetition: int) -> Path:
    """Where a bank is kept."""
    return folder / f"{setting.name}-{repetition}.npz"


def stored_bank(folder: Path, setting: Setting, repetition: int) -> Bank | None:
    """A bank that was trained before with the very same settings; None where there is none, or only a broken file."""
    try:
        with bank_file(folder, setting, repetition).open("rb") as file, np.load(file) as stored:
            bank = Bank(stored["noise"], stored["right"], stored["sizes"], stored["defaults"], float(stored["trivial"]))
            same = str(stored["description"]) == _description(setting, repetition) and bank.sizes[_JUDGED.index("held")] == setting.held
            return bank if same else None
    except Exception:  # noqa: BLE001 - a file may be broken in any way
        return None


def train_bank(setting: Setting, repetition: int, data: str | None, folder: Path) -> None:
    """Train one bank and keep it, whole or not at all."""
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
    """All models of one bank."""
    problem, key = load(setting.problem, data), _key(setting, repetition)
    parts = _parts(setting, data, key)
    trainer = TRAINERS[setting.model](parts, problem.classes)
    noise, space = np.array(setting.noise), SPACES[setting.space]
    right = np.zeros((len(_JUDGED), len(noise), setting.candidates))
    for place in range(setting.candidates):
        candidate = space.draw(Stream(derive_key(key, "candidate", place)))
        for level, multiplier in enumerate(setting.noise):
            seed = derive_key(key, "trial", place)  # the same at every level
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


def _parts(setting: Setting, data: str | None, key: bytes) -> dict[str, Part]:
    """A random subset of the private records, parted in two, and the other parts as they are."""
    problem = load(setting.problem, data)
    generator = np.random.Generator(np.random.PCG64DXSM(int.from_bytes(derive_key(key, "subset"), "big")))
    drawn = generator.permutation(len(problem.private))[: setting.records + setting.held]
    return {
        "train": problem.private.at(drawn[: setting.records]),
        "held": problem.private.at(drawn[setting.records :]),
        "all": problem.private.at(drawn),
        "public": problem.public,
        "test": problem.test,
    }


def _key(setting: Setting, repetition: int) -> bytes:
    return blake2b(f"{setting.name} {repetition}".encode(), digest_size=32).digest()


def _description(setting: Setting, repetition: int) -> str:
    """All that a bank depends on but the code and the data."""
    told: dict[str, Any] = {
        "setting": asdict(setting),
        "noise": setting.noise,
        "repetition": repetition,
        "space": SPACES[setting.space].plain(),
        "defaults": DEFAULTS,
        "untuned": [untuned_noise(epsilon) for epsilon in EPSILONS],
        "training": (SAMPLING, STEPS),
    }
    return json.dumps(told, sort_keys=True, default=str)
