"""The fast trainer has the law of the library's: the same clipped sums, the same noise, the same samples, the same division."""

import numpy as np
import pytest
from experiments_made import made_problem
from scipy.stats import binomtest, chisquare, kstest

from privselect.tuning.randomness import Randomness
from privselect.tuning.softmax_dpsgd import GRID, SoftmaxDPSGD, clipped_sum, to_grid_rows
from research.experiments import batch, trainers
from research.experiments.batch import BatchNetwork, BatchSoftmax, Runs, network_sums, softmax_sums
from research.experiments.trainers import SoftmaxBank

FALSE_ALARM = 1e-6  # of each statistical test below
CLOSE = 1e-4  # floats of 32 bits
CANDIDATES = [
    {"learning_rate": 2.0, "clip": 0.3},
    {"learning_rate": 0.5, "clip": 10.0},
    {"learning_rate": 1.0, "clip": 0.5, "pool": 4, "scale": 3.0, "exponent": 0.5, "shift": -1.0},
]


@pytest.fixture(scope="module")
def parts():
    problem = made_problem(None)
    return {"train": problem.private, "test": problem.test}


def with_one(values):
    return np.concatenate([values, np.ones((*values.shape[:-1], 1))], axis=-1)


def softmax(logits):
    odds = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return odds / odds.sum(axis=-1, keepdims=True)


@pytest.mark.parametrize("clips", [(0.01, 0.3), (2.0, 1e3)])
def test_clipped_sums_are_those_of_the_library(clips, fresh_rng):
    features, labels = fresh_rng.normal(size=(2, 30, 5)), fresh_rng.integers(0, 3, 30)
    models = fresh_rng.normal(size=(2, 6, 1, 2, 3))  # two sets of rows, one candidate in each, two levels
    rows = with_one(features)
    clip = np.broadcast_to(np.array(clips)[:, None, None], (2, 1, 2))
    found = softmax_sums(rows, np.sqrt(np.square(rows).sum(axis=2)), labels, models, clip)
    targets = labels[:, None] == np.arange(3)
    for at, norm in enumerate(clips):
        for level in range(2):
            sums = clipped_sum(to_grid_rows(features[at]), targets, models[at, :, 0, level], norm) * norm / GRID**2
            assert found[at, :, 0, level] == pytest.approx(sums, abs=CLOSE * norm)


def test_candidates_that_share_their_rows_get_their_own_sums(fresh_rng):
    rows, labels = with_one(fresh_rng.normal(size=(1, 30, 5))), fresh_rng.integers(0, 3, 30)
    models, clip = fresh_rng.normal(size=(1, 6, 4, 2, 3)), fresh_rng.uniform(0.1, 2.0, (1, 4, 2))
    lengths = np.sqrt(np.square(rows).sum(axis=2))
    found = softmax_sums(rows, lengths, labels, models, clip)
    for place in range(4):
        alone = softmax_sums(rows, lengths, labels, models[:, :, place : place + 1], clip[:, place : place + 1])
        assert found[:, :, place : place + 1] == pytest.approx(alone, abs=1e-12)


def test_a_whole_training_without_noise_is_that_of_the_library(parts, monkeypatch):
    """Every record is in every sample, so nothing is random; the library divides by the expected size of a sample."""
    for module in (batch, trainers):
        monkeypatch.setattr(module, "SAMPLING", 1.0)
    monkeypatch.setattr(trainers, "STEPS", 7)
    records, classes = len(parts["train"]), 3
    trainer = BatchSoftmax(parts, classes)
    runs = Runs.at_levels(CANDIDATES[:1], [1e-9], [1.0])
    rows = trainer._inputs.rows("train", CANDIDATES[:1])
    numbers = tuple(values[None].astype(np.float32) for values in (runs.rate, runs.clip, runs.noise))
    models = trainer._trained(rows, parts["train"].labels, numbers, 7, np.random.default_rng(1))
    wanted = SoftmaxDPSGD(1e-6, 1.0, 7, records, classes, rows.shape[2] - 1).train(
        rows[0, :, :-1].astype(float), parts["train"].labels, **CANDIDATES[0], randomness=Randomness(bytes(32))
    )
    assert models[0, :, 0, 0] == pytest.approx(np.vstack([wanted["weights"], wanted["bias"]]), abs=CLOSE)
    # All candidates in one call, of different widths, are judged as the library's models are.
    found = trainer.right(Runs.at_levels(CANDIDATES, [1e-9, 1e-9], [1.0, 0.1]), 7, np.random.default_rng(1), "train", "test")
    for place, candidate in enumerate(CANDIDATES):
        for level, factor in enumerate((1.0, 0.1)):
            own = {**candidate, "learning_rate": factor * candidate["learning_rate"]}
            assert found[place, level] == SoftmaxBank(parts, classes).right(own, 1e-6, Randomness(bytes(32)), "train", ["test"])[0]


