"""``privselect plan``: what it prints, what it writes, how it refuses."""

import json

import pytest

from privselect.cli import main

ASKED = ["plan", "--epsilon", "2", "--delta", "1e-6", "--mechanism", "gaussian(sigma=?)", "--count", "geometric(mean=30)"]


def run(arguments, capsys):
    with pytest.raises(SystemExit) as stop:
        main([str(argument) for argument in arguments])
    printed = capsys.readouterr()
    return stop.value.code, printed.out, printed.err


def test_the_plan_is_printed(capsys):
    code, out, err = run(ASKED, capsys)
    assert (code, err) == (0, "")
    for said in (
        "gaussian(sigma=3.5",
        "geometric(mean=30)",
        "epsilon 2 at delta 1e-06",
        "by the paper's bound",
        "30 expected",
        "23.2% for the best 1%",
    ):
        assert said in out


def test_json_has_the_solved_texts_and_the_interval(capsys):
    code, out, _ = run([*ASKED, "--json"], capsys)
    told = json.loads(out)
    assert code == 0
    assert told["mechanism"].startswith("gaussian(sigma=3.5")
    assert told["count"] == "geometric(mean=30)"
    assert 1.999 < told["epsilon"]["lower"] <= told["epsilon"]["upper"] <= 2
    assert set(told["baselines"]) == {"paper", "renyi", "composition"}
    assert set(told["trials"]) == {"expected", "quantiles", "probability_of_zero", "success_probability"}


TWO_STAGES = [
    *("plan", "--epsilon", "1", "--delta", "1e-5", "--count", "geometric(mean=30)"),
    *("--mechanism", "dpsgd(noise_multiplier=?, sampling_probability=1024/60000, steps=60)"),
    *("--final", "dpsgd(noise_multiplier=1.9, sampling_probability=1024/60000, steps=600)"),
]


def test_one_command_plans_a_search_and_a_final_training(capsys, tmp_path):
    file = tmp_path / "plan.toml"
    code, out, _ = run([*TWO_STAGES, "--out", file, "--json"], capsys)
    told = json.loads(out)
    assert code == 0
    (solved,) = told["solved"]
    assert (solved["stage"], solved["parameter"]) == ("search", "noise_multiplier")
    assert 3 < solved["value"] <= 3.07
    assert 0.95 < told["epsilon"]["lower"] <= told["epsilon"]["upper"] <= 1
    assert "noise_multiplier=1.9," in told["final"]
    code, out, _ = run(["plan", file], capsys)
    assert code == 0
    for said in ("search trial ", "final training   dpsgd(noise_multiplier=1.9,", "law of K "):
        assert said in out


def test_both_stages_are_solved_by_a_rule(capsys):
    arguments = ["plan", "--epsilon", "2", "--delta", "1e-5", "--mechanism", "gaussian(sigma=?)", "--final", "gaussian(sigma=?)"]
    for rule, trials in ((["--split", "auto"], ["--visible", "4"]), (["--final-noise", "1.1"], ["--subsample", "1/2"])):
        code, out, _ = run([*arguments, *rule, *trials], capsys)
        assert code == 0
        assert "more than alone (1.99" in out
        assert "reason" in out


def test_advice_is_printed_as_a_table(capsys):
    arguments = ["advise", "--epsilon", "2", "--delta", "1e-5", "--mechanism", "gaussian(sigma=?)", "--defaults", "3"]
    code, out, _ = run(arguments, capsys)
    assert code == 0
    lines = out.splitlines()
    assert [line.split("  ")[0] for line in lines[:5]] == ["way", "no tuning", "one shot", "secret search", "visible search"]
    assert "recommended  secret search" in lines
    code, out, _ = run([*arguments, "--interactive", "--private-score", "--json"], capsys)
    told = json.loads(out)
    assert (code, told["recommended"], len(told["ways"])) == (0, "secret search", 4)


