"""Answers of the page: sound, rounded to the safe side, and equal to those of Python and of the command line."""

import contextlib
import io
import math
import re
import shlex
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from wire import ask

import privselect as ps
from privselect.cli import main
from privselect.planning.plan import check_plan
from privselect.web.answer_text import format_rounded
from privselect.web.handlers import survival_points
from privselect.web.limits import MAX_STEPS, MAX_TRIALS, MIN_DELTA
from privselect.web.schemas import RefusedError

DPSGD = "dpsgd(noise_multiplier={}, sampling_probability=1024/60000, steps={})"
OPEN = [
    (DPSGD.format("?", 600), "geometric(mean=30)", "1", "1e-5"),
    (DPSGD.format("2.8", "?"), "geometric(mean=30)", "1", "1e-5"),
    ("dpsgd(noise_multiplier=2.8, sampling_probability=?, steps=600)", "poisson(mean=10)", 2, 1e-6),
    (DPSGD.format("2.8", 600), "geometric(mean=?)", "1", "1e-5"),
    ("gaussian(sigma=?)", "negative_binomial(eta=-0.5, mean=30)", 0.5, "1e-6"),
    ("gaussian(sigma=?)", None, 1, "1/1000000"),
    ("laplace(scale=?)", "poisson(mean=10)", 2, 1e-6),
    ("approximate(epsilon=?, delta=1e-9)", "geometric(mean=30)", 2, 1e-6),
    ("gaussian(sigma=4)", "binomial(n=?, p=1/2)", 2, 1e-6),
]
CLOSED = [
    (DPSGD.format("2.8", 600), "geometric(mean=30)"),
    ("gaussian(sigma=4)", "poisson(mean=10)"),
    ("gaussian(sigma=4)", None),
    ("laplace(scale=4)", "geometric(mean=30, cap=100)"),
    ("pure(epsilon=1)", "logarithmic(mean=10)"),
    ("approximate(epsilon=0.1, delta=1e-9)", "finite({1: 1, 2: 1})"),
]


def question_fields(mechanism, count, epsilon, delta, **more):
    return {"mechanism": mechanism, "count": count, "epsilon": epsilon, "delta": delta, **more}


def whole(mechanism, count):
    return ps.parse(mechanism) if count is None else ps.Selection(ps.parse(mechanism), ps.parse(count))


@pytest.mark.parametrize(("mechanism", "count", "epsilon", "delta"), OPEN)
def test_a_solved_number_meets_the_budget_with_full_care(mechanism, count, epsilon, delta):
    found = ask("answer", question_fields(mechanism, count, epsilon, delta))
    assert found["cost"]["upper"] <= float(epsilon)
    exact = check_plan(found["mechanism"], found["count"], epsilon=found["epsilon"], delta=found["delta"]).cost
    assert found["cost"]["lower"] <= exact.upper
    assert exact.lower <= found["cost"]["upper"]
    # No more than the page's accuracy is left unused, except with an integer number of trials.
    if "binomial(n=?" not in str(count):
        assert found["cost"]["upper"] >= float(epsilon) * (1 - 2e-3)
    assert found["value_text"] in found["sentence"]


@pytest.mark.parametrize(("mechanism", "count"), CLOSED)
def test_epsilon_encloses_the_exact_one(mechanism, count):
    found = ask("answer", question_fields(mechanism, count, "?", "1e-6"))
    exact = whole(mechanism, count).epsilon_at(delta=1e-6)
    assert found["cost"]["lower"] <= exact.upper
    assert exact.lower <= found["cost"]["upper"] <= found["value"] <= float(found["value_text"])
    assert found["value"] <= 1.003 * exact.upper
    alone = ps.parse(mechanism).epsilon_at(delta=1e-6)
    assert found["base"]["lower"] <= alone.upper
    assert alone.lower <= found["base"]["upper"]


@pytest.mark.parametrize(("mechanism", "count"), CLOSED)
def test_delta_encloses_the_exact_one(mechanism, count):
    found = ask("answer", question_fields(mechanism, count, "0.5", "?"))
    exact = whole(mechanism, count).delta_at(epsilon=0.5)
    assert exact.upper <= found["value"] <= float(found["value_text"])
    assert f"costs delta {found['value_text']}" in found["sentence"]


