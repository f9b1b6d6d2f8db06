"""What is known of each noise, held against sums and closed forms in many digits."""

import mpmath
import numpy as np
import pytest

import privselect as ps
from closed_forms import discrete_hockey, laplace_hockey
from privselect.errors import ParameterError
from privselect.noisy_max import Exponential, Gumbel, NoisyMax
from privselect.noisy_max.accounting.noise_accounting import accounting_of

GAPS = [1, 2]
SHARES = [0.0, 0.1, 0.5, 0.9, 0.99, 1.1]
ORDERS = [1.0001, 1.5, 2.0, 30.0]


def assert_held(bracket, epsilon, true, relative):
    """The truth lies between the two ends, and they near each other."""
    upper = float(bracket.upper.hockey_stick(epsilon, side=1))
    lower = max(float(low.hockey_stick(epsilon, side=-1)) for low in bracket.lowers)
    assert lower <= true <= upper
    assert upper - lower <= relative * float(true) + 1e-9


@pytest.mark.parametrize("gap", GAPS)
@pytest.mark.parametrize("scale", [0.05, 1.0, 40.0])
def test_laplace_noise_moved_up(scale, gap):
    bracket = accounting_of(ps.Laplace(scale=scale)).shift_bracket(gap)
    for share in SHARES:
        epsilon = share * gap / scale
        assert_held(bracket, epsilon, laplace_hockey(mpmath.mpf(scale) / gap, epsilon), 0.01)


def gumbel_moved(scale, gap, epsilon):
    """Where u = exp(-x/scale) is small enough: exponential distributions of rates t and 1."""
    with mpmath.workdps(40):
        most = mpmath.mpf(gap) / mpmath.mpf(scale)
        rate = mpmath.exp(most)
        u = max((most - epsilon) / (rate - 1), 0)
        return -mpmath.expm1(-rate * u) + mpmath.exp(mpmath.mpf(epsilon)) * mpmath.expm1(-u)


@pytest.mark.parametrize("gap", GAPS)
@pytest.mark.parametrize("scale", [0.05, 1.0, 40.0])
def test_gumbel_noise_moved_up(scale, gap):
    bracket = accounting_of(Gumbel(scale=scale)).shift_bracket(gap)
    for share in SHARES:
        assert_held(bracket, share * gap / scale, gumbel_moved(scale, gap, share * gap / scale), 0.01)


@pytest.mark.parametrize("gap", GAPS)
def test_exponential_noise_moved_up(gap):
    bracket = accounting_of(Exponential(scale=3)).shift_bracket(gap)
    for share in SHARES:
        epsilon = share * gap / 3
        assert_held(bracket, epsilon, max(-mpmath.expm1(epsilon - mpmath.mpf(gap) / 3), 0), 1e-9)


def whole_moved(log_weight, gap, reach):
    """Both distributions on all outcomes, in many digits."""
    with mpmath.workdps(60):
        weights = [mpmath.exp(log_weight(mpmath.mpf(k))) for k in range(reach + 3)]
        total = weights[0] + 2 * mpmath.fsum(weights[1:])
        outcomes = range(-reach, reach + 1)
        return [weights[abs(k - gap)] / total for k in outcomes], [weights[abs(k)] / total for k in outcomes]


@pytest.mark.parametrize("gap", GAPS)
@pytest.mark.parametrize("sigma", [0.1, 0.5, 3.0, 121.0])
def test_discrete_gaussian_noise_moved_up(sigma, gap):
    p, q = whole_moved(lambda k: -k * k / (2 * mpmath.mpf(sigma) ** 2), gap, int(20 * sigma) + 20)
    bracket = accounting_of(ps.DiscreteGaussian(sigma=sigma)).shift_bracket(gap)
    for standard in (-1.0, 0.0, 1.0, 3.0, 5.3):
        epsilon = gap / sigma * (standard + 0.5 * gap / sigma)
        assert_held(bracket, epsilon, discrete_hockey(p, q, epsilon), 0.02)


def test_moving_by_two_is_not_half_the_sigma():
    """Outcomes lie as far apart as before: at sigma 0.5 most of the noise is 0, and 1 lies half-way between 0 and 2."""
    moved = accounting_of(ps.DiscreteGaussian(sigma=0.5)).shift_bracket(2).upper
    half = ps.DiscreteGaussian(sigma=0.25).brackets[0].upper
    epsilon = 5.0
    assert float(moved.hockey_stick(epsilon)) < 0.9 < float(half.hockey_stick(epsilon))


