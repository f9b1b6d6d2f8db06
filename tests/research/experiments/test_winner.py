"""Which candidate wins: against every way to draw the trials, against a simulation, and by laws."""

import itertools
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtr
from scipy.stats import chisquare

from privselect.counts import Binomial, Fixed, Geometric, Logarithmic, NegativeBinomial, Poisson
from research.experiments.regimes import laws
from research.experiments.winner import winning_chances

FALSE_ALARM = 1e-6  # of each simulation below
CLOSE = 1e-7  # of the places at which an integral is taken: the docstring's promise
RUNS = 10_000

scores = st.lists(st.integers(0, 6), min_size=1, max_size=8).map(lambda given: np.array(given, dtype=np.float64))
counts = st.sampled_from([*laws(), Fixed(k=1), Fixed(k=5)])
noises = st.sampled_from([0.0, 0.3, 2.0, 50.0])


def by_every_draw(values, k):
    """Each k-tuple of candidates is equally likely, and its best trials are, too."""
    chances = np.zeros(len(values))
    for drawn in itertools.product(range(len(values)), repeat=k):
        best = max(values[place] for place in drawn)
        winners = [place for place in drawn if values[place] == best]
        for place in winners:
            chances[place] += 1.0 / len(winners) / len(values) ** k
    return chances


def simulated(values, noise, count, rng):
    """How often each candidate won, and last how often there was no trial."""
    source = random.Random(int(rng.integers(2**63)))  # noqa: S311 - a simulation
    trials = np.repeat(np.arange(RUNS), [count.sample(source) for _ in range(RUNS)])
    drawn = rng.integers(len(values), size=len(trials))
    told = values[drawn] + noise * rng.normal(size=len(trials))
    order = np.lexsort((rng.random(len(trials)), told, trials))  # by run, in it by score, in that by a mark
    last = np.flatnonzero(np.append(np.diff(trials[order]) > 0, True)) if len(trials) else []
    won = np.bincount(drawn[order][last], minlength=len(values))
    return np.append(won, RUNS - won.sum())


@pytest.mark.parametrize("values", [[3.0, 1.0, 2.0], [1.0, 1.0, 0.0, 1.0], [0.0, 5.0, 5.0, 2.0, 0.0]])
@pytest.mark.parametrize("k", [2, 3, 4])
def test_a_fixed_number_of_trials_gives_what_counting_every_draw_gives(values, k):
    # The weight k (1-u)^(k-1) is a polynomial of a degree for which the places are exact.
    assert winning_chances(np.array(values), 0.0, Fixed(k=k)) == pytest.approx(by_every_draw(values, k), abs=1e-13)


@pytest.mark.parametrize("noise", [0.1, 1.0, 7.0])
def test_of_two_candidates_and_two_trials_with_noise(noise):
    better = 0.25 + 0.5 * ndtr(1.3 / (np.sqrt(2.0) * noise))
    assert winning_chances(np.array([2.3, 1.0]), noise, Fixed(k=2)) == pytest.approx([better, 1.0 - better], abs=CLOSE)


@pytest.mark.parametrize("noise", [0.0, 1.5])
@pytest.mark.parametrize(
    "count",
    [Geometric(mean=3), Logarithmic(mean=10), NegativeBinomial(eta=-0.5, mean=30), Poisson(mean=3), Binomial(n=6, p=0.5), Fixed(k=4)],
    ids=str,
)
def test_a_simulation_is_no_surprise(count, noise, fresh_rng):
    values = np.array([5.0, 2.0, 5.0, 3.0, 0.0, 2.0])
    chances = winning_chances(values, noise, count)
    expected = np.append(chances, 1.0 - chances.sum())
    found = simulated(values, noise, count, fresh_rng)
    possible = expected > 1e-12
    assert found[~possible].sum() == 0
    assert chisquare(found[possible], RUNS * expected[possible] / expected[possible].sum()).pvalue > FALSE_ALARM


@given(scores, noises, counts)
def test_all_chances_and_that_of_no_trial_make_1(values, noise, count):
    assert winning_chances(values, noise, count).sum() == pytest.approx(1.0 - count.probability_of_zero(), abs=CLOSE)


@given(scores, noises)
def test_one_trial_is_any_candidate(values, noise):
    assert winning_chances(values, noise, Fixed(k=1)) == pytest.approx(np.full(len(values), 1.0 / len(values)), abs=1e-12)


@given(scores, noises, counts, st.randoms())
def test_the_order_of_the_candidates_is_nothing(values, noise, count, source):
    order = source.sample(range(len(values)), len(values))
    # A mean in another order differs in its last digits.
    assert winning_chances(values[order], noise, count) == pytest.approx(winning_chances(values, noise, count)[order], rel=1e-9, abs=1e-12)


@given(scores, noises, counts)
def test_a_better_score_has_no_smaller_chance_and_an_equal_one_the_same(values, noise, count):
    chances = winning_chances(values, noise, count)
    for one, other in itertools.combinations(range(len(values)), 2):
        if values[one] == values[other]:
            assert chances[one] == pytest.approx(chances[other], rel=1e-9)
        else:
            better, worse = (one, other) if values[one] > values[other] else (other, one)
            assert chances[better] >= chances[worse] - CLOSE


@given(scores, counts)
def test_hardly_any_noise_is_none_and_endless_noise_leaves_chance_alone(values, count):
    assert winning_chances(values, 1e-6, count) == pytest.approx(winning_chances(values, 0.0, count), abs=CLOSE)
    even = (1.0 - count.probability_of_zero()) / len(values)
    # The noise is 1e9 times the scores: what they add is of the order of 1e-9 times a mean of at most 30 trials.
    assert winning_chances(values, 1e10, count) == pytest.approx(np.full(len(values), even), abs=CLOSE)


def test_noise_takes_from_the_best():
    values = np.array([3.0, 2.0, 1.0])
    best = [winning_chances(values, noise, Geometric(mean=10))[0] for noise in (0.0, 0.5, 1.0, 2.0, 4.0)]
    assert best == sorted(best, reverse=True)
    assert best[0] > best[-1] + 0.1
