"""The command line: what it answers, and how it refuses."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import privselect
from privselect.cli import main

COMMAND = Path(sys.executable).with_name("privselect")

GAUSSIAN = "gaussian(sigma=4)"
GEOMETRIC = "geometric(mean=300)"
DPSGD = "dpsgd(noise_multiplier=2, sampling_probability=0.1, steps=10)"

BAD_MECHANISMS = [
    "",
    "4",
    "gaussian",
    "gauss(sigma=4)",
    "gaussian()",
    "gaussian(4)",
    "gaussian(sigma=4, colour=1)",
    "gaussian(sigma=4, sigma=5)",
    "gaussian(sigma=0)",
    "gaussian(sigma=-1)",
    "gaussian(sigma=nan)",
    "gaussian(sigma=inf)",
    "gaussian(sigma=-inf)",
    "gaussian(sigma=1e400)",
    "gaussian(sigma=1e-400)",
    "gaussian(sigma=1e999999999)",
    "gaussian(sigma=1/0)",
    "gaussian(sigma=(1, 2))",
    "gaussian(sigma=gaussian(sigma=4))",
    "gaussian(sigma=4",
    "gaussian(sigma=4))",
    "gaussian[sigma=4]",
    "gaussian(sigma=4) gaussian(sigma=4)",
    "gaussian(\nsigma=4",
    "(" * 5000,
    "__import__('os')",
    "__import__(os)",
    "gaussian(sigma=__import__('os').getpid())",
    "laplace(scale=0)",
    "pure(epsilon=-1)",
    "approximate(epsilon=1, delta=1.5)",
    "approximate(epsilon=1)",
    "points()",
    "points((1, 2))",
    "points((1, 2, 3))",
    "points(7)",
    "gdp(mu=-1, delta=1e-9)",
    "gdp(mu=1, delta=2)",
    "dpsgd(noise_multiplier=0, sampling_probability=0.01, steps=10)",
    "dpsgd(noise_multiplier=1, sampling_probability=0, steps=10)",
    "dpsgd(noise_multiplier=1, sampling_probability=1.01, steps=10)",
    "dpsgd(noise_multiplier=1, sampling_probability=0.01, steps=0)",
    "dpsgd(noise_multiplier=1, sampling_probability=0.01, steps=1.5)",
    "mixture()",
    "mixture(0.5*gaussian(sigma=4))",
    "mixture(0.5*gaussian(sigma=4), 0.6*gaussian(sigma=8))",
    "mixture(-0.5*gaussian(sigma=4), 1.5*gaussian(sigma=8))",
    "mixture(0.5*gaussian(sigma=4), 0.5*geometric(mean=3))",
    "selection(gaussian(sigma=4))",
    "selection(geometric(mean=3), gaussian(sigma=4))",
    "geometric(mean=300)",
]
BAD_COUNTS = [
    "",
    "geometrical(mean=3)",
    "geometric()",
    "geometric(mean=0.5)",
    "geometric(mean=nan)",
    "geometric(mean=1e400)",
    "geometric(mean=3, cap=0)",
    "geometric(mean=3, cap=2.5)",
    "negative_binomial(eta=-1, mean=3)",
    "negative_binomial(eta=-2, mean=3)",
    "negative_binomial(eta=1)",
    "negative_binomial(eta=1, mean=3, gamma=0.5)",
    "negative_binomial(eta=1, gamma=0)",
    "negative_binomial(eta=1, gamma=1.2)",
    "logarithmic(mean=0.9)",
    "poisson(mean=0)",
    "binomial(n=0, p=0.5)",
    "binomial(n=20, p=0)",
    "binomial(n=20, p=1.5)",
    "binomial(n=2.5, p=0.5)",
    "fixed(k=0)",
    "fixed(k=-3)",
    "finite({})",
    "finite({0: 1})",
    "finite({1: 0})",
    "finite({-1: 1})",
    "finite({1.5: 1})",
    "finite({1: -1, 2: 2})",
    "finite({1: 0.5, 2: 0.4})",
    "finite({1: 1, 1: 2})",
    "finite({1: 1",
    "gaussian(sigma=4)",
]
BAD_DELTAS = ["0", "1", "-1", "1.5", "nan", "inf", "-inf", "1e400", "1e-400", "abc", "", "1/0", "0.1/", "1e-6; ls"]
BAD_DELTAS += ["0e99999999999999999999", "1e99999999999999999999", "1_0e-6", "１e-6"]  # noqa: RUF001 -- a digit of another script
BAD_EPSILONS = ["nan", "inf", "-inf", "1e400", "abc", ""]
LEGAL_EDGES = [
    ("--count", "geometric(mean=1)"),
    pytest.param("--count", "binomial(n=3, p=1)", marks=pytest.mark.slow),
    ("--count", "fixed(k=1)"),
    ("--mechanism", "dpsgd(noise_multiplier=4, sampling_probability=1, steps=1)"),
]


@pytest.fixture
def run(capsys):
    """Run one command in this process: exit code, stdout, stderr."""

    def run(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as stop:
            main(arguments)
        captured = capsys.readouterr()
        return stop.value.code, captured.out, captured.err

    return run


def assert_refused(result: tuple[int, str, str], *, saying: str = "") -> None:
    code, out, err = result
    assert code == 2
    assert not out
    assert err.startswith("error: ")
    assert err.endswith("\n")
    assert err.count("\n") == 1
    assert len(err) < 1000
    assert "Traceback" not in err
    assert saying in err


@pytest.mark.parametrize("text", BAD_MECHANISMS, ids=lambda text: repr(text)[:70])
def test_a_bad_mechanism_is_refused_in_one_sentence(run, text):
    assert_refused(run("epsilon", "--mechanism", text, "--count", GEOMETRIC, "--delta", "1e-6"))


@pytest.mark.parametrize("text", BAD_COUNTS)
def test_a_bad_count_is_refused_in_one_sentence(run, text):
    assert_refused(run("epsilon", "--mechanism", GAUSSIAN, "--count", text, "--delta", "1e-6"))


@pytest.mark.parametrize("command", ["epsilon", "compare"])
@pytest.mark.parametrize("text", BAD_DELTAS)
def test_a_bad_delta_is_refused_in_one_sentence(run, command, text):
    assert_refused(run(command, "--mechanism", GAUSSIAN, "--delta", text), saying=f"`delta` must be in (0, 1), got {text!r}")


@pytest.mark.parametrize("text", BAD_EPSILONS)
def test_a_bad_epsilon_is_refused_in_one_sentence(run, text):
    assert_refused(run("delta", "--mechanism", GAUSSIAN, "--epsilon", text), saying=f"`epsilon` must be in (-inf, inf), got {text!r}")


@pytest.mark.parametrize(
    "arguments",
    [
        ("nothing",),
        ("epsilon",),
        ("epsilon", "--mechanism", GAUSSIAN),
        ("epsilon", "--delta", "1e-6"),
        ("epsilon", "--mechanism", GAUSSIAN, "--delta", "1e-6", "--colour"),
        ("epsilon", "--mechanism", GAUSSIAN, "--delta"),
        ("epsilon", "--mechanism", GAUSSIAN, "--delta", "1e-6", "surplus"),
        ("delta", "--mechanism", GAUSSIAN, "--delta", "1e-6"),
        ("compare", "--mechanism", GAUSSIAN, "--delta", "1e-6", "--over", "sigma"),
        ("compare", "--mechanism", GAUSSIAN, "--delta", "1e-6", "--over", "delta"),
        ("compare", "--mechanism", GAUSSIAN, "--delta", "1e-6", "--over", "mean", "--plot", "bounds.png"),
        ("compare", "--mechanism", GAUSSIAN, "--delta", "1e-6", "--plot", "bounds.xyz"),
        ("compare", "--mechanism", GAUSSIAN, "--delta", "1e-6", "--plot", "no/such/folder/bounds.png"),
    ],
    ids=" ".join,
)
def test_bad_usage_is_refused_in_one_line(run, arguments):
    assert_refused(run(*arguments))


def test_an_epsilon_below_every_float_is_not_taken_as_zero(run):
    assert_refused(run("delta", "--mechanism", GAUSSIAN, "--epsilon", "1e-400"), saying="if not 0, at least 4.94066e-324, got '1e-400'")


@pytest.mark.parametrize("again", [("--delta", "1e-5"), ("--delta=1e-5",), ("--delta", "1e-6")], ids=" ".join)
def test_an_option_given_twice_is_refused(run, again):
    given = ("epsilon", "--mechanism", GAUSSIAN, "--delta", "1e-6", *again)
    assert_refused(run(*given), saying="`--delta` must be given at most once, got it 2 times")


def test_a_law_given_as_mechanism_is_called_so(run):
    assert_refused(
        run("epsilon", "--mechanism", GEOMETRIC, "--delta", "1e-6"),
        saying="`mechanism` must be a mechanism such as gaussian(sigma=4), got geometric(mean=300)",
    )
    assert_refused(
        run("epsilon", "--mechanism", GAUSSIAN, "--count", GAUSSIAN, "--delta", "1e-6"),
        saying="`count` must be a law of K such as geometric(mean=30), got gaussian(sigma=4)",
    )


@pytest.mark.parametrize(("option", "text"), LEGAL_EDGES)
def test_the_edges_of_the_ranges_are_legal(run, option, text):
    options = {"--mechanism": GAUSSIAN, "--delta": "1e-6", option: text}
    code, out, err = run("epsilon", *(word for pair in options.items() for word in pair))
    assert (code, err) == (0, "")
    assert out


def test_a_missing_extra_is_one_sentence_with_the_pip_command(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "typer", None)
    assert_refused(run("--help"), saying="pip install 'privselect[cli]'")


def test_epsilon_json(run):
    code, out, err = run("epsilon", "--mechanism", GAUSSIAN, "--count", GEOMETRIC, "--delta", "1e-6", "--json")
    assert (code, err) == (0, "")
    answer = strict_json(out)
    assert list(answer) == ["delta", "epsilon", "mechanism", "count", "base_epsilon", "selection_gap"]
    assert (answer["delta"], answer["mechanism"], answer["count"]) == (1e-6, GAUSSIAN, GEOMETRIC)
    # 2.2473 has five digits: half of the last one is 0.0022% of it, the rest of 0.02% is the width of the interval.
    assert 2.2473 * 0.9998 <= answer["epsilon"]["lower"] <= answer["epsilon"]["upper"] <= 2.2473 * 1.0002
    # The base alone is 1.0607 to five digits.
    assert answer["base_epsilon"]["lower"] <= 1.06075
    assert answer["base_epsilon"]["upper"] >= 1.06065
    assert 0 <= answer["selection_gap"] < 1e-3


def test_an_accuracy_is_kept_or_refused(run):
    code, out, err = run("epsilon", "--mechanism", "composed(laplace(scale=2), times=5)", "--delta", "1e-6", "--accuracy", "1e-5", "--json")
    assert (code, err) == (0, "")
    found = strict_json(out)["epsilon"]
    assert found["upper"] <= found["lower"] * (1 + 1e-5)
    question = ("epsilon", "--mechanism", GAUSSIAN, "--count", GEOMETRIC, "--delta", "1e-6", "--accuracy")
    assert_refused(run(*question, "1e-7"), saying="an `accuracy` of 1e-07 in epsilon cannot be reached here")
    assert_refused(run(*question, "2"), saying="`accuracy` must be in [1e-07, 0.1], got '2'")


def test_delta_json(run):
    code, out, err = run("delta", "--mechanism", GAUSSIAN, "--count", GEOMETRIC, "--epsilon", "2.2473", "--json")
    assert (code, err) == (0, "")
    answer = strict_json(out)
    assert list(answer) == ["epsilon", "delta", "mechanism", "count", "base_delta"]
    assert 0 < answer["delta"]["lower"] <= answer["delta"]["upper"] < 1
    assert answer["base_delta"]["upper"] <= answer["delta"]["lower"]


def test_without_a_count_the_mechanism_stands_alone(run):
    _, out, _ = run("epsilon", "--mechanism", GAUSSIAN, "--delta", "1e-6", "--json")
    answer = strict_json(out)
    assert answer["count"] is None
    assert answer["selection_gap"] is None
    assert answer["epsilon"] == answer["base_epsilon"]


def test_what_is_infinite_or_not_proved_is_null(run):
    _, out, _ = run("epsilon", "--mechanism", "approximate(epsilon=1, delta=0.5)", "--count", "fixed(k=50)", "--delta", "1e-6", "--json")
    assert strict_json(out)["epsilon"]["upper"] is None


@pytest.mark.parametrize(
    ("mechanism", "said"),
    [
        ("approximate(epsilon=1, delta=1e-3)", "infinite"),
        ("gaussian(sigma=0.001)", "no finite upper bound is proved (at least 59"),
        ("dpsgd(noise_multiplier=0.001, sampling_probability=0.1, steps=1000)", "no finite upper bound is proved"),
    ],
)
def test_what_is_infinite_is_said_in_words(run, mechanism, said):
    code, out, err = run("epsilon", "--mechanism", mechanism, "--count", GEOMETRIC, "--delta", "1e-6")
    assert (code, err) == (0, "")
    chosen, alone = out.splitlines()
    assert alone.removeprefix("one trial alone").strip().startswith(said)
    assert chosen.split("1e-06", 1)[1].strip().startswith(said.split("(")[0].strip())


def test_a_fraction_is_a_number(run):
    _, out, _ = run("epsilon", "--mechanism", GAUSSIAN, "--delta", "1/1000000", "--json")
    assert strict_json(out)["delta"] == 1e-6


@pytest.mark.parametrize("command", [("epsilon", "--delta", "1e-6"), ("delta", "--epsilon", "2")], ids=" ".join)
def test_answers_for_people_are_two_lines(run, command):
    code, out, err = run(*command, "--mechanism", GAUSSIAN, "--count", GEOMETRIC)
    assert (code, err) == (0, "")
    first, second = out.splitlines()
    assert first.startswith(f"{command[0]} at ")
    assert second.startswith("one trial alone")


@pytest.mark.parametrize("command", [("epsilon", "--delta", "1e-6"), ("delta", "--epsilon", "2")], ids=" ".join)
def test_without_a_count_the_answer_is_one_line(run, command):
    code, out, err = run(*command, "--mechanism", GAUSSIAN)
    assert (code, err) == (0, "")
    (line,) = out.splitlines()
    assert line.startswith(f"{command[0]} at ")


def test_for_dpsgd_both_ends_are_told_and_the_gap_is_the_selections_own(run):
    code, out, err = run("epsilon", "--mechanism", DPSGD, "--count", "geometric(mean=5)", "--delta", "1e-6", "--json")
    assert (code, err) == (0, "")
    answer = strict_json(out)
    for told in (answer["epsilon"], answer["base_epsilon"]):
        assert 0 < told["lower"] <= told["upper"] <= told["lower"] * 1.001
    assert answer["base_epsilon"]["upper"] < answer["epsilon"]["lower"]
    assert 0 <= answer["selection_gap"] < 1e-3


def test_compare_json(run):
    code, out, err = run("compare", "--mechanism", GAUSSIAN, "--count", GEOMETRIC, "--delta", "1e-6", "--json")
    assert (code, err) == (0, "")
    answer = strict_json(out)
    assert {"exact", "ratio", "paper", "renyi", "liu_talwar", "composition"} <= set(answer["bounds"])
    assert set(answer["bounds"]["exact"]) == {"lower", "upper"}
    assert (answer["mechanism"], answer["count"], answer["delta"]) == (GAUSSIAN, GEOMETRIC, 1e-6)


def test_compare_takes_both_stages(run):
    stages = ("--mechanism", GAUSSIAN, "--final", "gaussian(sigma=2)", "--delta", "1e-5")
    code, out, _ = run("compare", *stages, "--count", GEOMETRIC, "--json")
    found = json.loads(out)
    assert code == 0
    assert found["final"] == "gaussian(sigma=2)"
    assert found["final_epsilon"]["upper"] < found["bounds"]["exact"]["upper"] < found["bounds"]["paper"]
    code, out, _ = run("compare", *stages, "--visible", "6", "--subsample", "1/10")
    assert code == 0
    assert "every search trial released" in " ".join(out.split())
    code, _, err = run("compare", *stages)
    assert code == 2
    assert err == "error: --final needs a search before it: pass --count or --visible, got --final gaussian(sigma=2) alone\n"
    for wrong, said in (
        ("--visible", "`visible` must be an integer >= 1 and <= 1000000, got '0'"),
        ("--subsample", "(0, 1] such as 1/10, got '0'"),
    ):
        code, _, err = run("compare", *stages, wrong, "0")
        assert (code, err.count("\n")) == (2, 1)
        assert said in err


def test_compare_without_a_count_shows_the_base_alone(run):
    code, out, err = run("compare", "--mechanism", GAUSSIAN, "--delta", "1e-6", "--json")
    assert (code, err) == (0, "")
    answer = strict_json(out)
    assert answer["base_epsilon"]["upper"] == pytest.approx(1.0607, rel=1e-3)
    assert not any(answer["bounds"].values())


def test_a_selection_given_whole_is_compared_too(run):
    _, out, _ = run("compare", "--mechanism", f"selection({GAUSSIAN}, {GEOMETRIC})", "--delta", "1e-6", "--json")
    _, same, _ = run("compare", "--mechanism", GAUSSIAN, "--count", GEOMETRIC, "--delta", "1e-6", "--json")
    assert out == same


def test_compare_prints_a_table_and_draws(run, tmp_path):
    picture = tmp_path / "bounds.png"
    code, out, err = run("compare", "--mechanism", GAUSSIAN, "--count", GEOMETRIC, "--delta", "1e-6", "--plot", str(picture))
    assert (code, err) == (0, "")
    assert "2.247" in out
    assert "plot over mean written to" in out
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_compare_draws_over_delta_too(run, tmp_path):
    picture = tmp_path / "bounds.svg"
    options = ("--delta", "1e-6", "--plot", str(picture), "--over", "delta", "--json")
    code, out, err = run("compare", "--mechanism", GAUSSIAN, *options)
    assert (code, err) == (0, "")
    strict_json(out)
    assert picture.read_text().startswith("<?xml")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_plot_that_cannot_be_written_is_refused(run, tmp_path):
    tmp_path.chmod(0o500)
    assert_refused(run("compare", "--mechanism", GAUSSIAN, "--delta", "1e-6", "--plot", str(tmp_path / "bounds.png")))


def test_a_plot_that_is_a_directory_is_called_so(run, tmp_path):
    options = ("--mechanism", GAUSSIAN, "--delta", "1e-6", "--plot", str(tmp_path))
    assert_refused(run("compare", *options), saying=f"`plot` must be a file, got the directory {str(tmp_path)!r}")


def test_a_plot_whose_name_is_too_long_is_refused(run, tmp_path):
    options = ("--mechanism", GAUSSIAN, "--delta", "1e-6", "--plot", str(tmp_path / f"{'a' * 300}.png"))
    assert_refused(run("compare", *options), saying="`plot` must be a file that can be written")


def test_the_version(run):
    assert run("--version") == (0, f"privselect {privselect.__version__}\n", "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize("unbuffered", ["", "1"], ids=["at the end", "at once"])
@pytest.mark.parametrize("words", ["--help", "epsilon --delta 1e-6", "epsilon --delta 1e-6 --json", "compare --delta 1e-6"])
def test_an_answer_that_cannot_be_written_is_one_sentence_and_exit_code_1(words, unbuffered):
    mechanism = () if words == "--help" else ("--mechanism", GAUSSIAN)
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [COMMAND, *words.split(), *mechanism],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
        )
    assert (done.returncode, done.stderr) == (1, "error: the output could not be written: No space left on device\n")


@pytest.mark.parametrize("unbuffered", ["", "1"], ids=["at the end", "at once"])
def test_a_reader_that_has_gone_is_told_nothing(unbuffered):
    reading, writing = os.pipe()
    os.close(reading)
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    done = subprocess.run([COMMAND, "--help"], stdout=writing, stderr=subprocess.PIPE, check=False, env=environment)
    os.close(writing)
    assert (done.returncode, done.stderr) == (1, b"")


def test_the_installed_command(tmp_path):
    helped = subprocess.run([COMMAND], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert all(name in helped.stdout for name in ("epsilon", "delta", "compare"))
    refused = subprocess.run(
        [COMMAND, "epsilon", "--mechanism", "__import__('os')", "--delta", "1e-6"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert_refused((refused.returncode, refused.stdout, refused.stderr))


def strict_json(text: str) -> dict[str, object]:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(text, parse_constant=refuse)
