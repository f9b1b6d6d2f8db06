"""``privselect noisy-max``: what it answers, what it draws, how it refuses."""

import json

import pytest

import privselect as ps
from privselect._util.rounding import format_digits_down, format_digits_up
from privselect.cli import main
from privselect.noisy_max.accounting.bounds import DESCRIPTIONS

ASKED = {"--noise": "gaussian(sigma=4)", "--m": "100", "--rounds": "50", "--delta": "1e-6"}


@pytest.fixture
def run(capsys):
    """Run the command with some options changed, None for left out; exit code, stdout, stderr."""

    def run(*flags, **changed):
        options = ASKED | {f"--{name}": value for name, value in changed.items()}
        given = [word for name, value in options.items() if value is not None for word in (name, str(value))]
        with pytest.raises(SystemExit) as stop:
            main(["noisy-max", *given, *flags])
        captured = capsys.readouterr()
        return stop.value.code, captured.out, captured.err

    return run


@pytest.mark.parametrize(
    ("flags", "changed", "mechanism"),
    [
        ((), {}, ps.NoisyMax(ps.Gaussian(sigma=4), m=100, rounds=50)),
        ((), {"rounds": None}, ps.NoisyMax(ps.Gaussian(sigma=4), m=100)),
        (("--monotone",), {"m": 10}, ps.NoisyMax(ps.Gaussian(sigma=4), m=10, rounds=50, monotone=True)),
        ((), {"m": 10, "rounds": 3, "changes": 2}, ps.NoisyMax(ps.Gaussian(sigma=4), m=10, rounds=3, changes=2)),
        ((), {"m": 1e9, "rounds": 1}, ps.NoisyMax(ps.Gaussian(sigma=4), m=10**9)),
    ],
    ids=["rounds", "one round", "monotone", "ballots", "many scores"],
)
def test_json_has_the_interval_and_every_bound(run, flags, changed, mechanism):
    code, out, err = run("--json", *flags, **changed)
    assert (code, err) == (0, "")
    told, answer = json.loads(out), mechanism.epsilon_at(1e-6)
    assert told["epsilon"] == {"lower": answer.lower, "upper": answer.upper}
    assert told["epsilon"]["lower"] > 0
    assert told["bounds"] == mechanism.bounds(1e-6)
    assert all(told["epsilon"]["upper"] <= bound for bound in told["bounds"].values() if bound is not None)
    assert {"paper", "renyi", "full_release"} <= set(told["bounds"])
    asked = {"delta": 1e-6, "noise": "gaussian(sigma=4)", "m": mechanism.m, "rounds": mechanism.rounds}
    assert told | asked | {"changes": mechanism.changes, "monotone": mechanism.monotone} == told


def test_the_answer_and_a_row_for_each_bound(run):
    code, out, err = run(m=10, rounds=1)
    assert (code, err) == (0, "")
    mechanism = ps.NoisyMax(ps.Gaussian(sigma=4), m=10)
    interval = mechanism.epsilon_at(1e-6)
    assert f"epsilon at delta 1e-06  between {format_digits_down(interval.lower, 4)} and {format_digits_up(interval.upper, 4)}" in out
    for name in mechanism.bounds(1e-6):
        assert f"  {name} " in out
    assert "2.4903" in out  # the paper's


def test_every_bound_has_a_meaning():
    noises = (ps.Gaussian(sigma=4), ps.Laplace(scale=4), ps.Gumbel(scale=4), ps.Exponential(scale=4), ps.DiscreteGaussian(sigma=4))
    for noise in (*noises, ps.DiscreteLaplace(scale=4)):
        assert set(ps.NoisyMax(noise, m=10).bounds(1e-6)) <= set(DESCRIPTIONS)


def test_one_score_costs_nothing(run):
    code, out, _ = run("--json", m=1)
    assert code == 0
    assert json.loads(out)["epsilon"] == {"lower": 0.0, "upper": 0.0}


@pytest.mark.parametrize("ending", ["png", "pdf", "svg"])
def test_the_plot_is_drawn(run, tmp_path, monkeypatch, ending):
    monkeypatch.setattr("privselect.noisy_max.plots._POINTS", 2)
    file = tmp_path / f"rounds.{ending}"
    code, out, err = run(m=10, rounds=1, plot=file)
    assert (code, err) == (0, "")
    assert out.endswith(f"plot over rounds written to {file}\n")
    assert file.stat().st_size > 5000


BAD = [
    ({"noise": "pure(epsilon=1)"}, "`noise` must be"),
    ({"noise": "geometric(mean=3)"}, "`noise` must be"),
    ({"noise": "gaussian(sigma=0)"}, "`sigma` must be"),
    ({"noise": "gaussian(sigma=?)"}, "only `privselect plan` accepts a ?"),
    ({"noise": "gauss(sigma=4)"}, "gaussian"),
    ({"noise": ""}, ""),
    ({"noise": None}, "--noise"),
    ({"m": "0"}, "`m` must be an integer >= 1, got '0'"),
    ({"m": "-3"}, "`m` must be an integer >= 1, got '-3'"),
    ({"m": "2.5"}, "`m` must be an integer >= 1, got '2.5'"),
    ({"m": "nan"}, "`m` must be an integer >= 1, got 'nan'"),
    ({"m": "1e400"}, "`m` must be"),
    ({"m": "1e13"}, "`m` must be an integer >= 1 and <= 1000000000000"),
    ({"m": None}, "--m"),
    ({"rounds": "0"}, "`rounds` must be an integer >= 1, got '0'"),
    ({"rounds": "ten"}, "`rounds` must be an integer >= 1, got 'ten'"),
    ({"rounds": "1e10"}, "`rounds` must be an integer >= 1 and <= 1000000000"),
    ({"changes": "0"}, "`changes` must be an integer >= 1, got '0'"),
    ({"delta": "0"}, "`delta` must be"),
    ({"delta": "1"}, "`delta` must be"),
    ({"delta": None}, "--delta"),
    ({"plot": "rounds.jpeg"}, "`plot` must end in .png, .pdf, .svg, got 'rounds.jpeg'"),
    ({"plot": "nowhere/rounds.png"}, "`plot` must be a file in a folder that exists"),
]


@pytest.mark.parametrize(("changed", "said"), BAD, ids=lambda given: str(given)[:40])
def test_bad_input_is_one_sentence(run, changed, said, monkeypatch):
    def never(*_, **__):
        raise AssertionError("refused only after the work")

    monkeypatch.setattr(ps.NoisyMax, "epsilon_at", never)
    code, out, err = run(**changed)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert said in err
    assert err.count("\n") == 1
