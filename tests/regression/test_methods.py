"""The noise that methods add to sums over records, against the mechanism that they state."""

import numpy as np
import pytest

from privselect.regression import methods
from privselect.regression.sufficient_statistics import SufficientStatistics

METHODS = [methods.AdaSSP(0.7), methods.SSP(0.7, ridge=1.0)]


class UnitNoise:
    """A noise source of zeros, except for a 1 at one place; it counts its draws."""

    def __init__(self, place=None):
        self.place, self.count = place, 0

    def standard_normals(self, *shape):
        found = np.zeros(int(np.prod(shape)))
        if self.place is not None and 0 <= self.place - self.count < len(found):
            found[self.place - self.count] = 1.0
        self.count += len(found)
        return found.reshape(shape)


def released(method, statistics, draws, monkeypatch):
    """Return what a method releases: X'X, X'y, and the smallest eigenvalue if it is released."""
    seen = {}
    monkeypatch.setattr(methods, "solve_noisy_ridge", lambda gram, moment, *_: seen.update(gram=gram, moment=moment))
    facts = method.run(statistics, draws).facts
    eigenvalue = [facts["smallest_eigenvalue"]] if facts else []
    return np.concatenate([seen["gram"][np.triu_indices(len(seen["moment"]))], seen["moment"], eigenvalue])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("row", [[1.0], [0.6, 0.8], [1.0, 0.0, 0.0], [0.6, -0.64, 0.48]])
def test_a_record_is_hidden_by_as_much_noise_as_the_mechanism_says(method, row, monkeypatch):
    row, features = np.array(row), len(row)
    # Far from 0, so the smallest eigenvalue is not cut off.
    without = SufficientStatistics(1000.0 * np.eye(features) + np.diag(np.arange(features)), np.zeros(features), 5000)
    with_row = SufficientStatistics(without.gram + np.outer(row, row), without.moment + row, 5000)
    draws = UnitNoise()
    middle = released(method, without, draws, monkeypatch)
    spread = np.array([released(method, without, UnitNoise(place), monkeypatch) - middle for place in range(draws.count)])
    moved = released(method, with_row, UnitNoise(), monkeypatch) - middle
    # What is released is linear in independent normals: Gaussian, and one record moves it by so many deviations.
    found = np.sqrt(moved @ np.linalg.solve(spread.T @ spread, moved))
    assert method.mechanism.sigma == pytest.approx(1.0 / method.mu, rel=1e-15)
    assert found <= method.mu * (1.0 + 1e-9)
    if isinstance(method, methods.SSP) or features == 1:  # otherwise the smallest eigenvalue moves by less than 1
        assert found == pytest.approx(method.mu, rel=1e-9)
