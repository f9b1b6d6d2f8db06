"""The law of the posterior sample, by its covariance; and of the normals it is made of."""

import numpy as np
import pytest
from scipy.linalg import cholesky, solve_triangular
from scipy.stats import chi2, kstest, norm

from privselect.errors import ParameterError
from privselect.regression.gaussian_sampler import normals_from
from privselect.regression.methods.sufficient_statistics import Statistics
from privselect.regression.ops.posterior import posterior_sample

DRAWS = 20_000
FALSE_ALARM = 1e-7


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(50, 3)) @ np.array([[1, 0.9, 0.2], [0, 0.4, 0.5], [0, 0, 0.2]])
    rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1.0)
    return Statistics.of(rows, np.clip(rows @ [0.5, -0.3, 0.2], -1, 1))


def transposed_sample(statistics, ridge, precision, normals):
    """The fault of published code: the noise is solved for with the transposed factor."""
    upper = cholesky(statistics.gram + ridge * np.eye(statistics.features))
    return statistics.solution(ridge) + solve_triangular(upper, normals.draw(statistics.features), trans="T") / np.sqrt(precision)


def wrong(sampler, data, ridge=0.3, precision=2.0):
    """Whether mean and covariance of many samples differ from N(th, (precision H)^-1) by more than chance: one test of each."""
    normals = normals_from(11)
    samples = np.array([sampler(data, ridge, precision, normals) for _ in range(DRAWS)])
    hessian = precision * (data.gram + ridge * np.eye(data.features))
    white = (samples - data.solution(ridge)) @ cholesky(hessian).T  # standard normals, if all is right
    mean = DRAWS * np.sum(white.mean(axis=0) ** 2)
    second = white.T @ white / DRAWS - np.eye(3)
    # Off the diagonal each entry has variance 1/DRAWS, on it 2/DRAWS.
    spread = DRAWS * (np.sum(np.diag(second) ** 2) / 2 + np.sum(second[np.triu_indices(3, 1)] ** 2))
    return bool(mean > chi2.isf(FALSE_ALARM, 3) or spread > chi2.isf(FALSE_ALARM, 6))


def test_the_sample_has_the_covariance_of_the_posterior(data):
    assert not wrong(posterior_sample, data)


def test_the_transposed_factor_is_caught(data):
    assert wrong(transposed_sample, data)


def test_normals_from_the_operating_system_and_from_a_seed_are_normal():
    # Each has a false alarm of 1e-7.
    for normals in (normals_from(), normals_from(5), normals_from(np.random.RandomState(7))):
        drawn = normals.draw(100_000)
        assert kstest(drawn, norm.cdf).pvalue > FALSE_ALARM
        assert abs(drawn.mean()) < 5.4 / np.sqrt(len(drawn))


def test_the_farthest_bits_are_far_out_and_finite():
    from privselect.regression.gaussian_sampler import Normals

    for byte, sign in ((b"\x00", -1), (b"\xff", 1)):
        drawn = Normals(lambda count, byte=byte: byte * count).draw(1)[0]
        assert np.isfinite(drawn)
        assert sign * drawn >= 0 or abs(drawn) > 12


def test_a_seed_repeats_and_the_system_does_not():
    assert np.array_equal(normals_from(3).draw(4), normals_from(3).draw(4))
    assert not np.array_equal(normals_from().draw(4), normals_from().draw(4))
    with pytest.raises(ParameterError, match="insecure_seed"):
        normals_from("3")
    with pytest.raises(ParameterError, match="insecure_seed"):
        normals_from(-1)
