"""The stored epsilons of composed mechanisms and the script that made them cannot drift apart, and the script agrees with closed forms."""

import json

import mpmath as mp
import pytest

from closed_forms import DIGITS, gaussian_hockey, laplace_hockey
from references import make_composed as oracle

TABLE = json.loads(oracle.TABLE.read_text(encoding="utf-8"))
QUICK = (oracle.CIFAR, "composed(gaussian(sigma=4), laplace(scale=2))", "composed(discrete_gaussian(sigma=2), times=10)")
WITHIN = 1e-18  # the integrals leave out 20 digits below their largest term


def shown(line):
    return f"{line['mechanism']} at {line['delta']}"


def near(value):
    return pytest.approx(value, rel=WITHIN)


def test_the_table_holds_the_cases_of_the_script():
    asked = [(text, delta) for text, deltas in oracle.CASES.items() for delta in deltas.split()]
    assert [(line["mechanism"], line["delta"]) for line in TABLE] == asked


@pytest.mark.parametrize("line", [line for line in TABLE if line["mechanism"] in QUICK], ids=shown)
def test_the_script_gives_the_stored_epsilon(line):
    assert oracle.case(line["mechanism"], line["delta"]) == line


@pytest.mark.slow
@pytest.mark.parametrize("line", TABLE[::9], ids=shown)
def test_the_script_gives_every_ninth_epsilon(line):
    assert oracle.case(line["mechanism"], line["delta"]) == line


@pytest.mark.parametrize(("sigma", "times", "delta"), [("0.3", 1, "1e-30"), ("4", 10, "1e-6"), ("100", 1, "1e-3")])
def test_gaussians_have_their_closed_form(sigma, times, delta):
    epsilon, _ = oracle.epsilon_at(f"composed(gaussian(sigma={sigma}), times={times})", delta)
    with mp.workdps(DIGITS):
        assert gaussian_hockey(mp.sqrt(times) / mp.mpf(float(sigma)), epsilon) == near(mp.mpf(delta))


@pytest.mark.parametrize("reverse", [False, True])
def test_one_sampled_step_has_its_closed_form(reverse):
    with mp.workdps(DIGITS):
        step, delta = oracle.Sampled(mp.mpf(6), mp.mpf("0.3")), mp.mpf("1e-6")
        epsilon, _ = oracle.epsilon_by_integral([(step, 1)], delta, reverse=reverse)
        found = 1 - mp.exp(epsilon) * (1 - oracle.sampled_hockey(step, -epsilon)) if reverse else oracle.sampled_hockey(step, epsilon)
        assert found == near(delta)


def test_a_laplace_step_may_be_conditioned_on():
    """The hockey stick of two steps is the mean, over the first law of one step, of the other's at epsilon minus the loss."""
    most = mp.mpf(1) / 2

    def conditioned(hockey, epsilon, kinks=()):
        atoms = hockey(epsilon - most) / 2 + mp.exp(-most) * hockey(epsilon + most) / 2
        return atoms + mp.quad(lambda loss: mp.exp((loss - most) / 2) / 4 * hockey(epsilon - loss), sorted([-most, *kinks, most]))

    with mp.workdps(DIGITS):
        epsilon = mp.mpf("0.7")
        twice = conditioned(lambda x: laplace_hockey(2, x), epsilon, [epsilon - most])
        assert oracle.laplace_hockey(mp.mpf(2), 2, epsilon) == near(twice)
        epsilon, _ = oracle.epsilon_at("composed(gaussian(sigma=4), laplace(scale=2))", "1e-15")
        assert conditioned(lambda x: gaussian_hockey(0.25, x), epsilon) == near(mp.mpf("1e-15"))
