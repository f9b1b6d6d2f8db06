"""The lower bound is the delta of one score order: the order is rebuilt piece by piece and evaluated by the generating function of K."""

import itertools

import mpmath
import numpy as np
import pytest
from orders import DIGITS, leak, pgf

import privselect as ps
from privselect.pairs import Bracket, DominatingPair
from privselect.selection.exact.engine import ExactLower, ExactUpper
from privselect.selection.exact.score_order import ScoreOrder
from small_pairs import Given

LAWS = [
    ps.Geometric(mean=30),
    ps.NegativeBinomial(eta=-0.5, mean=30),
    ps.NegativeBinomial(eta=5, mean=8),
    ps.Poisson(mean=10),
    ps.Binomial(n=8, p=0.4),
    ps.Fixed(k=3),
    ps.Finite({0: 1, 1: 2, 6: 1}),
]


def gaussian_pair():
    return ps.Gaussian(sigma=4).brackets[0].lowers[0]


def random_pair(rng):
    n = int(rng.integers(2, 7))
    p, q = rng.dirichlet(np.ones(n)), rng.dirichlet(np.ones(n))
    p[0] *= rng.random() < 0.7
    q[1] *= rng.random() < 0.7
    return DominatingPair.from_masses(p / p.sum(), q / q.sum())


def chances(count, masses):
    """A of each piece: differences of phi at 40 digits."""
    above = [mpmath.mpf(0), *itertools.accumulate(map(mpmath.mpf, masses.tolist()))]
    values = [pgf(count, min(u, 1), mpmath) for u in above]
    return [before - after for before, after in itertools.pairwise(values)]


def quadrature_error(order, epsilon, weight):
    """The loss of the lower bound: the mean of the end values instead of the integral, minus the middle value, for gain and cost."""
    y0, y1 = order.y[:-1], order.y[1:]
    g, k0, k1 = order.pair.g(order.x), order.pair.k(y0), order.pair.k(y1)

    def bulge(start, stop):
        ends = 0.5 * (weight.at(start) + weight.at(stop))
        return (stop - start) * (ends - weight.at(0.5 * (start + stop)))

    return weight.scale * float((bulge(order.x + y0, order.x + y1) + np.exp(epsilon) * bulge(g + k0, g + k1)).sum())


def check(pair, count, epsilon):
    lower = ExactLower(pair, count)
    order = lower.score_order(epsilon)
    reported = lower.delta(epsilon)
    if order is None:
        assert reported == 0.0
        return
    p, q, counted = order.pieces()
    with mpmath.workdps(DIGITS):
        factor = mpmath.exp(mpmath.mpf(epsilon))
        parts = [max(a - factor * b, 0) for a, b in zip(chances(count, p), chances(count, q), strict=True)]
        over_counted = sum(part for part, one in zip(parts, counted.tolist(), strict=True) if one)
        assert reported <= over_counted
        assert over_counted <= sum(parts)
        # The first piece, deeper in the tail than the staircase looks, is left out of the bound; the rest is right to its rounding.
        beyond = parts[0] + quadrature_error(order, epsilon, lower.mesh.weight)
        rounding = 1e-9 * sum(chances(count, p))
        assert over_counted <= reported + beyond + rounding
        # The reference itself is right to 40 digits: for a pair that tells everything both sides are exactly 1.
        assert sum(parts) <= ExactUpper(pair, count).delta(epsilon) * (1 + mpmath.mpf(10) ** (5 - DIGITS))


@pytest.mark.parametrize("count", [ps.Geometric(mean=30), ps.Poisson(mean=10), ps.NegativeBinomial(eta=-0.5, mean=30)], ids=str)
@pytest.mark.parametrize("epsilon", [0.3, 1.5, 2.5])
def test_the_order_gives_the_lower_bound_for_a_gaussian(count, epsilon):
    check(gaussian_pair(), count, epsilon)


@pytest.mark.parametrize("count", LAWS, ids=str)
def test_the_order_gives_the_lower_bound_for_random_pairs(count):
    rng = np.random.default_rng(5)
    for epsilon in (0.0, 0.4, 1.5, 0.1):
        check(random_pair(rng), count, epsilon)


