"""The best law of K: certified, near a proved bound, and never beaten."""

import itertools
import json
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import privselect as ps
from privselect.errors import NotCoveredError, ParameterError
from privselect.planning.design.design import survival_curves
from privselect.planning.design.goal import DesignGoal
from privselect.planning.design.linear_program import LinearProgram

GAUSSIAN = ps.Gaussian(sigma=4)
SMALL = {"epsilon": 1.2, "delta": 1e-6, "tau": 0.05, "cap": 12, "mean": 5}


@pytest.fixture(scope="module")
def small():
    return ps.design(ps.Pure(epsilon=0.5), **SMALL)


def check(found, mechanism, *, epsilon, delta, tau, cap, mean=None):
    """What every design must be: an ordinary law within its limits, certified by the ordinary accountant."""
    weights = dict(found.count.pmf)
    total = sum(weights.values())
    assert max(weights) <= cap
    if mean is not None:
        assert sum(Fraction(k * weight, total) for k, weight in weights.items()) <= Fraction(str(mean))
    assert ps.Selection(mechanism, found.count).epsilon_at(delta).upper == found.epsilon.upper <= epsilon
    exact = 1 - sum(Fraction(weight, total) * (1 - Fraction(str(tau))) ** k for k, weight in weights.items())
    assert found.success_probability <= exact <= found.success_probability * (1 + 1e-9)
    assert ps.parse(str(found.count)) == found.count
    if found.upper_bound is not None:
        assert found.success_probability <= found.upper_bound
    for law in found.fits.values():
        if law is not None:
            assert law.epsilon.upper <= epsilon
            assert mean is None or law.count.expected() <= mean * (1 + 1e-12)
            if law is not found.geometric:
                assert law.count.largest <= cap
                assert found.upper_bound is None or law.success_probability <= found.upper_bound


def test_a_small_design(small):
    check(small, ps.Pure(epsilon=0.5), **SMALL)
    assert (
        small.success_probability
        > 0.2178
        > small.negative_binomial.success_probability
        > small.geometric.success_probability
        > small.binomial.success_probability
    )
    assert 0.0 <= small.gap < 1e-3
    assert small.iterations > 0


@pytest.mark.slow
def test_no_law_on_a_grid_is_better():
    # All laws on {0, 1, 2, 3} in quarters, at a budget that binds.
    mechanism, epsilon, delta, tau = ps.Gaussian(sigma=1), 5.3, 1e-6, 0.2
    found = ps.design(mechanism, epsilon=epsilon, delta=delta, tau=tau, cap=3)
    check(found, mechanism, epsilon=epsilon, delta=delta, tau=tau, cap=3)
    best = 0.0
    for weights in itertools.product(range(5), repeat=3):
        if 0 < sum(weights) <= 4:
            law = ps.Finite({0: 4 - sum(weights), **dict(enumerate(weights, start=1))})
            chance = DesignGoal.validated(epsilon=epsilon, delta=delta, tau=tau, cap=3, mean=None).success_probability(law)
            if chance > found.success_probability:
                assert ps.Selection(mechanism, law).delta_at(epsilon).lower > delta or chance <= found.upper_bound
            elif chance > best and ps.Selection(mechanism, law).delta_at(epsilon).upper <= delta:
                best = chance
    assert 0.5 * found.success_probability < best <= found.success_probability
    assert found.gap < 2e-3


def test_random_allowed_laws_are_below_the_bound(small):
    rng = np.random.default_rng(3)
    pure, values = ps.Pure(epsilon=0.5), 1 - 0.95 ** np.arange(13)
    for _ in range(15):
        p = rng.dirichlet(np.full(13, 0.3))
        p *= min(1.0, 5 / (p @ np.arange(13)))
        law = DesignGoal.validated(**SMALL).as_finite(np.append(1 - p[1:].sum(), p[1:]))
        # With K = 0 the rest of the time every law comes to be allowed.
        share = min(1.0, SMALL["delta"] / max(ps.Selection(pure, law).delta_at(SMALL["epsilon"]).upper, 1e-300))
        assert share * (p @ values) <= small.upper_bound


