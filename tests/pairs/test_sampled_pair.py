"""The pair of a mechanism on a Poisson sample of the records, against exact fractions."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from closed_forms import discrete_hockey
from privselect.pairs import DominatingPair
from privselect.pairs.sampled_pair import sampled_lower, sampled_upper
from small_pairs import SHARES, pair_of

EPSILONS = (-700.0, -2.0, -0.3, 0.0, 1e-6, 0.2, 1.5, 700.0)
RATES = st.fractions(Fraction(1, 1000), Fraction(999, 1000), max_denominator=1000)


def sampled(laws, rate):
    """With the record, it is in the sample with probability ``rate``."""
    p, q = laws
    return [rate * a + (1 - rate) * b for a, b in zip(p, q, strict=True)], q


@given(SHARES, RATES)
def test_the_truth_lies_between_the_two_pairs_in_both_orders(laws, rate):
    pair, true = pair_of(*laws), sampled(laws, rate)
    above, below = sampled_upper(pair, rate), sampled_lower(pair, rate)
    for epsilon in EPSILONS:
        assert below.hockey_stick(epsilon, side=-1) <= discrete_hockey(*true, epsilon) <= above.hockey_stick(epsilon, side=1)
        back = discrete_hockey(*true[::-1], epsilon)
        assert below.reverse.hockey_stick(epsilon, side=-1) <= back <= above.reverse.hockey_stick(epsilon, side=1)


def test_what_only_one_side_can_give():
    """An outcome that needs the record stays an infinite loss; one that needs its absence has the loss log(1-r) then."""
    pair = DominatingPair(np.array([0.5]), np.array([0.75]), p_only=0.5, q_only=0.25)
    found = sampled_upper(pair, Fraction(1, 4))
    assert found.p_only == pytest.approx(0.125)
    assert found.q_only == 0.0
    assert found.q.tolist() == pytest.approx([0.25, 0.75])
    assert found.p.tolist() == pytest.approx([0.25 * 0.75, 0.25 * 0.5 + 0.75 * 0.75])


def test_a_tiny_leak_is_not_lost():
    pair = DominatingPair(np.ones(1), np.ones(1), p_only=1e-300)
    assert sampled_upper(pair, Fraction(1, 10**30)).p_only > 0.0