@pytest.mark.soak
@pytest.mark.parametrize("count", LAWS, ids=str)
def test_the_order_gives_the_lower_bound_in_a_long_campaign(count, campaign, fresh_rng):
    for _ in range(campaign(300)):
        check(random_pair(fresh_rng), count, float(fresh_rng.exponential()))


def check_masses(order):
    """Every piece consists of the pair's outcomes, each used once: prefixes are g and k, and the pieces are a post-processing."""
    p, q, counted = order.pieces()
    assert p.min() >= 0.0
    assert q.min() >= 0.0
    assert np.all(np.diff(order.x) >= 0.0)
    assert np.all(np.diff(order.y) >= 0.0)
    # Sums of n terms, each rounded once.
    rounding = 4e-16 * len(p)
    assert abs(p.sum() - 1.0) <= rounding
    assert abs(q.sum() - 1.0) <= rounding
    after = np.flatnonzero(counted)[1:]
    assert len(after) == len(order.x)
    np.testing.assert_allclose(np.cumsum(p)[after], order.x + order.y[1:], rtol=0.0, atol=rounding)
    np.testing.assert_allclose(np.cumsum(q)[after], order.pair.g(order.x) + order.pair.k(order.y[1:]), rtol=0.0, atol=rounding)
    grid = np.linspace(-6.0, 6.0, 121)
    pieces = DominatingPair.from_masses(p / p.sum(), q / q.sum())
    # Differences of prefix sums are off by a unit of 1, which a piece of mass 1e-12 shows as another loss: hence the 1e-12.
    assert np.all(pieces.hockey_stick(grid) <= order.pair.hockey_stick(grid, side=1) + 1e-12)


def test_the_order_of_a_gaussian_is_made_of_its_outcomes():
    for count, epsilon in ((ps.Geometric(mean=30), 1.5), (ps.Poisson(mean=10), 0.5), (ps.NegativeBinomial(eta=-0.5, mean=30), 1.0)):
        check_masses(ExactLower(gaussian_pair(), count).score_order(epsilon))


def test_the_order_of_a_random_pair_is_made_of_its_outcomes():
    rng = np.random.default_rng(6)
    for count in LAWS * 4:
        pair = random_pair(rng)
        order = ExactLower(pair, count).score_order(float(rng.choice([0.0, 0.3, 1.0])))
        if order is not None:
            check_masses(order)


def test_any_monotone_staircase_bounds_from_below():
    """The order is chosen by an estimate; the bound must be valid for any choice."""
    rng = np.random.default_rng(7)
    for count in LAWS * 3:
        pair, epsilon = random_pair(rng), float(rng.uniform(0.0, 1.0))
        upper = ExactUpper(pair, count)
        y = np.unique(np.concatenate([[0.0], pair.high_nodes[0], rng.uniform(0.0, 1.0, 10)]))
        y = y[y <= 1.0]
        x = np.sort(rng.uniform(0.0, 1.0, len(y) - 1)) * rng.random()
        fits = int((x + y[1:] <= 1.0).argmin()) if not np.all(x + y[1:] <= 1.0) else len(x)
        order = ScoreOrder(pair, x[:fits], y[: fits + 1])
        p, q, _ = order.pieces()
        reported = order.delta(epsilon, upper.mesh.weight)
        with mpmath.workdps(DIGITS):
            true = leak(count, list(map(mpmath.mpf, p.tolist())), list(map(mpmath.mpf, q.tolist())), epsilon)
        assert reported <= true
        assert reported <= upper.delta(epsilon)


@pytest.mark.parametrize("count", LAWS, ids=str)
def test_the_selected_pair_is_what_the_order_releases(count):
    rng = np.random.default_rng(8)
    pair = random_pair(rng)
    order = ExactLower(pair, count).score_order(0.2)
    selected = order.selected_pair(count)
    p, q, _ = order.pieces()
    with mpmath.workdps(DIGITS):
        masses = [list(map(mpmath.mpf, part.tolist())) for part in (p, q)]
        for epsilon in (-1.0, 0.0, 0.2, 1.0):
            true = leak(count, *masses, epsilon)
            assert float(selected.hockey_stick(epsilon, side=-1)) <= true
            assert float(selected.hockey_stick(epsilon)) == pytest.approx(float(true), rel=1e-3, abs=1e-6)