@pytest.mark.parametrize("cap", [1, pytest.param(4, marks=pytest.mark.slow)])
def test_an_allowed_constant_is_the_best(cap):
    found = ps.design(ps.Pure(epsilon=0.1), epsilon=1, delta=1e-6, tau=0.01, cap=cap)
    assert found.count == ps.Finite({cap: 1})
    assert found.gap < 1e-9


@pytest.mark.slow
def test_two_whole_numbers_around_the_budget_are_the_best():
    budgeted = ps.design(ps.Pure(epsilon=0.1), epsilon=1, delta=1e-6, tau=0.01, cap=4, mean=2.5)
    assert budgeted.count == ps.Finite({2: 1, 3: 1})
    assert budgeted.gap < 1e-9


def test_one_trial_too_many_leaves_laws_that_often_run_none():
    # One trial alone costs 1.0607 at this delta: K = 1 part of the time is all there is.
    found = ps.design(GAUSSIAN, epsilon=1.0, delta=1e-6, tau=0.1, cap=20)
    check(found, GAUSSIAN, epsilon=1.0, delta=1e-6, tau=0.1, cap=20)
    alone = GAUSSIAN.delta_at(1.0)
    assert 1 - found.count.probability_of_zero() <= 1e-6 / alone.lower
    assert found.success_probability > 0.99 * 0.1 * 1e-6 / alone.upper
    assert found.geometric is None
    assert found.negative_binomial is None
    assert found.gap < 5e-3


def test_a_small_budget_of_trials_is_kept_exactly():
    found = ps.design(GAUSSIAN, epsilon=2, delta=1e-6, tau=0.05, cap=5, mean=0.3)
    check(found, GAUSSIAN, epsilon=2, delta=1e-6, tau=0.05, cap=5, mean=0.3)
    assert found.count == ps.Finite({0: 7, 1: 3})


def test_both_orders_of_the_neighbours_count():
    mechanism = ps.DPSGD(noise_multiplier=1, sampling_probability=0.1, steps=20)
    asked = {"epsilon": 6.0, "delta": 1e-6, "tau": 0.1, "cap": 12}
    found = ps.design(mechanism, **asked)
    check(found, mechanism, **asked)
    assert len(mechanism.brackets) == 2
    assert found.gap < 0.02


def test_without_a_lower_bound_on_the_mechanism_nothing_is_claimed():
    renyi = ps.Renyi(((2, 0.1), (10, 0.6)))
    found = ps.design(renyi, epsilon=3, delta=1e-4, tau=0.1, cap=8)
    check(found, renyi, epsilon=3, delta=1e-4, tau=0.1, cap=8)
    assert found.upper_bound is None
    assert found.gap is None
    assert 0.0 <= found.search_gap < 0.02
    assert "no lower bound" in str(found.table().caption)


@pytest.mark.slow
def test_the_stated_example():
    asked = {"epsilon": 2.0317, "delta": 1e-6, "tau": 0.01, "cap": 250, "mean": 99}
    found = ps.design(GAUSSIAN, **asked)
    check(found, GAUSSIAN, **asked)
    assert found.success_probability > 0.525
    assert found.upper_bound < 0.527
    assert found.gap < 0.003
    assert 0.499 < found.geometric.success_probability < 0.501


@pytest.mark.slow
def test_a_short_cap_costs_chance():
    asked = {"epsilon": 2.0317, "delta": 1e-6, "tau": 0.01, "cap": 150, "mean": 99}
    found = ps.design(GAUSSIAN, **asked)
    check(found, GAUSSIAN, **asked)
    assert 0.489 < found.success_probability < found.upper_bound < 0.4925