def test_noise_has_the_stated_size_and_is_shared_by_levels_only(parts, monkeypatch):
    """The noise is so large that the gradients of all records hardly change the model."""
    monkeypatch.setattr(batch, "SAMPLING", 0.5)
    steps, records, candidates = 5, len(parts["train"]), [{"learning_rate": 2.0, "clip": 0.3}, {"learning_rate": 0.5, "clip": 10.0}]
    trainer = BatchSoftmax(parts, 3)
    runs = Runs.at_levels(candidates, [0.7e6, 2.1e6], [1.0, 0.5])
    numbers = tuple(values[None].astype(np.float32) for values in (runs.rate, runs.clip, runs.noise))
    rows = trainer._inputs.rows("train", candidates[:1])
    models = trainer._trained(rows, parts["train"].labels, numbers, steps, np.random.default_rng())[0]
    unit = models / ((runs.rate * runs.clip * runs.noise) / (0.5 * records))[..., None] / np.sqrt(steps)
    assert unit[:, :, 0] == pytest.approx(unit[:, :, 1], abs=1e-3)
    drawn = unit[:, :, 0]
    for place in range(2):
        assert kstest(drawn[:, place].ravel(), "norm").pvalue > FALSE_ALARM
    assert abs(np.corrcoef(drawn[:, 0].ravel(), drawn[:, 1].ravel())[0, 1]) < 5.0 / np.sqrt(drawn[:, 0].size)  # 6e-7


def test_samples_are_poisson(monkeypatch, fresh_rng):
    monkeypatch.setattr(batch, "SAMPLING", 0.3)
    steps, records = 2000, 40
    chosen = list(batch._samples(fresh_rng, steps, records))
    times = np.bincount(np.concatenate(chosen), minlength=records)
    assert binomtest(int(times.sum()), steps * records, 0.3).pvalue > FALSE_ALARM
    assert chisquare(times).pvalue > FALSE_ALARM
    sizes = np.array([len(one) for one in chosen])
    # The size of a sample is binomial: its variance is 8.4, with a standard error of 3%.
    assert sizes.var() == pytest.approx(40 * 0.3 * 0.7, rel=0.17)


def network_loss(row, label, layers):
    first, second = layers
    return -np.log(softmax(np.append(np.tanh(row @ first), 1.0) @ second)[label])


@pytest.mark.parametrize("clip", [0.2, 1e6])
def test_gradients_of_a_network_by_differences(clip, fresh_rng):
    rows, labels = with_one(fresh_rng.normal(size=(6, 3))), fresh_rng.integers(0, 2, 6)
    layers = [fresh_rng.normal(size=shape) for shape in ((4, 5), (6, 2))]
    found = network_sums(rows, labels, layers[0][None], layers[1][None], np.array([[clip]]))
    wanted = [np.zeros_like(layer) for layer in layers]
    for row, label in zip(rows, labels, strict=True):
        gradients = []
        for layer in layers:
            own = np.zeros_like(layer)
            for place in np.ndindex(layer.shape):
                before, step = layer[place], 1e-5
                values = []
                for sign in (1.0, -1.0):
                    layer[place] = before + sign * step
                    values.append(network_loss(row, label, layers))
                layer[place] = before
                own[place] = (values[0] - values[1]) / (2.0 * step)
            gradients.append(own)
        norm = np.sqrt(sum(np.square(one).sum() for one in gradients))
        wanted = [total + one * min(1.0, clip / norm) for total, one in zip(wanted, gradients, strict=True)]
    for one, other in zip(found, wanted, strict=True):
        assert one[0] == pytest.approx(other, abs=1e-7)


def test_a_network_learns_without_noise_and_not_with_much(parts, monkeypatch):
    monkeypatch.setattr(batch, "SAMPLING", 0.5)
    runs = Runs.at_levels([{"learning_rate": 1.0, "clip": 1.0}] * 2, [1e-6, 1e4], [1.0, 1.0])
    right = BatchNetwork(parts, 3).right(runs, 60, np.random.default_rng(3), "train", "test")
    assert (right[:, 0] >= 57).all()
    assert (right[:, 1] < 45).all()


def test_levels_of_a_network_start_alike_within_torchs_bounds(parts):
    layers = BatchNetwork(parts, 3)._untrained(np.random.default_rng(1), (2, 3), 197)
    for layer, inputs in zip(layers, (196, 32), strict=True):
        assert np.array_equal(layer[0], layer[2])
        assert not np.array_equal(layer[0], layer[3])
        assert 0.99 / np.sqrt(inputs) < np.abs(layer).max() <= 1.0001 / np.sqrt(inputs)


@pytest.mark.parametrize("model", ["softmax", "network"])
def test_the_same_generator_gives_the_same(parts, model, monkeypatch):
    monkeypatch.setattr(batch, "SAMPLING", 0.5)
    runs = Runs.one_each(CANDIDATES[:2], [40.0, 80.0], [1.0, 0.5])
    assert runs.rate.tolist() == [[2.0], [0.25]]
    assert runs.clip.tolist() == [[0.3], [10.0]]
    one, same, other = (batch.BATCH_TRAINERS[model](parts, 3).right(runs, 30, np.random.default_rng(n), "train", "test") for n in (1, 1, 2))
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)


def test_an_empty_sample_adds_nothing():
    models = np.ones((1, 5, 2, 3, 4), np.float32)
    empty = np.zeros((1, 0, 5), np.float32)
    found = softmax_sums(empty, np.zeros((1, 0), np.float32), np.zeros(0, np.int64), models, np.ones((1, 2, 3), np.float32))
    assert found.shape == models.shape
    assert not found.any()
