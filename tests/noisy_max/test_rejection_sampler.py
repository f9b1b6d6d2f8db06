"""Each noise that is drawn has the distribution that is accounted for.

Every statistical test here looks at a p-value above 1e-7. With seeded entropy it is one fixed computation, which fails only if the code
changes the draws, and then falsely once in 1e7; with the operating system's, falsely once in 1e7 runs.
"""

import random

import numpy as np
import pytest
from drawn_noise import CDF, TAIL, chi_square, placed, seeded, whole_shares
from scipy.stats import kstest

import privselect as ps
from privselect.noisy_max.sampling.noise_samplers import sampler_for
from privselect.noisy_max.sampling.rejection_sampler import Density, RejectionSampler, cached_sampler, random_integers, random_words
from privselect.noisy_max.sampling.sample_grid import IntegerGrid, RealGrid

ALARM = 1e-7
NOISES = [ps.Gaussian(sigma=4), ps.Laplace(scale=0.3), ps.Gumbel(scale=2), ps.Exponential(scale=7)]
WHOLE = [
    *[ps.DiscreteGaussian(sigma=s) for s in (0.05, 0.3, 0.5, 1.0, 3.7, 64.0, 1000.3)],
    *[ps.DiscreteLaplace(scale=s) for s in (0.02, 0.4, 1.0, 2.5, 150.2)],
]
COARSE = RealGrid(box_bits=2, cell_bits=2)  # a sixteenth of a unit: very many points lie across the density


class Counting:
    """Counts how often single bits are asked for: only a tail does."""

    def __init__(self, source):
        self.source, self.tails = source, 0

    def getrandbits(self, k):
        self.tails += k == 1
        return self.source.getrandbits(k)


@pytest.mark.parametrize("entropy", [seeded(1), random.SystemRandom()], ids=["seeded", "system"])
@pytest.mark.parametrize("noise", NOISES, ids=str)
def test_continuous_noise_has_its_distribution(noise, entropy):
    shape, n = sampler_for(noise).shape, 400_000
    stairs = sampler_for(noise).sampler
    z = stairs.grid.bounds(stairs.sample(n, entropy).index)[0]
    edges = np.quantile(z[:2000], np.linspace(0.0, 1.0, 301)[1:-1])  # marked off by a few of the draws, which are left out
    found = np.bincount(np.searchsorted(edges, z[2000:]), minlength=300)
    assert chi_square(found, np.diff(np.concatenate([[0.0], CDF[shape](edges), [1.0]]))) > ALARM


@pytest.mark.parametrize("shape", Density)
def test_the_digits_within_a_cell_are_uniform(shape):
    """A distribution of the right masses in its cells could still be wrong within them."""
    stairs = cached_sampler(shape, RealGrid())
    z = stairs.grid.bounds(stairs.sample(200_000, seeded(2)).index)[0]
    assert kstest(CDF[shape](z), "uniform").pvalue > ALARM


@pytest.mark.parametrize("shape", Density)
@pytest.mark.parametrize("point_bits", [11, 14])
def test_points_across_the_density_and_in_the_tails_follow_the_distribution(shape, point_bits):
    """With few bits at first, one draw in ten or so is settled one by one, and tails are met hundreds of times."""
    stairs, entropy = RejectionSampler(shape, COARSE, point_bits), Counting(seeded(3))
    drawn = stairs.sample(15_000, entropy)
    assert len(drawn.refined) > 100
    assert entropy.tails > (15 if point_bits == 11 else 0)
    values = placed(stairs, drawn, seeded(4))
    assert kstest(CDF[shape](values), "uniform").pvalue > ALARM
    beyond = np.array([0.99, 0.999])
    for share in beyond if point_bits == 11 else []:
        count = int(np.sum(CDF[shape](values) > share))
        assert chi_square([count, len(values) - count], [1.0 - share, share]) > ALARM


@pytest.mark.parametrize(("shape", "which"), [(shape, which) for shape in Density for which in (0, 1) if not (which and shape.one_sided)])
def test_the_tails_alone_follow_the_distribution(shape, which):
    """A tail of the real staircase is met once in about 1e7 draws: here it is drawn from by itself."""
    coarse = shape is Density.GUMBEL and which  # falls so fast that almost nothing under the real tail is kept
    stairs, entropy = RejectionSampler(shape, RealGrid(8, 0), 8) if coarse else cached_sampler(shape, RealGrid()), seeded(5)
    places = [place for place in (stairs._in_tail(which, entropy) for _ in range(3000)) if place]
    assert len(places) > 80
    z, edge = np.array([float(place.start) for place in places]), stairs._tails[which].edge / 2.0**stairs.grid.unit_bits
    beyond = TAIL[shape] if which == 0 else CDF[shape]
    assert np.all(z > edge if which == 0 else z < edge)
    assert kstest(beyond(z) / beyond(edge), "uniform").pvalue > ALARM


