"""log phi'(1-u) against mpmath with 50 digits."""

import dataclasses
import math
import random

import numpy as np
import pytest
from counts_reference import log_dpgf

from privselect.counts import Binomial, Finite, Fixed, Geometric, Logarithmic, NegativeBinomial, Poisson
from privselect.errors import ParameterError

SMALL = [0.0, 1e-300, 1e-30, 1e-12]
LARGE = [0.01, 0.1, 0.3, 0.5, 0.75, 0.9, 0.999, 1 - 1e-9, 1 - 2.0**-53, 1.0]

UNCAPPED = [
    Geometric(mean=1),
    Geometric(mean=30),
    Geometric(mean=1e9),
    Geometric(gamma=1e-100),
    Logarithmic(mean=30),
    Logarithmic(mean=1e9),
    NegativeBinomial(eta=-0.5, mean=30),
    NegativeBinomial(eta=-0.5, mean=1e9),
    NegativeBinomial(eta=-0.9, mean=1e9),
    NegativeBinomial(eta=-0.999999, mean=1.0001),
    NegativeBinomial(eta=1e-12, mean=30),
    NegativeBinomial(eta=-1e-12, mean=1e9),
    NegativeBinomial(eta=5, mean=300),
    NegativeBinomial(eta=5, mean=1.5),
    NegativeBinomial(eta=1000, mean=1e9),
    NegativeBinomial(eta=2, gamma=1 - 2.0**-53),
    Poisson(mean=1e-9),
    Poisson(mean=10),
    Poisson(mean=1e9),
    Binomial(n=1, p=0.3),
    Binomial(n=20, p=0.5),
    Binomial(n=10**9, p=0.3),
    Binomial(n=10**9, p=1e-9),
    Binomial(n=1000, p=1 - 1e-10),
    Binomial(n=20, p=1),
    Fixed(k=1),
    Fixed(k=8),
    Fixed(k=10**9),
    Finite({0: 1, 5: 9}),
    Finite({1: 1, 7: 3, 1000: 1}),
    Finite({k: 1 + k % 7 for k in range(1, 1025)}),
    Finite({3: 1, 500: 10**6, 501: 1, 1026: 7}),
    Finite({0: 10**40, 1: 1, 3: 10**299}),
]

CAPPED = [
    Geometric(mean=30, cap=1),
    Geometric(mean=30, cap=120),
    Geometric(mean=30, cap=2000),
    Geometric(mean=1e9, cap=10),
    Geometric(mean=1e9, cap=10**6),
    Geometric(mean=1e9, cap=3 * 10**9),
    Logarithmic(mean=30, cap=300),
    Logarithmic(mean=30, cap=2500),
    Logarithmic(mean=1e9, cap=10**6),
    Logarithmic(mean=1e9, cap=10**9),
    NegativeBinomial(eta=-0.5, mean=30, cap=1000),
    NegativeBinomial(eta=-0.5, mean=1e9, cap=10**9),
    NegativeBinomial(eta=-0.9, mean=1e9, cap=10**5),
    NegativeBinomial(eta=1e-12, mean=1e5, cap=10**6),
    NegativeBinomial(eta=-1e-9, mean=30, cap=400),
    NegativeBinomial(eta=0.5, mean=1e6, cap=5000),
    NegativeBinomial(eta=5, mean=300, cap=400),
    NegativeBinomial(eta=5, mean=1e9, cap=10**9),
    NegativeBinomial(eta=5, mean=1e6, cap=10**4),
    NegativeBinomial(eta=50, mean=1e4, cap=2000),
    NegativeBinomial(eta=50, mean=1.01, cap=3),
    Poisson(mean=10, cap=12),
    Poisson(mean=1000, cap=10),
    Poisson(mean=1e9, cap=2),
    Poisson(mean=1e9, cap=2000),
    Poisson(mean=1000, cap=1000),
    Poisson(mean=1000, cap=700),
    Poisson(mean=1e6, cap=998_000),
    Poisson(mean=1e7, cap=10**7),
    Poisson(mean=1e9, cap=999_000_000),
    Poisson(mean=1e-9, cap=3),
    Binomial(n=20, p=0.5, cap=12),
    Binomial(n=20, p=0.5, cap=20),
    Binomial(n=1000, p=0.5, cap=999),
    Binomial(n=1000, p=0.999, cap=990),
    Binomial(n=10**6, p=0.5, cap=499_000),
    Binomial(n=10**6, p=0.001, cap=980),
    Binomial(n=10**7, p=0.3, cap=3 * 10**6),
    Binomial(n=10**9, p=0.3, cap=299_700_000),
    Fixed(k=8, cap=10),
    Finite({0: 1, 5: 9, 11: 4}, cap=7),
]


