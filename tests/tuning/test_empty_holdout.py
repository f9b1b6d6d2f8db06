"""A hold-out without records must not be visible: it is a count of 0 plus noise, not a failed trial."""

import numpy as np
import pytest

from privselect.mechanisms import DiscreteGaussian
from privselect.tuning.randomness import Stream
from privselect.tuning.scores import HoldoutScorer


def raising_on_nothing(_, holdout):
    """As scikit-learn's predictors do."""
    if len(holdout) == 0:
        raise ValueError("Found array with 0 samples")
    return holdout > 0


@pytest.mark.parametrize("holdout", [np.array([]), [], {"X": np.empty((0, 3)), "y": np.empty(0)}], ids=["array", "list", "columns"])
def test_an_empty_holdout_scores_noise_alone(holdout):
    scorer = HoldoutScorer(raising_on_nothing, holdout, DiscreteGaussian(sigma=2))
    key = bytes(32)
    assert scorer.score(None, Stream(key)) == DiscreteGaussian(sigma=2).sample(Stream(key))


def test_one_wrong_record_more_has_the_same_score():
    """So empty and one-record hold-outs are told apart by noise alone, as sensitivity 1 claims."""
    key = bytes(range(32))
    scores = [
        HoldoutScorer(raising_on_nothing, holdout, DiscreteGaussian(sigma=2)).score(None, Stream(key))
        for holdout in (np.array([]), np.array([-1.0]), np.array([1.0]))
    ]
    assert scores[0] == scores[1] == scores[2] - 1
