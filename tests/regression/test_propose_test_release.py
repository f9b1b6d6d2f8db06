"""What propose-test-release leaks, held against joint laws that are written out whole."""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

import privselect as ps
from closed_forms import discrete_hockey, gaussian_hockey
from privselect.errors import NeighbourError, ParameterError, TextFormError
from privselect.mechanisms import Mechanism
from privselect.pairs import Bracket, DominatingPair
from privselect.regression.ptr.propose_test_release import ProposeTestRelease, thm_gptr

EPSILONS = [-4.0, -1.5, -0.6, -0.1, 0.0, 0.05, 0.3, 0.7, 1.0, 1.6, 2.5, 6.0]
LATTICE = 1e-4  # composition on a lattice gives so much too much, of epsilon


@dataclass(frozen=True)
class Given(Mechanism):
    """A mechanism that is one pair of laws, in both orders."""

    pair: DominatingPair

    def _make_brackets(self, _accuracy):
        return Bracket(self.pair, (self.pair,), "remove"), Bracket(self.pair.reverse, (self.pair.reverse,), "add")


def given(first, second):
    return Given(DominatingPair.from_masses([float(mass) for mass in first], [float(mass) for mass in second]))


def random_law(rng, outcomes):
    weights = [int(weight) for weight in rng.integers(1, 40, outcomes)]
    return [Fraction(weight, sum(weights)) for weight in weights]


def joined(tested, released, leaks, passes):
    """The joint law of both neighbours: the test's outcomes, and with those that pass the release, or one that tells all."""
    first, second = [], []
    for (p, q), through, tells in zip(tested, passes, leaks, strict=True):
        if not through:
            first, second = [*first, p], [*second, q]
        elif tells:
            first, second = [*first, p, 0], [*second, 0, q]
        else:
            first, second = [*first, *(p * a for a, _ in released)], [*second, *(q * b for _, b in released)]
    assert sum(first) == sum(second) == 1
    return first, second


def covers(mechanism, first, second):
    """Both brackets lie above the exact hockey sticks, each in its order; and so does delta_at."""
    by_order = {bracket.direction: bracket.upper for bracket in mechanism.brackets}
    assert set(by_order) == {"remove", "add"}
    overall = mechanism.delta_at(EPSILONS).upper.tolist()
    for upper, p, q in ((by_order["remove"], first, second), (by_order["add"], second, first)):
        found = upper.hockey_stick(EPSILONS, side=1).tolist()
        for epsilon, delta, most in zip(EPSILONS, found, overall, strict=True):
            true = discrete_hockey(p, q, epsilon)
            assert true <= delta <= most * (1 + 1e-12), epsilon


@pytest.mark.parametrize("seed", range(5))
def test_a_good_data_set_is_covered_beside_a_good_and_a_bad_one(seed):
    """The first passes as it likes; the second, where it is bad, with chance at most d'. The release is the target in both cases."""
    rng = np.random.default_rng(seed)
    tested = list(zip(random_law(rng, 4), random_law(rng, 4), strict=True))
    released = list(zip(random_law(rng, 3), random_law(rng, 3), strict=True))
    passes = [False, True, True, False]
    first, second = joined(tested, released, [False] * 4, passes)
    failure = float(sum(q for (_, q), through in zip(tested, passes, strict=True) if through))  # the second is bad, and just allowed
    for chance in (0.0, failure):
        covers(ProposeTestRelease(given(*zip(*tested, strict=True)), given(*zip(*released, strict=True)), failure=chance), first, second)


@pytest.mark.parametrize("seed", range(5))
def test_two_bad_data_sets_may_tell_all_when_they_pass(seed):
    rng = np.random.default_rng(100 + seed)
    tested = list(zip(random_law(rng, 4), random_law(rng, 4), strict=True))
    released = list(zip(random_law(rng, 3), random_law(rng, 3), strict=True))
    passes = [False, True, False, False]
    failure = float(max(tested[1])) * (1 + 1e-15)
    first, second = joined(tested, released, passes, passes)
    covers(ProposeTestRelease(given(*zip(*tested, strict=True)), given(*zip(*released, strict=True)), failure=failure), first, second)