@pytest.mark.parametrize("sigma", [1e-3, 0.03, 0.05])
@pytest.mark.parametrize("gap", GAPS)
def test_a_tiny_discrete_gaussian_leaks_nearly_everything(sigma, gap):
    """Of sigma 0.05 moved by 2, the outcome half-way has odds of e^-200 only: more is not claimed from below."""
    bracket = accounting_of(ps.DiscreteGaussian(sigma=sigma)).shift_bracket(gap)
    p, q = whole_moved(lambda k: -k * k / (2 * mpmath.mpf(sigma) ** 2), gap, 6)
    for epsilon in (0.0, 100.0, 160.0):
        true = discrete_hockey(p, q, epsilon)
        assert all(float(low.hockey_stick(epsilon, side=-1)) <= true for low in bracket.lowers)
        assert float(bracket.upper.hockey_stick(epsilon, side=1)) >= true


@pytest.mark.parametrize("gap", GAPS)
@pytest.mark.parametrize("scale", [0.1, 2.0, 20.0])
def test_discrete_laplace_noise_moved_up(scale, gap):
    p, q = whole_moved(lambda k: -k / mpmath.mpf(scale), gap, int(60 * scale) + 10)
    bracket = accounting_of(ps.DiscreteLaplace(scale=scale)).shift_bracket(gap)
    for share in SHARES:
        assert_held(bracket, share * gap / scale, discrete_hockey(p, q, share * gap / scale), 1e-6)


def density_renyi(log_density, gap, alpha, ends):
    """By quadrature between the ends and the kinks."""
    with mpmath.workdps(30):
        alpha = mpmath.mpf(alpha)
        total = mpmath.quad(lambda x: mpmath.exp(alpha * log_density(x - gap) + (1 - alpha) * log_density(x)), ends)
        return mpmath.log(total) / (alpha - 1)


@pytest.mark.parametrize("gap", GAPS)
@pytest.mark.parametrize("alpha", ORDERS)
def test_renyi_of_continuous_noise(gap, alpha):
    laplace = density_renyi(lambda x: -abs(x) / 3 - mpmath.log(6), gap, alpha, [-300, -50, 0, gap, 50, 300])
    gumbel = density_renyi(lambda x: -x / 3 - mpmath.exp(-x / 3) - mpmath.log(3), gap, alpha, [-25, -5, 0, 5, 20, 100, 400])
    for noise, true in ((ps.Laplace(scale=3), laplace), (Gumbel(scale=3), gumbel)):
        found = float(accounting_of(noise).renyi(gap, np.array([alpha]))[0])
        assert true * (1 - 1e-12) <= found <= true * (1 + 1e-10)
    assert float(accounting_of(Exponential(scale=3)).renyi(gap, np.array([alpha]))[0]) == pytest.approx(gap / 3, rel=1e-14)


@pytest.mark.parametrize("scale", [1e6, 1e8])
def test_renyi_of_wide_noise_keeps_its_digits(scale):
    """Near ``alpha g^2/2`` for Laplace and Gumbel noise of g = 1/scale, where a logarithm near 0 would lose them all."""
    for noise in (ps.Laplace(scale=scale), Gumbel(scale=scale)):
        for alpha in (1.001, 2.0, 10.0):
            assert float(accounting_of(noise).renyi(1, np.array([alpha]))[0]) == pytest.approx(0.5 * alpha / scale**2, rel=1e-4)


def test_renyi_of_a_wide_laplace_mechanism_is_never_below_the_truth():
    with mpmath.workdps(60):
        for scale in (1e4, 1e6, 1e9):
            for alpha in (1.001, 1.01, 2.0, 50.0):
                g, a = 1 / mpmath.mpf(scale), mpmath.mpf(alpha)
                true = mpmath.log((a * mpmath.exp((a - 1) * g) + (a - 1) * mpmath.exp(-a * g)) / (2 * a - 1)) / (a - 1)
                found = float(ps.Laplace(scale=scale).renyi_at(alpha))
                assert true <= found <= true * (1 + 1e-12)


@pytest.mark.parametrize("gap", GAPS)
@pytest.mark.parametrize("alpha", ORDERS)
@pytest.mark.parametrize("size", [0.3, 2.0, 8.0])
def test_renyi_of_integer_noise(gap, alpha, size):
    for noise, log_weight, reach in (
        (ps.DiscreteLaplace(scale=size), lambda k: -k / mpmath.mpf(size), int(90 * size) + 60),
        (ps.DiscreteGaussian(sigma=size), lambda k: -k * k / (2 * mpmath.mpf(size) ** 2), int(14 * size) + 90),
    ):
        p, q = whole_moved(log_weight, gap, reach)
        with mpmath.workdps(60):
            order = mpmath.mpf(alpha)
            true = mpmath.log(mpmath.fsum(a**order * b ** (1 - order) for a, b in zip(p, q, strict=True))) / (order - 1)
        found = float(accounting_of(noise).renyi(gap, np.array([alpha]))[0])
        assert true * (1 - 1e-12) <= found
        if isinstance(noise, ps.DiscreteLaplace):
            assert found <= true * (1 + 1e-10)