@pytest.mark.parametrize("noise", WHOLE, ids=str)
def test_discrete_noise_has_its_distribution(noise):
    stairs, how = sampler_for(noise).sampler, sampler_for(noise)
    drawn = stairs.sample(200_000, seeded(7))
    k = drawn.index.copy()
    k[list(drawn.refined)] = [place.index for place in drawn.refined.values()]
    most = max(3, int(4 * how.scale))
    found = np.bincount(np.clip(k, -most, most) + most, minlength=2 * most + 1)
    assert chi_square(found, whole_shares(how.shape, how.scale, most)) > ALARM


@pytest.mark.parametrize("scale", [0.7, 3.0, 40.0])
@pytest.mark.parametrize("shape", [Density.NORMAL, Density.LAPLACE])
def test_discrete_noise_settled_one_by_one_has_its_distribution(shape, scale):
    stairs, entropy = RejectionSampler(shape, IntegerGrid(scale), 11), Counting(seeded(8))
    drawn = stairs.sample(8000, entropy)
    assert len(drawn.refined) > 10
    k = np.array([drawn.box(i, stairs.grid).index for i in range(len(drawn))])
    most = max(3, int(5 * scale))
    found = np.bincount(np.clip(k, -most, most) + most, minlength=2 * most + 1)
    assert chi_square(found, whole_shares(shape, scale, most)) > ALARM


@pytest.mark.parametrize("scale", [1e6, 1e11])
def test_broad_discrete_noise_is_nearly_continuous(scale):
    """Within 1e-6 of the continuous distribution, which the test cannot see."""
    for shape in (Density.NORMAL, Density.LAPLACE):
        stairs = cached_sampler(shape, IntegerGrid(scale))
        k = stairs.sample(200_000, seeded(9)).index
        assert kstest(CDF[shape](k / scale), "uniform").pvalue > ALARM
        assert chi_square(np.bincount(k & 7, minlength=8), np.full(8, 0.125)) > ALARM  # the last digits too


@pytest.mark.parametrize("scale", [5e-324, 1e-300, 1e-3])
def test_discrete_noise_far_below_one_is_none(scale):
    """1 has mass exp(-1000) or less beside that of 0."""
    for shape in (Density.NORMAL, Density.LAPLACE):
        stairs = RejectionSampler(shape, IntegerGrid(scale), 6)  # points above all but 0 are met, and dropped
        drawn = stairs.sample(500, seeded(10))
        assert not np.any(drawn.index)
        assert all(place.index == 0 for place in drawn.refined.values())


@pytest.mark.parametrize("shape", Density)
def test_the_staircase_stands_above_the_density(shape):
    """Step by step in many digits, and down the first halvings of each tail."""
    import mpmath

    def density(z):
        with mpmath.workdps(40):
            z = mpmath.mpf(z)
            formula = {Density.NORMAL: -z * z / 2, Density.GUMBEL: 1 - z - mpmath.exp(-z)}
            return mpmath.exp(formula.get(shape, -abs(z)))

    stairs = cached_sampler(shape, RealGrid())
    heights = np.diff(np.append(0, stairs._ends))[: len(stairs._ends) - len(stairs._tails)]
    for i, height in enumerate(heights.tolist()):
        cell = stairs._first + i
        assert height >= stairs.height * max(density(cell / 64), density((cell + 1) / 64))
    for tail in stairs._tails:
        edge = tail.edge / 2.0**stairs.grid.unit_bits
        for halvings in range(12):
            assert tail.height * 2.0**-halvings >= stairs.height * density(edge + tail.direction * halvings)


def test_words_and_numbers_below_a_bound_are_uniform():
    word = random_words(5000, seeded(11))
    for byte in range(8):
        digits = (word >> np.uint64(8 * byte)).astype(np.uint8)
        assert chi_square(np.bincount(digits // 4, minlength=64), np.full(64, 1 / 64)) > ALARM
    for bound in (1, 2, 3, 7, 8, 1000):
        found = random_integers(bound, 20_000, seeded(12))
        assert chi_square(np.bincount(found, minlength=bound), np.full(bound, 1 / bound)) > ALARM
        assert len(found) == 20_000
        assert found.max() < bound


@pytest.mark.slow
@pytest.mark.parametrize("noise", [*NOISES, *WHOLE], ids=str)
def test_millions_of_draws_follow_the_distribution(noise):
    """A false alarm of 1e-7 for each noise."""
    how, entropy = sampler_for(noise), random.SystemRandom()
    drawn = how.sampler.sample(5_000_000, entropy)
    z = how.sampler.grid.bounds(drawn.index)[0]
    if how.integer:
        most = max(3, int(5 * how.scale))
        found = np.bincount(np.clip(drawn.index, -most, most) + most, minlength=2 * most + 1)
        assert chi_square(found, whole_shares(how.shape, how.scale, most)) > ALARM
    else:
        assert kstest(CDF[how.shape](z), "uniform").pvalue > ALARM
