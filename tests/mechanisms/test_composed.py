"""Composition: every stored epsilon lies in its interval, and composing in another way says the same."""

import json
import subprocess
import sys
from fractions import Fraction

import mpmath
import numpy as np
import pytest

import privselect as ps
from closed_forms import gaussian_hockey
from privselect.errors import NeighbourError, ParameterError, TextFormError
from privselect.mechanisms.neighbours import ADD_REMOVE, ANY, REPLACE_ONE
from references import make_composed as oracle

TABLE = json.loads(oracle.TABLE.read_text(encoding="utf-8"))
SLOW = ("dpsgd(noise_multiplier=0.7, sampling_probability=0.005, steps=5000)",)
STORED = 1e-11  # relative: an interval narrower than that may end between the stored digits and the next
DELTAS = (1e-3, 1e-6, 1e-12)
GAUSSIAN, LAPLACE, PURE = ps.Gaussian(sigma=4), ps.Laplace(scale=2), ps.Pure(epsilon=0.5)
LEAKY, POINTS = ps.Approximate(epsilon=0.4, delta=1e-9), ps.Points(((0.1, 1e-3), (1, 1e-9)))
WHOLE, SAMPLED = ps.DiscreteGaussian(sigma=2), ps.DPSGD(noise_multiplier=2, sampling_probability=0.05, steps=100)
MIXED = ps.Mixture(((0.5, GAUSSIAN), (0.5, ps.Gaussian(sigma=8))))
PARTS = (GAUSSIAN, LAPLACE, PURE, LEAKY, POINTS, WHOLE, MIXED, SAMPLED)


def composed(*parts, times=1):
    return ps.Composed(parts, times=times)


def stored(line):
    text, delta = line["mechanism"], line["delta"]
    return pytest.param(text, delta, line["epsilon"], id=f"{text} at {delta}", marks=[pytest.mark.slow] if text in SLOW else [])


@pytest.mark.parametrize(("text", "delta", "epsilon"), [stored(line) for line in TABLE])
def test_the_interval_holds_the_stored_epsilon(text, delta, epsilon):
    found = ps.parse(text).epsilon_at(float(delta))
    true = mpmath.mpf(epsilon)
    if found.upper - found.lower < STORED * found.upper:
        true, _ = oracle.epsilon_at(text, delta)  # all its digits
    assert found.lower <= true <= found.upper


def assert_overlap(one, other, within):
    """Two proofs about one number: neither may contradict the other, and both are as sharp as they say."""
    for found in (one, other):
        assert np.all(found.upper <= found.lower * (1.0 + within))
    assert np.all(one.lower <= other.upper)
    assert np.all(other.lower <= one.upper)


# -- identities ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("sigma", "times"), [(4.0, 10), (0.5, 3), (300.0, 10**6)])
def test_gaussians_are_one_gaussian(sigma, times):
    found = composed(ps.Gaussian(sigma=sigma), times=times).epsilon_at(DELTAS)
    for delta, lower, upper in zip(DELTAS, found.lower.tolist(), found.upper.tolist(), strict=True):
        mu = mpmath.sqrt(times) / mpmath.mpf(sigma)
        assert gaussian_hockey(mu, upper) <= delta <= gaussian_hockey(mu, lower)


@pytest.mark.parametrize("part", PARTS, ids=str)
def test_one_part_once_is_that_part(part):
    found, alone = composed(part).epsilon_at(DELTAS), part.epsilon_at(DELTAS)
    assert (found.lower.tolist(), found.upper.tolist()) == (alone.lower.tolist(), alone.upper.tolist())
    assert composed(part).neighbours == part.neighbours


@pytest.mark.parametrize("part", PARTS, ids=str)
def test_times_k_is_k_parts(part):
    together, apart = composed(part, times=3), composed(part, part, part)
    assert together.composition_steps() == apart.composition_steps()
    nested = composed(composed(part, part), part)
    assert nested.composition_steps() == together.composition_steps()
    ours, theirs = together.epsilon_at(DELTAS), nested.epsilon_at(DELTAS)
    assert (ours.lower.tolist(), ours.upper.tolist()) == (theirs.lower.tolist(), theirs.upper.tolist())


@pytest.mark.parametrize("part", [LAPLACE, LEAKY, WHOLE, MIXED], ids=str)
def test_three_in_two_rounds_are_three_at_once(part):
    """The first two as one step, by the pairs of their composition."""
    (two,), (three,) = composed(part, times=2).brackets, composed(part, times=3).brackets
    again = ps.pairs.compose.compose([(ps.pairs.compose.CompositionStep(two), 1), (part.composition_step(), 1)])
    for delta in DELTAS:
        assert again.upper.epsilon_at(delta, side=1) >= max(low.epsilon_at(delta, side=-1) for low in three.lowers)
        assert three.upper.epsilon_at(delta, side=1) >= max(low.epsilon_at(delta, side=-1) for low in again.lowers)


