import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference_theorems import cor_pointwise_epsilon

from privselect.counts import Binomial, Fixed, Geometric, Logarithmic, NegativeBinomial, Poisson
from privselect.errors import NotCoveredError, ParameterError
from privselect.mechanisms import Gaussian
from privselect.pairs import DominatingPair
from privselect.selection.bounds.paper_bounds import (
    cor_adjust,
    cor_binomial_to_poisson,
    cor_binomial_to_poisson_epsilon,
    cor_pointwise,
    cor_pointwise0,
    lem_gdp,
    thm_hs_bin,
    thm_hs_bin_epsilon,
    thm_negbin,
    thm_negbin_epsilon,
)
from privselect.selection.bounds.ratio import log_ratio, ratio_delta

# Epsilon at delta = 1e-6 over a Gaussian base with noise 4, from an independent computation.
GAUSSIAN = [
    ("negbin", Geometric(mean=30), 2.2883),
    ("negbin", Geometric(mean=300), 2.7938),
    ("negbin", Geometric(mean=3000), 3.2136),
    ("negbin", NegativeBinomial(eta=-0.5, mean=30), 1.6833),
    ("negbin", Logarithmic(mean=30), 1.9078),
    ("negbin", NegativeBinomial(eta=5, mean=30), 3.3369),
    ("poisson", Poisson(mean=10), 2.1765),
    ("binomial", Binomial(n=20, p=0.5), 2.4895),
]

NEGBINS = st.builds(NegativeBinomial, eta=st.floats(-0.95, 20.0), gamma=st.floats(1e-4, 0.999))
PAIRS = (
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=2, max_size=6)
    .filter(lambda w: sum(a for a, _ in w) > 0 and sum(b for _, b in w) > 0)
    .map(lambda w: DominatingPair.from_masses(*(np.array(w, dtype=float) / np.sum(w, axis=0)).T))
)
EPSILONS = np.linspace(0.0, 12.0, 25)


def both_ways(pair):
    return lambda epsilon: np.maximum(pair.hockey_stick(epsilon, side=1), pair.reverse.hockey_stick(epsilon, side=1))


def gaussian(sigma=4):
    return both_ways(Gaussian(sigma=sigma).brackets[0].upper)


SOLVERS = {"negbin": thm_negbin_epsilon, "poisson": cor_binomial_to_poisson_epsilon, "binomial": thm_hs_bin_epsilon}


@pytest.mark.parametrize(("family", "count", "expected"), GAUSSIAN, ids=str)
def test_the_table_for_a_gaussian_base(family, count, expected):
    assert SOLVERS[family](gaussian(), count, 1e-6) == pytest.approx(expected, rel=1e-3)


@settings(max_examples=50)
@given(PAIRS, NEGBINS)
def test_ratio_is_never_above_the_theorem(pair, count):
    # Both are rounded up, each by its own way; a shift of 1e-9 moves m delta by at most m 1e-9.
    slack = 1e-9 * count.expected()
    assert np.all(ratio_delta(pair, count, EPSILONS) <= thm_negbin(both_ways(pair), count, EPSILONS) + slack)


@settings(max_examples=50)
@given(PAIRS, st.integers(1, 60), st.floats(0.01, 0.95))
def test_ratio_is_never_above_the_binomial_theorem(pair, n, p):
    count = Binomial(n=n, p=p)
    assert np.all(ratio_delta(pair, count, EPSILONS) <= thm_hs_bin(both_ways(pair), count, EPSILONS) + 1e-9 * n)


@settings(max_examples=50)
@given(PAIRS, st.floats(0.01, 60.0))
def test_ratio_is_never_above_the_poisson_corollary(pair, mean):
    count = Poisson(mean=mean)
    assert np.all(ratio_delta(pair, count, EPSILONS) <= cor_binomial_to_poisson(both_ways(pair), count, EPSILONS) + 1e-9 * mean)


def test_for_binomial_and_poisson_ratio_gives_back_the_papers_optimum():
    pair = Gaussian(sigma=4).brackets[0].upper  # symmetric: one order is both
    for count, solver in ((Binomial(n=20, p=0.5), thm_hs_bin_epsilon), (Poisson(mean=10), cor_binomial_to_poisson_epsilon)):
        wanted = solver(gaussian(), count, 1e-6) - pair_epsilon(pair, 1e-6 / count.expected())
        assert log_ratio(pair, count) == pytest.approx(wanted, rel=1e-6)  # two searches of 1e-10 and the grid's own kinks


def pair_epsilon(pair, delta):
    low, high = 0.0, 50.0
    for _ in range(100):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if pair.hockey_stick(middle, side=1) <= delta else (middle, high)
    return high


@settings(max_examples=50)
@given(PAIRS, NEGBINS, st.floats(0.0, 3.0))
def test_a_corollary_is_never_below_its_theorem(pair, count, epsilon):
    profile = both_ways(pair)
    delta = float(profile(np.array(epsilon)))
    point, total = cor_pointwise(epsilon, delta, count)
    assert float(thm_negbin(profile, count, point)) <= total * (1.0 + 1e-9) + 1e-9 * count.expected()
    adjusted = cor_adjust(epsilon, delta, epsilon, count)
    assert adjusted <= point * (1.0 + 1e-12)
    assert float(thm_negbin(profile, count, adjusted)) <= total * (1.0 + 1e-9) + 1e-9 * count.expected()


