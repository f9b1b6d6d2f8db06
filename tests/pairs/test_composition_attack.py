"""Composition on arbitrary lattices, against all combinations with 50 digits: the resolution may affect only tightness."""

import bisect
import math
import warnings

import mpmath
import numpy as np
import pytest

from privselect.pairs import Bracket, DominatingPair
from privselect.pairs.compose import CompositionStep, compose, compose_lower, compose_upper
from privselect.pairs.lattice_resolution import Resolution
from privselect.pairs.loss_lattice import LatticeProfile, lattice_lower

DELTAS = (1e-2, 1e-5, 1e-9, 1e-15, 1e-25, 1e-40)


@pytest.fixture(autouse=True)
def _fifty_digits():
    with mpmath.workdps(50), warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def pair_of(p, q, p_only=0.0, q_only=0.0):
    p, q = np.asarray(p, dtype=float), np.asarray(q, dtype=float)
    order = np.argsort(np.log(p) - np.log(q), kind="stable")
    return DominatingPair(p[order], q[order], p_only, q_only)


def counts(outcomes, times):
    """Yield all vectors of counts."""
    if outcomes == 1:
        yield (times,)
        return
    for first in range(times + 1):
        for rest in counts(outcomes - 1, times - first):
            yield (first, *rest)


class Truth:
    """Return both hockey sticks of the composition."""

    def __init__(self, parts):
        law = [(mpmath.mpf(1), mpmath.mpf(1))]
        for pair, times in parts:
            law = [(a * c, b * d) for a, b in law for c, d in self._runs(pair, times)]
        law.sort(key=lambda masses: masses[0] / masses[1])
        self.ratios = [p / q for p, q in law]
        self.below = [(mpmath.mpf(0), mpmath.mpf(0))]
        for p, q in law:
            self.below.append((self.below[-1][0] + p, self.below[-1][1] + q))
        self.above = [(mpmath.mpf(0), mpmath.mpf(0))]
        for p, q in reversed(law):
            self.above.append((self.above[-1][0] + p, self.above[-1][1] + q))
        self.leaks = [
            1 - mpmath.fprod((1 - mpmath.mpf(getattr(pair, law))) ** times for pair, times in parts) for law in ("p_only", "q_only")
        ]

    @staticmethod
    def _runs(pair, times):
        p, q = ([mpmath.mpf(float(x)) for x in masses] for masses in (pair.p, pair.q))
        for way in counts(len(p), times):
            ways = mpmath.factorial(times) / mpmath.fprod(mpmath.factorial(c) for c in way)
            yield tuple(ways * mpmath.fprod(m**c for m, c in zip(masses, way, strict=True)) for masses in (p, q))

    def forward(self, epsilon):
        a = mpmath.exp(mpmath.mpf(epsilon))
        p, q = self.above[len(self.ratios) - bisect.bisect_right(self.ratios, a)]
        return min(p - a * q + self.leaks[0], mpmath.mpf(1))  # masses that are floats may sum to a little over 1

    def backward(self, epsilon):
        a = mpmath.exp(mpmath.mpf(epsilon))
        p, q = self.below[bisect.bisect_left(self.ratios, 1 / a)]
        return min(q - a * p + self.leaks[1], mpmath.mpf(1))

    def losses(self):
        return np.array([float(mpmath.log(ratio)) for ratio in self.ratios])


def assert_caught(truth, upper, lower, epsilons):
    for curve, above, below in ((truth.forward, upper, lower), (truth.backward, upper.reverse, lower.reverse)):
        for epsilon, high, low in zip(epsilons, above.hockey_stick(epsilons, side=1), below.hockey_stick(epsilons, side=-1), strict=True):
            assert float(low) <= curve(epsilon) <= float(high)
        for delta in DELTAS:
            high, low = float(above.epsilon_at(delta, side=1)), float(below.epsilon_at(delta, side=-1))
            assert math.isinf(high) or curve(high) <= delta
            assert low == 0.0 or curve(min(low, 1e4) * (1 - 1e-15)) >= delta  # far out only the leak is left


