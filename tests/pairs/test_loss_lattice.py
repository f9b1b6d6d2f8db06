"""Upper and lower pairs on a lattice of losses."""

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import privselect as ps
from privselect.pairs import DominatingPair
from privselect.pairs.loss_lattice import lattice_lower, lattice_upper

RATIOS = [mpmath.exp(mpmath.mpf(e) / 8) for e in range(-48, 49)]


def hockey(p, q, a):
    """Return the hockey stick of float masses with 40 digits."""
    return mpmath.fsum(max(x - a * y, 0) for x, y in zip(p, q, strict=True))


def both_orders(p, q, a):
    return hockey(p, q, a), hockey(q, p, a)


def exactly(law):
    """Return the masses of both distributions, with losses that are exact multiples of the spacing."""
    q = [mpmath.mpf(float(x)) for x in law.q]
    ratio = [mpmath.exp(mpmath.mpf(law.spacing) * int(i)) for i in law.index]
    return [x * r for x, r in zip(q, ratio, strict=True)], q


@st.composite
def pairs(draw):
    size = draw(st.integers(2, 12))
    weights = [np.array(draw(st.lists(st.floats(1e-9, 1.0), min_size=size, max_size=size))) for _ in range(2)]
    leak = draw(st.sampled_from([0.0, 0.0, 1e-6, 0.1]))
    p, q = ((1.0 - leak) * masses / masses.sum() for masses in weights)
    order = np.argsort(np.log(p) - np.log(q), kind="stable")
    return DominatingPair(p[order], q[order], leak, leak)


@given(pairs(), st.sampled_from([0.003, 0.05, 0.3, 2.0]))
def test_between_the_two_lies_the_pair(pair, spacing):
    with mpmath.workdps(40):
        above, below = lattice_upper(pair, spacing), lattice_lower(pair, spacing)
        given_pair = [[mpmath.mpf(float(x)) for x in masses] for masses in (pair.p, pair.q)]
        for a in RATIOS:
            higher, truth, lower = both_orders(*exactly(above), a), both_orders(*given_pair, a), both_orders(*exactly(below), a)
            for high, true, low in zip(higher, truth, lower, strict=True):
                # The slack bounds the error of each loss and mass.
                assert low <= true * (1 + 4 * below.slack) + 4 * below.slack * a
                assert true <= high * (1 + 4 * above.slack) + 4 * above.slack * a


@given(pairs(), st.sampled_from([0.01, 0.2]))
def test_both_keep_all_mass(pair, spacing):
    for law in (lattice_upper(pair, spacing), lattice_lower(pair, spacing)):
        if len(law.q) == 0:
            continue  # from below, where the lattice is too coarse
        assert law.q.sum() + law.q_only == pytest.approx(1.0, abs=1e-12)
        assert (law.q * np.exp(law.losses)).sum() + law.p_only == pytest.approx(1.0, abs=1e-12)
        assert np.all(law.q > 0.0)
        assert np.all(np.diff(law.index) > 0)


@pytest.mark.parametrize("spacing", [0.02, 0.01, 0.005])
def test_both_are_of_second_order_in_the_spacing(spacing):
    """The variance of the loss grows by at most h^2/6 above, except at the ends, and shrinks by about h^2/3 below."""
    bracket = ps.Gaussian(sigma=4).composition_step().bracket
    pair = bracket.upper

    def variance(law):
        return float(law.q @ law.losses**2 - (law.q @ law.losses) ** 2)

    at_hand = float(pair.q @ pair.losses**2 - (pair.q @ pair.losses) ** 2)
    rounding = 1e-15  # of the sums: where the spacing is that of the pair itself nothing else is left
    assert -rounding <= variance(lattice_upper(pair, spacing)) - at_hand <= 0.3 * spacing**2
    assert -0.6 * spacing**2 <= variance(lattice_lower(pair, spacing)) - at_hand <= rounding


def test_outcomes_on_the_lattice_stay_where_they_are():
    pair = ps.Pure(epsilon=0.7).brackets[0].upper
    for law in (lattice_upper(pair, 0.1), lattice_lower(pair, 0.1)):
        assert law.index.tolist() == [-7, 7]
        assert law.q == pytest.approx(pair.q, rel=1e-14)


def test_a_lattice_that_is_too_coarse_gives_no_outcomes():
    pair = ps.Gaussian(sigma=4).brackets[0].upper
    assert len(lattice_upper(pair, 100.0).q) > 0
    assert len(lattice_lower(pair, 100.0).q) == 0
