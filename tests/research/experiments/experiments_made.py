"""Small problems, settings and banks for the tests of the experiments."""

import dataclasses

import numpy as np

from research.experiments.bank import Bank
from research.experiments.problems import SIDE, Part, Problem
from research.experiments.settings import Setting

UNTUNED = {1.0: 1.771926, 3.0: 0.9282998}
TINY = Setting("tiny", "made", 40, candidates=3, levels=(1, 1))


def made_problem(_):
    """Images of three classes: each has a bright stripe of its own."""
    generator = np.random.default_rng(7)

    def part(size):
        labels = generator.integers(0, 3, size)
        images = generator.uniform(0.0, 0.2, (size, SIDE, SIDE))
        for image, label in zip(images, labels, strict=True):
            image[8 * label : 8 * label + 8] += 0.7
        return Part(images.reshape(size, -1), labels)

    return Problem(part(80), part(30), part(60), 3)


def made_bank(right, sizes=(50.0, 20.0, 100.0), noise=(0.9282998, 1.771926, 5.2), defaults=0.5, trivial=0.1):
    """A bank by hand; ``defaults`` may be one number for all."""
    return Bank(np.array(noise), np.array(right, dtype=np.float64), np.array(sizes), np.broadcast_to(defaults, (2, 2, 3)), trivial)


def drawn_bank(generator, candidates=6):
    """A bank of pure chance."""
    return made_bank(np.stack([generator.integers(0, size, (3, candidates)) for size in (50, 20, 100)]))


KILLED = [dataclasses.replace(TINY, name=name, candidates=4) for name in ("one", "two")]
KILLED_REPETITIONS = 4
KILLED_STEPS = 60


def result_rows():
    """A table of results as it is read back: two sizes of one problem, and one setting of another in the hard space."""
    rows = []
    regimes = ("exact", "paper", "renyi", "composition", "free", "default_1", "default_2", "default_3", "untuned")
    for problem, space, records in (("mnist", "plain", 6000), ("mnist", "plain", 2000), ("small_mnist", "hard", 2400)):
        for validation in ("public", "paid"):
            for epsilon in ("1", "3"):
                for place, regime in enumerate(regimes):
                    mean = 0.9 - 0.05 * place + records / 1e5 + (validation == "public") * 0.01 + (epsilon == "3") * 0.001
                    rows.append(
                        {
                            "setting": f"{problem}-{records}",
                            "validation": validation,
                            "epsilon": epsilon,
                            "regime": regime,
                            "problem": problem,
                            "model": "softmax",
                            "space": space,
                            "records": str(records),
                            "count": f"fixed(k={place + 1})" if place < 5 else "",
                            "noise_multiplier": f"{1.0 + place / 8.0}",
                            "score_noise": "",
                            "beats_untuned": "0.875",
                            "repetitions": "10",
                            "accuracy_mean": f"{mean:.7g}",
                            "accuracy_low": f"{mean - 0.02:.7g}",
                            "accuracy_high": f"{mean + 0.02:.7g}",
                            "exact_gains_mean": f"{0.05 * place:.7g}",
                            "exact_gains_low": "-0.001",
                            "exact_gains_high": "0.25",
                        }
                    )
    return rows