@pytest.mark.parametrize("parts", [(GAUSSIAN, LAPLACE, LEAKY), (WHOLE, PURE, SAMPLED), (MIXED, POINTS, GAUSSIAN)], ids=str)
def test_the_order_of_the_parts_does_not_matter(parts):
    one, other = composed(*parts).epsilon_at(DELTAS), composed(*reversed(parts)).epsilon_at(DELTAS)
    assert_overlap(one, other, within=5e-3)  # of a composition of pairs that are known by cells of their own
    np.testing.assert_allclose(one.upper, other.upper, rtol=1e-9)  # sums of the same numbers


def test_stages_of_the_same_training_are_one_training():
    def training(steps):
        return ps.DPSGD(noise_multiplier=1.1, sampling_probability=0.01, steps=steps)

    found, whole = composed(training(700), training(300)).epsilon_at(DELTAS), training(1000).epsilon_at(DELTAS)
    assert (found.lower.tolist(), found.upper.tolist()) == (whole.lower.tolist(), whole.upper.tolist())


def test_stages_of_different_noise_lie_between():
    def training(noise, steps):
        return ps.DPSGD(noise_multiplier=noise, sampling_probability=0.02, steps=steps)

    found = composed(training(1.5, 400), training(3, 600)).epsilon_at(DELTAS)
    assert np.all(training(3, 1000).epsilon_at(DELTAS).lower <= found.upper)
    assert np.all(found.lower <= training(1.5, 1000).epsilon_at(DELTAS).upper)


def test_few_sampled_steps_with_a_gaussian():
    found = composed(ps.DPSGD(noise_multiplier=1.1, sampling_probability=0.01, steps=30), ps.Gaussian(sigma=3)).epsilon_at(1e-6)
    assert found.upper <= found.lower * (1.0 + 1e-3)


@pytest.mark.parametrize("part", PARTS, ids=str)
def test_more_leaks_no_less(part):
    """Between the greater of the two and the simple sum of epsilons at half of delta each."""
    found = composed(part, LAPLACE).epsilon_at(DELTAS)
    halves = part.epsilon_at(np.array(DELTAS) / 2.0).upper + LAPLACE.epsilon_at(np.array(DELTAS) / 2.0).upper
    assert np.all(np.maximum(part.epsilon_at(DELTAS).lower, LAPLACE.epsilon_at(DELTAS).lower) <= found.upper)
    assert np.all(found.lower <= halves)


def test_leaks_add_up():
    found = composed(ps.Approximate(epsilon=0.1, delta=1e-7), times=20)
    assert found.epsilon_at(1e-6).upper == np.inf  # 20 leaks of 1e-7 are more than 1e-6
    assert found.epsilon_at(1e-5).upper <= 2.0
    assert found.delta_at(50.0).lower <= 1.0 - (1.0 - 1e-7) ** 20 * (1.0 - 1e-12)


@pytest.mark.parametrize("parts", [(GAUSSIAN, LAPLACE), (PURE, WHOLE, SAMPLED)], ids=str)
def test_renyi_divergences_add_up(parts):
    orders = np.array([1.5, 2.0, 8.0, 64.0])
    total = sum(part.renyi_at(orders) for part in parts)
    np.testing.assert_allclose(composed(*parts, times=5).renyi_at(orders), 5.0 * total, rtol=1e-12)


# -- text, and what is rejected -------------------------------------------------------------------------------------------

TEXTS = {
    "composed(gaussian(sigma=4), times=10)": composed(GAUSSIAN, times=10),
    "composed(gaussian(sigma=4))": composed(GAUSSIAN),
    "composed(gaussian(sigma=4), laplace(scale=2), pure(epsilon=0.5))": composed(GAUSSIAN, LAPLACE, PURE),
    "composed(composed(gaussian(sigma=4), times=2), laplace(scale=2), times=3)": composed(composed(GAUSSIAN, times=2), LAPLACE, times=3),
    "composed(mixture(1/2*gaussian(sigma=4), 1/2*gaussian(sigma=8)), pure(epsilon=0.5))": composed(MIXED, PURE),
    "composed(selection(gaussian(sigma=4), geometric(mean=5)), times=2)": composed(ps.Selection(GAUSSIAN, ps.Geometric(mean=5)), times=2),
    "selection(composed(gaussian(sigma=4), times=2), geometric(mean=5))": ps.Selection(composed(GAUSSIAN, times=2), ps.Geometric(mean=5)),
}


@pytest.mark.parametrize("text", TEXTS)
def test_one_text_form_read_and_written(text):
    assert str(TEXTS[text]) == text
    assert ps.parse(text) == TEXTS[text]
    assert hash(ps.parse(text)) == hash(TEXTS[text])


