"""Composed masses from tilted transforms, against sums with high precision."""

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privselect.pairs.loss_lattice import LatticePair
from privselect.pairs.tilted_fft import FLOOR, compose_on_lattice


def composed(parts, rare=()):
    """Return all composed masses exactly, as {index: mass}."""
    law = {0: mpmath.mpf(1)}
    for pair, times in parts:
        for _ in range(times):
            law = product(law, pair)
    if not rare:
        return law
    with_rare = law
    for pair, times in rare:
        for _ in range(times):
            some = product(with_rare, pair)
            with_rare = {i: with_rare.get(i, 0) + some.get(i, 0) for i in {*with_rare, *some}}
    return {i: mass - law.get(i, 0) for i, mass in with_rare.items()}


def product(law, pair):
    found = {}
    for i, mass in law.items():
        for j, q in zip(pair.index.tolist(), pair.q.tolist(), strict=True):
            found[i + j] = found.get(i + j, mpmath.mpf(0)) + mass * mpmath.mpf(q)
    return found


def check(parts, rare=()):
    with mpmath.workdps(50):
        truth = composed(parts, rare)
        spacing = (parts or rare)[0][0].spacing
        bounds = [compose_on_lattice(parts, side, rare) for side in (1, -1)]
        above, below = bounds
        for i, mass in truth.items():
            # The missing mass is at most the stated lost mass.
            high = above.q[i - above.first] if above.first <= i <= above.last else above.lost_p + above.lost_q
            low = below.q[i - below.first] if below.first <= i <= below.last else 0.0
            assert low * (1 - 1e-12) <= mass <= high * (1 + 1e-12)
            if not above.first <= i <= above.last:
                assert mass * max(mpmath.exp(mpmath.mpf(spacing) * i), 1) <= 2 * FLOOR
            first = mass * mpmath.exp(mpmath.mpf(spacing) * i)
            if above.first <= i <= above.last:
                assert below.p[i - below.first] * (1 - 1e-12) <= first <= above.p[i - above.first] * (1 + 1e-12)


@st.composite
def laws(draw, spacing=0.1, least=1e-9):
    size = draw(st.integers(1, 5))
    index = np.array(sorted(draw(st.lists(st.integers(-20, 20), min_size=size, max_size=size, unique=True))))
    masses = np.array(draw(st.lists(st.floats(least, 1.0), min_size=size, max_size=size)))
    return LatticePair(spacing, index, masses / masses.sum(), 0.0, 0.0, 0.0)


@settings(max_examples=60)
@given(st.lists(st.tuples(laws(), st.integers(1, 8)), min_size=1, max_size=3))
def test_every_mass_lies_between_its_bounds(parts):
    check(parts)


@settings(max_examples=60)
@given(st.lists(st.tuples(laws(), st.integers(1, 4)), max_size=2), laws(), st.integers(1, 8), st.sampled_from([1e-12, 1e-5, 0.1]))
def test_sums_with_a_rare_outcome_lie_between_their_bounds(parts, rare, times, chance):
    pair = LatticePair(rare.spacing, rare.index, rare.q * chance, 0.0, 0.0, 0.0)
    check(parts, [(pair, times)])


@pytest.mark.parametrize("times", [10, 1000, 100_000])
def test_binomial_masses_keep_their_digits_deep_in_the_tail(times):
    """The composed masses of two outcomes with losses -h and h are binomial."""
    spacing = min(0.3, 30.0 / times**0.5)
    chance = 1.0 / (1.0 + np.exp(spacing))  # of the loss h under the second law; the first has the other one
    law = LatticePair(spacing, np.array([-1, 1]), np.array([1.0 - chance, chance]), 0.0, 0.0, 0.0)
    above, below = (compose_on_lattice([(law, times)], side) for side in (1, -1))
    with mpmath.workdps(50):
        p, q = mpmath.mpf(float(law.q[1])), mpmath.mpf(float(law.q[0]))
        for index in range(max(-times, above.first), min(times, above.last) + 1, max(2 * (times // 400), 2)):
            ups = (index + times) // 2
            if 2 * ups - times != index:
                continue
            mass = mpmath.binomial(times, ups) * p**ups * q ** (times - ups)
            low, high = float(below.q[index - below.first]), float(above.q[index - above.first])
            assert low * (1 - 1e-12) <= mass <= high * (1 + 1e-12)
            if mass * max(1, mpmath.exp(spacing * index)) > 1e-40:
                assert high / low - 1.0 < 1e-3
