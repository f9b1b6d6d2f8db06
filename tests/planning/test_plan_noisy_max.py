"""Plans for a noisy max: the noise, the rounds and the number of scores that a budget allows."""

import pytest

import privselect as ps
from privselect.errors import ParameterError

# What is asked, the budget at delta 1e-6, and the factor towards the less safe side (None: one more).
QUESTIONS = [
    ("noisy_max(gaussian(sigma=?), m=100)", 2.0, 0.999),
    ("noisy_max(gaussian(sigma=?), m=100, rounds=50)", 8.0, 0.999),
    ("noisy_max(gaussian(sigma=?), m=10, rounds=1000, changes=2)", 2.0, 0.999),
    ("noisy_max(gaussian(sigma=4), m=10, rounds=?)", 8.0, None),
    ("noisy_max(gaussian(sigma=40), m=10, rounds=?, changes=2)", 2.0, None),
    ("noisy_max(gaussian(sigma=4), m=?)", 2.3, None),
    ("noisy_max(laplace(scale=?), m=10, rounds=5)", 3.0, 0.999),
]


@pytest.mark.parametrize(("asked", "epsilon", "further"), QUESTIONS)
def test_the_solution_meets_the_budget_and_a_little_less_safe_exceeds_it(asked, epsilon, further):
    plan = ps.plan(asked, epsilon=epsilon, delta=1e-6)
    assert plan.cost.upper <= epsilon
    assert plan.cost == plan.mechanism.epsilon_at(1e-6)
    less_safe = plan.value + 1 if further is None else plan.value * further
    assert str(plan.mechanism) == str(ps.parse(asked.replace("?", repr(plan.value))))
    assert ps.parse(asked.replace("?", repr(less_safe))).epsilon_at(1e-6).upper > epsilon


def test_every_other_bound_asks_for_more_noise():
    plan = ps.plan("noisy_max(gaussian(sigma=?), m=100, rounds=5)", epsilon=4, delta=1e-6)
    assert list(plan.baselines) == ["paper", "renyi", "full_release"]
    for name, sigma in plan.baselines.items():
        assert sigma > plan.value, name
        with_it = ps.NoisyMax(ps.Gaussian(sigma=sigma), m=100, rounds=5)
        assert 0.99 * 4 < with_it.bounds(1e-6)[name] <= 4, name


def test_every_other_bound_allows_fewer_rounds():
    plan = ps.plan("noisy_max(gaussian(sigma=20), m=100, rounds=?)", epsilon=4, delta=1e-6)
    for name, rounds in plan.baselines.items():
        assert rounds is None or rounds < plan.value, name


def test_the_summary_says_what_was_solved_for():
    summary = ps.plan("noisy_max(gaussian(sigma=?), m=100)", epsilon=2, delta=1e-6).summary()
    for said in ("noisy_max(gaussian(sigma=", "by the paper's bound", "by Renyi divergences", "with every score released"):
        assert said in summary
    assert "trial in the" not in summary


@pytest.mark.slow
def test_a_noisy_max_may_be_what_a_trial_does():
    plan = ps.plan("noisy_max(gaussian(sigma=?), m=10)", "geometric(mean=30)", epsilon=4, delta=1e-6)
    assert plan.cost.upper <= 4
    assert set(plan.baselines) == {"paper", "renyi", "composition"}


def test_a_budget_that_one_round_exceeds_is_refused():
    with pytest.raises(ParameterError, match=r"^no `rounds` tried meets epsilon 0.1 at delta 1e-06: even with rounds = 1 epsilon is"):
        ps.plan("noisy_max(gaussian(sigma=1), m=10, rounds=?)", epsilon=0.1, delta=1e-6)


def test_noise_that_is_not_fit_for_release_is_told_apart_from_a_budget_that_is_not_met():
    plan = ps.plan("noisy_max(gumbel(scale=?), m=10)", epsilon=1, delta=1e-6)
    assert plan.baselines["full_release"] is None
    assert plan.notes["full_release"] == "this noise does not protect a release of all scores, at any scale"
