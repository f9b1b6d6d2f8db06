"""The noise that recipes really add to sums over records, against the mechanism that they state."""

import numpy as np
import pytest

from privselect.regression.methods import ada_ssp, ssp
from privselect.regression.methods.sufficient_statistics import Statistics

RECIPES = {ada_ssp: ada_ssp.AdaSSP(0.7), ssp: ssp.SSP(0.7, ridge=1.0)}


class Draws:
    """In the place of normals: zeros but for the draw at one place; how many there were is counted."""

    def __init__(self, place=None):
        self.place, self.count = place, 0

    def draw(self, *shape):
        found = np.zeros(int(np.prod(shape)))
        if self.place is not None and 0 <= self.place - self.count < len(found):
            found[self.place - self.count] = 1.0
        self.count += len(found)
        return found.reshape(shape)


def released(module, statistics, draws, monkeypatch):
    """What a recipe solves with: X'X, X'y, and the least eigenvalue where that is told."""
    seen = {}
    monkeypatch.setattr(module, "solved", lambda gram, moment, *_: seen.update(gram=gram, moment=moment))
    facts = RECIPES[module].run(statistics, draws).facts
    told = [facts["smallest_eigenvalue"]] if facts else []
    return np.concatenate([seen["gram"][np.triu_indices(len(seen["moment"]))], seen["moment"], told])


@pytest.mark.parametrize("module", RECIPES)
@pytest.mark.parametrize("row", [[1.0], [0.6, 0.8], [1.0, 0.0, 0.0], [0.6, -0.64, 0.48]])
def test_a_record_is_hidden_by_as_much_noise_as_the_mechanism_says(module, row, monkeypatch):
    row, features = np.array(row), len(row)
    # Far from 0, where the least eigenvalue is told as it is.
    without = Statistics(1000.0 * np.eye(features) + np.diag(np.arange(features)), np.zeros(features), 5000)
    with_row = Statistics(without.gram + np.outer(row, row), without.moment + row, 5000)
    draws = Draws()
    middle = released(module, without, draws, monkeypatch)
    spread = np.array([released(module, without, Draws(place), monkeypatch) - middle for place in range(draws.count)])
    moved = released(module, with_row, Draws(), monkeypatch) - middle
    # What is released is linear in independent normals: Gaussian, and one record moves it by so many deviations.
    found = np.sqrt(moved @ np.linalg.solve(spread.T @ spread, moved))
    recipe = RECIPES[module]
    assert recipe.mechanism.sigma == pytest.approx(1.0 / recipe.mu, rel=1e-15)
    assert found <= recipe.mu * (1.0 + 1e-9)
    if module is ssp or features == 1:  # elsewhere the least eigenvalue moves by less than it may
        assert found == pytest.approx(recipe.mu, rel=1e-9)
