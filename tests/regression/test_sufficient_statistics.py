"""The distribution of the posterior sample, by its covariance, and of the normals that it uses."""

import numpy as np
import pytest
from scipy.linalg import cholesky, solve_triangular
from scipy.stats import chi2, kstest, norm

from privselect.errors import ParameterError
from privselect.regression.noise_source import NoiseSource, make_noise_source
from privselect.regression.sufficient_statistics import SufficientStatistics, posterior_sample

DRAWS = 20_000
FALSE_ALARM = 1e-7


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(50, 3)) @ np.array([[1, 0.9, 0.2], [0, 0.4, 0.5], [0, 0, 0.2]])
    rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1.0)
    return SufficientStatistics.from_records(rows, np.clip(rows @ [0.5, -0.3, 0.2], -1, 1))


def transposed_sample(statistics, ridge, precision, normals):
    """Reproduce the fault of published code: it solves for the noise with the transposed factor."""
    upper = cholesky(statistics.gram + ridge * np.eye(statistics.features))
    return statistics.ridge_solution(ridge) + solve_triangular(upper, normals.standard_normals(statistics.features), trans="T") / np.sqrt(
        precision
    )


def wrong(sampler, data, ridge=0.3, precision=2.0):
    """Test the mean and the covariance of many samples against N(th, (precision H)^-1)."""
    normals = make_noise_source(11)
    samples = np.array([sampler(data, ridge, precision, normals) for _ in range(DRAWS)])
    hessian = precision * (data.gram + ridge * np.eye(data.features))
    white = (samples - data.ridge_solution(ridge)) @ cholesky(hessian).T  # standard normals if the sampler is right
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
    for normals in (make_noise_source(), make_noise_source(5), make_noise_source(np.random.RandomState(7))):
        drawn = normals.standard_normals(100_000)
        assert kstest(drawn, norm.cdf).pvalue > FALSE_ALARM
        assert abs(drawn.mean()) < 5.4 / np.sqrt(len(drawn))


def test_the_farthest_bits_are_far_out_and_finite():
    for byte, sign in ((b"\x00", -1), (b"\xff", 1)):
        drawn = NoiseSource(lambda count, byte=byte: byte * count).standard_normals(1)[0]
        assert np.isfinite(drawn)
        assert sign * drawn >= 0 or abs(drawn) > 12


def test_a_seed_repeats_and_the_system_does_not():
    assert np.array_equal(make_noise_source(3).standard_normals(4), make_noise_source(3).standard_normals(4))
    assert not np.array_equal(make_noise_source().standard_normals(4), make_noise_source().standard_normals(4))
    with pytest.raises(ParameterError, match="insecure_seed"):
        make_noise_source("3")
    with pytest.raises(ParameterError, match="insecure_seed"):
        make_noise_source(-1)
