"""Questions about a search and a final training."""

import contextlib
import io
import json
import math
import re
import shlex

import pytest
from wire import ask

import privselect as ps
from privselect.cli import main
from privselect.planning.plan import check_plan
from privselect.planning.plan_file import read_plan
from privselect.web.limits import MAX_STEPS, MAX_VISIBLE
from privselect.web.schemas import RefusedError

DPSGD = "dpsgd(noise_multiplier={}, sampling_probability=0.02, steps={})"
BUDGET = {"epsilon": "1", "delta": "1e-5"}
SECRET = {"mechanism": "gaussian(sigma=8)", "count": "geometric(mean=10)", "final": "gaussian(sigma=6)"}
VISIBLE = {"mechanism": "gaussian(sigma=8)", "count": None, "visible": 6, "final": "gaussian(sigma=6)"}
RULED = {"mechanism": "gaussian(sigma=?)", "final": "gaussian(sigma=?)", "final_noise": "1.07", **BUDGET}
WAYS = {
    "secret": {**RULED, "count": "geometric(mean=10)"},
    "visible": {**RULED, "count": None, "visible": "6"},
    "noise of the final training": {**SECRET, **BUDGET, "final": "gaussian(sigma=?)"},
    "mean": {**SECRET, **BUDGET, "count": "geometric(mean=?)", "epsilon": "1.5"},
    "visible noise": {**VISIBLE, **BUDGET, "mechanism": "gaussian(sigma=?)"},
}
SENTENCES = {
    "secret": r"Gaussian noise of scale \d+\.\d+ in each search trial lets you search with about 10 trials and then train once with sigma "
    r"\d\.\d+ at \(1, 1e-5\)\.",
    "visible": r"Gaussian noise of scale \d+\.\d+ in each search trial lets you search with 6 visible trials and then train once with "
    r"sigma \d\.\d+ at \(1, 1e-5\)\.",
    "noise of the final training": r"Gaussian noise of scale \d+\.\d+ in the final training lets you search with about 10 trials and then "
    r"train once at \(1, 1e-5\)\.",
    "mean": r"At \(1\.5, 1e-5\) you may search with about [\d,]+ trials and then train once: mean \d+\.?\d*\.",
    "visible noise": r"Gaussian noise of scale \d+\.\d+ in each search trial lets you search with 6 visible trials and then train once at "
    r".*",
}


@pytest.mark.parametrize("way", WAYS)
def test_a_solved_number_meets_the_budget(way):
    found = ask("answer", WAYS[way])
    terms = {name: found[name] for name in ("mechanism", "count", "final", "visible", "subsample")}
    exact = check_plan(**terms, epsilon=found["epsilon"], delta=found["delta"]).cost
    assert found["cost"]["lower"] <= exact.upper
    assert exact.lower <= found["cost"]["upper"] <= found["epsilon"]
    assert found["cost"]["upper"] >= found["epsilon"] * (1 - 3e-3)
    assert re.fullmatch(SENTENCES[way], found["sentence"]), found["sentence"]
    assert found["final_alone"]["upper"] >= ps.parse(found["final"]).epsilon_at(1e-5).lower
    assert found["base"]["upper"] >= ps.parse(found["mechanism"]).epsilon_at(1e-5).lower


def test_the_rule_gives_the_final_training_its_noise():
    found = ask("answer", WAYS["secret"])
    alone = ask("answer", {"mechanism": "gaussian(sigma=?)", **BUDGET})["value"]
    assert found["final_value"] == pytest.approx(1.07 * alone, rel=2e-3)
    assert f"sigma={found['final_value']!r}" in found["final"]
    assert ask("answer", WAYS["mean"])["final_value"] is None


@pytest.mark.parametrize("fields", [SECRET, VISIBLE, {**VISIBLE, "final": None}])
@pytest.mark.parametrize("budget", [{"epsilon": "?", "delta": "1e-6"}, {"epsilon": "1", "delta": "?"}])
def test_the_cost_of_both_stages_is_that_of_their_composition(fields, budget):
    found = ask("answer", {**fields, **budget})
    search = ps.Selection(ps.Gaussian(sigma=8), ps.Geometric(mean=10)) if fields["count"] else ps.Composed(ps.Gaussian(sigma=8), times=6)
    whole = search if fields["final"] is None else ps.Composed((search, ps.Gaussian(sigma=6)))
    exact = whole.delta_at(1.0) if budget["delta"] == "?" else whole.epsilon_at(1e-6)
    assert exact.lower <= found["value"]
    assert found["value"] <= 1.01 * exact.upper
    release = "all results of 6 visible runs" if fields["final"] is None else "trials and then training once"
    assert release in found["sentence"]


