"""Noise given by its density and distribution function: what it leaks, and what is rejected."""

import numpy as np
import pytest
from scipy import stats

import privselect as ps
from privselect.errors import ParameterError, TextFormError
from privselect.noisy_max import Exponential, Gumbel, LogConcave, NoisyMax
from privselect.noisy_max.accounting.noise_accounting import ScoreChange, accounting_of

KNOWN = {
    "norm": (stats.norm(scale=4), ps.Gaussian(sigma=4)),
    "laplace": (stats.laplace(scale=2), ps.Laplace(scale=2)),
    "gumbel_r": (stats.gumbel_r(scale=2), Gumbel(scale=2)),
    "expon": (stats.expon(scale=2), Exponential(scale=2)),
}
NORMAL = stats.norm()
EPSILONS = np.array([0.0, 0.1, 0.3, 0.45, 0.7, 1.2])


def given_whole(frozen):
    return LogConcave.from_scipy(frozen)


def given_without_survival(frozen):
    return LogConcave(frozen.logpdf, frozen.cdf, name=frozen.dist.name)


@pytest.mark.parametrize("gap", [1, 2])
@pytest.mark.parametrize("name", KNOWN)
def test_a_known_density_leaks_as_known(name, gap):
    frozen, noise = KNOWN[name]
    found, known = accounting_of(given_whole(frozen)).shift_bracket(gap), accounting_of(noise).shift_bracket(gap)
    least = known.lowers[0].hockey_stick(EPSILONS, side=-1)
    most = known.upper.hockey_stick(EPSILONS, side=1)
    upper, lower = found.upper.hockey_stick(EPSILONS, side=1), found.lowers[0].hockey_stick(EPSILONS, side=-1)
    assert np.all(upper >= least)
    assert np.all(lower <= most)
    np.testing.assert_allclose(upper, most, rtol=2e-3, atol=1e-8)


@pytest.mark.parametrize("gap", [1, 2])
@pytest.mark.parametrize("name", KNOWN)
def test_without_survival_a_little_is_charged_in_full(name, gap):
    frozen, noise = KNOWN[name]
    found, known = accounting_of(given_without_survival(frozen)).shift_bracket(gap), accounting_of(noise).shift_bracket(gap)
    upper = found.upper.hockey_stick(EPSILONS, side=1)
    assert np.all(upper >= known.lowers[0].hockey_stick(EPSILONS, side=-1))
    np.testing.assert_allclose(upper, known.upper.hockey_stick(EPSILONS, side=1), rtol=2e-2, atol=1e-8)
    assert float(found.upper.hockey_stick(50.0)) >= 1e-15


def test_logistic_noise_against_its_closed_form():
    """Moved up by g = gap/scale, ``P(noise > x) = 1/(1 + e^(x - g))``, and the loss is above e from one x on, which bisection finds."""
    scale, gap = 2.0, 2
    g = gap / scale
    bracket = accounting_of(LogConcave.from_scipy(stats.logistic(scale=scale))).shift_bracket(gap)
    x = np.linspace(-60.0, 60.0, 2_000_001)
    for epsilon in (0.0, 0.2, 0.6, 0.9):
        true = float(np.max(1.0 / (1.0 + np.exp(x - g)) - np.exp(epsilon) / (1.0 + np.exp(x))))
        assert float(bracket.upper.hockey_stick(epsilon, side=1)) >= true - 1e-12
        assert float(bracket.upper.hockey_stick(epsilon, side=1)) == pytest.approx(true, rel=1e-4)
        assert float(bracket.lowers[0].hockey_stick(epsilon, side=-1)) <= true + 1e-12


def test_noise_in_an_interval_leaks_its_ends():
    bracket = accounting_of(LogConcave.from_scipy(stats.uniform(scale=5))).shift_bracket(2)
    assert float(bracket.upper.hockey_stick(30.0, side=1)) == pytest.approx(0.4, rel=1e-6)
    short = accounting_of(LogConcave.from_scipy(stats.uniform(scale=1.5))).shift_bracket(2)
    assert float(short.upper.hockey_stick(30.0, side=1)) == 1.0


@pytest.mark.parametrize(
    "frozen", [stats.logistic(scale=3), stats.beta(2, 3, scale=20), stats.gamma(2, scale=3)], ids=lambda f: f.dist.name
)
@pytest.mark.parametrize("given_as", [given_whole, given_without_survival])
def test_the_lower_bound_of_noisy_max_lies_below_the_upper(frozen, given_as):
    mechanism = NoisyMax(given_as(frozen), m=6)
    found = mechanism.delta_at(EPSILONS)
    assert np.all(found.lower <= found.upper)
    assert np.all(np.asarray(found.lower)[:3] > 0.1 * np.asarray(found.upper)[:3])


def test_instances_of_a_normal_density_are_those_of_gaussian_noise():
    moves = ScoreChange(5, 5, 2)
    epsilon = np.array([0.0, 0.5, 1.0, 1.5])
    given = accounting_of(LogConcave.from_scipy(stats.norm(scale=4))).instances(moves).delta(epsilon)
    own = accounting_of(ps.Gaussian(sigma=4)).instances(moves).delta(epsilon)
    assert np.all(given <= own * (1 + 1e-4))
    np.testing.assert_allclose(given, own, rtol=0.02)


