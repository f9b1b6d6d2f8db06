import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privselect._util.safe_search import solve_epsilon
from privselect.counts import Fixed, Geometric, Logarithmic, NegativeBinomial, Poisson
from privselect.errors import NotCoveredError, ParameterError
from privselect.mechanisms import Gaussian
from privselect.selection.bounds.liu_talwar import liu_talwar, liu_talwar_epsilon, liu_talwar_pure
from privselect.selection.bounds.paper_bounds import cor_pointwise0, thm_negbin_epsilon


def gaussian(epsilon):
    return Gaussian(sigma=4).brackets[0].upper.hockey_stick(epsilon, side=1)


def test_pure():
    assert liu_talwar_pure(0.5, Geometric(mean=30)) == pytest.approx(1.5)
    assert liu_talwar_pure(0.5, Geometric(mean=30)) == cor_pointwise0(0.5, Geometric(mean=30))


def test_one_point_by_hand():
    epsilon, delta = liu_talwar(0.1, 2e-8, Geometric(mean=10), math.exp(-20.0))
    assert epsilon == pytest.approx(0.3 + 3 * 2e-4)
    assert delta == pytest.approx(2e-4 * 20.0 * 10.0 + math.exp(-20.0))


@settings(max_examples=12)
@given(st.floats(1e-9, 0.1), st.floats(2.0, 1000.0), st.floats(0.01, 0.99))
def test_the_search_meets_any_split(delta, mean, share):
    """No explicit split of delta beats the search by more than its grid spacing; the result of the search is a valid point."""
    count = Geometric(mean=mean)
    found = liu_talwar_epsilon(gaussian, count, delta)
    cut = share * delta
    base_delta = 0.5 * ((delta - cut) / (math.log(1.0 / cut) * mean)) ** 2
    base_epsilon = solve_epsilon(lambda e: float(gaussian(np.asarray(e))), base_delta)
    epsilon, total = liu_talwar(base_epsilon, base_delta, count, cut)
    assert total == pytest.approx(delta)
    assert found <= epsilon * (1.0 + 1e-3)


def test_far_above_the_profile_bound():
    count = Geometric(mean=300)
    assert thm_negbin_epsilon(gaussian, count, 1e-6) < liu_talwar_epsilon(gaussian, count, 1e-6)


def test_a_base_with_a_leak_gives_nothing():
    assert math.isinf(liu_talwar_epsilon(lambda e: np.full_like(e, 1e-3), Geometric(mean=30), 1e-6))


def test_geometric_by_its_other_name():
    assert liu_talwar_pure(0.5, NegativeBinomial(eta=1, mean=30)) == liu_talwar_pure(0.5, Geometric(mean=30))


@pytest.mark.parametrize("count", [Logarithmic(mean=30), Poisson(mean=3), Fixed(k=2), Geometric(mean=30, cap=60)], ids=str)
def test_other_laws_are_refused(count):
    with pytest.raises(NotCoveredError, match="Liu-Talwar covers geometric K"):
        liu_talwar_pure(0.5, count)


def test_bad_numbers_are_refused():
    with pytest.raises(ParameterError, match="`delta_2`"):
        liu_talwar(0.5, 1e-9, Geometric(mean=30), 0.0)