def test_all_details_of_a_secret_search():
    question = WAYS["secret"]
    answer = ask("answer", question)
    solved = {**question, "value": answer["value"], "final_value": answer["final_value"]}
    drawn = ask("curves", solved)
    assert drawn["mean_note"] is None
    middle = drawn["mean"]["x"].index(10.0)
    assert drawn["mean"]["exact"][middle] == pytest.approx(answer["cost"]["upper"], rel=2e-3)
    assert drawn["mean"]["exact"] == sorted(drawn["mean"]["exact"])
    for exact, search, final in zip(*(drawn["mean"][name] for name in ("exact", "search", "final")), strict=True):
        assert max(search, final) <= exact <= (search + final) * 1.01
    assert drawn["mean"]["paper"] == [None] * len(drawn["mean"]["x"])
    assert 1e-5 in drawn["profile"]["delta"]
    assert drawn["profile"]["exact"] == sorted(drawn["profile"]["exact"], reverse=True)
    rows = {row["name"]: row for row in ask("compare", solved)["rows"]}
    assert list(rows) == ["exact", "composition", "search", "final", "base"]
    assert rows["exact"]["epsilon"] == answer["cost"]["upper"]
    assert rows["composition"]["note"] == "10 trials and the final training, every output released"
    assert rows["final"]["epsilon"] == answer["final_alone"]["upper"]
    assert all(row["epsilon"] <= rows["exact"]["epsilon"] for name, row in rows.items() if name != "composition")


def test_all_details_of_a_visible_search():
    question = WAYS["visible"]
    answer = ask("answer", question)
    assert answer["survival"] is None
    assert answer["trials"]["expected"] == 6
    solved = {**question, "value": answer["value"], "final_value": answer["final_value"]}
    drawn = ask("curves", solved)["mean"]
    assert drawn["x"][0] == 1.0
    assert drawn["exact"][drawn["x"].index(6.0)] == pytest.approx(answer["cost"]["upper"], rel=2e-3)
    assert [row["name"] for row in ask("compare", solved)["rows"]] == ["exact", "search", "final", "base"]


@pytest.mark.parametrize("way", ["secret", "visible", "mean"])
def test_plan_and_certificate_hold_both_stages(way, tmp_path):
    question = WAYS[way]
    answer = ask("answer", question)
    solved = {**question, "value": answer["value"], "final_value": answer["final_value"]}
    file = tmp_path / "plan.toml"
    file.write_text(ask("plan", solved))
    read = read_plan(file)
    assert read.final == answer["final"]
    assert read.plan().cost.upper <= read.epsilon
    if "final_noise" in question:
        assert "final_noise = 1.07" in file.read_text()
    certificate = ask("certificate", solved)
    assert ps.verify(certificate).holds
    assert json.loads(certificate)["plan"]["final"] == answer["final"]


def test_a_made_up_noise_of_the_final_training_is_refused():
    answer = ask("answer", WAYS["secret"])
    with pytest.raises(RefusedError, match=r"the plan must meet its budget|must cost less than the budget"):
        ask("plan", {**WAYS["secret"], "value": answer["value"], "final_value": 1.0})


@pytest.mark.parametrize(
    "fields",
    [WAYS["secret"], WAYS["visible"], {**SECRET, "epsilon": "?", "delta": "1e-6"}, {**VISIBLE, "epsilon": "1", "delta": "?"}],
)
def test_the_same_question_elsewhere_has_the_same_answer(fields, capsys):
    found = ask("answer", fields)
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(found["python"], {})  # noqa: S102 - this is what is tested
    assert is_among(found["value"], output.getvalue())
    words = shlex.split(found["command"])
    assert words[0] == "privselect"
    with pytest.raises(SystemExit) as stop:
        main(words[1:])
    assert stop.value.code == 0
    assert is_among(found["value"], capsys.readouterr().out)


def is_among(value, text):
    return any(math.isclose(float(number), value, rel_tol=3e-3) for number in re.findall(r"\d+\.\d+(?:e-?\d+)?", text))