@pytest.mark.parametrize(
    "noise",
    [
        ps.Gaussian(sigma=2),
        ps.Laplace(scale=2),
        Gumbel(scale=2),
        Exponential(scale=2),
        ps.DiscreteGaussian(sigma=2),
        ps.DiscreteLaplace(scale=2),
        ps.DiscreteGaussian(sigma=1500),
    ],
    ids=str,
)
def test_both_tails_add_up_and_fall(noise):
    known = accounting_of(noise)
    width = 1500.0 if str(noise).endswith("1500)") else 2.0
    x = width * np.linspace(-12.0, 12.0, 4001)
    below, above = known.cdf(x), known.survival(x)
    np.testing.assert_allclose(below + above, 1.0, rtol=0.0, atol=1e-14)
    assert np.all(np.diff(below) >= -1e-16)
    assert np.all(np.diff(above) <= 1e-16)


@pytest.mark.parametrize("sigma", [0.4, 3.0, 1001.0])
def test_the_tail_of_discrete_gaussian_noise_keeps_its_digits(sigma):
    known = accounting_of(ps.DiscreteGaussian(sigma=sigma))
    with mpmath.workdps(40):
        for standard in (0.1, 3.0, 20.0):
            k = int(standard * sigma) + 1
            total = mpmath.jtheta(3, 0, mpmath.exp(-1 / (2 * mpmath.mpf(sigma) ** 2)))
            tail = (
                mpmath.fsum(mpmath.exp(-(mpmath.mpf(j) ** 2) / (2 * mpmath.mpf(sigma) ** 2)) for j in range(k, k + int(8 * sigma) + 20))
                / total
            )
            assert float(known.survival(np.array([float(k)]))[0]) == pytest.approx(float(tail), rel=1e-11)
            assert float(known.cdf(np.array([1.0 - k]))[0]) == pytest.approx(float(tail), rel=1e-11)


def test_half_way_between_integers_a_tail_is_half_way():
    for noise in (ps.DiscreteGaussian(sigma=2), ps.DiscreteLaplace(scale=2)):
        tail = accounting_of(noise).survival(np.array([-3.0, -2.5, -2.0, 4.0, 4.5, 5.0]))
        np.testing.assert_allclose(tail[[1, 4]], 0.5 * (tail[[0, 3]] + tail[[2, 5]]), rtol=1e-14)


def test_only_noise_that_is_fit_for_it_is_released_alone():
    for noise in (ps.Gaussian(sigma=2), ps.Laplace(scale=2), ps.DiscreteGaussian(sigma=2), ps.DiscreteLaplace(scale=2)):
        assert accounting_of(noise).single_release == noise
    assert accounting_of(Gumbel(scale=2)).single_release is accounting_of(Exponential(scale=2)).single_release is None


@pytest.mark.parametrize("text", ["gumbel(scale=2)", "exponential(scale=0.5)", "gumbel(scale=2, neighbours=add_remove)"])
def test_text_forms(text):
    assert str(ps.parse(text)) == text
    assert ps.parse(str(ps.parse(text))) == ps.parse(text)


@pytest.mark.parametrize("text", ["gumbel(scale=0)", "exponential(scale=-1)", "gumbel(scale=0.001)"])
def test_a_scale_that_is_invalid(text):
    with pytest.raises(ParameterError, match=r"`scale` must be in \[0.00142857, inf\), got"):
        ps.parse(text)


@pytest.mark.parametrize("text", ["selection(gumbel(scale=2), geometric(mean=3))", "composed(exponential(scale=2), times=3)"])
def test_noise_for_a_choice_is_not_a_mechanism(text):
    with pytest.raises(ParameterError, match=r"mechanism.*, got (gumbel|exponential)\(scale=2\)"):
        ps.parse(text)


@pytest.mark.parametrize("kind", [ps.Laplace, Gumbel, Exponential, ps.DiscreteLaplace])
@pytest.mark.parametrize("scale", [1 / 700, 0.0028, 1e18, 1e300])
def test_the_smallest_and_the_widest_noise(kind, scale):
    found = NoisyMax(kind(scale=scale), m=3).epsilon_at(1e-6)
    assert (found.lower or 0.0) <= found.upper
    assert found.upper >= 300 or found.upper == 0.0
