"""The private median: its distance by brute force, its exact distribution, and frequencies over many runs."""

import math
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import privselect as ps
from closed_forms import gaussian_hockey
from privselect.errors import NeighbourError, ParameterError
from privselect.regression.noise_source import FLOATING_POINT_NOTE, INSECURE_SEED_NOTE, make_noise_source
from privselect.regression.ptr.distance_test import threshold
from privselect.regression.ptr.median import PrivateMedian, private_median
from privselect.regression.ptr.propose_test_release import NO_ANSWER

TOP = 5
VALUES = range(TOP + 1)
SMALL = [data for n in range(5) for data in combinations_with_replacement(VALUES, n)]
EPSILONS = [-2.0, -0.7, -0.2, 0.0, 0.1, 0.4, 0.9, 1.5, 3.0]


def proposal(step=1.0, sigma=1.0, test=None, failure=0.05, high=TOP):
    return PrivateMedian(
        test=ps.DiscreteLaplace(scale=1.5) if test is None else test,
        target=ps.Gaussian(sigma=sigma, neighbours="add_remove"),
        failure=failure,
        low=0,
        high=high,
        step=step,
    )


def neighbours(data):
    """All data sets of integers with one record more or less."""
    for index in range(len(data)):
        yield data[:index] + data[index + 1 :]
    for value in VALUES:
        yield tuple(sorted((*data, value)))