@pytest.mark.parametrize("seed", range(5))
def test_wrong_bounds_may_tell_all(seed):
    """Calibrated: every outcome of the test comes with a release; one is a bound that is wrong for both data sets."""
    rng = np.random.default_rng(200 + seed)
    tested = list(zip(random_law(rng, 4), random_law(rng, 4), strict=True))
    released = list(zip(random_law(rng, 3), random_law(rng, 3), strict=True))
    wrong = [False, False, True, False]
    failure = float(max(tested[2])) * (1 + 1e-15)
    first, second = joined(tested, released, wrong, [True] * 4)
    parts = given(*zip(*tested, strict=True)), given(*zip(*released, strict=True))
    covers(ProposeTestRelease(*parts, failure=failure, calibrated=True), first, second)


def test_the_fixed_form_without_what_fails_would_be_too_small():
    """The tests above can fail: half the failure, or none, is not enough."""
    tested, failure = [(0.6, 0.3), (0.3, 0.6), (0.1, 0.1)], 0.1
    first, second = [0.6, 0.3, 0.1, 0.0], [0.3, 0.6, 0.0, 0.1]
    for share in (0.0, 0.5, 0.999):
        mechanism = ProposeTestRelease(given(*zip(*tested, strict=True)), given([0.5, 0.5], [0.5, 0.5]), failure=share * failure)
        with pytest.raises(AssertionError):
            covers(mechanism, first, second)


def test_the_fixed_form_is_attained():
    """Both are bad and pass alike, with chance d' = 1/10; what is released then tells which it was."""
    tested = [(Fraction(6, 10), Fraction(3, 10)), (Fraction(3, 10), Fraction(6, 10)), (Fraction(1, 10), Fraction(1, 10))]
    passes = [False, False, True]
    first, second = joined(tested, [], passes, passes)
    mechanism = ProposeTestRelease(given(*zip(*tested, strict=True)), ps.Pure(epsilon=0.01), failure=0.1)
    covers(mechanism, first, second)
    for epsilon in (-2.0, -0.69, -0.2, 0.0, 0.1, 0.5, 0.69, 0.8, 3.0):
        true = float(discrete_hockey(first, second, epsilon))
        assert true >= 0.1 or epsilon < 0.0
        assert mechanism.delta_at(epsilon).upper == pytest.approx(true, rel=1e-9)


def test_the_calibrated_form_is_attained_past_the_target():
    """Wrong bounds have loss 0 in the test; from the target's epsilon on they add nothing to the composition, and d' to the truth.

    Test and target are the same pair, as two runs of one pair are composed without a lattice.
    """
    tested = [(Fraction(6, 10), Fraction(3, 10)), (Fraction(3, 10), Fraction(6, 10)), (Fraction(1, 10), Fraction(1, 10))]
    first, second = joined(tested, tested, [False, False, True], [True] * 3)
    part = given(*zip(*tested, strict=True))
    mechanism, fixed = (ProposeTestRelease(part, part, failure=0.1, calibrated=calibrated) for calibrated in (True, False))
    covers(mechanism, first, second)
    for epsilon in (math.log(2.0) + 1e-9, 0.8, 1.0, 1.2, 1.38):
        true = float(discrete_hockey(first, second, epsilon))
        assert true > 0.1 + 1e-3
        assert mechanism.delta_at(epsilon).upper == pytest.approx(true, rel=1e-9)
        assert fixed.delta_at(epsilon).upper < true  # here the greater of the two would not do


PARTS = [
    (ps.Gaussian(sigma=2), ps.Gaussian(sigma=1)),
    (ps.DiscreteLaplace(scale=2), ps.Gaussian(sigma=1.5)),
    (ps.DiscreteGaussian(sigma=3), ps.Pure(epsilon=0.7)),
    (ps.Approximate(epsilon=0.5, delta=1e-3), ps.GaussianDP(mu=0.6, delta=1e-4)),
    (ps.Pure(epsilon=0.4), ps.Pure(epsilon=0.6)),
]


