"""What the models see, and that prepared rows change nothing about a training."""

import numpy as np
import pytest
from experiments_made import made_problem

from privselect.tuning.randomness import Randomness
from privselect.tuning.softmax_dpsgd import SoftmaxDPSGD, correct, to_grid_rows
from research.experiments import trainers
from research.experiments.problems import SIDE, Part, pooled
from research.experiments.trainers import NetworkBank, SoftmaxBank, features_of

SEED = bytes(range(32))
CANDIDATE = {"learning_rate": 2.0, "clip": 1.0}
OTHER = {"learning_rate": 1.0, "clip": 0.5, "pool": 4, "scale": 3.0, "exponent": 0.5, "shift": -1.0}


@pytest.fixture(scope="module")
def parts():
    problem = made_problem(None)
    return {"train": problem.private, "test": problem.test}


def right(bank, candidate=CANDIDATE, noise=1.0, judged=("train", "test")):
    return bank.right(candidate, noise, Randomness(SEED), "train", judged)


def test_images_are_pooled_and_put_through_what_the_candidate_says(parts):
    images = parts["test"].features
    assert np.array_equal(features_of(parts["test"], {}), pooled(images, 2))
    # Not to the bit: a power of an array may be taken several numbers at a time.
    assert features_of(parts["test"], OTHER) == pytest.approx(3.0 * np.sqrt(pooled(images, 4)) - 1.0, abs=1e-14)


def test_other_records_are_seen_as_they_are():
    part = Part(np.ones((2, SIDE)), np.zeros(2, dtype=np.int64))
    assert features_of(part, OTHER) is part.features


def test_a_records_features_depend_on_that_record_alone(parts):
    few = parts["test"].at(np.array([3, 5]))
    assert np.array_equal(features_of(few, OTHER), features_of(parts["test"], OTHER)[[3, 5]])


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("candidate", [CANDIDATE, OTHER], ids=["plain", "hard"])
def test_prepared_rows_give_what_the_built_in_trainer_gives(parts, candidate):
    features = {name: features_of(part, candidate) for name, part in parts.items()}
    model = SoftmaxDPSGD(1.0, trainers.SAMPLING, trainers.STEPS, len(parts["train"]), 3, features["train"].shape[1])
    rate, clip = candidate["learning_rate"], candidate["clip"]
    weights = model.train(features["train"], parts["train"].labels, learning_rate=rate, clip=clip, randomness=Randomness(SEED))
    by_hand = [int(correct(weights, features[name], part.labels).sum()) for name, part in parts.items()]
    assert right(SoftmaxBank(parts, 3), candidate) == by_hand


def test_rows_of_one_candidate_are_not_those_of_the_next(parts):
    bank = SoftmaxBank(parts, 3)
    for candidate in (
        CANDIDATE,
        OTHER,
        CANDIDATE,
        {**CANDIDATE, "scale": 2.0},
        {**CANDIDATE, "shift": 2.0},
        {**CANDIDATE, "exponent": 2.0},
    ):
        prepared, afresh = bank._prepared("test", candidate), to_grid_rows(features_of(parts["test"], candidate))
        assert np.array_equal(prepared.directions, afresh.directions)
        assert np.array_equal(prepared.lengths, afresh.lengths)
    assert bank._prepared("test", candidate) is prepared


def test_less_noise_learns_what_there_is_to_learn(parts):
    # The classes are stripes: without noise to speak of nearly all are told apart, and with a lot of it the guess is one of three.
    little, lots = (right(SoftmaxBank(parts, 3), noise=noise, judged=["test"])[0] for noise in (1e-3, 1e3))
    assert little > 0.95 * len(parts["test"])
    assert lots < 0.8 * len(parts["test"])


@pytest.mark.opacus
def test_a_network_is_the_same_to_the_bit_and_learns():
    problem = made_problem(None)
    many = np.tile(np.arange(len(problem.private)), 2)  # the plan needs a record in each sample, in the mean
    parts = {"train": problem.private.at(many), "test": problem.test}
    one, other = (right(NetworkBank(parts, 3), noise=0.5) for _ in range(2))
    assert one == other
    assert one[1] > 0.6 * len(parts["test"])
    assert right(NetworkBank(parts, 3), noise=1e3)[1] < one[1]
