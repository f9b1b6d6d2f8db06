"""No order of the outcomes (unsplit, split or post-processed) exceeds the upper bound.

What an order leaks comes from the generating function of K alone (see orders.py): the worst order is found in floats and evaluated
in 40 digits from exact fractions, so the comparisons need no tolerance. Only the lattice of split orders stays in floats; its
rounding, below 1e-12 times 1 + e^epsilon, is stated where it is used.
"""

from fractions import Fraction

import numpy as np
import pytest
from orders import leaks, worst_of, worst_split

import privselect as ps
from privselect.selection.bounds.pointwise import pointwise_delta
from privselect.selection.exact.engine import ExactLower, ExactUpper
from small_pairs import ORDERS, mechanism_of, normalized, pair_of, random_weights

LAWS = {
    "geometric": lambda rng: ps.Geometric(mean=1.0 + rng.exponential(6.0)),
    "eta below 0": lambda rng: ps.NegativeBinomial(eta=rng.uniform(-0.9, -0.1), mean=1.0 + rng.exponential(6.0)),
    "eta above 1": lambda rng: ps.NegativeBinomial(eta=rng.uniform(2.0, 8.0), mean=1.0 + rng.exponential(6.0)),
    "poisson": lambda rng: ps.Poisson(mean=rng.exponential(4.0) + 0.05),
    "binomial": lambda rng: ps.Binomial(n=int(rng.integers(1, 12)), p=rng.uniform(0.05, 0.95)),
    "fixed": lambda rng: ps.Fixed(k=int(rng.choice([2, 3, 3, 3, 7]))),
    "finite": lambda rng: ps.Finite({0: int(rng.integers(1, 5)), 1: 2, int(rng.integers(2, 9)): int(rng.integers(1, 5))}),
}
EACH = [pytest.param(law, marks=pytest.mark.slow) if law == "fixed" else law for law in LAWS]  # without K = 1 it takes longest


def split(rng, p, q):
    """Split some outcomes into two parts of equal loss, at most five pieces in total."""
    parts = [(i, Fraction(int(rng.integers(1, 8)), 8)) for i in range(len(p))]
    divided = set(rng.choice(len(p), size=5 - len(p), replace=False).tolist())
    pieces = [(i, share if i in divided else Fraction(1)) for i, share in parts]
    pieces += [(i, 1 - share) for i, share in parts if i in divided]
    return [p[i] * share for i, share in pieces], [q[i] * share for i, share in pieces]


def processed(rng, p, q):
    """Post-process both distributions by one random channel with 2 to 5 outcomes."""
    size = int(rng.integers(2, 6))
    rows = [normalized(rng.integers(0, 10, size) * (rng.random(size) < 0.7) + np.eye(size, dtype=int)[int(rng.integers(size))]) for _ in p]
    return tuple([sum(mass * row[j] for mass, row in zip(masses, rows, strict=True)) for j in range(size)] for masses in (p, q))


def check(rng, count, case):
    p, q = map(normalized, random_weights(rng))
    epsilon = float(rng.choice([0.0, rng.uniform(0.0, 1.0), rng.uniform(0.0, 4.0)]))
    # The bound must hold on any mesh: mostly coarse ones, which are quick, and at times the one in use.
    mesh = 1e-3 if case % 16 == 0 else 0.03 if case % 4 == 0 else 0.3
    pair = pair_of(p, q)
    upper = ExactUpper(pair, count, tolerance=mesh).delta(epsilon)
    told = f"{count}, p={p}, q={q}, epsilon={epsilon!r}, mesh={mesh}"
    assert 0.0 <= upper <= 1.0, told
    for masses in ((p, q), split(rng, p, q), processed(rng, p, q)):
        worst = worst_of(count, *masses, ORDERS[len(masses[0])], epsilon)
        assert worst <= upper, f"{told}: an order of {masses} leaks {worst}, the upper bound is {upper!r}"
    rounding = 1e-12 * (1.0 + np.exp(epsilon))
    lattice = worst_split(count, np.array(p, dtype=float), np.array(q, dtype=float), epsilon, 40)
    assert lattice - rounding <= upper, f"{told}: an order with split outcomes leaks {lattice}, the upper bound is {upper!r}"
    if mesh < 0.3:
        assert 0.0 <= ExactLower(pair, count, tolerance=mesh).delta(epsilon) <= upper, told
        assert worst_of(count, p, q, ORDERS[len(p)], epsilon) <= pointwise_delta(pair, count, epsilon), told


@pytest.mark.parametrize("law", EACH)
def test_no_order_exceeds_the_upper_bound(law):
    rng = np.random.default_rng(1)
    for case in range(100):
        check(rng, LAWS[law](rng), case)


@pytest.mark.soak
@pytest.mark.parametrize("law", EACH)
def test_no_order_in_a_long_campaign(law, campaign, fresh_rng):
    for case in range(campaign(5000)):
        check(fresh_rng, LAWS[law](fresh_rng), case)


@pytest.mark.parametrize("law", EACH)
def test_both_directions_at_negative_epsilon(law):
    """Includes K = 0: its outcome has the same probability on both data sets and counts if e^epsilon < 1."""
    rng = np.random.default_rng(3)
    for _ in range(6):
        p, q = map(normalized, random_weights(rng))
        count, epsilon = LAWS[law](rng), -float(rng.uniform(0.05, 2.0))
        found = ps.Selection(mechanism_of(p, q), count).delta_at(epsilon)
        orders = ORDERS[len(p)]
        worst = max(worst_of(count, p, q, orders, epsilon), worst_of(count, q, p, orders, epsilon))
        assert worst <= found.upper
        assert 0.0 <= found.lower <= found.upper <= 1.0


def test_the_floats_that_find_the_worst_order_are_as_good_as_stated():
    rng = np.random.default_rng(4)
    for make in LAWS.values():
        for _ in range(5):
            count, (p, q) = make(rng), map(normalized, random_weights(rng))
            order = np.arange(len(p))[None, :]
            rough = float(leaks(count, np.array([p], dtype=float), np.array([q], dtype=float), 0.3)[0])
            assert abs(rough - worst_of(count, p, q, order, 0.3)) <= 1e-12 * (1.0 + np.exp(0.3))