@pytest.mark.parametrize("failure", [1e-9, 1e-4, 0.05])
@pytest.mark.parametrize(("test", "target"), PARTS)
def test_the_curve_is_never_above_a_point_of_the_theorem(test, target, failure):
    mechanism = ProposeTestRelease(test, target, failure=failure)
    for test_epsilon in (0.0, 0.2, 0.4, 0.5, 1.0, 2.0):
        for epsilon in (0.0, 0.3, 0.6, 0.7, 1.5, 3.0):
            parts = (epsilon, target.delta_at(epsilon).upper), (test_epsilon, test.delta_at(test_epsilon).upper)
            whole, delta = thm_gptr(*parts, failure)
            assert mechanism.delta_at(whole * (1 + LATTICE)).upper <= delta * (1 + 1e-9), (test_epsilon, epsilon)


@pytest.mark.parametrize(("test", "target"), PARTS)
def test_the_curve_is_the_greater_of_two(test, target):
    failure = 1e-3
    both, fixed = ps.Composed((test, target)), ProposeTestRelease(test, target, failure=failure)
    calibrated = ProposeTestRelease(test, target, failure=failure, calibrated=True)
    for epsilon in (0.0, 0.3, 0.9, 2.0, 4.0, 7.0):
        leak = both.delta_at(epsilon).upper
        found = fixed.delta_at(epsilon).upper
        # The hull may cut a corner of the greater of the two, which no convex curve has; near 0 that is d' at most.
        most = max(leak, failure + test.delta_at(epsilon).upper)
        assert most - failure * (epsilon < 1e-9) <= found * (1 + 1e-9)
        assert found <= most * (1 + 1e-9)
        assert calibrated.delta_at(epsilon).upper == pytest.approx(failure + leak, abs=failure * 1e-6 if epsilon else failure)
        assert found <= calibrated.delta_at(epsilon).upper * (1 + 1e-9)


def test_the_greater_is_less_than_the_published_sum():
    published = 1e-6 + 1e-5 + 1e-5
    assert thm_gptr((1.0, 1e-5), (0.5, 1e-6), 1e-5) == (pytest.approx(1.5), pytest.approx(1.1e-5))
    assert thm_gptr((1.0, 1e-5), (0.5, 1e-6), 1e-5)[1] < published
    assert thm_gptr((0.0, 0.7), (0.0, 0.7), 0.1) == (0.0, 1.0)


@pytest.mark.parametrize("seed", range(6))
def test_a_point_of_the_theorem_holds_for_laws_written_out(seed):
    rng = np.random.default_rng(300 + seed)
    tested = list(zip(random_law(rng, 3), random_law(rng, 3), strict=True))
    released = list(zip(random_law(rng, 3), random_law(rng, 3), strict=True))
    passes, failure = [False, True, False], float(max(tested[1])) * (1 + 1e-15)
    laws = [joined(tested, released, leaks, passes) for leaks in ([False] * 3, passes)]
    for first, second in (*laws, *(law[::-1] for law in laws)):
        for epsilon in (0.0, 0.4, 1.0):
            for test_epsilon in (0.0, 0.3, 0.8):
                point = (
                    (epsilon, greater(released, epsilon)),
                    (test_epsilon, greater(tested, test_epsilon)),
                )
                whole, delta = thm_gptr(*point, failure)
                assert discrete_hockey(first, second, whole) <= delta


def greater(pairs, epsilon):
    p, q = zip(*pairs, strict=True)
    return float(max(discrete_hockey(p, q, epsilon), discrete_hockey(q, p, epsilon))) * (1 + 1e-15)


def test_a_test_that_never_fails_is_a_composition():
    mechanism = ProposeTestRelease(ps.Gaussian(sigma=2), ps.Gaussian(sigma=2), failure=0)
    for epsilon in (-1.0, 0.0, 0.5, 2.0):
        true = float(gaussian_hockey(math.sqrt(0.5), epsilon))
        assert true <= mechanism.delta_at(epsilon).upper <= true * 1.01


@pytest.mark.parametrize("calibrated", [False, True])
def test_a_test_that_always_fails_hides_nothing(calibrated):
    mechanism = ProposeTestRelease(ps.Gaussian(sigma=2), ps.Pure(epsilon=1), failure=1, calibrated=calibrated)
    assert mechanism.delta_at([0.0, 3.0, 300.0]).upper.tolist() == [1.0, 1.0, 1.0]
    assert mechanism.epsilon_at(0.5).upper == math.inf


