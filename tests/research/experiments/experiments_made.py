"""Small problems, settings and banks for the tests of the experiments."""

import dataclasses

import numpy as np

from privselect.counts import Fixed, Geometric, NegativeBinomial
from research.experiments.bank import Bank
from research.experiments.problems import SIDE, Part, Problem
from research.experiments.settings import EPSILONS, Setting
from research.experiments.stage_bank import SEARCH_LEVELS, SPLITS, StageBank, Task
from research.experiments.stage_options import StageOption

UNTUNED = {1.0: 1.771926, 3.0: 0.9282996}
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


def made_bank(right, sizes=(50.0, 20.0, 100.0), noise=(0.9282996, 1.771926, 5.2), defaults=0.5, trivial=0.1):
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


def made_stage_bank(scores, accuracy, epsilon=1.0, trivial=0.1):
    """A bank of two stages by hand: one row of scores, and one of accuracies, for all levels, splits and rates."""
    noise = np.array(SEARCH_LEVELS) * UNTUNED[epsilon]
    wide = np.broadcast_to(np.asarray(accuracy, dtype=np.float64), (len(SPLITS), 2, np.shape(accuracy)[-1]))
    return StageBank(noise, np.broadcast_to(np.asarray(scores, dtype=np.float64), (len(noise), np.shape(scores)[-1])), wide, trivial)


def stage_options():
    """A few options as they might be planned."""
    found = []
    for epsilon in EPSILONS:
        noise = UNTUNED[epsilon]
        for split, more in ((1.04, 2.0), (1.15, 1.2)):
            found.append(StageOption(epsilon, "secret", Geometric(mean=10), split, more * noise, 9.0))
            found.append(StageOption(epsilon, "secret", NegativeBinomial(eta=5, mean=10), split, 1.1 * more * noise, 10.0))
            found += [StageOption(epsilon, search, Fixed(k=4), split, more * noise, 8.0) for search in ("visible", "scaling")]
    return found


def one_shot_rows(names, repetitions=3):
    """What the experiment on accuracy stores for these settings, repetition by repetition."""
    regimes = {"exact": 0.5, "free": 0.7, "default_1": 0.6, "default_2": 0.4, "default_3": 0.65, "paper": 0.3}
    return [
        {
            "setting": name,
            "validation": validation,
            "epsilon": f"{epsilon:g}",
            "regime": regime,
            "repetition": str(repetition),
            "count": "",
            "accuracy": f"{accuracy + 0.01 * repetition}",
        }
        for name in names
        for validation in ("public", "paid")
        for epsilon in EPSILONS
        for regime, accuracy in regimes.items()
        for repetition in range(repetitions)
    ]


def stage_tasks(repetitions=3, **given):
    """The repetitions of one comparison."""
    return [Task(**{"setting": TINY, "epsilon": 1.0, "validation": "public", **given, "repetition": at}) for at in range(repetitions)]
