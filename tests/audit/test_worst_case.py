"""The worst cases and their predictions: equal to the accountant's numbers, computed another way."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

import privselect as ps
from privselect.audit.broken_runners import FAULTS
from privselect.audit.prediction import BITS, FALSE_ALARM, Prediction, count_probabilities, release_probabilities
from privselect.audit.report import ALL_CASES, MIN_SELECTIONS
from privselect.audit.two_stage_case import TWO_STAGE_CASES, TwoStageCase, two_stage_worst_case
from privselect.audit.worst_case import CASES, DATA_SETS, LARGE_K_CASE, AuditCase, worst_case
from privselect.errors import ParameterError
from privselect.selection.exact.engine import ExactLower

ALL = [*CASES, LARGE_K_CASE]


class Bits:
    """Randomness that returns a given number."""

    def __init__(self, number):
        self.number = number

    def stream(self):
        return self

    def getrandbits(self, bits):
        assert bits == BITS
        return self.number


@pytest.mark.parametrize("case", ALL, ids=str)
def test_the_prediction_is_the_exact_delta(case):
    worst = worst_case(case)
    exact = ps.Selection(case.parse_mechanism(), case.parse_count()).delta_at(case.epsilon)
    predicted = worst.predict().delta
    assert worst.lower_bound <= predicted
    assert exact.lower <= predicted <= exact.upper
    # The bound rounds each piece down by the variation of the weight on it.
    assert predicted == pytest.approx(worst.lower_bound, rel=2e-3)
    assert 0.05 <= exact.lower <= exact.upper <= 0.3


@pytest.mark.parametrize("case", ALL, ids=str)
def test_the_counted_set_is_the_order_s_own(case):
    worst = worst_case(case)
    orders = [ExactLower(pair, case.parse_count()).score_order(case.epsilon) for b in case.parse_mechanism().brackets for pair in b.lowers]
    counted = {i for order in orders for i in np.flatnonzero(order.pieces()[2]).tolist()}
    assert worst.counted_pieces <= counted
    # No piece outside the set gains: the set is optimal for this order.
    first, second = (release_probabilities(worst.cumulative_masses[data], count_probabilities(case.parse_count())) for data in DATA_SETS)
    gains = first - math.exp(case.epsilon) * second
    assert gains[sorted(worst.counted_pieces)].sum() == pytest.approx(np.maximum(gains, 0.0).sum(), abs=1e-9)


def test_a_case_that_leaks_nothing_is_refused():
    with pytest.raises(ParameterError, match="must have a lower bound on delta above 0 at its epsilon"):
        worst_case(AuditCase("pure(epsilon=1)", "fixed(k=1)", 5.0))


@pytest.mark.parametrize("case", ALL, ids=str)
def test_a_trial_has_exactly_the_predicted_distribution(case):
    worst = worst_case(case)
    for data in DATA_SETS:
        ends = worst.cumulative_masses[data]
        assert ends[-1] == 2**BITS
        assert all(before <= after for before, after in itertools.pairwise(ends))
        for piece, (start, end) in enumerate(itertools.pairwise([0, *ends])):
            for number in {start, end - 1} if end > start else ():
                assert worst({}, data, Bits(number)) == (-piece, piece)


@pytest.mark.parametrize("case", ALL, ids=str)
def test_masses_are_the_pair_s_to_within_2_to_the_minus_60(case):
    worst = worst_case(case)
    (pair,) = (pair for bracket in case.parse_mechanism().brackets for pair in bracket.lowers)
    *masses, _ = ExactLower(pair, case.parse_count()).score_order(case.epsilon).pieces()
    for data, part in zip(DATA_SETS, masses, strict=True):
        sums = itertools.accumulate(map(Fraction, part.tolist()))
        for end, total in list(zip(worst.cumulative_masses[data], sums, strict=True))[:-1]:
            assert abs(Fraction(end, 2**BITS) - total) <= Fraction(1, 2**60)


def closed_form(count, z):
    if isinstance(count, ps.Geometric):
        return z / (count.mean - (count.mean - 1) * z)
    if isinstance(count, ps.Poisson):
        return np.exp(count.mean * (z - 1))
    return (1 - count.p + count.p * z) ** count.n


@pytest.mark.parametrize("case", ALL, ids=str)
def test_probabilities_of_k_give_the_generating_function(case):
    probabilities = count_probabilities(case.parse_count())
    z = np.linspace(0.0, 1.0, 101)
    # A sum of a few hundred terms below 1, each right to 1e-14.
    np.testing.assert_allclose(np.polynomial.polynomial.polyval(z, probabilities), closed_form(case.parse_count(), z), rtol=0.0, atol=1e-13)


def test_release_probabilities_by_brute_force():
    """Enumerate all outcomes of up to 4 trials."""
    masses, count = [Fraction(1, 8), Fraction(1, 2), Fraction(3, 8)], [0.1, 0.2, 0.0, 0.4, 0.3]
    ends = [int(end * 2**BITS) for end in itertools.accumulate(masses)]
    expected = [0.0, 0.0, 0.0]
    for k, share in enumerate(count):
        for pieces in itertools.product(range(3), repeat=k):
            if pieces:
                expected[min(pieces)] += share * float(math.prod(masses[piece] for piece in pieces))
    np.testing.assert_allclose(release_probabilities(ends, np.array(count)), expected, rtol=1e-12)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_false_alarm_probability_is_0_1_percent(case):
    """Check the minimum number of selections as well."""
    prediction = worst_case(case).predict()
    assert 1000 * 2 * len(ALL_CASES) == MIN_SELECTIONS
    assert prediction.false_alarm(1000) == pytest.approx(FALSE_ALARM, rel=0.1)
    assert prediction.false_alarm(10_000) == pytest.approx(FALSE_ALARM, rel=0.01)


def test_the_exact_false_alarm_probability_by_brute_force():
    prediction = Prediction(0.4, 0.1, 1.0)
    low, high = prediction.interval(12)
    outside = [
        binom.pmf(first, 12, 0.4) * binom.pmf(second, 12, 0.1)
        for first, second in itertools.product(range(13), repeat=2)
        if not low <= prediction.estimate((first, second), 12) <= high
    ]
    assert prediction.false_alarm(12) == pytest.approx(sum(outside), rel=1e-9)


def test_the_law_of_k_under_each_fault_by_brute_force():
    count = np.array([0.1, 0.2, 0.3, 0.4])
    for data, most in zip(DATA_SETS, (2, 3), strict=True):
        np.testing.assert_allclose(FAULTS["capped"].transform(count, data), [0.1, 0.2, 0.7])
        np.testing.assert_allclose(FAULTS["deadline"].transform(count, data), [0.1, 0.2, 0.7] if most == 2 else count)
    redrawn = np.zeros(4)
    for draws in itertools.product(range(4), repeat=4):  # the K at the start and after the first, second and third trial
        done = next(done for done, k in enumerate(draws) if k <= done)
        redrawn[done] += math.prod(count[k] for k in draws)
    np.testing.assert_allclose(FAULTS["redrawn"].transform(count, "X"), redrawn, atol=1e-15)


# -- both stages ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", TWO_STAGE_CASES, ids=str)
def test_the_prediction_of_both_stages_is_between_the_bounds(case):
    exact = ps.search_then_train(case.search.parse_mechanism(), case.search.parse_count(), case.parse_final()).delta_at(case.epsilon)
    predicted = two_stage_worst_case(case).predict()
    assert exact.lower <= predicted.delta <= exact.upper
    assert predicted.delta > 0.05
    assert predicted.false_alarm(1000) == pytest.approx(FALSE_ALARM, rel=0.15)


@pytest.mark.parametrize("case", TWO_STAGE_CASES, ids=str)
def test_masses_of_both_stages_sum_to_1(case):
    worst = two_stage_worst_case(case)
    for data in DATA_SETS:
        assert worst.final_masses[data][-1] == 2**BITS
        assert all(before <= after for before, after in itertools.pairwise(worst.final_masses[data]))


def test_the_fallback_is_never_counted():
    assert not any(two_stage_worst_case(case).is_counted(None) for case in TWO_STAGE_CASES)


def test_two_stages_that_leak_nothing_are_refused():
    with pytest.raises(ParameterError, match="must have a lower bound on delta above 0 at its epsilon"):
        two_stage_worst_case(TwoStageCase(CASES[2], "pure(epsilon=0.5)", 9.0))


def test_reused_noise_by_brute_force():
    """Enumerate the winner's bits on a coarse grid: given its piece they are uniform on it."""
    worst = two_stage_worst_case(TWO_STAGE_CASES[0])
    pieces = release_probabilities(worst.search.cumulative_masses["X"], count_probabilities(worst.search.case.parse_count()))
    cells = np.linspace(0.0, 2.0**BITS, 200_001)[:-1] + 2**BITS / 400_000
    first, second = (
        np.searchsorted(np.array(ends, dtype=float), cells, side="right")
        for ends in (worst.search.cumulative_masses["X"], worst.final_masses["X"])
    )
    joint = np.zeros((len(pieces), len(worst.final_masses["X"])))
    np.add.at(joint, (first, second), 1.0)
    joint *= (pieces / np.maximum(joint.sum(axis=1), 1.0))[:, None]
    assert joint[worst.counted].sum() == pytest.approx(worst.predict_reused_noise().on_x, abs=2e-3)