def points(law):
    """Return u from 1e-300 to 1, and around the scale 1/m on which phi' falls."""
    scale = [s / max(law.expected(), 1.0) for s in (1e-3, 0.03, 0.3, 1.0, 3.0, 30.0)]
    return sorted({*SMALL, *LARGE, *(u for u in scale if u <= 1.0)})


def close(found, wanted):
    """Check a relative error of 1e-12 in phi', or of 16 units in the last place of its log: at log phi' = -1e9 one unit is 1e-7."""
    if math.isinf(wanted):
        return found == wanted
    return abs(found - wanted) <= 1e-12 + 16 * 2.0**-53 * abs(wanted)


@pytest.mark.parametrize("law", UNCAPPED + CAPPED, ids=str)
def test_against_fifty_digits(law):
    where = points(law)
    found = law.log_dpgf(np.array(where))
    assert found.dtype == np.float64
    for u, value in zip(where, found, strict=True):
        wanted = log_dpgf(law, u)
        assert close(value, wanted), (u, value, float(wanted), float(value - wanted))


@pytest.mark.parametrize(
    "law", [Poisson(mean=1e9, cap=10**9), Binomial(n=10**9, p=0.3, cap=3 * 10**8), Poisson(mean=1e6, cap=998_000)], ids=str
)
def test_tilted_mean_near_the_cap(law):
    """The hardest case: a tail near its mean, computed by an integral and by continued fractions from both sides."""
    spread = math.sqrt(law.cap) / law.cap
    start = max(0.0, 1.0 - law.cap / law._mean())
    for u in (1e-300, *(start + z * spread for z in (0.01, 0.999, 1.001, 20.0))):
        value, wanted = float(law.log_dpgf(u)), log_dpgf(law, u)
        assert close(value, wanted), (u, value, float(wanted), float(value - wanted))


@pytest.mark.parametrize(
    "law", [Geometric(mean=30), Poisson(mean=3, cap=4), Poisson(mean=1e6, cap=998_000), Fixed(k=2), Finite({1: 1, 2: 1})], ids=str
)
def test_keeps_the_shape_of_u(law):
    assert law.log_dpgf(0.5).shape == ()
    assert law.log_dpgf([]).shape == (0,)
    u = np.linspace(0, 1, 12).reshape(3, 4)
    assert law.log_dpgf(u).shape == (3, 4)
    assert np.array_equal(law.log_dpgf(u)[1], law.log_dpgf(u[1]))


def random_law(source):
    def about(low, high):
        return math.exp(source.uniform(math.log(low), math.log(high)))

    law = source.choice(
        [
            lambda: Geometric(mean=about(1, 1e9)),
            lambda: Logarithmic(mean=about(1, 1e9)),
            lambda: NegativeBinomial(eta=source.uniform(-0.95, 20), mean=about(1, 1e9)),
            lambda: NegativeBinomial(eta=source.choice([-1, 1]) * about(1e-18, 1e-2), mean=about(1, 1e9)),
            lambda: Poisson(mean=about(1e-6, 1e7)),
            lambda: Binomial(n=round(about(1, 1e7)), p=source.choice([source.random(), about(1e-7, 1), 1 - about(1e-12, 0.5)])),
        ]
    )()
    if source.random() < 0.3:
        return law
    mean = law.expected()
    cap = source.choice([about(1, 1e6), mean * about(0.3, 3), mean + 3 * source.gauss() * math.sqrt(mean)])
    try:
        return dataclasses.replace(law, cap=max(1, round(cap)))
    except ParameterError:
        return law


@pytest.mark.soak
def test_many_laws_against_fifty_digits(campaign):
    source = random.Random(5)  # noqa: S311 -- a reproducible test
    for _ in range(campaign(20_000)):
        law = random_law(source)
        scale = min(1.0, 10 ** source.uniform(-3, 1.5) / max(1.0, law.expected()))
        for u in (0.0, 10 ** source.uniform(-300, 0), 10 ** source.uniform(-12, 0), scale, 1 - 10 ** source.uniform(-16, 0)):
            value, wanted = float(law.log_dpgf(u)), log_dpgf(law, u)
            assert close(value, wanted), (law, u, value, float(wanted), float(value - wanted))


def test_a_long_table_is_summed_in_chunks():
    law = Finite({k: k for k in range(1, 20_001)})
    u = np.linspace(0.0, 1e-3, 500)
    piecemeal = law.log_dpgf(u)
    assert np.array_equal(piecemeal, [float(law.log_dpgf(x)) for x in u])
