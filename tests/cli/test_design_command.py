"""``privselect design``."""

import json

import pytest

from privselect.cli import main

ASKED = ["design", "--mechanism", "pure(epsilon=0.5)", "--epsilon", "1.2", "--delta", "1e-6", "--tau", "0.05", "--cap", "6"]


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as end:
        main(list(arguments))
    streams = capsys.readouterr()
    return end.value.code, streams.out, streams.err


def test_a_table_and_the_law_on_its_own_line(capsys):
    code, out, err = run(capsys, *ASKED)
    assert (code, err) == (0, "")
    assert "designed" in out
    assert "geometric(mean=" in out
    assert "has a probability above" in out
    assert out.splitlines()[-1].startswith("finite({")


def test_json_and_a_plot(capsys, tmp_path):
    file = tmp_path / "laws.png"
    code, out, err = run(capsys, *ASKED, "--mean", "7/2", "--json", "--plot", str(file))
    assert (code, err) == (0, "")
    told = json.loads(out)
    assert told["goal"] == {"epsilon": 1.2, "delta": 1e-6, "tau": 0.05, "cap": 6, "mean": 3.5}
    assert told["epsilon"]["upper"] <= 1.2
    assert told["expected"] <= 3.5
    assert file.stat().st_size > 1000


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--tau", "1", "`tau` must be in (0, 1), got '1'"),
        ("--tau", "half", "`tau` must be in (0, 1), got 'half'"),
        ("--cap", "0", "`cap` must be an integer >= 1, got '0'"),
        ("--cap", "1e9", "`cap` must be an integer >= 1 and <= 10000, got 1000000000"),
        ("--mean", "-3", "`mean` must be in (0, inf), got '-3'"),
        ("--epsilon", "-1", "`epsilon` must be in [0, 700], got -1.0"),
        ("--plot", "laws.txt", "`plot` must end in .png, .pdf, .svg, got 'laws.txt'"),
        ("--mechanism", "geometric(mean=3)", "`mechanism` must be a mechanism such as gaussian(sigma=4), got geometric(mean=3)"),
    ],
)
def test_refusals(capsys, option, value, message):
    arguments = list(ASKED)
    if option in arguments:
        arguments[arguments.index(option) + 1] = value
    else:
        arguments += [option, value]
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (2, "")
    assert err.startswith(f"error: {message}")
