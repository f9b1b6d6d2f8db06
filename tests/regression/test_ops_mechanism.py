"""One posterior sample as a mechanism."""

import numpy as np
import pytest

import privselect as ps
from privselect.errors import ParameterError
from privselect.regression.ops.ops_mechanism import loss_cells
from privselect.regression.ops.ops_profile import with_over_without, without_over_with


@pytest.mark.parametrize(("leverage", "signal"), [(1e-3, 100.0), (0.4, 1.0), (0.05, 3.0), (1.5, 0.2)])
def test_the_bounds_enclose_the_worst_row_and_are_tight(leverage, signal):
    sample = ps.OPS(leverage=leverage, signal=signal)
    epsilon = np.linspace(0, 5, 40)
    shares = np.linspace(0.01, 1, 200)[:, None] * leverage
    truth = np.maximum(with_over_without(shares, signal, epsilon), without_over_with(shares, signal, epsilon)).max(axis=0)
    found = sample.delta_at(epsilon)
    assert np.all(truth <= found.upper)
    assert np.all(found.lower <= found.upper)
    deltas = np.array([1e-3, 1e-6, 1e-9])
    interval = sample.epsilon_at(deltas)
    assert np.all(interval.lower <= interval.upper)
    assert np.all(interval.upper <= interval.lower * 1.001)


def test_epsilon_at_delta_inverts_the_hockey_stick_divergence():
    sample = ps.OPS(leverage=0.01, signal=20.0)
    epsilon = sample.epsilon_at(1e-6).upper
    at = max(float(direction(0.01, 20.0, epsilon)) for direction in (with_over_without, without_over_with))
    assert 0.99e-6 < at <= 1e-6


def test_both_orders_exist_and_differ():
    remove, add = ps.OPS(leverage=0.4, signal=1.0).brackets
    assert (remove.direction, add.direction) == ("remove", "add")
    assert remove.upper.hockey_stick(1.0) != add.upper.hockey_stick(1.0)


def test_a_small_leverage_is_a_gaussian():
    mu = 0.3
    sample, gaussian = ps.OPS(leverage=1e-6, signal=mu**2 / 1e-6), ps.Gaussian(sigma=1 / mu)
    assert sample.epsilon_at(1e-6).upper == pytest.approx(gaussian.epsilon_at(1e-6).upper, rel=1e-3)


def test_it_composes_and_is_selected_from_and_written():
    sample = ps.OPS(leverage=0.01, signal=5.0)
    assert ps.parse(str(sample)) == sample
    assert sample.neighbours == "add_remove"
    twice = ps.Composed((sample,), times=2).epsilon_at(1e-6)
    assert sample.epsilon_at(1e-6).upper < twice.lower <= twice.upper < 2 * sample.epsilon_at(1e-6).upper
    chosen = ps.Selection(sample, ps.Geometric(mean=30)).epsilon_at(delta=1e-6)
    assert chosen.lower <= chosen.upper <= chosen.lower * 1.01


@pytest.mark.parametrize(
    "bad",
    [
        {"leverage": 0.0, "signal": 1.0},
        {"leverage": 1e-300, "signal": 1.0},
        {"leverage": 0.1, "signal": float("nan")},
        {"leverage": -1, "signal": 1.0},
    ],
)
def test_an_invalid_leverage_or_signal_is_refused(bad):
    with pytest.raises(ParameterError, match="must be in"):
        ps.OPS(**bad)


def test_distributions_far_apart_use_no_more_cells():
    with_row, without = loss_cells(1.0, 1e12)
    assert len(with_row) == len(without) <= 100_001
    assert with_row.sum() == pytest.approx(1.0) == without.sum()
    assert ps.OPS(leverage=1.0, signal=1e12).epsilon_at(1e-6).upper == np.inf


@pytest.mark.parametrize("signal", [1e-300, 1.0, 1e12])
def test_the_smallest_leverage_leaks_almost_nothing(signal):
    assert ps.OPS(leverage=1e-100, signal=signal).epsilon_at(1e-6).upper == 0.0