def test_it_describes_itself_and_has_no_text_form():
    noise = LogConcave.from_scipy(stats.logistic(scale=3))
    assert str(noise) == "log_concave(logistic)"
    assert str(NoisyMax(noise, m=3)) == "noisy_max(log_concave(logistic), m=3)"
    with pytest.raises(TextFormError, match="has no text form, because its density is a function"):
        ps.parse(str(NoisyMax(noise, m=3)))


class Clumsy:
    """A normal distribution whose tail is what the rest leaves, which is scipy's default."""

    dist = stats.norm
    logpdf, cdf = staticmethod(NORMAL.logpdf), staticmethod(NORMAL.cdf)

    @staticmethod
    def sf(x):
        return 1.0 - NORMAL.cdf(x)


def test_a_tail_of_scipy_without_digits_is_left_out():
    noise = LogConcave.from_scipy(Clumsy())
    assert noise.survival is None
    assert LogConcave.from_scipy(NORMAL).survival is not None
    true = ps.Gaussian(sigma=1).delta_at(7.5).lower
    assert float(accounting_of(noise).shift_bracket(1).upper.hockey_stick(7.5, side=1)) >= true


def two_humps(x):
    return np.logaddexp(stats.norm.logpdf(x), stats.norm.logpdf(x - 4.0)) - np.log(2.0)


def two_humps_law(x):
    return 0.5 * (stats.norm.cdf(x) + stats.norm.cdf(x - 4.0))


REFUSED = {
    "heavy tails": (lambda: given_whole(stats.t(3)), r"`log_density` must be concave, got a chord that lies .* above it at"),
    "heavier tails": (lambda: given_whole(stats.cauchy()), "`log_density` must be concave"),
    "a pole": (lambda: given_whole(stats.gamma(0.5)), "`log_density` must be concave"),
    "lognormal": (lambda: given_whole(stats.lognorm(1)), "`log_density` must be concave"),
    "two humps": (lambda: LogConcave(two_humps, two_humps_law), "`log_density` must be concave, got a chord .* at 1.9999"),
    "a hole": (
        lambda: LogConcave(lambda x: np.where(np.abs(x) < 0.1, -np.inf, NORMAL.logpdf(x)), NORMAL.cdf),
        "`log_density` must be concave, got -inf at -0.0",
    ),
    "another scale": (lambda: LogConcave(NORMAL.logpdf, stats.norm(scale=1.001).cdf), "`distribution` must be the integral of the density"),
    "another height": (lambda: LogConcave(lambda x: NORMAL.logpdf(x) + 0.01, NORMAL.cdf), "`distribution` must be the integral"),
    "another place": (lambda: LogConcave(NORMAL.logpdf, stats.norm(loc=0.01).cdf), "`distribution` must be the integral"),
    "less than 1": (
        lambda: LogConcave(NORMAL.logpdf, lambda x: 0.9 * NORMAL.cdf(x)),
        "`distribution` must rise from 0 to 1, got a function",
    ),
    "falling": (lambda: LogConcave(NORMAL.logpdf, NORMAL.sf), "`distribution` must rise from 0 to 1"),
    "a jump": (lambda: LogConcave(NORMAL.logpdf, lambda x: 1.0 * (x > 0)), "`distribution` must rise from 0 to 1 without a jump"),
    "NaN": (lambda: LogConcave(lambda x: x * np.nan, NORMAL.cdf), "`log_density` must give numbers, got nan at"),
    "one number": (lambda: LogConcave(lambda _: 1.0, NORMAL.cdf), "`log_density` must give one float for each"),
    "words": (lambda: LogConcave(NORMAL.logpdf, lambda x: np.array(["a"] * len(x))), "`distribution` must give one float for each"),
    "another survival": (lambda: LogConcave(NORMAL.logpdf, NORMAL.cdf, lambda x: NORMAL.sf(x) / 2), "`survival` must be 1 - distribution"),
    "a survival of few digits": (
        lambda: LogConcave(NORMAL.logpdf, NORMAL.cdf, lambda x: 1.0 - NORMAL.cdf(x)),
        r"`survival` must keep its digits in the tail, got a function that loses them at [78]\.",
    ),
    "no function": (lambda: LogConcave(3, NORMAL.cdf), "`log_density` must be a function of an array, got 3"),
    "no distribution": (lambda: LogConcave(NORMAL.logpdf, None), "`distribution` must be a function of an array, got None"),
    "no name": (lambda: LogConcave(NORMAL.logpdf, NORMAL.cdf, name="my noise"), "`name` must be a name such as logistic, got 'my noise'"),
    "whole numbers": (lambda: LogConcave.from_scipy(stats.poisson(3)), "`frozen` must be a continuous distribution"),
    "no scipy": (lambda: LogConcave.from_scipy("norm"), "`frozen` must be a continuous distribution such as .*, got 'norm'"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_rejected(case):
    make, says = REFUSED[case]
    with pytest.raises(ParameterError, match=says) as refused:
        make()
    assert len(str(refused.value)) < 250
