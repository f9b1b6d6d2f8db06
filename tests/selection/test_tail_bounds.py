"""The omitted part of the integral is at most the tail bound, compared with F on a fine grid."""

import numpy as np
import pytest

import privselect as ps
from privselect.pairs import DominatingPair
from privselect.selection.exact.engine import ExactUpper
from privselect.selection.exact.weight_bounds import TailBounds, Weight

LAWS = [
    ps.Geometric(mean=30),
    ps.NegativeBinomial(eta=-0.5, mean=30),
    ps.NegativeBinomial(eta=5, mean=300),
    ps.Poisson(mean=10),
    ps.Binomial(n=8, p=0.4),
    ps.Fixed(k=3),
    ps.Finite({0: 1, 1: 2, 6: 1}),
    ps.Geometric(mean=1),
]
PAIRS = {
    "gaussian": ps.Gaussian(sigma=4).brackets[0].upper,
    "laplace": ps.Laplace(scale=2).brackets[0].upper,
    "pure": ps.Pure(epsilon=0.7).brackets[0].upper,
    "approximate": ps.Approximate(epsilon=0.4, delta=0.01).brackets[0].upper,
    "everything": DominatingPair.from_masses([1.0, 0.0], [0.0, 1.0]),
}


def greatest_on_a_grid(pair, weight, epsilon, y):
    """Maximum over x of F(x, y)_+ at the middle of each stretch of y, over a fine grid of x with x + y <= 1."""
    x = np.unique(np.concatenate([[0.0], np.geomspace(1e-6, 1.0, 400), np.minimum(pair.low_nodes[0], 1.0)[:: max(len(pair.p) // 200, 1)]]))
    high, _ = pair.high_nodes
    outcome = np.searchsorted(high, y, side="right") - 1
    slopes = np.concatenate([[0.0], np.exp(-pair.losses[::-1]), [np.inf]])[np.minimum(outcome, len(pair.losses) + 1)]
    with np.errstate(invalid="ignore"):
        value = weight.at(x + y[:, None]) - np.exp(epsilon) * slopes[:, None] * weight.at(pair.g(x) + pair.k(y)[:, None])
    value = np.where((x + y[:, None] <= 1.0) & np.isfinite(value), value, 0.0)
    return np.maximum(value.max(axis=1), 0.0)


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("count", LAWS, ids=str)
def test_nothing_beyond_the_cut_exceeds_its_bound(name, count):
    pair, weight = PAIRS[name], Weight(count, PAIRS[name].relative_rounding)
    tail = TailBounds(pair, weight)
    ends = np.concatenate([[0.0], np.geomspace(1e-7, min(float(pair.high_nodes[0][-1]), 1.0), 1200)])
    middle, width = 0.5 * (ends[1:] + ends[:-1]), np.diff(ends)
    for epsilon in (0.0, 0.3, 1.0, 2.5):
        collected = greatest_on_a_grid(pair, weight, epsilon, middle) * width
        for negligible in (1e-12, 1e-6, 1e-3, 0.1):
            for end in (1e-3, 0.1, 1.0):
                depth, rest = tail.cutoff(epsilon, end, negligible)
                assert 0.0 <= depth <= end
                assert 0.0 <= rest <= negligible
                # The middle of a convex-ish stretch may be off by its curvature: far less than this.
                beyond = collected[(ends[:-1] >= depth) & (ends[1:] <= end)].sum()
                assert beyond <= rest + 1e-3 * collected.sum() * (rest > 0.0) + 1e-15


@pytest.mark.parametrize("count", LAWS[:4], ids=str)
def test_a_bound_does_not_depend_on_where_the_mesh_was_used_before(count):
    """Gains and costs cached for one epsilon are valid for the next: the same numbers as without the cache."""
    pair = PAIRS["gaussian"]
    used, fresh = ExactUpper(pair, count), ExactUpper(pair, count)
    used.delta(1.5)
    first = used.delta(1.51)
    fresh.delta(1.5)
    fresh.mesh.clear_cache()
    assert fresh.delta(1.51) == first
