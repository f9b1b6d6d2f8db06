"""The bounds over the rounds: the data of the figure."""

import pytest

import privselect as ps
from privselect.errors import ParameterError
from privselect.noisy_max.plots import draw_bounds, round_curves

TEN = ps.NoisyMax(ps.Gaussian(sigma=4), m=10)


@pytest.fixture(scope="module")
def curves():
    return round_curves(TEN, delta=1e-6)


def test_rounds_run_from_1_to_100(curves):
    assert curves["rounds"][0] == 1
    assert curves["rounds"][-1] == 100
    assert curves["rounds"] == sorted(set(curves["rounds"]))
    assert len({len(curve) for curve in curves.values()}) == 1


@pytest.mark.parametrize("other", ["paper", "renyi", "full_release"])
def test_the_result_is_never_above_another(curves, other):
    assert all(ours <= theirs for ours, theirs in zip(curves["upper"], curves[other], strict=True) if theirs is not None)
    assert any(theirs is not None for theirs in curves[other])


def test_a_real_instance_stays_below(curves):
    assert all(0 < lower <= upper for lower, upper in zip(curves["lower"], curves["upper"], strict=True))
    assert curves["lower"] == sorted(curves["lower"])


def test_one_round_is_the_mechanism_itself(curves):
    assert curves["upper"][0] == TEN.epsilon_at(1e-6).upper
    assert curves["paper"][0] == pytest.approx(2.4903, abs=2e-3)


def test_the_requested_rounds_are_among_them():
    more = ps.NoisyMax(ps.Gaussian(sigma=40), m=10, rounds=137)
    assert 137.0 in round_curves(more, delta=1e-6, points=2)["rounds"]


def test_one_score_is_drawn_too(tmp_path):
    draw_bounds(ps.NoisyMax(ps.Gaussian(sigma=4), m=1), delta=1e-6, path=tmp_path / "nothing.png")
    assert (tmp_path / "nothing.png").stat().st_size > 5000


def test_bad_arguments_are_rejected(tmp_path):
    with pytest.raises(ParameterError, match=r"^`mechanism` must be a noisy max, got gaussian\(sigma=4\)$"):
        round_curves(ps.Gaussian(sigma=4), delta=1e-6)
    with pytest.raises(ParameterError, match=r"^`delta` must be"):
        round_curves(TEN, delta=0)
    with pytest.raises(ParameterError, match=r"^`points` must be"):
        round_curves(TEN, delta=1e-6, points=1)
    with pytest.raises(ParameterError, match=r"^`plot` must end in"):
        draw_bounds(TEN, delta=1e-6, path=tmp_path / "rounds.txt")