@settings(max_examples=50)
@given(st.floats(0.0, 5.0), NEGBINS)
def test_the_pure_corollary(epsilon, count):
    s = 1.0 / (1.0 + math.exp(-epsilon))
    pair = DominatingPair.from_masses([s, 1.0 - s], [1.0 - s, s])
    found = cor_pointwise0(epsilon, count)
    assert found == pytest.approx((count.eta + 2.0) * epsilon)
    assert found == pytest.approx(cor_pointwise(epsilon, 0.0, count)[0])
    assert float(thm_negbin(both_ways(pair), count, found)) <= 1e-9 * count.expected()


@pytest.mark.parametrize("eta", [-0.5, 0, 1, 5])
@pytest.mark.parametrize("sigma", [0.5, 4, 50])
def test_the_gaussian_closed_form_is_above_the_theorem(eta, sigma):
    count = NegativeBinomial(eta=eta, mean=30)
    for delta in (1e-3, 1e-6, 1e-12):
        assert thm_negbin_epsilon(gaussian(sigma), count, delta) <= lem_gdp(sigma, count, delta)


@pytest.mark.parametrize(
    ("solver", "bound", "count"),
    [
        (thm_negbin_epsilon, thm_negbin, Geometric(mean=300)),
        (thm_hs_bin_epsilon, thm_hs_bin, Binomial(n=20, p=0.5)),
        (cor_binomial_to_poisson_epsilon, cor_binomial_to_poisson, Poisson(mean=10)),
    ],
)
def test_epsilon_and_delta_agree(solver, bound, count):
    for delta in (1e-2, 1e-6, 1e-15):
        epsilon = solver(gaussian(), count, delta)
        assert bound(gaussian(), count, epsilon) <= delta
        assert bound(gaussian(), count, epsilon * (1.0 - 1e-6)) > delta


def test_one_trial_gives_the_base_back():
    for count, bound in ((Geometric(mean=1), thm_negbin), (Binomial(n=1, p=0.999999), thm_hs_bin)):
        epsilon = np.array([0.0, 0.5, 1.0])
        assert bound(gaussian(), count, epsilon) == pytest.approx(gaussian()(epsilon), rel=2e-6)


def test_a_binomial_law_tends_to_poisson():
    poisson = cor_binomial_to_poisson_epsilon(gaussian(), Poisson(mean=10), 1e-6)
    previous = math.inf
    for n in (20, 100, 1000, 100_000):
        found = thm_hs_bin_epsilon(gaussian(), Binomial(n=n, p=10 / n), 1e-6)
        assert poisson <= found < previous
        previous = found
    assert previous == pytest.approx(poisson, rel=1e-4)


def test_the_pointwise_corollary_from_a_profile():
    count = Geometric(mean=30)
    found = cor_pointwise_epsilon(gaussian(), count, 1e-6)
    assert thm_negbin_epsilon(gaussian(), count, 1e-6) <= found
    base_delta = 1e-6 / 30
    assert found == pytest.approx(3.0 * pair_epsilon(Gaussian(sigma=4).brackets[0].upper, base_delta) + 2.0 * base_delta * 30, rel=1e-6)
    assert math.isinf(cor_pointwise_epsilon(lambda e: np.full_like(e, 0.1), count, 1e-6))


@pytest.mark.parametrize(
    ("call", "label"),
    [
        (lambda law: thm_negbin(gaussian(), law, 1.0), "thm:negbin"),
        (lambda law: cor_pointwise0(1.0, law), "cor:pointwise0"),
        (lambda law: cor_pointwise(1.0, 1e-6, law), "cor:pointwise"),
        (lambda law: cor_adjust(1.0, 1e-6, 2.0, law), "cor:adjust"),
        (lambda law: lem_gdp(4.0, law, 1e-6), "lem:GDP"),
        (lambda law: thm_hs_bin(gaussian(), law, 1.0), "thm:hs_bin"),
        (lambda law: cor_binomial_to_poisson(gaussian(), law, 1.0), "cor:binomial_to_poisson"),
    ],
)
@pytest.mark.parametrize(
    "law", [Geometric(mean=30, cap=90), Fixed(k=3), Poisson(mean=3, cap=9), Binomial(n=5, p=0.5, cap=4), Binomial(n=5, p=1)], ids=str
)
def test_a_law_outside_the_theorem_is_refused_in_one_sentence(call, label, law):
    with pytest.raises(NotCoveredError, match=rf"^{label} covers .* got {law.text_name}") as caught:
        call(law)
    assert "\n" not in str(caught.value)


def test_bad_numbers_are_refused():
    with pytest.raises(ParameterError, match="`epsilon`"):
        thm_negbin(gaussian(), Geometric(mean=30), -1.0)
    with pytest.raises(ParameterError, match="`delta`"):
        thm_negbin_epsilon(gaussian(), Geometric(mean=30), 0.0)
    with pytest.raises(ParameterError, match="`sigma`"):
        lem_gdp(math.nan, Geometric(mean=30), 1e-6)