@pytest.mark.parametrize(
    "count", [ps.Poisson(mean=1000), ps.Fixed(k=150), ps.Fixed(k=2), ps.Poisson(mean=1e5), ps.Geometric(mean=1e6)], ids=str
)
@pytest.mark.parametrize("base", [ps.Pure(epsilon=4), ps.Gaussian(sigma=1), ps.Laplace(scale=2)], ids=str)
def test_the_selected_pair_never_leaks_more_than_its_order(base, count):
    """Includes weights far below the accuracy of an integral over a few parts."""
    pair = base.brackets[0].lowers[0]
    for epsilon in (0.5, 3.0, 20.0):
        order = ExactLower(pair, count).score_order(epsilon)
        if order is None:
            continue
        selected = order.selected_pair(count)
        p, q, _ = order.with_rest().pieces()
        with mpmath.workdps(DIGITS):
            masses = [list(map(mpmath.mpf, part.tolist())) for part in (p, q)]
            for asked in (0.0, epsilon, 2.0 * epsilon, 10.0 * epsilon):
                # The reference takes differences of phi: right to 40 digits of 1.
                assert (
                    float(selected.hockey_stick(asked, side=-1)) <= leak(count, *masses, asked) + mpmath.exp(asked) * mpmath.mpf(10) ** -35
                )


def test_an_order_uses_each_outcome_once_even_if_floats_cannot_tell():
    """The outcome of high loss has all of P but 4e-25, the others all of P': both fit into the mass of P, but not into that of P'."""
    pair = DominatingPair.from_masses([1.0, 3e-25, 1e-25, 0.0], [1.7e-96, 0.4, 0.6, 4e-70])
    whole = Given(Bracket(pair, (pair,), "remove"))
    for count in (ps.Fixed(k=2), ps.Geometric(mean=40), ps.Poisson(mean=2)):
        for bracket in ps.Selection(whole, count).brackets:
            for low in bracket.lowers:
                assert low.p.sum() + low.p_only <= 1.0 + 1e-9
                assert low.q.sum() + low.q_only <= 1.0 + 1e-9
        order = ExactLower(pair, count).score_order(0.1)
        assert max(masses.sum() for masses in order.with_rest().pieces()[:2]) <= 1.0 + 1e-9
        together = ps.Composed((ps.Selection(whole, count), ps.Pure(epsilon=0.5)))
        found = together.delta_at([-2.0, 0.0, 3.0])
        assert np.all(found.lower <= found.upper)


def test_steps_that_differ_by_rounding_are_merged():
    """A mass that is a difference of two nearly equal numbers has no significant digits, so its loss could be anything."""
    pair = DominatingPair(np.array([0.3, 0.3, 0.3]), np.array([0.6, 0.3, 0.1]), 0.1, 0.0)
    for y in ([0.2, 0.2 * (1 + 1e-12), 0.5], [0.1, 0.1 * (1 + 1e-9), 0.3], [0.0, 0.1 * (1 + 1e-9), 0.3], [0.0, 0.1, 0.1 * (1 + 1e-9)]):
        merged = ScoreOrder(pair, np.array([0.05, 0.1]), np.array(y)).merge_close_steps()
        assert np.all(merged.y[1:] >= merged.y[:-1] * (1.0 + 1e-6))
        assert np.all(merged.x + merged.y[1:] <= 1.0)
        past_leak = merged.y[merged.y > pair.p_only]  # there, k is proportional to y - p_only
        assert np.all(past_leak >= pair.p_only * (1.0 + 1e-6))
        assert np.all(np.diff(merged.x) >= 0.0)
        assert len(merged.x) == len(merged.y) - 1


@pytest.mark.slow
def test_a_nested_lower_end_is_below_what_is_known_to_be_safe():
    inner = ps.Selection(ps.Pure(epsilon=4), ps.Fixed(k=150))  # 150 runs of a 4-DP mechanism
    outer = ps.Selection(inner, ps.Fixed(k=1))
    assert outer.epsilon_at(1e-9).lower <= 600.0
    assert outer.delta_at(601.0).lower == 0.0
    found = ps.Selection(ps.Selection(ps.Gaussian(sigma=0.5), ps.Poisson(mean=1000)), ps.Fixed(k=1)).epsilon_at(1e-6)
    assert 0.0 <= found.lower <= found.upper