def test_a_single_part_needs_no_brackets():
    assert ps.Composed(GAUSSIAN, times=3) == composed(GAUSSIAN, times=3)


def test_parts_that_disagree_on_the_neighbours_are_rejected():
    replacing = ps.Gaussian(sigma=4, neighbours=REPLACE_ONE)
    with pytest.raises(NeighbourError, match="replace_one"):
        composed(replacing, SAMPLED)
    with pytest.raises(NeighbourError, match="add_remove"):
        composed(composed(replacing, LAPLACE), ps.Laplace(scale=1, neighbours=ADD_REMOVE))
    assert composed(GAUSSIAN, SAMPLED).neighbours == ADD_REMOVE
    assert composed(GAUSSIAN, LAPLACE).neighbours == ANY
    assert composed(GAUSSIAN, replacing).neighbours == REPLACE_ONE


TIMES = "`times` must be an integer >= 1 and <= 1000000000"


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: ps.Composed(()), "`composed` needs at least one part such as gaussian(sigma=4), got none"),
        (lambda: ps.Composed(None), "`parts` must be mechanisms, got None"),
        (lambda: ps.Composed(3), "`parts` must be mechanisms, got 3"),
        (lambda: ps.Composed((GAUSSIAN, 3)), "`composed` needs parts that are mechanisms, got 3"),
        (lambda: composed(ps.Fixed(k=2)), "`composed` needs parts that are mechanisms, got fixed(k=2)"),
        *((lambda t=times: composed(GAUSSIAN, times=t), f"{TIMES}, got {times!r}") for times in (0, -1, 1.5, 10**10, float("nan"), True)),
        (lambda: composed(LAPLACE, PURE, times=10**9), "`composed` takes at most 1000000000 steps in all, got 2000000000"),
        (
            lambda: composed(ps.DPSGD(1, 0.1, 10**6), times=1001),
            "`composed` takes at most 1000000000 steps in all, got 1001000000",
        ),
    ],
)
def test_invalid_input_is_rejected_in_one_sentence(make, sentence):
    with pytest.raises(ParameterError) as caught:
        make()
    assert str(caught.value) == sentence


@pytest.mark.parametrize("text", ["composed()", "composed(times=3)", "composed(0.5*gaussian(sigma=4))", "composed(gaussian(sigma=4), 10)"])
def test_a_text_that_is_invalid_is_rejected(text):
    with pytest.raises((ParameterError, TextFormError)):
        ps.parse(text)


@pytest.mark.parametrize(("large", "small"), [(400.0001, 2.6), (482.181, 2.602), (300.01, 0.7)])
def test_products_of_masses_that_are_no_float_are_not_taken_for_nothing(large, small):
    """Losses that large have second masses whose products underflow; all of it is pure DP, which the lower end must not exceed."""
    found = composed(ps.Points(((large, 0.0), (0.0003, 0.4))), ps.Pure(small)).epsilon_at(np.array([1e-6, 1e-12]))
    assert np.all(found.lower <= large + small)
    assert np.all(found.upper >= found.lower)


@pytest.mark.parametrize(
    "make",
    [
        lambda: ps.Mixture(((Fraction(1, 10**200), ps.Approximate(1.0, 1e-200)), (1 - Fraction(1, 10**200), ps.Pure(1.0)))),
        lambda: composed(ps.Points(((0.5, 1e-200), (20.0, 0.0))), times=2),
        lambda: ps.Selection(ps.Points(((0.5, 1e-200), (20.0, 0.0))), ps.Fixed(2)),
    ],
    ids=["mixture", "composed", "selection"],
)
def test_a_delta_too_small_for_a_float_is_not_said_to_be_0(make):
    """The truth is near 1e-400: 0 would claim pure DP."""
    found = make().delta_at(21.0 if "points" in str(make()) else 1.1)
    assert found.lower == 0.0 < found.upper < 1e-300


def test_four_leaks_of_the_smallest_floats():
    d = 2.27502e-318
    found = composed(ps.Points(((1.803204462746173, d),)), times=4).delta_at(7.4)
    with mpmath.workdps(700):
        assert found.lower <= 1 - (1 - mpmath.mpf(d)) ** 4 <= found.upper


def test_when_the_interpreter_is_about_to_end_there_is_no_thread_and_still_an_answer():
    asked = "ps.Composed((ps.Laplace(scale=2), ps.Laplace(scale=3))).epsilon_at(1e-6)"
    late = f"import atexit, privselect as ps\natexit.register(lambda: print({asked}))"
    out = subprocess.run([sys.executable, "-c", late], capture_output=True, text=True, check=True, timeout=120).stdout
    assert out.strip() == str(composed(LAPLACE, ps.Laplace(scale=3)).epsilon_at(1e-6))
