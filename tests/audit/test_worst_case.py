"""What is audited, and what is predicted of it: the same number as the accountant's, found another way."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

import privselect as ps
from privselect.audit.broken_runners import FAULTS
from privselect.audit.cases import DATA_SETS, LARGE, SETTINGS, Setting
from privselect.audit.prediction import BITS, FALSE_ALARM, Prediction, chances, probabilities
from privselect.audit.report import LEAST
from privselect.audit.worst_case import worst_case
from privselect.errors import ParameterError
from privselect.selection.exact.engine import ExactLower

ALL = [*SETTINGS, LARGE]


class Bits:
    """Randomness that gives the bits it was told."""

    def __init__(self, number):
        self.number = number

    def stream(self):
        return self

    def getrandbits(self, bits):
        assert bits == BITS
        return self.number


@pytest.mark.parametrize("setting", ALL, ids=str)
def test_the_prediction_is_the_exact_price(setting):
    case = worst_case(setting)
    exact = ps.Selection(setting.trial(), setting.law()).delta_at(setting.epsilon)
    predicted = case.prediction().value
    assert case.bound <= predicted
    assert exact.lower <= predicted <= exact.upper
    # The bound rounds each piece down by what the weight bends over it.
    assert predicted == pytest.approx(case.bound, rel=2e-3)
    assert 0.05 <= exact.lower <= exact.upper <= 0.3


@pytest.mark.parametrize("setting", ALL, ids=str)
def test_the_counted_set_is_the_order_s_own(setting):
    case = worst_case(setting)
    orders = [ExactLower(pair, setting.law()).staircase(setting.epsilon) for b in setting.trial().brackets for pair in b.lowers]
    counted = {i for order in orders for i in np.flatnonzero(order.order()[2]).tolist()}
    assert case.counted <= counted
    # No piece outside the set is likelier on X by the factor: the set is the best for this order.
    first, second = (chances(case.ends[data], probabilities(setting.law())) for data in DATA_SETS)
    gains = first - math.exp(setting.epsilon) * second
    assert gains[sorted(case.counted)].sum() == pytest.approx(np.maximum(gains, 0.0).sum(), abs=1e-9)


def test_a_setting_that_leaks_nothing_is_refused():
    with pytest.raises(ParameterError, match="leaks at its epsilon"):
        worst_case(Setting("pure(epsilon=1)", "fixed(k=1)", 5.0))


@pytest.mark.parametrize("setting", ALL, ids=str)
def test_a_trial_has_exactly_the_law_that_is_predicted(setting):
    case = worst_case(setting)
    for data in DATA_SETS:
        ends = case.ends[data]
        assert ends[-1] == 2**BITS
        assert all(before <= after for before, after in itertools.pairwise(ends))
        for piece, (start, end) in enumerate(itertools.pairwise([0, *ends])):
            for number in {start, end - 1} if end > start else ():
                assert case({}, data, Bits(number)) == (-piece, piece)


@pytest.mark.parametrize("setting", ALL, ids=str)
def test_masses_are_the_pair_s_to_within_2_to_the_minus_60(setting):
    case = worst_case(setting)
    (pair,) = (pair for bracket in setting.trial().brackets for pair in bracket.lowers)
    *masses, _ = ExactLower(pair, setting.law()).staircase(setting.epsilon).order()
    for data, part in zip(DATA_SETS, masses, strict=True):
        sums = itertools.accumulate(map(Fraction, part.tolist()))
        for end, total in list(zip(case.ends[data], sums, strict=True))[:-1]:
            assert abs(Fraction(end, 2**BITS) - total) <= Fraction(1, 2**60)


def closed_form(count, z):
    if isinstance(count, ps.Geometric):
        return z / (count.mean - (count.mean - 1) * z)
    if isinstance(count, ps.Poisson):
        return np.exp(count.mean * (z - 1))
    return (1 - count.p + count.p * z) ** count.n


@pytest.mark.parametrize("setting", ALL, ids=str)
def test_probabilities_of_k_give_the_generating_function(setting):
    law = probabilities(setting.law())
    z = np.linspace(0.0, 1.0, 101)
    # A sum of a few hundred terms below 1, each right to 1e-14.
    np.testing.assert_allclose(np.polynomial.polynomial.polyval(z, law), closed_form(setting.law(), z), rtol=0.0, atol=1e-13)


def test_chances_by_brute_force():
    """All outcomes of up to 4 trials, one by one."""
    masses, law = [Fraction(1, 8), Fraction(1, 2), Fraction(3, 8)], [0.1, 0.2, 0.0, 0.4, 0.3]
    ends = [int(end * 2**BITS) for end in itertools.accumulate(masses)]
    expected = [0.0, 0.0, 0.0]
    for k, share in enumerate(law):
        for pieces in itertools.product(range(3), repeat=k):
            if pieces:
                expected[min(pieces)] += share * float(math.prod(masses[piece] for piece in pieces))
    np.testing.assert_allclose(chances(ends, np.array(law)), expected, rtol=1e-12)


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_the_false_alarm_probability_is_what_is_said(setting):
    """Also with as few selections as the command allows."""
    prediction = worst_case(setting).prediction()
    assert 1000 * 2 * len(SETTINGS) == LEAST
    assert prediction.false_alarm(1000) == pytest.approx(FALSE_ALARM, rel=0.1)
    assert prediction.false_alarm(10_000) == pytest.approx(FALSE_ALARM, rel=0.01)


def test_the_exact_false_alarm_probability_by_brute_force():
    prediction = Prediction(0.4, 0.1, 1.0)
    low, high = prediction.interval(12)
    outside = [
        binom.pmf(first, 12, 0.4) * binom.pmf(second, 12, 0.1)
        for first, second in itertools.product(range(13), repeat=2)
        if not low <= prediction.measured((first, second), 12) <= high
    ]
    assert prediction.false_alarm(12) == pytest.approx(sum(outside), rel=1e-9)


def test_the_law_of_k_under_each_fault_by_brute_force():
    law = np.array([0.1, 0.2, 0.3, 0.4])
    for data, most in zip(DATA_SETS, (2, 3), strict=True):
        np.testing.assert_allclose(FAULTS["capped"].law(law, data), [0.1, 0.2, 0.7])
        np.testing.assert_allclose(FAULTS["deadline"].law(law, data), [0.1, 0.2, 0.7] if most == 2 else law)
    redrawn = np.zeros(4)
    for draws in itertools.product(range(4), repeat=4):  # the K at the start and after the first, second and third trial
        done = next(done for done, k in enumerate(draws) if k <= done)
        redrawn[done] += math.prod(law[k] for k in draws)
    np.testing.assert_allclose(FAULTS["redrawn"].law(law, "X"), redrawn, atol=1e-15)
