"""Curves, comparison and files of a solved question."""

import json
import tomllib

import pytest
from wire import ask

import privselect as ps
from privselect.planning.plan_file import read_plan
from privselect.selection.comparison_curves import comparison_curves
from privselect.web import curves
from privselect.web.limits import MAX_DESIGN_CAP
from privselect.web.schemas import RefusedError

DPSGD = "dpsgd(noise_multiplier={}, sampling_probability=1024/60000, steps=600)"


@pytest.fixture(scope="module")
def settled():
    fields = {"mechanism": DPSGD.format("?"), "count": "geometric(mean=30)", "epsilon": "1", "delta": "1e-5"}
    return {**fields, "value": ask("answer", fields)["value"]}


def test_curves_enclose_the_exact_price(settled):
    found = ask("curves", settled)
    trial = ps.parse(DPSGD.format(settled["value"]))
    along = found["mean"]
    assert len({len(values) for values in along.values()}) == 1
    assert any(abs(x - 30) < 1e-9 for x in along["x"])
    for place in (0, 5, -1):
        exact = ps.Selection(trial, ps.Geometric(mean=along["x"][place])).epsilon_at(delta=1e-5)
        assert along["exact_lower"][place] <= exact.upper
        assert exact.lower <= along["exact"][place]
    for name in ("paper", "renyi", "composition"):
        others = [(mine, other) for mine, other in zip(along["exact"], along[name], strict=True) if other is not None]
        assert len(others) > 3
        assert all(mine <= other * (1 + 2e-3) for mine, other in others)  # both are within the page's accuracy
    profile = found["profile"]
    assert 1e-5 in profile["delta"]
    for place in (0, 6, -1):
        exact = ps.Selection(trial, ps.Geometric(mean=30)).epsilon_at(delta=profile["delta"][place])
        assert profile["exact_lower"][place] <= exact.upper
        assert exact.lower <= profile["exact"][place]
    assert all(base <= exact for base, exact in zip(profile["base"], profile["exact"], strict=True))


@pytest.mark.parametrize(
    ("count", "note"),
    [
        (None, "with one trial, there is no mean of K to vary"),
        ("finite({1: 1, 3: 2})", "a finite law of K has no mean to vary"),
    ],
)
def test_why_there_is_no_curve_along_the_mean(count, note):
    found = ask("curves", {"mechanism": "gaussian(sigma=4)", "count": count, "epsilon": "?", "delta": "1e-6", "value": 2.0})
    assert found["mean"] is None
    assert note in found["mean_note"]
    assert len(found["profile"]["delta"]) >= 5


def test_a_curve_that_would_take_too_long_is_left_out(settled, monkeypatch):
    monkeypatch.setattr(curves, "_CURVE_SECONDS", 0.0)  # any law of K takes longer
    found = ask("curves", settled)
    assert found["mean"] is None
    assert "takes too long" in found["mean_note"]
    assert len(found["profile"]["delta"]) >= 5


def test_a_curve_that_takes_too_much_memory_leaves_the_other(settled, monkeypatch):
    def without_memory(*arguments, over, **options):
        if over == "mean":
            raise MemoryError
        return comparison_curves(*arguments, over=over, **options)

    monkeypatch.setattr(curves, "comparison_curves", without_memory)
    found = ask("curves", settled)
    assert found["mean"] is None
    assert "too much memory" in found["mean_note"]
    assert len(found["profile"]["delta"]) >= 5


def test_rows_say_what_others_charge_and_force(settled):
    found = ask("compare", settled)
    rows = {row["name"]: row for row in found["rows"]}
    assert list(rows) == ["exact", "paper", "renyi", "composition", "base"]
    assert rows["exact"]["ratio"] == 1.0
    assert rows["exact"]["required"] == settled["value"]
    # The published numbers of docs/experiments/headline.md.
    assert rows["paper"]["required"] == pytest.approx(3.715, rel=2e-3)
    assert rows["renyi"]["required"] == pytest.approx(4.172, rel=2e-3)
    assert rows["composition"]["required"] == pytest.approx(8.588, rel=2e-3)
    assert rows["base"]["epsilon"] < rows["exact"]["epsilon"] < rows["paper"]["epsilon"] < rows["renyi"]["epsilon"]


def test_rows_of_one_trial_and_of_laws_without_other_bounds():
    rows = ask("compare", {"mechanism": "gaussian(sigma=4)", "count": None, "epsilon": "?", "delta": "1e-6", "value": 1.1})["rows"]
    assert [row["note"] for row in rows[1:4]] == ["no law of K is given"] * 3
    fields = {"mechanism": "gaussian(sigma=4)", "count": "finite({1: 1, 3: 2})", "epsilon": "?", "delta": "1e-6", "value": 2.0}
    rows = {row["name"]: row for row in ask("compare", fields)["rows"]}
    assert rows["paper"]["epsilon"] is None
    assert "no bound for finite K" in rows["paper"]["note"]


def test_the_plan_file_holds_question_and_answer(settled, tmp_path):
    text = ask("plan", settled)
    assert tomllib.loads(text)["problem"]["mechanism"] == settled["mechanism"]
    file = tmp_path / "plan.toml"
    file.write_text(text)
    again = read_plan(file).plan()
    assert again.cost.upper <= 1.0
    assert str(settled["value"]) in str(again.mechanism)