def test_a_number_beside_which_epsilon_may_jump_is_shown_with_every_digit():
    jump = {
        "mechanism": "discrete_gaussian(sigma=?)",
        "count": None,
        "epsilon": 10.314555342956936,
        "delta": "1e-6",
        "search_start": 0.38134703,
    }
    found = ask("answer", jump)
    assert found["value_text"] == repr(found["value"])
    assert ps.parse(f"discrete_gaussian(sigma={found['value_text']})").epsilon_at(1e-6).upper <= 10.314555342956936
    assert ps.parse("discrete_gaussian(sigma=0.3814)").epsilon_at(1e-6).lower > 11  # four digits would be wrong


def test_what_cannot_be_bounded_is_said():
    found = ask("answer", question_fields("gaussian(sigma=0.01)", "geometric(mean=4)", "?", "1e-6"))
    assert found["value"] is None
    assert found["sentence"] == "No finite epsilon is proved for releasing the best of about 4 runs at delta 1e-6."
    assert "no finite upper bound is proved" in found["proof"]
    found = ask("answer", question_fields("gaussian(sigma=0.01)", "geometric(mean=4)", 1, "?"))
    assert found["sentence"] == "No delta below 1 is proved for releasing the best of about 4 runs at epsilon 1."
    assert found["base"] is None
    assert found["cost"] == {"lower": None, "upper": None}
    found = ask("answer", question_fields("approximate(epsilon=1, delta=1e-3)", "geometric(mean=4)", "?", "1e-6"))
    assert found["proof"] == "no finite epsilon is possible at delta 1e-6 (proved)"


def test_what_leaks_nothing_costs_next_to_nothing():
    found = ask("answer", question_fields("gaussian(sigma=100000)", "geometric(mean=2)", "?", "0.1"))
    assert found["value"] == 0.0
    found = ask("answer", question_fields("gaussian(sigma=1000)", None, "2", "?"))
    assert MIN_DELTA <= found["value"] < 1e-40


SENTENCES = {
    (
        DPSGD.format("?", 600),
        "geometric(mean=30)",
        "1",
        "1e-5",
    ): r"A noise multiplier of 2\.83\d lets you release the best of about 30 runs at \(1, 1e-5\)\.",
    ("gaussian(sigma=?)", None, "2", "1e-6"): r"Gaussian noise of scale \d\.\d+ lets you release one run at \(2, 1e-6\)\.",
    ("gaussian(sigma=4)", "geometric(mean=?)", "2", "1e-6"): r"At \(2, 1e-6\) you may release the best of about 83 runs: mean 83\.\d+\.",
    # Proved lower bounds: 1.7037 for 20 runs, and 2.0113 for 11 runs with that noise.
    (
        "gaussian(sigma=4)",
        "geometric(mean=?)",
        "1.7",
        "1e-6",
    ): r"At .* you may release the best of about 19 runs: mean 19\.5\d\.",
    ("gaussian(sigma=?)", "geometric(mean=10.5001)", "2", "1e-6"): r"Gaussian .* the best of about 10 runs at .*",
    ("gaussian(sigma=4)", "geometric(mean=3.999)", "?", "1e-6"): r"Releasing the best of about 3\.9 runs costs .*",
    ("gaussian(sigma=4)", "geometric(mean=1.0001)", "?", "1e-6"): r"Releasing the best of about 1 run costs .*",
    ("laplace(scale=4)", None, "1", "?"): r"Releasing one run at epsilon 1 costs delta 0\.",
    ("gaussian(sigma=4)", "fixed(k=1)", "?", "1e-6"): r"Releasing the best of 1 run costs epsilon 1\.06\d at delta 1e-6\.",
    ("composed(gaussian(sigma=4), times=?)", None, "2", "1e-6"): r"A trial with times \d+ lets you release one run at \(2, 1e-6\)\.",
}


