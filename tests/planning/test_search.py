"""Searches for the least safe value, on bounds that cost nothing."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privselect.planning.search import BudgetSearch, InfeasibleError, UnconstrainedError, feasible_ranges
from privselect.planning.search_range import SearchRange

NOISE = SearchRange("sigma", safest=1e6, riskiest=1e-3, start=4.0, integer=False)
STEPS = SearchRange("steps", safest=1, riskiest=10**9, start=2000, integer=True)


@given(st.floats(-2.0, -0.2), st.floats(-6.0, 6.0), st.floats(0.0, 0.3))
def test_the_least_noise(power, log_factor, bend):
    def bound(sigma):
        return math.exp(log_factor + power * math.log(sigma) + bend * math.sin(math.log(sigma)) * power)

    search = BudgetSearch(bound, NOISE, 2.0)
    try:
        sigma = search.solve(4.0)
    except UnconstrainedError:
        assert bound(1e-3) <= 2.0
        return
    except InfeasibleError:
        assert bound(1e6) > 2.0
        return
    assert bound(sigma) <= 2.0 < bound(sigma * 0.999)
    assert float(f"{sigma:.6e}") == sigma  # seven digits, as typed
    assert len(search.met) + len(search.exceeded) <= 30


@given(st.integers(1, 10**6 - 1), st.floats(0.1, 2.0), st.integers(1, 10**6))
def test_the_most_steps(most, power, start):
    def bound(steps):
        return ((steps - 0.5) / most) ** power

    search = BudgetSearch(bound, STEPS, 1.0)
    assert search.solve(start) == most
    assert len(search.met) + len(search.exceeded) <= 40


def test_a_cliff_and_an_infinite_bound():
    assert BudgetSearch(lambda sigma: math.inf if sigma < 3.0 else 0.0, NOISE, 1.0).solve(4.0) == pytest.approx(3.0, rel=1e-4)
    assert BudgetSearch(lambda steps: math.inf if steps > 77 else 0.0, STEPS, 1.0).solve(2000) == 77


def test_the_bound_s_own_unevenness_leaves_a_value_that_meets_the_budget():
    def bound(sigma):
        return (4.0 / sigma) * (1.0 + 2e-5 * math.sin(1e6 * sigma))

    sigma = BudgetSearch(bound, NOISE, 1.0).solve(2.0)
    assert bound(sigma) <= 1.0
    assert sigma == pytest.approx(4.0, rel=1e-4)


def test_the_first_step_to_less_noise_is_short():
    # With far less noise than needed, one evaluation of DP-SGD takes as long as all others together.
    tried = []

    def bound(sigma):
        tried.append(sigma)
        return (1.0 / sigma) ** 3

    BudgetSearch(bound, NOISE, 8.0).solve(4.0)
    assert min(tried) > 0.4  # the solution is 0.5
    assert tried[1] >= 4.0 / 3.0


def test_few_evaluations_for_a_power():
    search = BudgetSearch(lambda sigma: 7.0 / sigma**1.2, NOISE, 2.0)
    search.solve(4.0)
    assert len(search.met) + len(search.exceeded) <= 6


@given(st.sets(st.integers(3, 66)), st.integers(66, 300))
def test_every_stretch_of_small_numbers_is_found(meets, high):
    stretches = feasible_ranges(lambda place: place in meets or place > 80, 3, high)
    found = {place for first, last in stretches for place in range(first, last + 1)}
    assert found == {place for place in range(3, high + 1) if place in meets or place > 80}
    assert all(last + 1 < first for (_, last), (first, _) in itertools.pairwise(stretches))


def test_edges_far_out_are_found_to_the_last():
    assert feasible_ranges(lambda place: place <= 1234 or place >= 56_789, 1, 10**6) == ((1, 1234), (56_789, 10**6))
    assert feasible_ranges(lambda place: place == 1, 1, 1) == ((1, 1),)
    assert feasible_ranges(lambda _: False, 1, 100) == ()
