"""Between two noise levels of a bank, accuracies are taken from a straight line in the logarithm of the noise: how far is that off?"""

import dataclasses
import math

import numpy as np
import pytest

from privselect.counts import Geometric
from research.experiments import bank as banks
from research.experiments.settings import SETTINGS
from research.experiments.winner import winning_chances


@pytest.mark.slow
def test_a_bank_trained_in_between_is_close_to_the_line(monkeypatch):
    setting = dataclasses.replace(next(one for one in SETTINGS if one.name == "small-mnist-2400"), candidates=24)
    below, above = setting.noise[3:5]
    middle = math.sqrt(below * above)
    monkeypatch.setattr(type(setting), "noise", (below, middle, above))
    bank = banks.trained_bank(setting, 0, None)
    accuracy = bank.test_accuracy
    gaps = accuracy[1] - 0.5 * (accuracy[0] + accuracy[2])
    # The draws are the same at all levels, so that what is left is curvature, and single images of the 1000 that change sides.
    assert abs(gaps.mean()) < 0.004
    released = [winning_chances(bank.scores("public")[level], 0.0, Geometric(mean=10)) @ accuracy[level] for level in range(3)]
    assert abs(released[1] - 0.5 * (released[0] + released[2])) < 0.01
    # And the levels themselves are further apart than that: the line has something to say.
    assert released[0] - released[2] > 0.02
    assert np.all(np.diff(accuracy.mean(axis=1)) < 0.0)
