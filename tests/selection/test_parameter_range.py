"""All noise levels, 1 to 10^9 trials, delta down to 1e-15: every computation returns an interval."""

import itertools

import numpy as np
import pytest

import privselect as ps
from closed_forms import gaussian_hockey
from privselect.mechanisms.gaussian import gaussian_bracket, normal_cells
from privselect.pairs import connect_the_dots, merge_cells
from privselect.selection.exact.engine import ExactLower, ExactUpper

SIGMAS = [0.3, 1.0, 4.0, 20.0, 100.0]
MEANS = [1.0, 10.0, 1e3, 1e6, 1e9]
DELTAS = [1e-3, 1e-6, 1e-15]


def intervals(sigmas, means, deltas):
    shape = (len(sigmas), len(means), len(deltas))
    lower, upper = np.empty(shape), np.empty(shape)
    for (i, sigma), (j, mean) in itertools.product(enumerate(sigmas), enumerate(means)):
        found = ps.Selection(ps.Gaussian(sigma=sigma), ps.Geometric(mean=mean)).epsilon_at(deltas)
        lower[i, j], upper[i, j] = found.lower, found.upper
    return lower, upper


def check(lower, upper):
    assert np.all(np.isfinite(upper))
    assert np.all(lower >= 0.0)
    assert np.all(lower <= upper)
    # The truth falls with sigma, rises with the mean and as delta falls: no lower end lies above an upper end on the costlier side.
    assert np.all(lower[1:] <= upper[:-1])
    assert np.all(lower[:, :-1] <= upper[:, 1:])
    assert np.all(lower[:, :, :-1] <= upper[:, :, 1:])


def test_the_whole_range():
    lower, upper = intervals(SIGMAS, MEANS, DELTAS)
    check(lower, upper)
    assert np.all(upper - lower <= 1e-2 * upper + 1e-9)  # narrower where it matters: see test_gap.py
    # One trial is the base itself.
    for i, sigma in enumerate(SIGMAS):
        for d, low, high in zip(DELTAS, lower[i, 0].tolist(), upper[i, 0].tolist(), strict=True):
            assert gaussian_hockey(1.0 / sigma, high) <= d
            if low > 0.0:
                assert d <= gaussian_hockey(1.0 / sigma, low)


@pytest.mark.soak
def test_a_finer_grid_of_the_range(campaign):
    fine = max(campaign(24), 3)
    lower, upper = intervals(
        np.geomspace(0.3, 100.0, fine).tolist(), np.geomspace(1.0, 1e9, fine).tolist(), np.geomspace(1e-3, 1e-15, 13).tolist()
    )
    check(lower, upper)


@pytest.mark.parametrize(
    "count", [ps.Poisson(mean=1e3), ps.NegativeBinomial(eta=-0.5, mean=1e6), ps.NegativeBinomial(eta=5, mean=1e6)], ids=str
)
def test_other_laws_far_out(count):
    found = ps.Selection(ps.Gaussian(sigma=20), count).epsilon_at([1e-3, 1e-15])
    assert np.all(found.lower <= found.upper)
    assert np.all(np.isfinite(found.upper))


# -- coarse cells --------------------------------------------------------------------------------------------------------

TRUTH = gaussian_hockey(0.25, 1.0)  # one trial, sigma = 4, epsilon = 1
HAND = np.concatenate([np.linspace(-6.0, 2.0, 16), np.geomspace(2.1, 30.0, 20), -np.geomspace(6.2, 30.0, 14)])


def coarse_brackets():
    """About 50 cells: equal cells over the range of floats, fewer but finer cells, and 50 chosen ones."""
    wide = gaussian_bracket(0.25, 77.05 / 50)
    z = np.sort(HAND)
    losses, p, q = 0.25 * (z - 0.125), normal_cells(z - 0.25), normal_cells(z)
    narrow_z = np.linspace(-6.0, 6.5, 50)
    narrow_p, narrow_q = normal_cells(narrow_z - 0.25), normal_cells(narrow_z)
    return {
        "equal": (wide.upper, wide.lowers[0]),
        "by hand": (connect_the_dots(losses, p, q), merge_cells(p, q)),
        "near the middle": (connect_the_dots(0.25 * (narrow_z - 0.125), narrow_p, narrow_q), merge_cells(narrow_p, narrow_q)),
    }


def test_the_truth_is_the_known_number():
    assert float(TRUTH) == pytest.approx(2.9243e-6, rel=1e-4)


@pytest.mark.parametrize("cells", ["equal", "by hand", "near the middle"])
@pytest.mark.parametrize("count", [ps.Fixed(k=1), ps.Geometric(mean=1), ps.Binomial(n=1, p=1)], ids=str)
def test_coarse_cells_never_fall_below_the_truth(cells, count):
    upper, lower = coarse_brackets()[cells]
    assert 40 <= len(lower.p) <= 60
    assert ExactUpper(upper, count).delta(1.0) >= TRUTH
    assert ExactLower(lower, count).delta(1.0) <= TRUTH


@pytest.mark.parametrize("cells", ["equal", "by hand", "near the middle"])
@pytest.mark.parametrize(
    "count", [ps.Geometric(mean=30), ps.Poisson(mean=10), ps.Binomial(n=8, p=0.4), ps.NegativeBinomial(eta=-0.5, mean=30)], ids=str
)
@pytest.mark.parametrize("epsilon", [0.0, 1.0, 1.8])
def test_coarse_cells_hold_what_fine_ones_prove(cells, count, epsilon):
    fine = gaussian_bracket(0.25)
    upper, lower = coarse_brackets()[cells]
    assert ExactUpper(upper, count).delta(epsilon) >= ExactLower(fine.lowers[0], count).delta(epsilon)
    assert ExactLower(lower, count).delta(epsilon) <= ExactUpper(fine.upper, count).delta(epsilon)