def test_a_spinner_turns_where_somebody_watches(capsys, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    code, out, err = run(ASKED, capsys)
    assert code == 0
    assert "planning" in err
    assert "planning" not in out


def test_the_file_is_read_back(capsys, tmp_path):
    file = tmp_path / "plan.toml"
    code, out, _ = run([*ASKED, "--out", file], capsys)
    assert code == 0
    assert f"plan written to {file}" in out
    code, again, _ = run(["plan", file, "--json"], capsys)
    assert code == 0
    assert json.loads(again)["mechanism"] in out


def test_a_plan_is_certified_and_the_certificate_verified_against_it(capsys, tmp_path):
    plan, certificate = tmp_path / "plan.toml", tmp_path / "certificate.json"
    assert run([*ASKED, "--out", plan], capsys)[0] == 0
    code, out, _ = run(["certify", plan, "--out", certificate], capsys)
    assert code == 0
    assert out.startswith("DRAFT: not declared")
    told = json.loads(certificate.read_text())
    assert told["plan"]["epsilon"] == 2
    assert told["total"]["upper"] <= 2
    code, out, _ = run(["verify", certificate, "--plan", plan], capsys)
    assert code == 0
    assert "unsigned" in out.splitlines()[0]
    plan.write_text(plan.read_text().replace("epsilon = 2.0", "epsilon = 2.5"))
    code, out, _ = run(["verify", certificate, "--plan", plan], capsys)
    assert code == 1
    assert "the plan is a different one" in out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["plan"], "a plan needs --mechanism, --epsilon and --delta, or a plan file, got no --mechanism"),
        ([*ASKED[:5]], "got no --mechanism"),
        ([*ASKED, "plan.toml"], "a plan needs either a file or options"),
        (["plan", "nowhere.toml"], "must be a file that can be read"),
        ([*ASKED, "--out", "plan.json"], "`out` must end in .toml"),
        ([*ASKED, "--out", "nowhere/plan.toml"], "`out` must be a file in a folder that exists"),
        ([word.replace("sigma=?", "sigma=4") for word in ASKED], "exactly one number must be left open"),
        ([word.replace("mean=30", "mean=?") for word in ASKED], "exactly one number must be left open"),
        ([word.replace("1e-6", "1") for word in ASKED], "`delta` must be in (0, 1), got '1'"),
        (["plan", "--epsilon", "0", *ASKED[3:]], "`epsilon` must be in (0, inf), got '0'"),
        ([*ASKED, "--visible", "3"], "either secret, with a law of K, or visible"),
        ([*ASKED, "--visible", "0"], "`visible` must be an integer >= 1 and <= 1000000, got '0'"),
        ([*ASKED, "--subsample", "2"], "`subsample` must be a probability in (0, 1] such as 1/10, got '2'"),
        ([*ASKED, "--final-noise", "1"], "`final_noise` must be in (1, inf), got '1'"),
        ([*ASKED, "--split", "auto"], "`split` divides the budget between two stages, got no final training"),
        ([*ASKED, "--visible", "1e9"], "`visible` must be an integer >= 1 and <= 1000000, got '1e9'"),
        ([*ASKED, "--subsample", "1/0"], "`subsample` must be a probability in (0, 1] such as 1/10, got '1/0'"),
        ([*ASKED, "--final", "gaussian(sigma=?)"], 'both open: pass final_noise=1.07 or split="auto"'),
        ([*ASKED, "--final", "gaussian(sigma=1)"], "`final` must cost less than the budget, epsilon 2 at delta 1e-06"),
        (["plan", "plan.toml", "--final-noise", "1.1"], "a plan needs either a file or options, got 'plan.toml' and --final-noise"),
        (["advise", "--mechanism", "gaussian(sigma=4)", *ASKED[1:5]], "`mechanism` must have exactly one open noise"),
        (["certify"], "a certificate needs --mechanism and --delta, or a plan file, got no --mechanism"),
        (
            ["certify", "plan.toml", "--unit", "one person"],
            "a plan file contains all terms and declarations, got 'plan.toml' and --unit",
        ),
        (["certify", "nowhere.toml"], "must be a file that can be read"),
        (["epsilon", "--mechanism", "gaussian(sigma=?)", "--delta", "1e-6"], "only `privselect plan` accepts a ?"),
        (["epsilon", "--mechanism", "gaussian(sigma=4)", "--count", "fixed(k=?)", "--delta", "1e-6"], "only `privselect plan` accepts a ?"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(arguments, said, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, err = run(arguments, capsys)
    assert (code, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1
    assert not list(tmp_path.iterdir())
