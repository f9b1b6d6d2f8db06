"""What the tests of runs with a final training share: records, and a trainer that runs the DP-SGD it is told to run."""

import numpy as np

import privselect as ps
from privselect.tuning.softmax_dpsgd import SoftmaxDPSGD, correct

RECORDS, CLASSES, FEATURES = 300, 3, 4
SPACE = {"learning_rate": ps.LogUniform(0.1, 10.0), "clip": ps.Choice([0.5, 1.0])}
SEARCH = ps.DPSGD(noise_multiplier=3.0, sampling_probability=0.1, steps=5)
FINAL = ps.DPSGD(noise_multiplier=2.0, sampling_probability=0.2, steps=20)


def records(size=RECORDS, seed=1):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, CLASSES, size)
    return {"id": np.arange(size), "x": rng.normal(size=(size, FEATURES)) + 2.0 * np.eye(CLASSES, FEATURES)[labels], "y": labels}


DATA, TEST, SYNTHETIC = records(), records(seed=2), records(40, seed=3)


def train(candidate, data, randomness, mechanism):
    """One training by the mechanism that is told."""
    settings = (mechanism.noise_multiplier, mechanism.sampling_probability, mechanism.steps)
    trainer = SoftmaxDPSGD(*settings, RECORDS, CLASSES, FEATURES)
    rates = {name: candidate[name] for name in ("learning_rate", "clip")}
    return trainer.train(data["x"], data["y"], randomness=randomness, **rates)


def right(model, records):
    return correct(model, records["x"], records["y"])


def objective(candidate, data, randomness, mechanism):
    """Scored on public records."""
    model = train(candidate, data, randomness, mechanism)
    return float(right(model, TEST).mean()), model


def held_out(candidate, data, randomness, mechanism):
    """Scored by a noisy count."""
    return None, train(candidate, data, randomness, mechanism)


class Recorded:
    """An objective whose calls are noted: what it was told, and on how many records it trained."""

    def __init__(self, trial=objective):
        self.trial, self.calls = trial, []

    def __call__(self, candidate, data, randomness, mechanism, stage):
        self.calls.append((stage, mechanism, dict(candidate), len(data["x"]), set(np.asarray(data["id"]).tolist())))
        return self.trial(candidate, data, randomness, mechanism)

    def of(self, stage):
        return [call for call in self.calls if call[0] == stage]


def tree_of(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}
