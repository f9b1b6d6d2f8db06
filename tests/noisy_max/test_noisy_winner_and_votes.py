"""The winner's score with fresh noise, and a stream of votes. False alarms of the statistical tests: once in 1e7 changes of the draws."""

import copy
import math
import pickle
import random
import threading
import time
from fractions import Fraction

import numpy as np
import pytest
from drawn_noise import chi_square, seeded, whole_shares
from scipy.stats import kstest, laplace, norm

import privselect as ps
from privselect.errors import NeighbourError, ParameterError
from privselect.noisy_max.sampling.noise_samplers import sampler_for
from privselect.noisy_max.sampling.rejection_sampler import Density
from privselect.tuning.randomness import Stream

ALARM = 1e-7
NOISE = ps.Gaussian(sigma=2)


@pytest.mark.parametrize(("value", "cdf"), [(ps.Gaussian(sigma=3), norm(scale=3).cdf), (ps.Laplace(scale=0.7), laplace(scale=0.7).cdf)])
@pytest.mark.parametrize("sensitivity", [1, Fraction(1, 3)])
def test_the_value_is_the_score_with_fresh_noise(value, cdf, sensitivity):
    """The first score wins, all but surely; its noise in choosing says nothing about its value."""
    entropy = seeded(1)
    found = [ps.report_noisy_max([1000, 0], NOISE, sensitivity, value=value, entropy=entropy) for _ in range(400)]
    assert {winner.index for winner in found} == {0}
    noise = (np.array([winner.value for winner in found]) - 1000.0) / float(sensitivity)
    assert kstest(cdf(noise), "uniform").pvalue > ALARM


def test_a_continuous_value_lies_on_a_public_grid():
    """Sensitivity 1/3 and sigma 3: the unit is 1, the grid below 2^-20 of it, whatever the score."""
    for score in (0.1, 1e-9, 12345.678):
        found = ps.report_noisy_max([score, score - 100], NOISE, Fraction(1, 3), value=ps.Gaussian(sigma=3))
        steps = Fraction(found.value) * 2**21
        assert steps.denominator == 1