@pytest.mark.slow
def test_training_runs():
    training = ps.DPSGD(noise_multiplier=1.1, sampling_probability=256 / 60_000, steps=14_063)
    asked = {"epsilon": 4.4, "delta": 1e-6, "tau": 0.02, "cap": 200, "mean": 30}
    found = ps.design(training, **asked)
    check(found, training, **asked)
    assert found.success_probability > 0.4 > 1.04 * found.geometric.success_probability
    assert found.gap < 0.02


@pytest.mark.slow
@pytest.mark.parametrize("delta", [1e-15, 1e-3])
def test_small_and_large_deltas(delta):
    asked = {"epsilon": 2, "delta": delta, "tau": 0.05, "cap": 40, "mean": 20}
    found = ps.design(GAUSSIAN, **asked)
    check(found, GAUSSIAN, **asked)
    assert found.gap < 0.02


BAD = [
    ({"tau": 0}, "`tau` must be in [1e-12, 1), got 0"),
    ({"tau": 1}, "`tau` must be in [1e-12, 1), got 1"),
    ({"tau": math.nan}, "`tau` must be in [1e-12, 1), got nan"),
    ({"cap": 0}, "`cap` must be an integer >= 1 and <= 10000, got 0"),
    ({"cap": 2.5}, "`cap` must be an integer >= 1 and <= 10000, got 2.5"),
    ({"cap": 10**6}, "`cap` must be an integer >= 1 and <= 10000, got 1000000"),
    ({"mean": 0}, "`mean` must be in [1e-12, 1e+15], got 0"),
    ({"mean": -1}, "`mean` must be in [1e-12, 1e+15], got -1"),
    ({"mean": math.inf}, "`mean` must be in [1e-12, 1e+15], got inf"),
    ({"epsilon": -0.1}, "`epsilon` must be in [0, 700], got -0.1"),
    ({"delta": 0}, "`delta` must be in [1e-200, 1), got 0"),
    ({"delta": 1}, "`delta` must be in [1e-200, 1), got 1"),
]


@pytest.mark.parametrize(("wrong", "message"), BAD, ids=[message for _, message in BAD])
def test_bad_input_is_one_sentence(wrong, message):
    with pytest.raises(ParameterError) as refusal:
        ps.design(GAUSSIAN, **{**SMALL, **wrong})
    assert str(refusal.value) == message


def test_a_law_is_no_mechanism():
    with pytest.raises(ParameterError, match="`mechanism` must be a mechanism such as"):
        ps.design(ps.Geometric(mean=3), **SMALL)


def test_a_budget_that_no_law_meets():
    with pytest.raises(NotCoveredError, match=r"no law of K with P\(K >= 1\) above 1e-09 is \(0.1, 1e-12\)-DP here: one trial alone"):
        ps.design(ps.Gaussian(sigma=0.5), epsilon=0.1, delta=1e-12, tau=0.1, cap=10)


def test_as_dict_is_json(small):
    told = json.loads(json.dumps(small.as_dict(), allow_nan=False))
    assert told["goal"] == SMALL
    assert told["count"] == str(small.count)
    assert told["success_probability"] == small.success_probability <= told["upper_bound"]
    assert told["epsilon"]["upper"] <= SMALL["epsilon"]
    assert set(told["fits"]) == {"geometric", "negative_binomial", "binomial"}


def test_curves_fall_from_one(small):
    curves = survival_curves(small)
    assert set(curves) == {"k", "designed", "geometric", "negative_binomial", "binomial"}
    for name, values in curves.items():
        assert len(values) == len(curves["k"])
        if name != "k":
            assert values[0] == 1.0
            assert all(later <= earlier for earlier, later in itertools.pairwise(values))
    assert curves["designed"][13] == pytest.approx(0.0, abs=1e-12)
    # E K is the sum of P(K >= k) over k >= 1.
    assert sum(curves["designed"][1:]) == pytest.approx(small.count.expected(), rel=1e-9)


@pytest.mark.parametrize("ending", ["png", "pdf", "svg"])
def test_plots(small, tmp_path, ending):
    pytest.importorskip("matplotlib")
    file = tmp_path / f"laws.{ending}"
    small.plot(file)
    assert file.stat().st_size > 1000
    assert [one.name for one in tmp_path.iterdir()] == [file.name]


