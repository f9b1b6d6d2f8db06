"""Selections as parts of a composition: less than the sum of the epsilons, less than the Renyi bound, and bounded from both sides."""

import itertools

import numpy as np
import pytest

import privselect as ps
from privselect.mechanisms.renyi import lem_rdp_to_dp_epsilon
from privselect.selection.bounds.renyi_bounds import renyi_curve_of

DELTA = 1e-6
TUNED = "selection(gaussian(sigma=4), geometric(mean=30))"
TRAINED = "selection(dpsgd(noise_multiplier=1.1, sampling_probability=256/60000, steps=14063), geometric(mean=30))"
CASES = [
    (TUNED, "gaussian(sigma=5)"),
    (TUNED, TUNED),
    pytest.param(TUNED, "selection(laplace(scale=4), poisson(mean=10))", marks=pytest.mark.slow),
    pytest.param(TRAINED, "gaussian(sigma=5)", marks=pytest.mark.slow),
    pytest.param(TRAINED, TRAINED, marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("first", "second"), CASES)
def test_together_they_cost_less_than_the_sum_and_than_renyi(first, second):
    parts = [ps.parse(first), ps.parse(second)]
    both = ps.Composed(tuple(parts))
    found = both.epsilon_at(DELTA)
    added = sum(part.epsilon_at(DELTA / 2).upper for part in parts)
    renyi = lem_rdp_to_dp_epsilon(renyi_curve_of(both), DELTA)
    assert max(part.epsilon_at(DELTA).lower for part in parts) <= found.lower <= found.upper
    assert found.upper < 0.9 * added
    assert found.upper < 0.9 * renyi


def test_both_orders_of_the_neighbours_hold():
    """DP-SGD leaks differently for removing and adding: composed with itself, a selection of it is never below a single one."""
    base = ps.DPSGD(noise_multiplier=1, sampling_probability=0.05, steps=100)
    tuned = ps.Selection(base, ps.Geometric(mean=5))
    twice = ps.Composed((tuned, tuned))
    assert [bracket.direction for bracket in twice.brackets] == ["remove", "add"]
    epsilons = np.linspace(-3.0, 6.0, 19)
    alone, together = tuned.delta_at(epsilons), twice.delta_at(epsilons)
    assert np.all(alone.lower <= together.upper)
    assert np.all(together.lower <= together.upper)


def test_the_lower_end_comes_from_real_orders_composed():
    """A pair of two outcomes, K = 1 or 2: every order of every selection, composed explicitly, lies below the upper bound. The largest of
    them is at least the lower bound."""
    p, q = np.array([0.6, 0.4]), np.array([0.3, 0.7])
    base = ps.Pure(epsilon=np.log(7 / 3))  # dominates nothing more than these odds allow
    count = ps.Finite({1: 1, 2: 1})
    twice = ps.Composed((ps.Selection(base, count),), times=2)
    outcomes = [np.array(law) for law in (base.brackets[0].upper.p, base.brackets[0].upper.q)]

    def selected(order):
        """Masses of the winner for this ranking of the outcomes, split in halves."""
        pieces = [np.repeat(law, 2) / 2 for law in outcomes]
        won = []
        for law in pieces:
            above = np.concatenate([[0.0], np.cumsum(law[list(order)])])
            reached = 0.5 * (1 - above) + 0.5 * (1 - above) ** 2
            won.append(reached[:-1] - reached[1:])
        return won

    best = 0.0
    for order in itertools.permutations(range(4)):
        a, b = selected(order)
        first, second = np.outer(a, a).ravel(), np.outer(b, b).ravel()
        for epsilon in (0.2, 1.0):
            leak = np.maximum(first - np.exp(epsilon) * second, 0.0).sum()
            assert leak <= twice.delta_at(epsilon).upper + 1e-12
            best = max(best, leak if epsilon == 0.2 else 0.0)
    assert twice.delta_at(0.2).lower <= twice.delta_at(0.2).upper
    assert best >= 0.9 * twice.delta_at(0.2).lower
    assert p.sum() == q.sum() == pytest.approx(1.0)


def test_a_selection_of_a_composition_nests():
    staged = ps.Composed((ps.Gaussian(sigma=6), ps.Laplace(scale=8)), times=3)
    chosen = ps.Selection(staged, ps.Geometric(mean=10))
    found = chosen.epsilon_at(DELTA)
    assert staged.epsilon_at(DELTA).lower <= found.lower <= found.upper
    assert found.upper / found.lower - 1.0 < 2e-3
