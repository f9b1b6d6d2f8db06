"""Noisy max as a mechanism: its numbers, its order among the bounds, its nesting, and the worst case run for real."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr

import privselect as ps
from privselect.errors import NeighbourError, ParameterError, PrivselectError
from privselect.noisy_max.accounting.bounds import BOUNDS
from privselect.noisy_max.accounting.gaussian_noise import one_rival_delta
from privselect.noisy_max.accounting.noise_accounting import ScoreChange
from privselect.noisy_max.accounting.two_group_gaussian import two_group_profile

DELTA = 1e-6
SIZES = [2, 3, 5, 10, 30, 100, 300]
# From independent prototypes, at sigma = 4: the paper's bound, (m-1) D_1, and the two-level instance.
PAPER = [2.3275, 2.3695, 2.4214, 2.4903, 2.5961, 2.7076, 2.8057]
RIVALS = [1.5436, 1.8202, 2.0360, 2.2233, 2.4188, 2.5767, 2.6985]
LOWER = [1.5436, 1.7600, 1.9171, 2.0993, 2.3164, 2.5008, 2.6401]

NOISES = [
    ps.Gaussian(sigma=4),
    ps.Laplace(scale=4),
    ps.Gumbel(scale=4),
    ps.Exponential(scale=4),
    ps.DiscreteGaussian(sigma=4),
    ps.DiscreteLaplace(scale=4),
]


def gaussian_epsilon(mu, delta):
    low, high = 0.0, 100.0
    for _ in range(200):
        middle = 0.5 * (low + high)
        value = ndtr(0.5 * mu - middle / mu) - math.exp(middle) * ndtr(-0.5 * mu - middle / mu)
        low, high = (middle, high) if value > delta else (low, middle)
    return high


# -- numbers -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("m", "paper", "rivals", "lower"), list(zip(SIZES, PAPER, RIVALS, LOWER, strict=True)))
def test_reference_numbers(m, paper, rivals, lower):
    choice = ps.NoisyMax(ps.Gaussian(sigma=4), m=m)
    found, bounds = choice.epsilon_at(DELTA), choice.bounds(DELTA)
    assert lower * 0.999 <= found.lower <= found.upper <= rivals * 1.001
    assert found.upper <= found.lower * (1.0 + 2e-4) or m > 117
    assert bounds["paper"] == pytest.approx(paper, abs=1e-4)
    assert bounds["renyi"] > bounds["paper"]
    epsilon = np.linspace(0.0, 4.0, 2001)
    single = (m - 1) * one_rival_delta(ScoreChange(m, m, 0.5), epsilon)
    assert epsilon[np.argmax(single <= DELTA)] == pytest.approx(rivals, abs=2.1e-3)


@pytest.mark.parametrize(("monotone", "gap"), [(False, 2), (True, 1)])
@pytest.mark.parametrize("sigma", [0.5, 4.0, 30.0])
def test_two_scores_have_a_closed_form(monotone, gap, sigma):
    found = ps.NoisyMax(ps.Gaussian(sigma=sigma), m=2, monotone=monotone).epsilon_at(DELTA)
    exact = gaussian_epsilon(gap / sigma / math.sqrt(2.0), DELTA)
    assert found.lower <= exact <= found.upper
    assert found.upper <= found.lower * (1.0 + 2e-4)


def test_a_ballot_that_moves_costs_a_gaussian_of_sensitivity_root_two_for_any_number_of_classes():
    exact = gaussian_epsilon(math.sqrt(2.0) / 4.0, DELTA)
    for m in (2, 10, 1000, 10**9):
        found = ps.NoisyMax(ps.Gaussian(sigma=4), m=m, changes=2).epsilon_at(DELTA)
        assert found.lower <= exact <= found.upper <= exact * (1.0 + 2e-4)
    rounds = ps.NoisyMax(ps.Gaussian(sigma=40), m=10, changes=2, rounds=1000).epsilon_at(DELTA)
    together = gaussian_epsilon(math.sqrt(2000.0) / 40.0, DELTA)
    assert rounds.lower <= together <= rounds.upper <= together * (1.0 + 2e-4)


@pytest.mark.parametrize("noise", NOISES, ids=str)
def test_what_moves_less_costs_less(noise):
    def cost(**moves):
        return ps.NoisyMax(noise, m=10, **moves).epsilon_at(DELTA)

    free = cost()
    for moves in ({"monotone": True}, {"changes": 1}, {"changes": 2}, {"changes": 5}, {"changes": 2, "monotone": True}):
        assert cost(**moves).upper <= free.upper * (1.0 + 1e-6)
    assert cost(changes=1).upper <= cost(changes=2).upper
    assert cost(changes=1).upper == pytest.approx(cost(changes=1, monotone=True).upper, rel=1e-9)
    assert cost(changes=10).upper == pytest.approx(free.upper, rel=1e-9)


def test_one_score_reveals_nothing():
    for noise in NOISES:
        alone = ps.NoisyMax(noise, m=1, rounds=7)
        assert alone.epsilon_at(1e-12) == ps.Interval(0.0, 0.0)
        assert alone.delta_at(0.0).upper < 1e-12
        assert set(alone.bounds(DELTA).values()) == {0.0}
        assert alone.renyi_at(2.0) == 0.0


def test_very_many_scores_work():
    found = ps.NoisyMax(ps.Gaussian(sigma=4), m=10**9).epsilon_at(DELTA)
    assert 3.8 < found.lower < found.upper < 3.9


# -- order -------------------------------------------------------------------------------------------------------------------


def test_very_many_scores_of_which_few_move_work():
    """Only the sizes that can move are looked at, not all up to m."""
    few = [ps.NoisyMax(ps.Gaussian(sigma=4), m=m, changes=1).epsilon_at(DELTA).upper for m in (10**4, 10**12)]
    assert few[0] < few[1] < ps.Gaussian(sigma=4).epsilon_at(DELTA).upper * (1.0 + 1e-3)


def test_the_sizes_that_move():
    for m in range(2, 9):
        for together in range(1, m + 1):
            assert list(ScoreChange(m, together, 1.0).group_sizes()) == [s for s in range(1, m) if min(s, m - s) <= together]


@pytest.mark.parametrize("sigma", [1e9, 1e11, 1e13, 1e15, 1e17, 1e20])
@pytest.mark.parametrize("m", [3, 50, 200])
def test_very_much_noise_works(sigma, m):
    """The losses of so small a move are lost in rounding."""
    found = ps.NoisyMax(ps.Gaussian(sigma=sigma), m=m).delta_at(0.0)
    least = 2.0 / sigma / math.sqrt(4.0 * math.pi)  # of two scores, at offset 0
    assert found.upper >= least
    assert found.lower is None or found.lower <= found.upper


@pytest.mark.parametrize("noise", NOISES, ids=str)
@pytest.mark.parametrize("rounds", [1, 2, 20])
def test_the_result_is_the_smallest_of_all(noise, rounds):
    choice = ps.NoisyMax(noise, m=10, rounds=rounds)
    found, bounds = choice.epsilon_at(DELTA), choice.bounds(DELTA)
    assert set(bounds) == set(BOUNDS)
    assert found.lower <= found.upper
    assert all(bound is None or found.upper <= bound for bound in bounds.values())


@pytest.mark.parametrize(
    ("noise", "m", "rounds", "delta"),
    [
        (ps.Laplace(scale=4), 5, 1, 0.2),
        (ps.Laplace(scale=50), 6, 1, 0.016),
        (ps.DiscreteGaussian(sigma=30), 17, 10, 1e-2),
        (ps.DiscreteGaussian(sigma=30), 20, 1000, 1e-6),
    ],
    ids=str,
)
def test_the_result_is_the_smallest_where_a_full_release_is_cheap(noise, m, rounds, delta):
    choice = ps.NoisyMax(noise, m=m, rounds=rounds)
    assert choice.epsilon_at(delta).upper <= choice.bounds(delta)["full_release"] * (1.0 + 1e-4)  # knots


@pytest.mark.parametrize(("m", "rounds"), [(2, 20), (3, 20), (10, 20), (10, 300), (1000, 2)])
@pytest.mark.parametrize("noise", [ps.Laplace(scale=18), ps.Exponential(scale=18), ps.DiscreteLaplace(scale=100)], ids=str)
def test_rounds_of_bounded_loss_cost_no_more_than_pure_ones(noise, m, rounds):
    pure = ps.Composed(ps.Pure(epsilon=2 / noise.scale), times=rounds)
    found = ps.NoisyMax(noise, m=m, rounds=rounds).epsilon_at(DELTA)
    assert found.lower <= found.upper <= pure.epsilon_at(DELTA).upper * (1 + 1e-4)


@pytest.mark.parametrize("m", [2, 10, 1000, 10**12])
@pytest.mark.parametrize("sigma", [1e-300, 1e-9, 1e8, 1e12, 1e300])
def test_very_little_noise_and_very_much(sigma, m):
    found = ps.NoisyMax(ps.Gaussian(sigma=sigma), m=m)
    answer, least = found.epsilon_at(1e-12), min((bound for bound in found.bounds(1e-12).values() if bound is not None), default=math.inf)
    assert (answer.lower or 0.0) <= answer.upper <= least
    assert answer.upper < 1e-6 if sigma > 1 else answer.upper > 1e6


@pytest.mark.slow
def test_over_rounds_the_result_is_never_above_any_other():
    """The figure: m = 10, k = 1, ..., 100."""
    before = ps.Interval(0.0, 0.0)
    for rounds in range(1, 101):
        choice = ps.NoisyMax(ps.Gaussian(sigma=40), m=10, rounds=rounds)
        found, bounds = choice.epsilon_at(DELTA), choice.bounds(DELTA)
        assert found.upper <= min(bounds["paper"], bounds["renyi"], bounds["full_release"])
        assert before.lower < found.lower <= found.upper
        assert before.upper < found.upper
        before = found


@settings(max_examples=25, deadline=None)
@given(
    sigma=st.floats(0.3, 100.0),
    m=st.integers(2, 40),
    changes=st.integers(1, 50) | st.none(),
    monotone=st.booleans(),
    epsilon=st.floats(-3.0, 6.0),
)
def test_distributions_of_the_curve(sigma, m, changes, monotone, epsilon):
    choice = ps.NoisyMax(ps.Gaussian(sigma=sigma), m=m, changes=changes, monotone=monotone)
    here, further = choice.delta_at(epsilon), choice.delta_at(epsilon + 0.1)
    assert 0.0 <= here.lower <= here.upper <= 1.0
    assert further.upper <= here.upper + 1e-12
    assert here.upper >= -math.expm1(epsilon)
    more = ps.NoisyMax(ps.Gaussian(sigma=sigma), m=m + 1, changes=changes, monotone=monotone)
    assert here.lower <= more.delta_at(epsilon).upper + 1e-12  # one more score can lie far below


@pytest.mark.parametrize("noise", NOISES, ids=str)
def test_epsilon_and_delta_agree(noise):
    choice = ps.NoisyMax(noise, m=7)
    found = choice.epsilon_at(1e-3)
    assert choice.delta_at(found.upper).upper <= 1e-3 * (1.0 + 1e-6)
    assert choice.delta_at(found.lower).lower >= 1e-3 * (1.0 - 1e-6)


@pytest.mark.parametrize("noise", NOISES, ids=str)
def test_renyi_of_the_choice_is_above_that_of_real_scores(noise):
    """Two scores, one ahead by its move: the divergence of who wins."""
    choice = ps.NoisyMax(noise, m=2)
    for low in choice.brackets[0].lowers:
        moment = float((low.p**3 / low.q**2).sum())
        assert math.log(moment) / 2.0 <= float(choice.renyi_at(3.0)) * (1.0 + 1e-9)


# -- nesting -----------------------------------------------------------------------------------------------------------------


def test_rounds_are_a_composition():
    rounds = ps.NoisyMax(ps.Gaussian(sigma=40), m=10, rounds=50).epsilon_at(DELTA)
    composed = ps.parse("composed(noisy_max(gaussian(sigma=40), m=10), times=50)").epsilon_at(DELTA)
    assert composed.upper == pytest.approx(rounds.upper, rel=1e-6)
    assert composed.lower == pytest.approx(rounds.lower, rel=1e-6)


def test_the_lower_bound_of_rounds_is_that_of_one_instance():
    """Two rounds over two scores at one offset: all four outcomes by hand."""
    choice = ps.NoisyMax(ps.Gaussian(sigma=4), m=2, rounds=2)
    levels = two_group_profile(2, 1, 0.5)
    for epsilon in (0.2, 1.0):
        p, q = levels.moved, levels.unmoved
        outcomes = [(p * p, q * q), (2 * p * (1 - p), 2 * q * (1 - q)), ((1 - p) ** 2, (1 - q) ** 2)]
        best = sum(np.maximum(a - math.exp(epsilon) * b, 0.0) for a, b in outcomes).max()
        lower = choice.delta_at(epsilon).lower
        assert lower <= best * (1.0 + 1e-9)
        assert lower >= 0.5 * best


def test_it_nests():
    inner = ps.NoisyMax(ps.Gaussian(sigma=10), m=10)
    base, chosen = inner.epsilon_at(DELTA), ps.Selection(inner, ps.Geometric(mean=5)).epsilon_at(DELTA)
    beside = ps.Composed((inner, ps.Gaussian(sigma=10))).epsilon_at(DELTA)
    assert base.upper < beside.upper < base.upper + ps.Gaussian(sigma=10).epsilon_at(DELTA).upper
    assert base.upper < chosen.upper < 3 * base.upper
    assert 0.0 < beside.lower <= beside.upper
    mixed = ps.Mixture(((Fraction(1, 2), inner), (Fraction(1, 2), ps.Gaussian(sigma=10)))).epsilon_at(DELTA)
    assert mixed.upper <= base.upper


@pytest.mark.parametrize(
    "text",
    [
        "noisy_max(gaussian(sigma=4), m=10)",
        "noisy_max(gumbel(scale=0.5), m=3, rounds=7, changes=2)",
        "noisy_max(discrete_laplace(scale=2, neighbours=add_remove), m=10, monotone=True)",
        "selection(noisy_max(exponential(scale=3), m=4), poisson(mean=3))",
    ],
)
def test_text_forms(text):
    read = ps.parse(text)
    assert str(read) == text
    assert ps.parse(str(read)) == read


def test_neighbours_are_those_of_the_noise():
    voting = ps.NoisyMax(ps.Gaussian(sigma=4, neighbours="add_remove"), m=3)
    assert voting.neighbours == "add_remove"
    with pytest.raises(NeighbourError):
        ps.Composed((voting, ps.Gaussian(sigma=1, neighbours="replace_one")))


# -- bad input ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("noisy_max(gaussian(sigma=4), m=0)", "`m` must be an integer >= 1"),
        ("noisy_max(gaussian(sigma=4), m=2.5)", "`m` must be an integer >= 1"),
        ("noisy_max(gaussian(sigma=4), m=10, rounds=0)", "`rounds` must be an integer >= 1"),
        ("noisy_max(gaussian(sigma=4), m=10, changes=0)", "`changes` must be an integer >= 1"),
        ("noisy_max(gaussian(sigma=4), m=10, monotone=perhaps)", "`monotone` must be True or False, got 'perhaps'"),
        ("noisy_max(gaussian(sigma=4), m=10, monotone=2)", "`monotone` must be True or False, got 2"),
        ("noisy_max(pure(epsilon=1), m=10)", "`noise` must be gaussian, laplace"),
        ("noisy_max(geometric(mean=3), m=10)", "`noise` must be gaussian, laplace"),
        ("noisy_max(m=10)", "`noisy_max` needs `noise`"),
        ("noisy_max(gaussian(sigma=0), m=10)", "`sigma` must be in (0, inf)"),
    ],
)
def test_bad_input_gets_one_sentence(text, said):
    with pytest.raises(PrivselectError) as caught:
        ps.parse(text)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_bool_is_not_a_number_of_scores():
    with pytest.raises(ParameterError):
        ps.NoisyMax(ps.Gaussian(sigma=4), m=True)


# -- the worst case, run ----------------------------------------------------------------------------------------------------

DEVIATIONS = 5.2  # of a normal approximation: false alarms with probability 2e-7 each
RUNS = 60_000


@pytest.mark.parametrize(("m", "s", "sigma", "epsilon"), [(3, 1, 2.0, 0.5), (10, 4, 4.0, 0.3), (30, 16, 1.5, 1.0), (2, 1, 1.0, 1.0)])
def test_the_worst_case_run_through_the_real_mechanism_leaks_what_is_predicted(m, s, sigma, epsilon):
    choice = ps.NoisyMax(ps.Gaussian(sigma=sigma), m=m)
    levels = two_group_profile(m, s, 2.0 / sigma)
    worst = int(np.argmax(levels.moved - math.exp(epsilon) * levels.unmoved))
    predicted = float(levels.moved[worst] - math.exp(epsilon) * levels.unmoved[worst])
    still = np.where(np.arange(m) < s, 0.0, float(levels.offset[worst]) * sigma)
    moved = still + np.where(np.arange(m) < s, 1.0, -1.0)
    shares = [float((ps.report_noisy_max(np.tile(scores, (RUNS, 1)), choice.noise) < s).mean()) for scores in (moved, still)]
    measured = shares[0] - math.exp(epsilon) * shares[1]
    spread = math.sqrt(sum(weight * p * (1 - p) / RUNS for weight, p in zip((1.0, math.exp(2 * epsilon)), shares, strict=True)))
    assert abs(measured - predicted) < DEVIATIONS * spread
    assert predicted > 10 * spread  # there is something to measure
    # And nothing leaks more than is promised.
    assert predicted <= choice.delta_at(epsilon).upper
    assert measured - DEVIATIONS * spread <= choice.delta_at(epsilon).upper
