"""**Exact** on one fixed mesh: never below an order of scores, on any spacing, and close to the mesh that adapts."""

import numpy as np
import pytest

import privselect as ps
from privselect.selection.exact.engine import ExactLower, ExactUpper
from privselect.selection.exact.fixed_mesh import FixedMesh
from privselect.selection.selection import _cached_accountants
from selection.orders import worst_of, worst_split
from small_pairs import ORDERS, normalized, pair_of, random_weights

LAWS = [
    ps.Geometric(mean=5),
    ps.NegativeBinomial(eta=-0.5, mean=8),
    ps.NegativeBinomial(eta=5, mean=4),
    ps.Poisson(mean=3),
    ps.Binomial(n=6, p=0.4),
    ps.Fixed(k=3),
    ps.Finite({0: 1, 1: 2, 5: 3}),
]
EPSILONS = np.array([0.0, 0.2, 0.7, 1.3, 2.0, 3.0])
BASES = [ps.Gaussian(sigma=4), ps.Gaussian(sigma=0.7), ps.DPSGD(noise_multiplier=3.0, sampling_probability=0.02, steps=60)]


def check_small(rng, count, spacing):
    p, q = map(normalized, random_weights(rng))
    mesh = FixedMesh(pair_of(p, q), count, spacing)
    for epsilon in (0.0, float(rng.uniform(0.0, 1.0)), float(rng.uniform(0.0, 4.0))):
        upper, told = mesh.delta(epsilon), f"{count}, p={p}, q={q}, epsilon={epsilon!r}, spacing={spacing}"
        assert worst_of(count, p, q, ORDERS[len(p)], epsilon) <= upper <= 1.0, told
        lattice = worst_split(count, np.array(p, dtype=float), np.array(q, dtype=float), epsilon, 40)
        assert lattice - 1e-12 * (1.0 + np.exp(epsilon)) <= upper, told


@pytest.mark.parametrize("count", LAWS, ids=str)
def test_no_order_of_a_small_pair_exceeds_it(count):
    rng = np.random.default_rng(31)
    for case in range(30):
        check_small(rng, count, (0.0125, 0.1, 0.5, 2.0)[case % 4])


@pytest.mark.soak
@pytest.mark.parametrize("count", LAWS, ids=str)
def test_no_order_of_a_small_pair_in_a_long_campaign(count, campaign, fresh_rng):
    for case in range(campaign(1000)):
        check_small(fresh_rng, count, (0.0125, 0.1, 0.5, 2.0)[case % 4])


@pytest.mark.parametrize("count", LAWS[:5], ids=str)
@pytest.mark.parametrize("base", BASES, ids=str)
def test_it_is_above_real_orders_and_close_to_the_adaptive_mesh(base, count):
    for accountant in _cached_accountants(ps.Selection(base, count), 1e-4)[0]:
        mesh = accountant.fixed_mesh()
        assert mesh is not None
        below = ExactLower(accountant.bracket.lowers[0], count)
        above = ExactUpper(accountant.bracket.upper, count)
        for epsilon in EPSILONS[:4]:
            found = mesh.delta(epsilon)
            assert found >= below.delta(epsilon)
            if found > 1e-12:
                assert found == pytest.approx(above.delta(epsilon), rel=2e-2 if found < 0.1 else 6e-2)


def test_its_orders_are_real_ones():
    """The order is found on the mesh of an upper pair, and its delta is that of the lower pair: below the upper bound, and near it."""
    (accountant,) = _cached_accountants(ps.Selection(ps.Gaussian(sigma=4), ps.Geometric(mean=30)), 1e-4)[0]
    mesh, lower = accountant.fixed_mesh(), accountant.bracket.lowers[0]
    for epsilon in (0.5, 1.0, 1.5, 2.0):
        order = mesh.score_order(epsilon, lower)
        assert np.all(np.diff(order.x) >= 0.0)
        assert np.all(order.x + order.y[1:] <= 1.0)
        delta = order.delta(epsilon, ExactLower(lower, accountant.count).mesh.weight)
        assert 0.98 * mesh.delta(epsilon) <= delta <= mesh.delta(epsilon)


def test_small_pairs_and_huge_tables_have_no_fixed_mesh():
    """Their curves have kinks, and a table that does not fit into memory would be slower than one that adapts."""
    for mechanism in (ps.Pure(epsilon=1), ps.Approximate(epsilon=0.5, delta=1e-6)):
        assert all(one.fixed_mesh() is None for one in _cached_accountants(ps.Selection(mechanism, LAWS[0]), 1e-4)[0])


def test_an_epsilon_beyond_every_loss_has_a_tiny_delta():
    mesh = FixedMesh(pair_of(*map(normalized, ((3, 1), (1, 3)))), LAWS[0], 0.1)
    assert 0.0 <= mesh.delta(50.0) <= 5e-324