REFUSED = {
    "no search noise": ({**RULED, "mechanism": "gaussian(sigma=8)", "count": "geometric(mean=10)"}, None, "got none"),
    "a rule without an open final noise": (
        {**RULED, "count": "geometric(mean=10)", "final": "gaussian(sigma=6)"},
        "final_noise",
        "`final_noise` needs an open number in both stages, got none in the final training",
    ),
    "a rule without a final training": (
        {**RULED, "count": "geometric(mean=10)", "final": None},
        "final_noise",
        "`final_noise` divides the budget between two stages",
    ),
    "no budget for the rule": (
        {**RULED, "mechanism": "gaussian(sigma=8)", "count": "geometric(mean=10)", "epsilon": "?"},
        "final_noise",
        "`final_noise` needs an open number in both stages, got none in the search",
    ),
    "no more noise": ({**WAYS["secret"], "final_noise": "1"}, "final_noise", "`final_noise` must be in (1, inf), got '1'"),
    "both open without a rule": ({**WAYS["secret"], "final_noise": None}, "final", "exactly one number must be written as ?, got 2"),
    "a final training above the budget": (
        {**SECRET, **BUDGET, "mechanism": "gaussian(sigma=?)", "final": "gaussian(sigma=1)"},
        "final",
        "`final` must cost less than the budget",
    ),
    "another relation": (
        {**SECRET, "epsilon": "?", "delta": "1e-6", "mechanism": DPSGD.format(2, 10), "final": "gaussian(sigma=6, neighbours=replace_one)"},
        "final",
        "search and final training must be stated for the same neighbouring relation",
    ),
    "no mechanism": ({**SECRET, "epsilon": "?", "delta": "1e-6", "final": "geometric(mean=3)"}, "final", "`final` must be a mechanism"),
    "secret and visible": (
        {**SECRET, "epsilon": "?", "delta": "1e-6", "visible": 6},
        "visible",
        "a search is either secret, with a law of K, or visible",
    ),
    "no trials": ({**VISIBLE, "epsilon": "?", "delta": "1e-6", "visible": "0"}, "visible", "`visible` must be an integer >= 1"),
    "too many trials": ({**VISIBLE, "epsilon": "?", "delta": "1e-6", "visible": MAX_VISIBLE + 1}, "visible", f"<= {MAX_VISIBLE}"),
    "half a trial": ({**VISIBLE, "epsilon": "?", "delta": "1e-6", "visible": "2.5"}, "visible", "`visible` must be an integer"),
    "too many steps": (
        {**VISIBLE, "epsilon": "?", "delta": "1e-6", "mechanism": DPSGD.format(2, MAX_STEPS // 5)},
        "visible",
        "`visible` must be at most 5 trials of 2000000 steps on this page, got 6",
    ),
    "too many steps in the end": (
        {**VISIBLE, "epsilon": "?", "delta": "1e-6", "final": DPSGD.format(2, MAX_STEPS + 1)},
        "final",
        f"`steps` must be at most {MAX_STEPS} on this page",
    ),
    "too large a sample": (
        {**SECRET, "epsilon": "?", "delta": "1e-6", "subsample": "3/2"},
        "subsample",
        "`subsample` must be a probability",
    ),
    "no sample": ({**SECRET, "epsilon": "?", "delta": "1e-6", "subsample": "x"}, "subsample", "`subsample` must be a probability"),
    "a sample of nothing": ({**SECRET, "epsilon": "?", "delta": "1e-6", "subsample": 0}, "subsample", "`subsample` must be a probability"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_names_the_field_and_the_value(name):
    fields, field, message = REFUSED[name]
    with pytest.raises(RefusedError) as refused:
        ask("answer", fields)
    assert message in str(refused.value)
    assert refused.value.field == field


@pytest.mark.slow
def test_the_ways_to_tune_are_compared():
    found = ask("advise", {"mechanism": DPSGD.format("?", 300), **BUDGET})
    ways = {one["way"]: one for one in found["ways"]}
    assert found["recommended"] in ways
    assert found["caution"] is None
    assert found["parameter"] == "noise_multiplier"
    assert ways["no tuning"]["search_noise"] is None
    assert ways["no tuning"]["extra_noise"] == 0.0
    assert ways["secret search"]["extra_noise"] == pytest.approx(0.07, rel=0.05)
    assert ways["one shot"]["released_noise"] == ways["one shot"]["search_noise"]
    for one in ways.values():
        answer = ask("answer", one["question"])
        expected = one["search_noise"] or one["released_noise"]
        assert answer["value"] == pytest.approx(expected, rel=5e-3)


@pytest.mark.parametrize(
    ("mechanism", "message"),
    [
        ("gaussian(sigma=4)", "must have exactly one open noise"),
        (DPSGD.format(2, "?"), "must have exactly one open noise"),
        ("approximate(epsilon=?, delta=1e-9)", "must have exactly one open noise"),
        ("nonsense", "expected something like gaussian"),
    ],
)
def test_advice_needs_an_open_noise(mechanism, message):
    with pytest.raises(RefusedError, match=message) as refused:
        ask("advise", {"mechanism": mechanism, **BUDGET})
    assert refused.value.field == "mechanism"