def around(truth, rng):
    losses = truth.losses()
    chosen = rng.choice(losses, 12)
    spread = [
        chosen,
        chosen + rng.normal(0.0, 1e-3, 12),
        rng.uniform(losses.min() - 1.0, losses.max() + 1.0, 12),
        rng.uniform(-3.0, 3.0, 8),
        [0.0],
    ]
    epsilons = np.concatenate(spread)
    return epsilons[np.abs(epsilons) < 600.0]


def some_masses(rng, size):
    kind = rng.integers(0, 4)
    if kind == 0:
        return rng.dirichlet(np.ones(size)), rng.dirichlet(np.ones(size))
    if kind == 1:  # of very different size
        depth = rng.choice([20.0, 120.0])
        p, q = 10.0 ** rng.uniform(-depth, 0.0, (2, size))
        return p / p.sum(), q / q.sum()
    q = rng.dirichlet(np.ones(size))
    p = q * np.exp(rng.normal(0.0, 10.0 ** rng.uniform(-3.0, 0.0), size))
    p /= p.sum()
    for _ in range(kind - 1):  # a rare large loss
        loss, mass = 10.0 ** rng.uniform(0.0, 2.3), 10.0 ** rng.uniform(-12.0, -2.5)
        a, b = (mass, mass * math.exp(-loss))[:: rng.choice([-1, 1])]
        p, q = np.append(p * (1.0 - a), a), np.append(q * (1.0 - b), b)
    return p, q


def some_pair(rng):
    p, q = some_masses(rng, int(rng.integers(1, 4)))
    p_only, q_only = (10.0 ** rng.uniform(-12.0, -1.0) if rng.random() < 0.3 else 0.0 for _ in range(2))
    return pair_of(p * (1.0 - p_only), q * (1.0 - q_only), p_only, q_only)


def some_parts(rng):
    while True:
        parts = [(some_pair(rng), int(rng.integers(1, 20))) for _ in range(rng.choice([1, 1, 2, 3]))]
        if math.prod(math.comb(times + len(pair.p) - 1, times) for pair, times in parts) <= 400:
            return parts


def some_resolution(rng, parts):
    largest = max(float(np.abs(pair.losses).max()) for pair, _ in parts)
    span = min(sum(times * float(np.abs(pair.losses).max()) for pair, times in parts), 1000.0) + 1e-6
    spacing = min(span / 10.0 ** rng.uniform(1.0, 3.7), 50.0)
    large = rng.choice([math.inf, largest * rng.uniform(0.05, 1.0), 10.0 ** rng.uniform(-3.0, 2.0)])
    return Resolution(spacing, 0.012, 0.05, 1e-9, float(large), min(spacing * int(rng.choice([1, 3, 30])), 100.0), 2e-5)


def attack(seed, cases):
    rng = np.random.default_rng(seed)
    for _ in range(cases):
        parts = some_parts(rng)
        truth = Truth(parts)
        for _ in range(3):
            resolution = some_resolution(rng, parts)
            assert_caught(truth, compose_upper(parts, resolution), compose_lower(parts, resolution), around(truth, rng))


@pytest.mark.parametrize("seed", range(4))
def test_any_pairs_on_any_lattice(seed):
    attack(seed, 10)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 108))
def test_many_pairs_on_any_lattice(seed):
    attack(seed, 100)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_any_pairs_composed(seed):
    rng = np.random.default_rng(1000 + seed)
    for _ in range(8):
        parts = some_parts(rng)
        truth = Truth(parts)
        bracket = compose([(CompositionStep(Bracket(pair, (pair,))), times) for pair, times in parts])
        assert_caught(truth, bracket.upper, bracket.lowers[0], around(truth, rng))


def on(spacing, *, large=math.inf, coarse=None):
    return Resolution(spacing, 0.012, 0.05, 1e-9, large, coarse or spacing, 2e-5)