@pytest.mark.parametrize(
    ("mechanism", "count", "epsilon"),
    [("laplace(scale=4)", None, "1"), ("gaussian(sigma=4)", "geometric(mean=30)", "0"), (*CLOSED[0], "1")],
)
def test_a_solved_delta_is_told_once(mechanism, count, epsilon):
    found = ask("answer", question_fields(mechanism, count, epsilon, "?"))
    exact = whole(mechanism, count).delta_at(float(epsilon)).upper
    assert exact <= float(found["value_text"]) <= exact * (1 + 1e-3)
    rows = ask("compare", question_fields(mechanism, count, epsilon, "?", value=found["value"]))["rows"]
    assert rows[0]["epsilon"] == found["cost"]["upper"]


@pytest.mark.parametrize("question", SENTENCES)
def test_sentences(question):
    assert re.fullmatch(SENTENCES[question], ask("answer", question_fields(*question))["sentence"])


@given(st.floats(min_value=1e-300, max_value=1e300), st.booleans(), st.integers(1, 9))
def test_rounding_never_crosses_the_value(value, up, digits):
    shown = format_rounded(value, up=up, digits=digits)
    assert float(shown) >= value if up else float(shown) <= value
    assert abs(Decimal(shown) - Decimal(value)) <= Decimal(value) * Decimal(10) ** (1 - digits)


def test_a_number_of_few_digits_is_shown_as_it_is():
    assert (format_rounded(0.1, up=True), format_rounded(0.1, up=False), format_rounded(1e-50, up=True)) == ("0.1", "0.1", "1e-50")


def test_the_law_of_k_is_that_of_the_question():
    found = ask("answer", question_fields("gaussian(sigma=4)", "geometric(mean=30)", "?", "1e-6"))
    law = dict(zip(found["survival"]["k"], found["survival"]["probability"], strict=True))
    for k, at_least in law.items():
        assert math.isclose(at_least, (1 - 1 / 30) ** (k - 1), rel_tol=1e-9)
    assert found["trials"]["quantiles"] == {"0.5": 21, "0.9": 68, "0.99": 136}
    assert math.isclose(found["trials"]["success_probability"]["0.01"], 1 - (1 / 30 * 0.99) / (1 - (29 / 30) * 0.99), rel_tol=1e-6)


def test_the_law_of_many_trials_is_drawn_at_few_places():
    law = ask("answer", question_fields("gaussian(sigma=4)", "geometric(mean=100000)", "?", "1e-6"))["survival"]
    assert len(law["k"]) == len(law["probability"]) <= 201
    for before, k, at_least in zip([0, *law["k"][:-1]], law["k"], law["probability"], strict=True):
        assert (1 - 1e-5) ** (k - 1) - 0.0051 <= at_least <= (1 - 1e-5) ** before + 0.0051


@pytest.mark.parametrize("law", ["finite({0: 0.5, 1: 0.25, 1000: 0.25})", "finite({500: 1, 501: 1})", "fixed(k=700)", "fixed(k=2)"])
def test_the_law_falls_where_it_does(law):
    drawn = survival_points(ps.parse(law))
    assert drawn["k"] == sorted(set(drawn["k"]))
    pmf = np.exp(ps.parse(law).log_pmf(np.arange(int(drawn["k"][-1]) + 1)))
    places = np.concatenate([[0], drawn["k"]])
    for before, k, at_least in zip(places[:-1], places[1:], drawn["probability"], strict=True):
        for place in {int(before) + 1, int(k)}:
            assert abs(1.0 - pmf[:place].sum() - at_least) <= 0.0051
    if ps.parse(law).largest is not None:
        assert drawn["probability"][-1] == pytest.approx(0.0, abs=1e-12)


def test_one_trial_has_no_law():
    assert ask("answer", question_fields("gaussian(sigma=4)", None, "?", "1e-6"))["survival"] is None


@pytest.mark.parametrize(
    "question", [OPEN[4], ("gaussian(sigma=4)", "poisson(mean=10)", "?", "1e-6"), ("laplace(scale=4)", None, 0.1, "?")]
)
def test_the_same_question_elsewhere_has_the_same_answer(question, capsys):
    found = ask("answer", question_fields(*question))
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(found["python"], {})  # noqa: S102 - this is what is tested
    numbers = [float(number) for number in re.findall(r"\d+\.\d+(?:e-?\d+)?", output.getvalue())]
    assert any(math.isclose(number, found["value"], rel_tol=3e-3) for number in numbers)
    words = shlex.split(found["command"])
    assert words[0] == "privselect"
    with pytest.raises(SystemExit) as stop:
        main(words[1:])
    assert stop.value.code == 0
    numbers = [float(number) for number in re.findall(r"\d+\.\d+(?:e-?\d+)?", capsys.readouterr().out)]
    assert any(math.isclose(number, found["value"], rel_tol=3e-3) for number in numbers)