def lower_median(data):
    return data[(len(data) - 1) // 2] if data else 0


@cache
def local_sensitivity(data):
    return max(abs(lower_median(data) - lower_median(other)) for other in neighbours(data))


@cache
def distances(step, most=8):
    """By breadth-first search from all bad data sets of up to so many records, through each sequence of additions and removals."""
    everything = [data for n in range(most + 1) for data in combinations_with_replacement(VALUES, n)]
    found = dict.fromkeys((data for data in everything if local_sensitivity(data) > step), 0)
    edge = list(found)
    while edge:
        further = {other for data in edge for other in neighbours(data) if len(other) <= most and other not in found}
        found |= dict.fromkeys(further, found[edge[0]] + 1)
        edge = list(further)
    return found


@pytest.mark.parametrize("data", SMALL[::7], ids=str)
def test_the_median_and_its_sensitivity(data):
    # Fractions move the median no further than integers, which include the bounds.
    made = proposal()
    array = made.clip_and_sort(data)
    assert made.median(array) == lower_median(data)
    assert made.local_sensitivity(array) == local_sensitivity(data)


@pytest.mark.parametrize("step", [0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 4.5])
def test_the_distance_is_the_smallest_number_of_records(step):
    """A data set of n records is at most n from one that is bad: none of those that count has more than 8."""
    made, true = proposal(step), distances(step)
    for data in SMALL:
        assert made.distance(made.clip_and_sort(data)) == true[data], data
    assert {true[data] for data in SMALL} >= {0, 1, 2, 3}


@pytest.mark.parametrize("step", [0.5, 1.0, 2.0, 4.0])
def test_a_distance_of_one_is_what_the_target_needs(step):
    made = proposal(step)
    for data in SMALL:
        assert (made.distance(made.clip_and_sort(data)) >= 1) == (local_sensitivity(data) <= step)


@given(st.lists(st.floats(-3.0, 13.0), max_size=60), st.floats(0.01, 9.9), st.floats(0.0, 10.0))
def test_the_distance_is_the_minimum_and_moves_by_at_most_one(values, step, one_more):
    made = proposal(step, high=10.0)

    def slowly(data):
        n, padded = len(data), [Fraction(0), *map(Fraction, data)]
        above = [sum(x > start + Fraction(step) for x in padded[1:]) for start in padded]
        return min(max(n - 2 * r, n - 2 * i - 1) for i, r in enumerate(above))

    data, more = made.clip_and_sort(values), made.clip_and_sort([*values, one_more])
    assert made.distance(data) == slowly(data.tolist())
    assert made.distance(more) == slowly(more.tolist())
    assert abs(made.distance(data) - made.distance(more)) <= 1


def test_a_gap_that_exceeds_the_step_by_less_than_a_rounding():
    """As floats 0.1 + 0.2 is the upper number, so that a sum would find no gap above 0.2; there is one."""
    made = proposal(0.2, high=1.0)
    data = made.clip_and_sort([0.1, 0.1 + 0.2])
    assert made.local_sensitivity(data) > Fraction(0.2)
    assert made.distance(data) == 0
    assert made.distance(made.clip_and_sort([0.25, 0.25 + 0.125])) == 1


def test_many_close_records_are_far_from_bad():
    made = proposal(0.5, high=100.0)
    data = made.clip_and_sort(np.linspace(49.0, 51.0, 2001))
    assert made.distance(data) == pytest.approx(500, abs=2)  # a gap of 0.5 is made of 500 records
    assert made.distance(made.clip_and_sort(np.full(1000, 7.0))) == 1000 - 1


# -- the threshold ---------------------------------------------------------------------------------------------------------


def tail(noise, t):
    """``Pr(noise >= t)`` for t >= 1."""
    if isinstance(noise, ps.DiscreteLaplace):
        return math.exp(-t / noise.scale) / (1.0 + math.exp(-1.0 / noise.scale))
    weights = [math.exp(-0.5 * (k / noise.sigma) ** 2) for k in range(int(40 * noise.sigma) + 3)]
    return math.fsum(weights[t:]) / (weights[0] + 2.0 * math.fsum(weights[1:]))


def reaches(noise, t):
    """``Pr(noise >= t)`` for any integer t."""
    return tail(noise, t) if t >= 1 else 1.0 - tail(noise, 1 - t)


@pytest.mark.parametrize("failure", [0.4, 0.05, 1e-3, 1e-9, 1e-30])
@pytest.mark.parametrize("scale", [0.01, 0.7, 1.0, 3.3, 250.0])
def test_the_threshold_of_laplace_noise_is_the_smallest(scale, failure):
    noise = ps.DiscreteLaplace(scale=scale)
    t = threshold(noise, failure)
    assert tail(noise, t) <= failure * (1 + 1e-12)
    assert t == 1 or tail(noise, t - 1) > failure * (1 - 1e-12)


@pytest.mark.parametrize("failure", [0.1, 0.01, 1e-5, 1e-9, 1e-30])
@pytest.mark.parametrize("sigma", [0.05, 0.4, 1.0, 3.3, 250.0])
def test_the_threshold_of_gaussian_noise_is_nearly_the_smallest(sigma, failure):
    noise = ps.DiscreteGaussian(sigma=sigma)
    t = threshold(noise, failure)
    assert tail(noise, t) <= failure * (1 + 1e-12)
    assert t <= 2 or tail(noise, t - 2) > failure


def test_a_threshold_beyond_all_numbers_is_refused():
    with pytest.raises(ParameterError, match="too much noise"):
        proposal(test=ps.DiscreteLaplace(scale=1e16))


# -- what it leaks -----------------------------------------------------------------------------------------------------------


def exact_delta(made, first, second, epsilon):
    """Of the whole run. With probabilities a and b to pass, no answer gives ``(1-a - e^eps (1-b))_+``; the rest is a Gaussian elsewhere."""
    t, noise = threshold(made.test, made.failure), made.test
    arrays = [made.clip_and_sort(data) for data in (first, second)]
    a, b = (reaches(noise, t - made.distance(array)) for array in arrays)
    apart = abs(lower_median(first) - lower_median(second)) / (made.step * made.target.sigma)
    silent = max((1.0 - a) - math.exp(epsilon) * (1.0 - b), 0.0)
    shifted = epsilon + math.log(b / a)
    return silent + a * (float(gaussian_hockey(apart, shifted)) if apart else max(-math.expm1(shifted), 0.0))


NOISES = [(ps.DiscreteLaplace(scale=1.5), 0.05), (ps.DiscreteLaplace(scale=0.4), 0.3), (ps.DiscreteGaussian(sigma=1.2), 0.05)]


@pytest.mark.parametrize(("noise", "failure"), NOISES)
def test_all_small_neighbours_are_covered_in_both_orders(noise, failure):
    """Good ones and bad ones, and one of each, with a step of 1 where the median may move by 5."""
    made = proposal(1.0, test=noise, failure=failure)
    bounds = made.mechanism.delta_at(EPSILONS).upper.tolist()
    seen, kinds = [0.0] * len(EPSILONS), set()
    for first in SMALL[:60:2] + SMALL[60::5]:
        for second in sorted(set(neighbours(first))):
            kinds.add((local_sensitivity(first) <= 1.0, local_sensitivity(second) <= 1.0))
            for index, epsilon in enumerate(EPSILONS):
                for pair in ((first, second), (second, first)):
                    true = exact_delta(made, *pair, epsilon)
                    assert true <= bounds[index] * (1 + 1e-9), (pair, epsilon)
                    seen[index] = max(seen[index], true)
    assert kinds == {(True, True), (True, False), (False, True), (False, False)}
    assert seen[EPSILONS.index(0.4)] > 0.1 * bounds[EPSILONS.index(0.4)]  # there is something to cover


RUNS, MARGIN = 6_000, 0.0374


def zeros_and_ones(zeros):
    """The median falls from 1 to 0 when a one goes: a step of 1 is the smallest that is good."""
    return (0,) * zeros + (1,) * (zeros + 1), (0,) * zeros + (1,) * zeros


@cache
def counted(made, pair, seed):
    """How often each of two neighbours is answered above 1/2, and how often not at all."""
    source, shares = make_noise_source(seed), []
    for data in pair:
        array = made.clip_and_sort(data)
        answers = [made.answer(array, source) for _ in range(RUNS)]
        shares.append(sum(answer is not NO_ANSWER and answer > 0.5 for answer in answers) / RUNS)
        shares.append(sum(answer is NO_ANSWER for answer in answers) / RUNS)
    return shares


@pytest.mark.parametrize(
    ("zeros", "noise", "failure", "seed"),
    [(40, ps.DiscreteLaplace(scale=4), 1e-6, 8), (2, ps.DiscreteLaplace(scale=1), 0.01, 9)],
    ids=["far from bad", "often without an answer"],
)
def test_runs_of_a_worst_pair_stay_below_the_certified_delta(zeros, noise, failure, seed):
    """By Hoeffding a frequency over n runs is off by more than m with probability at most ``2 exp(-2 n m^2)``: here 1.1e-7.

    With four frequencies the false alarm probability is below 5e-7 over all seeds.
    """
    made, pair = proposal(1.0, sigma=0.7, test=noise, failure=failure), zeros_and_ones(zeros)
    high, silent, other_high, other_silent = counted(made, pair, seed)
    a, b = (reaches(noise, threshold(noise, failure) - made.distance(made.clip_and_sort(data))) for data in pair)
    above = 0.5 * math.erfc(-0.5 / 0.7 / math.sqrt(2.0))
    for found, true in ((high, a * above), (silent, 1.0 - a), (other_high, b * (1.0 - above)), (other_silent, 1.0 - b)):
        assert found == pytest.approx(true, abs=MARGIN)  # the run has the exact distribution
    for epsilon in (0.0, 0.3):
        factor, bound = math.exp(epsilon), made.mechanism.delta_at(epsilon).upper
        assert high - factor * other_high - MARGIN * (1.0 + factor) <= bound
        assert other_silent - factor * silent - MARGIN * (1.0 + factor) <= bound
        assert (high + silent) - factor * (other_high + other_silent) - 2.0 * MARGIN * (1.0 + factor) <= bound


def test_so_many_runs_would_find_too_little_noise():
    made, pair = proposal(1.0, sigma=0.7, test=ps.DiscreteLaplace(scale=4), failure=1e-6), zeros_and_ones(40)
    high, _, other_high, _ = counted(made, pair, 8)
    claimed = proposal(1.0, sigma=1.4, test=made.test, failure=1e-6).mechanism
    assert high - other_high - 2.0 * MARGIN > claimed.delta_at(0.0).upper


# -- in use --------------------------------------------------------------------------------------------------------------------

USUAL = {"low": 0.0, "high": 100.0, "step": 0.5, "sigma": 2.0, "test": ps.DiscreteLaplace(scale=4), "failure": 1e-7}


def test_an_answer_is_near_the_median_and_states_its_mechanism():
    values = np.random.default_rng(3).normal(50.0, 10.0, 5001)
    answer = private_median(values, **USUAL, insecure_seed=1)
    assert answer.value == pytest.approx(np.median(values), abs=6.0)  # six deviations of the noise
    assert str(answer.mechanism) == "ptr(discrete_laplace(scale=4), gaussian(sigma=2, neighbours=add_remove), failure=1e-07)"
    assert ps.parse(str(answer.mechanism)) == answer.mechanism
    assert answer.mechanism.neighbours == "add_remove"
    assert 0.5 < answer.mechanism.epsilon_at(1e-6).upper < 2.5
    assert answer.notes == (FLOATING_POINT_NOTE, INSECURE_SEED_NOTE)
    assert private_median(values, **USUAL, insecure_seed=1) == answer
    assert private_median(values[::-1], **USUAL, insecure_seed=2).value != answer.value


def test_without_a_seed_the_noise_is_new_each_time():
    first, second = (private_median([50.0] * 999, **USUAL) for _ in range(2))
    assert first.value != second.value
    assert first.notes == (FLOATING_POINT_NOTE,)


@pytest.mark.parametrize("values", [[], [3.0], [0.0] * 500 + [100.0] * 500, np.linspace(0.0, 100.0, 80)], ids=["none", "one", "two", "far"])
def test_no_answer_is_an_outcome_and_says_so(values):
    """The distance is at most 1 in each case, and the threshold 64: an answer has a probability of about 1e-7."""
    answer = private_median(values, **USUAL, insecure_seed=4)
    assert answer.value is None
    assert answer.mechanism == private_median([50.0] * 999, **USUAL, insecure_seed=4).mechanism


def test_numbers_are_clipped_to_the_bounds():
    made = proposal()
    assert made.clip_and_sort([9.0, -1e300, 2.5, 1e300]).tolist() == [0.0, 2.5, 5.0, 5.0]
    assert made.clip_and_sort([]).tolist() == []


SECRET = 123456.789


@pytest.mark.parametrize(
    "values",
    [[SECRET, math.nan], [SECRET, math.inf], [[SECRET]], SECRET, ["a", SECRET], None, [SECRET, True, None]],
    ids=["nan", "infinite", "nested", "number", "text", "none", "object"],
)
def test_invalid_values_are_refused_without_showing_them(values):
    with pytest.raises(ParameterError) as caught:
        private_median(values, **USUAL)
    assert str(caught.value) == "`values` must be a list of finite numbers"


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"low": math.nan}, "`low` must be in (-inf, inf), got nan"),
        ({"high": math.inf}, "`high` must be in (-inf, inf), got inf"),
        ({"low": 100.0}, "`low` must be below `high`, with a finite difference, got 100.0 and 100.0"),
        ({"low": -1e308, "high": 1e308}, "`low` must be below `high`, with a finite difference, got -1e+308 and 1e+308"),
        ({"step": 0}, "`step` must be in (0, 100), got 0"),
        ({"step": 100.0}, "`step` must be in (0, 100), got 100.0"),
        ({"step": math.nan}, "`step` must be in (0, 100), got nan"),
        ({"sigma": 0}, "`sigma` must be in (0, inf), got 0"),
        ({"failure": 0}, "`failure` must be in (0, 1), got 0"),
        ({"failure": 1}, "`failure` must be in (0, 1), got 1"),
        ({"test": ps.Laplace(scale=2)}, "`test` must be discrete_laplace or discrete_gaussian noise on a distance, got laplace(scale=2)"),
        ({"insecure_seed": -1}, "`insecure_seed` must be an integer >= 0"),
    ],
)
def test_invalid_arguments_are_refused_in_one_sentence(changed, sentence):
    with pytest.raises(ParameterError) as caught:
        private_median([1.0], **USUAL | changed)
    assert str(caught.value).startswith(sentence)


def test_the_noise_must_be_for_the_same_neighbours():
    with pytest.raises(NeighbourError):
        private_median([1.0], **USUAL | {"test": ps.DiscreteLaplace(scale=4, neighbours="replace_one")})
    with pytest.raises(ParameterError, match="`target` must be gaussian"):
        PrivateMedian(test=ps.DiscreteLaplace(scale=4), target=ps.Gaussian(sigma=2), failure=0.1, low=0, high=1, step=0.5)