@pytest.mark.parametrize(("epsilon", "delta"), [("?", "1e-6"), ("2", "?")])
def test_a_plan_of_what_was_evaluated_is_met_too(epsilon, delta, tmp_path):
    fields = {"mechanism": "laplace(scale=2)", "count": "poisson(mean=10)", "epsilon": epsilon, "delta": delta}
    file = tmp_path / "plan.toml"
    file.write_text(ask("plan", {**fields, "value": ask("answer", fields)["value"]}))
    found = read_plan(file).plan()
    assert found.cost.upper <= found.epsilon


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 2.1, 2.843])
@pytest.mark.parametrize(("mechanism", "count"), [("gaussian(sigma=4)", "geometric(mean=30)"), (DPSGD.format(2.8), "poisson(mean=10)")])
def test_a_delta_that_was_asked_for_can_be_planned_and_certified(mechanism, count, epsilon):
    fields = {"mechanism": mechanism, "count": count, "epsilon": epsilon, "delta": "?"}
    value = ask("answer", fields)["value"]
    assert "version = 2" in ask("plan", {**fields, "value": value})
    assert ps.Selection(ps.parse(mechanism), ps.parse(count)).delta_at(epsilon).lower <= value


HARD = {
    # The epsilon computed at this delta is 2% above the epsilon of the question.
    "delta": {"mechanism": "gaussian(sigma=4)", "count": "fixed(k=3)", "epsilon": "1.5", "delta": "?"},
    # Full accuracy proves slightly less than the page does.
    "epsilon": {
        "mechanism": "dpsgd(noise_multiplier=1.427, sampling_probability=0.00071, steps=13)",
        "count": None,
        "epsilon": "?",
        "delta": "3.913507325306447e-22",
    },
}


@pytest.mark.slow
@pytest.mark.parametrize("name", HARD)
def test_what_full_care_proves_less_of_is_found_again_for_the_files(name, tmp_path):
    question = {**HARD[name], "value": ask("answer", HARD[name])["value"]}
    file = tmp_path / "plan.toml"
    file.write_text(ask("plan", question))
    found = read_plan(file)
    assert getattr(found, name) > question["value"]
    assert found.plan().cost.upper <= found.epsilon
    assert ps.verify(ask("certificate", question)).holds


@pytest.mark.parametrize(("epsilon", "delta", "value"), [("?", "1e-6", 1.5), ("1.7", "?", 1e-6)])
def test_a_made_up_answer_is_refused(epsilon, delta, value):
    fields = {"mechanism": "gaussian(sigma=4)", "count": "geometric(mean=30)", "epsilon": epsilon, "delta": delta, "value": value}
    for kind in ("plan", "certificate"):
        with pytest.raises(RefusedError, match="the plan must meet its budget"):
            ask(kind, fields)


def test_a_plan_above_its_budget_is_refused(settled):
    with pytest.raises(RefusedError, match="the plan must meet its budget"):
        ask("plan", {**settled, "value": 2.0})


def test_the_certificate_is_a_draft_that_verifies(settled):
    text = ask("certificate", settled)
    assert json.loads(text)["draft"] is True
    verdict = ps.verify(text)
    assert verdict.holds
    assert verdict.draft


@pytest.mark.parametrize(
    ("mechanism", "count", "epsilon", "delta"),
    [
        ("gaussian(sigma=4)", None, "0", "?"),
        ("gaussian(sigma=4)", "geometric(mean=30)", "0", "?"),
        ("gaussian(sigma=4)", None, "?", "0.9"),
    ],
)
def test_what_costs_no_epsilon_can_be_certified(mechanism, count, epsilon, delta):
    fields = {"mechanism": mechanism, "count": count, "epsilon": epsilon, "delta": delta}
    verdict = ps.verify(ask("certificate", {**fields, "value": ask("answer", fields)["value"]}))
    assert verdict.holds
    assert verdict.certificate.total.upper == 0.0


DESIGN = {"mechanism": "gaussian(sigma=4)", "epsilon": 2.0, "delta": "1e-6", "tau": 0.01, "cap": "30", "mean": 15}


def test_a_designed_law_keeps_the_budget():
    found = ask("design", DESIGN)
    law = ps.parse(found["count"])
    assert ps.Selection(ps.Gaussian(sigma=4), law).epsilon_at(delta=1e-6).upper <= 2.0
    assert law.expected() <= 15
    assert found["success_probability"] >= max(fit["success_probability"] for fit in found["fits"].values() if fit is not None)
    again = ask("answer", {"mechanism": "gaussian(sigma=4)", "count": found["count"], "epsilon": "?", "delta": "1e-6"})
    assert again["trials"]["success_probability"]["0.01"] == pytest.approx(found["success_probability"], rel=1e-6)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("mechanism", "gaussian(sigma=?)", "`mechanism` must have no ? for the design of a law of K"),
        ("cap", MAX_DESIGN_CAP + 1, f"`cap` must be an integer >= 1 and <= {MAX_DESIGN_CAP}"),
        ("cap", "2.5", "`cap` must be an integer"),
        ("tau", "1", "`tau` must be in (0, 1), got '1'"),
        ("mean", "0", "`mean` must be in (0, inf), got '0'"),
        ("epsilon", "?", "`epsilon` must be in (0, inf), got '?'"),
        ("delta", "x", "`delta` must be in (0, 1), got 'x'"),
    ],
)
def test_a_design_names_the_field_it_refuses(field, value, message):
    with pytest.raises(RefusedError) as refused:
        ask("design", {**DESIGN, field: value})
    assert refused.value.field == field
    assert message in str(refused.value)