REFUSED = {
    ("gaussian(sigma=-1)", "geometric(mean=30)", "?", "1e-6"): ("mechanism", "`sigma` must be in (0, inf), got -1"),
    ("gaussian(sigma=abc)", None, "?", "1e-6"): ("mechanism", "abc"),
    ("geometric(mean=3)", None, "?", "1e-6"): ("mechanism", "`mechanism` must be a mechanism such as"),
    ("gaussian(sigma=4)", "gaussian(sigma=4)", "?", "1e-6"): ("count", "`count` must be a law of K"),
    ("gaussian(sigma=4)", "geometric(mean=0)", "?", "1e-6"): ("count", "`mean` must be"),
    ("gaussian(sigma=4)", None, "?", "2"): ("delta", "`delta` must be in [1e-50, 1), got '2'"),
    ("gaussian(sigma=4)", None, "?", 0.0): ("delta", "`delta` must be in [1e-50, 1), got 0.0"),
    ("gaussian(sigma=4)", None, "?", "1e-400"): ("delta", "`delta` must be in [1e-50, 1), got '1e-400'"),
    ("gaussian(sigma=?)", None, "two", "1e-6"): ("epsilon", "`epsilon` must be in [0, inf), got 'two'"),
    ("gaussian(sigma=?)", None, math.nan, "1e-6"): ("epsilon", "got nan"),
    ("gaussian(sigma=?)", None, "0", "1e-6"): ("epsilon", "`epsilon` must be in (0, inf), got 0"),
    ("gaussian(sigma=?)", None, "?", "1e-6"): ("mechanism", "exactly one number must be written as ?, got 2: sigma, epsilon"),
    ("gaussian(sigma=4)", "negative_binomial(eta=?, mean=?)", "1", "1e-6"): ("count", "got 2: eta, mean"),
    ("gaussian(sigma=4)", None, "?", "?"): ("delta", "got 2: epsilon, delta"),
    ("gaussian(sigma=4)", None, "1", "1e-6"): (None, "exactly one number must be written as ?, got none"),
    ("gaussian(sigma=4)", "geometric(mean=?)", "0.1", "1e-6"): (None, "no `mean` tried meets epsilon 0.1"),
    (DPSGD.format(1, MAX_STEPS + 1), None, "?", "1e-6"): (
        "mechanism",
        f"`steps` must be at most {MAX_STEPS} on this page, in total",
    ),
    (DPSGD.format("?", 10**9), None, "1", "1e-6"): ("mechanism", f"`steps` must be at most {MAX_STEPS} on this page"),
    ("gaussian(sigma=4)", f"geometric(mean={2 * MAX_TRIALS})", "?", "1e-6"): (
        "count",
        f"`mean` must be at most {MAX_TRIALS}",
    ),
    ("gaussian(sigma=?)", f"poisson(mean={2 * MAX_TRIALS})", "1", "1e-6"): (
        "count",
        f"`mean` must be at most {MAX_TRIALS}",
    ),
}


@pytest.mark.parametrize("question", REFUSED)
def test_a_refusal_names_the_field_and_the_value(question):
    field, message = REFUSED[question]
    with pytest.raises(RefusedError) as refused:
        ask("answer", question_fields(*question))
    assert refused.value.field == field
    assert message in str(refused.value)


@pytest.mark.parametrize("kind", ["curves", "compare", "plan", "certificate"])
@pytest.mark.parametrize("value", [-1.0, 0.0, math.inf, math.nan])
def test_a_value_that_is_none_is_refused(kind, value):
    with pytest.raises(RefusedError) as refused:
        ask(kind, question_fields("gaussian(sigma=?)", None, "1", "1e-6", value=value))
    assert refused.value.field == "value"