@given(
    st.lists(st.floats(0, 1), min_size=2, max_size=40).filter(lambda weights: sum(weights[1:]) > 1e-3),
    st.none() | st.fractions(Fraction(1, 100), 30),
    st.booleans(),
)
def test_whole_weights_keep_the_budget_exactly(weights, mean, keep_one):
    pmf = np.array(weights) / sum(weights)
    if mean is not None:
        scale = min(1.0, float(mean) / (pmf @ np.arange(len(pmf))))
        pmf = np.append(1 - scale * pmf[1:].sum(), scale * pmf[1:])
    goal = DesignGoal(1.0, 1e-6, 0.1, len(pmf) - 1, mean)
    law = goal.as_finite(pmf, keep_one=keep_one)
    if law is None:
        return
    total = sum(weight for _, weight in law.pmf)
    assert mean is None or sum(k * weight for k, weight in law.pmf) <= mean * total
    assert law.largest < len(pmf)
    found = np.exp(law.log_pmf(np.arange(len(pmf))))
    # Parts of 1e-9, a unit for each value of k, and what the budget moves.
    assert np.abs(found - pmf).max() <= 1e-7


@given(st.integers(0, 10**6), st.booleans())
def test_weak_duality_holds_for_any_multipliers(seed, limited):
    rng = np.random.default_rng(seed)
    values, mean = np.sort(rng.random(6)), 2.0 if limited else None
    program = LinearProgram(values, mean, 1.0)
    for _ in range(4):
        program.add(rng.normal(size=6) * 10.0 ** rng.integers(-2, 6))
    bound = program.bound(rng.exponential(size=4) * rng.integers(0, 2, size=4), rng.exponential())
    solution = program.solve()
    for p in (*rng.dirichlet(np.full(7, 0.3), size=50), solution.pmf):
        # Less of it and more of K = 0 until every cut and the budget hold.
        excess = max(program.excess(p), 1.0, 1.0 if mean is None else p[1:] @ np.arange(1, 7) / mean)
        assert p[1:] @ values / excess <= min(bound, solution.bound) * (1.0 + 1e-12)


def test_the_programme_finds_the_optimum_of_a_case_done_by_hand():
    # Values 1, 2, 3; sum k^2 P(k) <= 2 and E K <= 1.5: K = 1 and K = 2 each half the time would leak 2.5; on the way from 0 to 1 to 2
    # the best is P(1) = 2/3, P(2) = 1/3, with value 4/3.
    program = LinearProgram(np.array([1.0, 2.0, 3.0]), 1.5, 1.0)
    program.add(np.array([1.0, 4.0, 9.0]) / 2.0)
    solution = program.solve()
    assert solution.pmf == pytest.approx([0.0, 2 / 3, 1 / 3, 0.0], abs=1e-9)
    assert 4 / 3 <= solution.bound <= 4 / 3 * (1 + 1e-9)


@pytest.mark.parametrize("base", [ps.Pure(epsilon=0.1), ps.Laplace(scale=5)])
def test_less_than_one_trial_on_average_over_a_base_that_leaks_nothing_here(base):
    found = ps.design(base, epsilon=1, delta=1e-6, tau=0.1, cap=3, mean=0.5)
    assert found.success_probability == pytest.approx(0.05)
    assert found.negative_binomial is None


@pytest.mark.slow
def test_epsilon_of_zero():
    found = ps.design(ps.Gaussian(sigma=4), epsilon=0, delta=1e-2, tau=0.1, cap=4)
    assert found.epsilon.upper == 0.0
    assert found.gap < 0.02


@pytest.mark.slow
def test_a_base_with_a_small_leak():
    found = ps.design(ps.Approximate(epsilon=0.5, delta=1e-8), epsilon=1.2, delta=1e-6, tau=0.1, cap=10)
    assert found.epsilon.upper <= 1.2
    assert found.gap < 0.02