@pytest.mark.parametrize("calibrated", [False, True])
def test_no_epsilon_reaches_a_delta_below_the_failure(calibrated):
    mechanism = ProposeTestRelease(ps.Pure(epsilon=0.5), ps.Pure(epsilon=1), failure=1e-5, calibrated=calibrated)
    assert mechanism.epsilon_at(0.9e-5).upper == math.inf
    assert mechanism.epsilon_at(1.1e-5).upper <= 1.5 * (1 + 1e-6)
    assert mechanism.delta_at(1.0).lower is None


@pytest.mark.parametrize("calibrated", [False, True])
def test_a_selection_takes_the_whole_curve(calibrated):
    """With K = 1 it is the base, which shows that the reverse pair, at negative epsilons, is one with it."""
    base = ProposeTestRelease(ps.Gaussian(sigma=3), ps.Gaussian(sigma=3), failure=1e-8, calibrated=calibrated)
    assert ps.Selection(base, ps.Fixed(k=1)).epsilon_at(1e-6).upper == pytest.approx(base.epsilon_at(1e-6).upper, rel=1e-3)
    assert ps.Selection(base, ps.Geometric(mean=10)).epsilon_at(1e-5).upper > base.epsilon_at(1e-5).upper


@pytest.mark.parametrize(
    "text",
    [
        "ptr(gaussian(sigma=4), gaussian(sigma=2), failure=1e-07)",
        "ptr(discrete_laplace(scale=3, neighbours=add_remove), gaussian(sigma=2, neighbours=add_remove), failure=0.001)",
        "ptr(composed(gaussian(sigma=4), gaussian(sigma=5)), pure(epsilon=1), failure=1e-07, calibrated=True)",
        "ptr(pure(epsilon=0.5), ptr(pure(epsilon=0.5), pure(epsilon=1), failure=0.1), failure=0)",
    ],
)
def test_text_form(text):
    mechanism = ps.parse(text)
    assert isinstance(mechanism, ProposeTestRelease)
    assert str(mechanism) == text
    assert ps.parse(str(mechanism)) == mechanism
    assert hash(ps.parse(str(mechanism))) == hash(mechanism)


def test_the_parts_agree_on_neighbours():
    parts = ps.DiscreteLaplace(scale=3, neighbours="add_remove"), ps.Gaussian(sigma=2)
    assert ProposeTestRelease(*parts, failure=0.1).neighbours == "add_remove"
    with pytest.raises(NeighbourError):
        ProposeTestRelease(parts[0], ps.Gaussian(sigma=2, neighbours="replace_one"), failure=0.1)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: ptr(failure=1.5), "`failure` must be in [0, 1], got 1.5"),
        (lambda: ptr(failure=-1e-9), "`failure` must be in [0, 1], got -1e-09"),
        (lambda: ptr(failure=math.nan), "`failure` must be in [0, 1], got nan"),
        (lambda: ptr(failure="0.1"), "`failure` must be in [0, 1], got '0.1'"),
        (lambda: ptr(calibrated=2), "`calibrated` must be True or False, got 2"),
        (lambda: ptr(test=0.5), "`test` must be a mechanism such as gaussian(sigma=4), got 0.5"),
        (lambda: ptr(target=ps.Geometric(mean=3)), "`target` must be a mechanism such as gaussian(sigma=4), got geometric(mean=3)"),
        (lambda: thm_gptr((-1.0, 0.1), (1.0, 0.1), 0.1), "`epsilon` must be in [0, inf), got -1.0"),
        (lambda: thm_gptr((1.0, 0.1), (1.0, 1.1), 0.1), "`delta` must be in [0, 1], got 1.1"),
        (lambda: thm_gptr((1.0, 0.1), (1.0, 0.1), -0.1), "`failure` must be in [0, 1], got -0.1"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_sentence(make, sentence):
    with pytest.raises(ParameterError) as caught:
        make()
    assert str(caught.value) == sentence


def ptr(test=None, target=None, failure=0.1, calibrated=False):
    parts = (ps.Gaussian(sigma=2) if part is None else part for part in (test, target))
    return ProposeTestRelease(*parts, failure=failure, calibrated=calibrated)


def test_a_text_form_without_a_failure_is_refused():
    with pytest.raises(TextFormError, match="`ptr` needs `failure`"):
        ps.parse("ptr(gaussian(sigma=4), gaussian(sigma=2))")
