"""The default law of K: a public rule that few runs end with one candidate."""

import math

import pytest

import privselect as ps
from privselect.errors import ParameterError
from privselect.planning.default_law import MOST_SINGLE_TRIALS


def test_the_default_has_a_mean_of_twenty():
    assert ps.default_count() == ps.NegativeBinomial(eta=2, mean=20)


@pytest.mark.parametrize(
    ("mean", "law"),
    [
        (1, "negative_binomial(eta=5, mean=1)"),
        (5, "negative_binomial(eta=5, mean=5)"),
        (10, "negative_binomial(eta=5, mean=10)"),
        (30, "negative_binomial(eta=2, mean=30)"),
        (50, "geometric(mean=50)"),
        (1e9, "geometric(mean=1e9)"),
    ],
)
def test_a_smaller_mean_needs_a_larger_eta(mean, law):
    assert ps.default_count(mean) == ps.parse(law)


@pytest.mark.parametrize("mean", [9, 10, 17.5, 20, 49, 50, 1000])
def test_a_single_trial_is_rare(mean):
    law = ps.default_count(mean)
    assert math.exp(law.log_pmf(1)) <= MOST_SINGLE_TRIALS
    assert law.probability_of_zero() == 0.0
    assert law.expected() == pytest.approx(mean, rel=1e-9)


@pytest.mark.parametrize("mean", [2, 5, 10, 20])
def test_it_is_not_the_law_with_the_most_single_trials(mean):
    single = {law: math.exp(law.log_pmf(1)) for law in (ps.default_count(mean), ps.Geometric(mean=mean), ps.Logarithmic(mean=mean))}
    assert single[ps.default_count(mean)] == min(single.values())


@pytest.mark.parametrize("mean", [0.5, 0, -1, math.nan, math.inf, "20"])
def test_what_is_no_mean_is_refused(mean):
    with pytest.raises(ParameterError, match=r"`mean` must be in \[1, 1e\+15\], got"):
        ps.default_count(mean)