def test_the_lower_lattice_gains_no_mass():
    """Both ends of the chain lie on one side of the intersection of the two lines, which once gave a negative mass."""
    pair = pair_of([0.8790933924674812, 0.007169544678346488], [0.9936570678581085, 0.006342932141891431], 0.11373706285417229)
    for spacing in (0.008005132889223733, 0.004900134718754852, 0.0013963558369816825):
        law = lattice_lower(pair, spacing)
        assert law.q.sum() <= pair.q.sum() * (1.0 + 1e-12)
        assert (law.q * np.exp(law.losses)).sum() <= pair.p.sum() * (1.0 + 1e-12)
    parts = [(pair, 46)]
    assert_caught(Truth(parts), compose_upper(parts, on(0.008)), compose_lower(parts, on(0.008)), np.linspace(-8.0, 8.0, 65))


def test_a_rare_loss_that_the_lattice_cannot_see_is_not_counted_as_none():
    """Sums without the rare loss would be counted twice."""
    rare = 1e-9
    p = [0.3 * math.e, 1.0 - 0.3 * math.e - rare * math.exp(12.1), rare * math.exp(12.1)]
    parts = [(pair_of(p, [0.3, 0.7 - rare, rare]), 40)]
    resolution = on(0.00546448087431694, large=11.0, coarse=10.92896174863388)
    lower = compose_lower(parts, resolution)
    assert max(lower.p.sum(), lower.q.sum()) <= 1.0
    assert_caught(Truth(parts), compose_upper(parts, resolution), lower, np.linspace(-40.0, 60.0, 101))


def test_a_leak_of_one_law_on_a_lattice_too_coarse_for_the_rest():
    parts = [(pair_of([0.45, 0.45], [0.5001, 0.4999], 0.1), 3)]
    assert_caught(Truth(parts), compose_upper(parts, on(0.7)), compose_lower(parts, on(0.7)), np.linspace(-1.5, 1.5, 61))


@pytest.mark.parametrize("flipped", [False, True])
def test_large_losses_that_one_law_alone_can_have(flipped):
    """One distribution has mass 1e-6 on them, the other far less than the floor: the tail must not be dropped."""
    q_rare = np.array([2e-6, 1e-6, 5e-7, 3e-7])
    p_rare = q_rare * np.exp(-np.array([90.0, 104.0, 110.0, 140.0]))
    p = np.concatenate([[0.5, 0.5], p_rare])
    q = np.concatenate([[0.5 * math.exp(0.01), 1.0 - 0.5 * math.exp(0.01) - q_rare.sum()], q_rare])
    pair = pair_of(p, q)
    parts = [(pair.reverse if flipped else pair, 3)]
    for resolution in (on(0.0003, large=50.0, coarse=0.03), on(0.0003, large=50.0, coarse=6.0)):
        upper = compose_upper(parts, resolution)
        assert_caught(
            Truth(parts),
            upper,
            compose_lower(parts, resolution),
            np.concatenate([np.linspace(-3.0, 3.0, 25), np.linspace(-300.0, 300.0, 121)]),
        )
        assert upper.p_only < 1e-30
        assert upper.q_only < 1e-30


def test_a_narrow_law_far_from_zero_takes_no_memory():
    class Far:
        p, q, first, last, spacing = np.array([0.25, 0.5]), np.array([0.1, 0.2]), 10**10, 10**10 + 1, 1e-10

    profile = LatticeProfile.of(Far)
    ratio = 0.75 - 0.3 * math.exp(0.5)
    assert profile.at(np.array([0.5]))[0] == pytest.approx(0.3 * (math.e - math.exp(0.5)), rel=1e-8)
    assert ratio < profile.at(np.array([0.0]))[0] == pytest.approx(0.3 * (math.e - 1.0), rel=1e-8)
    assert profile.at(np.array([2.0]))[0] == 0.0