class Chosen:
    """Words that all name one box, then further bits that are all ones or all zeros."""

    def __init__(self, word, later):
        self.word, self.later = word, later

    def getrandbits(self, k):
        if k >= 64:
            return sum(self.word << 64 * i for i in range(k // 64))
        return (1 << k) - 1 if self.later else 0


def test_a_value_across_a_line_of_the_grid_is_settled_by_more_bits():
    """The middle of the box, 2^-38 wide, lies on a line of the grid: further bits tell on which side the value lies."""
    noise = ps.Gaussian(sigma=1)
    stairs = sampler_for(noise).sampler
    word = int(stairs._starts[-stairs._first]) << 32  # the cell that begins at 0, the lowest height, the first box
    score = 2000 - Fraction(1, 2**39)
    low, high = (ps.report_noisy_max([score], noise, value=noise, entropy=Chosen(word, later)).value for later in (False, True))
    assert Fraction(high) == 2000
    assert Fraction(low) == 2000 - Fraction(1, 2**21)


@pytest.mark.parametrize("value", [ps.DiscreteGaussian(sigma=1.5), ps.DiscreteLaplace(scale=0.8)], ids=str)
def test_a_discrete_value_is_a_whole_number(value):
    entropy = seeded(2)
    found = [ps.report_noisy_max([500, 0], NOISE, value=value, entropy=entropy) for _ in range(1500)]
    assert {type(winner.value) for winner in found} == {int}
    shape, scale = (Density.NORMAL, 1.5) if isinstance(value, ps.DiscreteGaussian) else (Density.LAPLACE, 0.8)
    noise = np.clip([winner.value - 500 for winner in found], -6, 6)
    assert chi_square(np.bincount(noise + 6, minlength=13), whole_shares(shape, scale, 6)) > ALARM
    third = ps.report_noisy_max([Fraction(500, 3), Fraction(0)], NOISE, Fraction(1, 3), value=value).value
    assert (Fraction(third) * 3).denominator == 1


def test_the_result_says_what_it_costs_and_nothing_else():
    found = ps.report_noisy_max([812, 641, 307], NOISE, value=ps.Laplace(scale=3))
    assert found.mechanism == ps.Composed((ps.NoisyMax(NOISE, m=3), ps.Laplace(scale=3)))
    assert set(found.__slots__) == {"index", "value", "mechanism"}
    assert "641" not in repr(found)
    assert "307" not in repr(found)


def test_a_value_beyond_all_floats_is_infinite():
    assert ps.report_noisy_max([10**400, 0], NOISE, value=ps.Gaussian(sigma=1)).value == math.inf


def test_values_that_is_invalid_released_are_rejected():
    for value in (ps.Gumbel(scale=1), ps.Pure(epsilon=1), ps.NoisyMax(NOISE, m=2), "gaussian(sigma=1)", 3):
        with pytest.raises(ParameterError, match="noise whose noisy score may be released"):
            ps.report_noisy_max([1, 2], NOISE, value=value)
    for scores, options in (([[1, 2]], {}), ([1, 2], {"top": 2}), ([1, 2], {"insecure_float": True})):
        with pytest.raises(ParameterError, match="`value` needs one vector"):
            ps.report_noisy_max(scores, NOISE, value=NOISE, **options)
    with pytest.raises(ParameterError, match="must be integer multiples"):
        ps.report_noisy_max([1, 0.5], NOISE, value=ps.DiscreteLaplace(scale=1))
    with pytest.raises(NeighbourError):
        ps.report_noisy_max([1, 2], ps.Gaussian(sigma=1, neighbours="add_remove"), value=ps.Gaussian(sigma=1, neighbours="replace_one"))


def test_votes_are_counted_against_the_declared_rounds():
    votes = ps.NoisyVotes(NOISE, m=3, rounds=2)
    assert votes.mechanism == ps.NoisyMax(NOISE, m=3, rounds=2, changes=2)
    assert votes.spent is None
    assert votes.run_round([2] * 500 + [1] * 3) == 2
    assert votes.spent == ps.NoisyMax(NOISE, m=3, changes=2)
    assert votes.run_round(counts=[0, 900, 4]) == 1
    assert votes.rounds_used == 2
    assert votes.spent == votes.mechanism
    with pytest.raises(ParameterError, match="the 2 declared"):
        votes.run_round([0])
    assert votes.rounds_used == 2


def test_a_stream_of_votes_has_the_distribution_of_noisy_max():
    """Of two classes, one with a vote more: the difference of two normals decides."""
    votes = ps.NoisyVotes(NOISE, m=2, rounds=1500, changes=1, entropy=seeded(3))
    found = [votes.run_round([0, 1, 1, 0, 1]) for _ in range(1500)]
    wins = norm.cdf(1.0 / NOISE.sigma / math.sqrt(2.0))
    assert chi_square(np.bincount(found, minlength=2), [1.0 - wins, wins]) > ALARM


def test_votes_show_nothing_but_their_description():
    votes = ps.NoisyVotes(NOISE, m=3, rounds=5, entropy=Stream(b"k" * 32))
    votes.run_round([0, 1, 1])
    assert repr(votes) == "NoisyVotes(noisy_max(gaussian(sigma=2), m=3, rounds=5, changes=2), rounds_used=1)"
    assert set(votes.__slots__) == {"_rounds_used", "_entropy", "_lock", "_mechanism"}  # nothing of a round is kept


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_votes_cannot_be_copied(copied):
    with pytest.raises(TypeError, match="spent twice"):
        copied(ps.NoisyVotes(NOISE, m=3, rounds=5))


def test_threads_share_the_rounds():
    votes, refused = ps.NoisyVotes(NOISE, m=2, rounds=40), []

    def ask():
        for _ in range(10):
            try:
                votes.run_round([0, 1])
            except ParameterError:
                refused.append(1)

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert votes.rounds_used == 40
    assert len(refused) == 20


class Unshared:
    """Entropy that fails where two threads are inside at once."""

    def __init__(self):
        self.source, self.inside, self.met = random.SystemRandom(), 0, 0

    def getrandbits(self, k):
        self.inside += 1
        time.sleep(0.0005)
        self.met += self.inside > 1
        self.inside -= 1
        return self.source.getrandbits(k)


def test_threads_do_not_share_the_bits():
    """A pool of bits that two threads read at once may hand both the same ones: two rounds would have the same noise."""
    entropy = Unshared()
    votes = ps.NoisyVotes(NOISE, m=2, rounds=40, entropy=entropy)
    threads = [threading.Thread(target=lambda: [votes.run_round([0, 1]) for _ in range(10)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert votes.rounds_used == 40
    assert entropy.met == 0


def test_a_fraction_of_a_vote_under_discrete_noise_costs_no_round():
    votes = ps.NoisyVotes(ps.DiscreteGaussian(sigma=2), m=3, rounds=5)
    for counts in ([0.5, 1, 2], [Fraction(1, 3), 1, 2]):
        with pytest.raises(ParameterError, match="must be integer multiples"):
            votes.run_round(counts=counts)
    assert votes.rounds_used == 0
    assert votes.spent is None


@pytest.mark.parametrize(
    "ballots",
    [[3], [-1, 0], [0.5], ["0"], [True], [[0, 1]], 0, [[0], [0, 1]], [10**30], None, np.ma.array([0, 1], mask=[False, True])],
    ids=str,
)
def test_bad_ballots_cost_no_round(ballots):
    votes = ps.NoisyVotes(NOISE, m=3, rounds=5)
    with pytest.raises(ParameterError, match="`ballots`"):
        votes.run_round(ballots)
    assert votes.rounds_used == 0


@pytest.mark.parametrize(
    "counts",
    [[1, 2], [1, 2, 3, 4], [[1, 2, 3]], [1, 2, float("nan")], ["1", "2", "3"], [True, 1, 2], [], np.ma.array([1, 2, 3], mask=[0, 1, 0])],
    ids=str,
)
def test_bad_counts_cost_no_round(counts):
    votes = ps.NoisyVotes(NOISE, m=3, rounds=5)
    with pytest.raises(ParameterError, match="`counts`"):
        votes.run_round(counts=counts)
    assert votes.rounds_used == 0


def test_no_ballots_at_all_are_a_round_too():
    assert ps.NoisyVotes(NOISE, m=3, rounds=1).run_round([]) in {0, 1, 2}


@pytest.mark.parametrize("given", [{"m": 0, "rounds": 1}, {"m": 2, "rounds": 0}, {"m": 2, "rounds": 1, "changes": 0}])
def test_bad_descriptions_of_votes_are_rejected(given):
    with pytest.raises(ParameterError, match="must be an integer"):
        ps.NoisyVotes(NOISE, **given)


def test_too_many_classes_to_draw_noise_for_are_rejected():
    with pytest.raises(ParameterError, match="each class has its own noise"):
        ps.NoisyVotes(NOISE, m=10**9, rounds=1)


def test_ballots_and_counts_do_not_go_together():
    with pytest.raises(ParameterError, match="and not both"):
        ps.NoisyVotes(NOISE, m=2, rounds=3).run_round([0], counts=[1, 0])
