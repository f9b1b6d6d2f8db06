"""What a certificate holds."""

import json
import os
import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from example_certificates import DECLARED, PLANS, SLOW, fields, issued

import privselect as ps
from privselect._util.rounding import format_digits_up
from privselect.certificates.model import ApproximateGDP, PlanTerms, ProfilePoint, RunMetadata
from privselect.errors import ParameterError

THEOREMS = Path(__file__).parents[2] / "docs" / "theorems.md"


@pytest.mark.parametrize("name", PLANS)
def test_verify_accepts_what_certify_makes(name):
    verdict = ps.verify(issued(name).to_json())
    assert verdict.holds, verdict.reasons
    assert verdict.signed_by is None
    assert not verdict.draft
    assert len(verdict.unprotected) == 4


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW)
def test_verify_accepts_what_certify_makes_at_length(name):
    verdict = ps.verify(issued(name).to_json())
    assert verdict.holds, verdict.reasons


@pytest.mark.parametrize("name", PLANS)
def test_writing_and_reading_lose_nothing(name):
    certificate = issued(name)
    assert ps.Certificate.from_json(certificate.to_json()) == certificate
    assert certificate.hash == certificate.digest()


def test_the_numbers_are_those_of_the_parts():
    certificate = issued("geometric")
    chosen = ps.Selection(ps.Gaussian(sigma=4), ps.Geometric(mean=30))
    found, comparison = chosen.epsilon_at(1e-6), ps.compare(chosen, delta=1e-6)
    assert (certificate.total.lower, certificate.total.upper, certificate.total.delta) == (found.lower, found.upper, 1e-6)
    assert certificate.base.upper == comparison.base.upper
    assert certificate.bounds.renyi == comparison.bounds["renyi"]
    assert certificate.composition.runs == 30
    assert certificate.neighbours == "any"
    assert certificate.plan.epsilon == found.upper


@pytest.mark.parametrize("name", PLANS)
def test_the_curve_falls_from_zero_through_the_certified_point(name):
    certificate = issued(name)
    epsilon, delta = [point.epsilon for point in certificate.curve], [point.delta for point in certificate.curve]
    assert epsilon[0] == 0.0
    assert all(np.diff(epsilon) > 0)
    assert all(np.diff(delta) <= 0)
    assert delta[epsilon.index(certificate.total.upper)] <= certificate.total.delta
    assert 15 <= len(epsilon) <= 81


def test_the_curve_has_about_fifty_points_down_to_a_tiny_delta():
    curve = issued("geometric").curve
    assert 40 <= len(curve) <= 60
    assert curve[-1].delta <= 1e-12


def test_labels_are_in_the_table_of_theorems():
    table = THEOREMS.read_text().replace("**", "").replace("`", "")
    for name in PLANS:
        for label in issued(name).theorems:
            assert re.search(rf"^\| {re.escape(label)} \|", table, re.MULTILINE), label
    assert issued("geometric").theorems == ("Exact (upper)", "Exact (lower)", "Ratio")
    assert issued("no lower end").theorems == ("Exact (upper)", "Ratio", "Renyi, optimal")
    assert issued("training").theorems[-2:] == ("Composition (upper)", "Composition (lower)")
    assert issued("one trial").theorems == ()


def test_the_statement_says_whom_what_and_how_much():
    statement = issued("training").statement
    for part in (
        '"one person"',
        "one has one record more",
        "covers a plan, not a run of it",
        '"a look at the histogram of labels"',
        "public",
    ):
        assert part in statement
    assert "\n" not in statement
    assert "DRAFT" not in statement


def test_what_is_not_declared_makes_a_draft_and_is_named():
    certificate = ps.certify("gaussian(sigma=4)", delta=1e-6, declared=ps.Declared(unit="one person"))
    assert certificate.draft
    assert certificate.statement.startswith("DRAFT: not declared: the trust model, whether the number of records is public.")
    assert ps.verify(certificate).draft


def test_a_statement_cannot_be_talked_into():
    certificate = ps.certify("gaussian(sigma=4)", delta=1e-6, declared=ps.Declared(unit='one person". Epsilon = 0. "'))
    assert r'"one person\". Epsilon = 0. \""' in certificate.statement


@pytest.mark.parametrize("value", [1.06072982, 1.7887656223669355, 0.1, 1e-9, 123.456789, 99999.999, 0.0, 700.0])
def test_shown_digits_are_rounded_up(value):
    assert value <= float(format_digits_up(value)) <= value * (1 + 1e-4)


def test_only_where_no_trial_may_be_drawn_is_a_symbol_released():
    assert "symbol" in issued("poisson").released
    assert "symbol" not in issued("geometric").released
    assert issued("one trial").withheld != issued("geometric").withheld


def test_no_certificate_is_issued_above_its_budget():
    assert ps.certify("gaussian(sigma=4)", delta=1e-6, epsilon=1.07).plan.epsilon == 1.07
    with pytest.raises(ParameterError, match=r"`epsilon` must be at least 1\.060729.*, got 1\.0$"):
        ps.certify("gaussian(sigma=4)", delta=1e-6, epsilon=1.0)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"delta": 0}, "`delta`"),
        ({"delta": float("nan")}, "`delta`"),
        ({"epsilon": -1}, "`epsilon`"),
        ({"epsilon": float("inf")}, "`epsilon`"),
        ({"accuracy": 1}, "`accuracy`"),
        ({"mechanism": 4}, "`mechanism`"),
        ({"mechanism": ps.Geometric(mean=3)}, "`mechanism`"),
        ({"count": ps.Gaussian(sigma=4)}, "`count`"),
        ({"final": "gaussian(sigma=4)"}, "`final` needs a search before it"),
        ({"final": ps.Geometric(mean=3), "visible": 3}, "`final` must be a mechanism such as"),
        ({"visible": 0}, "`visible` must be"),
        ({"visible": 2.5}, "`visible` must be"),
        ({"visible": 3, "count": "geometric(mean=3)"}, "a search is either secret, with `count`, or visible"),
        ({"subsample": 0, "visible": 3}, "`subsample` must be a probability in"),
        ({"subsample": "half", "visible": 3}, "`subsample`"),
        ({"mechanism": "approximate(epsilon=1, delta=1e-3)"}, "`delta` must be large enough for a certified epsilon up to 700"),
    ],
)
def test_what_cannot_be_certified_is_refused(given, said):
    with pytest.raises(ParameterError, match=said):
        ps.certify(**{"mechanism": "gaussian(sigma=4)", "delta": 1e-6, **given})


def test_an_accuracy_that_is_asked_is_told_and_kept():
    certificate = ps.certify("gaussian(sigma=4)", delta=1e-6, accuracy=1e-6)
    assert certificate.accuracy.gap <= certificate.accuracy.requested == 1e-6
    assert ps.verify(certificate.to_json()).holds


def test_a_run_tells_its_randomness_and_that_it_was_run_twice():
    certificate = ps.certify("gaussian(sigma=4)", delta=1e-6, declared=DECLARED, run=RunMetadata(runs=2, notes=("seeds of 128 bits",)))
    assert certificate.total.upper == ps.Composed(ps.Gaussian(sigma=4), times=2).epsilon_at(1e-6).upper
    assert "covers 2 runs of a plan" in certificate.statement
    assert "128 bits" in certificate.statement
    assert certificate.released.startswith("for each of 2 runs")
    assert ps.verify(certificate.to_json()).holds


def test_an_insecure_run_says_so_first():
    certificate = ps.certify("gaussian(sigma=4)", delta=1e-6, declared=DECLARED, run=RunMetadata(randomness="insecure_seed", insecure=True))
    assert certificate.statement.startswith("INSECURE")
    assert "insecure" in ps.verify(certificate).summary


def test_a_certificate_cannot_be_changed():
    certificate = issued("geometric")
    with pytest.raises(ValueError, match="frozen"):
        certificate.total = None
    with pytest.raises(ValueError, match="frozen"):
        certificate.total.upper = 0.0
    assert isinstance(certificate.curve, tuple)
    assert hash(certificate)


def test_writing_is_whole_and_reading_gives_it_back(tmp_path):
    issued("geometric").write(tmp_path / "c.json")
    assert ps.Certificate.read(tmp_path / "c.json") == issued("geometric")
    assert [file.name for file in tmp_path.iterdir()] == ["c.json"]
    with pytest.raises(ParameterError, match="`out`"):
        issued("geometric").write(tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes")
def test_what_is_no_regular_file_stays_what_it_is(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ParameterError, match="`out` must be a regular file"):
        issued("geometric").write(tmp_path / "pipe")
    assert (tmp_path / "pipe").is_fifo()


def test_the_schema_knows_every_field_and_no_other():
    schema = ps.Certificate.model_json_schema()
    assert set(schema["required"]) == set(fields(issued("geometric")))
    assert schema["additionalProperties"] is False
    json.dumps(schema)


def test_an_infinite_base_and_a_missing_bound_are_words():
    certificate = ps.certify("approximate(epsilon=1, delta=1e-3)", "binomial(n=1, p=1e-4)", delta=1e-6)
    assert certificate.base.upper == "infinite"
    assert certificate.bounds.liu_talwar == "not covered"
    assert ps.verify(certificate.to_json()).holds


def test_ends_out_of_order_are_refused():
    with pytest.raises(ParameterError, match="lower <= upper"):
        type(issued("geometric").total)(lower=2.0, upper=1.0, delta=0.1)
    with pytest.raises(ParameterError, match="`epsilon`"):
        ProfilePoint(epsilon=-1.0, delta=0.1)
    with pytest.raises(ParameterError, match="`mu`"):
        ApproximateGDP(mu=0.0, delta=0.1)


def test_a_search_and_a_final_training_cost_their_composition():
    certificate = issued("two stages")
    whole = ps.Composed((ps.Selection(ps.Gaussian(sigma=4), ps.Geometric(mean=30)), ps.Gaussian(sigma=5)))
    assert certificate.total.upper == whole.epsilon_at(1e-6).upper
    assert certificate.base.upper == ps.Gaussian(sigma=4).epsilon_at(1e-6).upper
    assert certificate.final_alone.upper == ps.Gaussian(sigma=5).epsilon_at(1e-6).upper
    assert issued("geometric").final_alone is None


def test_the_statement_names_a_secret_search_and_the_final_training():
    certificate = issued("two stages")
    for part in (
        "Releasing only the best of K search trials of gaussian(sigma=4) and then the output of one final training gaussian(sigma=5)",
        "with the winner's candidate, with K drawn from geometric(mean=30) and kept secret, is (epsilon, delta)",
        "one search trial alone has epsilon = 1.0608 and the final training alone has epsilon = 0.83",
        "Secret search: (1) K is drawn from its distribution and is never revealed",
        "The random draws of a trial are independent of those of other trials.",
        "Final training: (1) Its candidate is a function of what the search released and of public numbers.",
        "The mechanism stated for it was fixed before the search.",
        "Its random draws are independent of the search.",
    ):
        assert part in certificate.statement
    assert certificate.released == "only the output of the best-scoring search trial and the output of the final training"
    assert "K, the number of trials" in certificate.withheld
    assert any("failed final training" in line for line in certificate.withheld)


def test_the_statement_of_a_visible_search_says_that_results_may_be_shown():
    certificate = issued("visible, then train")
    for part in (
        "Releasing all outputs of 6 search trials of gaussian(sigma=8) and then the output of one final training gaussian(sigma=5)",
        "Visible search (composition, adaptive candidates): (1) The noise, the sampling rate, the number of steps and the number of",
        "(2) All 6 trials are released, and each candidate may depend on earlier results.",
        "(3) The random draws of a trial are independent of those of other trials.",
        "The mechanism stated for it was fixed before the search.",
        "No result of a trial needs to stay secret.",
        'Privacy of the score: "accuracy on public data".',
    ):
        assert part in certificate.statement
    assert "never revealed" not in certificate.statement
    assert certificate.released == "the outputs of all 6 search trials and the output of the final training"
    assert not any("K," in line for line in certificate.withheld)
    assert certificate.bounds is None
    assert certificate.composition is None
    assert issued("visible").released == "the outputs of all 6 trials"
    assert ps.certify("gaussian(sigma=8)", visible=1, delta=1e-6).released == "the output of the trial"


@pytest.mark.slow
def test_the_statement_names_the_sample_and_the_hold_out():
    certificate = issued("sample, then train")
    drawn = "Sample: (1) One sample of the records is drawn, once for all search trials. It contains each record with probability 1/10"
    assert drawn in certificate.statement
    assert "with one secret sample of the records for all trials, is (epsilon" in certificate.statement
    assert "the sample of the search and its size" in certificate.withheld
    held_out = issued("hold-out, then train")
    assert "a held-out record is covered for the noisy results on it and for the final training" in held_out.statement
    assert held_out.released.endswith(", or a fixed symbol if no trial is drawn")


def test_a_certificate_of_a_run_of_two_stages_marks_a_claim_of_both():
    plan = issued("two stages").plan
    run = RunMetadata(mechanism_claimed=True, runs=2)
    certificate = ps.certify(plan.mechanism, plan.count, final=plan.final, delta=1e-6, declared=DECLARED, run=run)
    assert "What one trial and the final training leak is a claim of the user: the trainer does not state it." in certificate.statement
    assert certificate.total.upper > issued("two stages").total.upper
    assert certificate.released.startswith("for each of 2 runs: only the output of the best-scoring search trial and")


@pytest.mark.parametrize("subsample", ["1/10", 0.1, Fraction(1, 10), "1e-1"])
def test_a_sample_is_hashed_as_an_exact_fraction(subsample):
    terms = PlanTerms(mechanism="gaussian(sigma=4)", count="geometric(mean=3)", subsample=str(subsample), epsilon=1, delta=1e-6)
    assert terms.subsample == "1/10"


def test_a_selection_inside_keeps_its_assumptions():
    certificate = ps.certify("composed(selection(gaussian(sigma=4), geometric(mean=3)), gaussian(sigma=5))", delta=1e-6)
    assert "For each selection in the mechanism: (1) K is drawn from its distribution and is never revealed" in certificate.statement
    assert "only the winner" in certificate.released
    assert "K, the number of trials" in certificate.withheld
    assert "never revealed" not in issued("one trial").statement


def test_the_shared_curve_is_that_of_the_selection():
    chosen = ps.Selection(ps.Gaussian(sigma=4), ps.Geometric(mean=30))
    upper = chosen.upper_curve()
    for epsilon in (0.0, 0.5, 1.0, 1.5, 2.0):
        found = chosen.delta_at(epsilon)
        assert found.lower <= upper(epsilon) <= found.upper * (1 + 2e-3)  # what the mesh leaves open


def test_the_time_is_that_of_the_environment_where_it_says_one(monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    made = [ps.certify("gaussian(sigma=4)", delta=1e-6) for _ in range(2)]
    assert made[0].issued_at == "2023-11-14T22:13:20Z"
    assert made[0].to_json() == made[1].to_json()
    assert ps.verify(made[0]).holds


@pytest.mark.parametrize("time", ["", "now", "-1", "1.5", "1e9", "253402300800", "9" * 5000, "\u0661"])
def test_a_time_of_the_environment_that_is_none_is_refused(monkeypatch, time):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", time)
    with pytest.raises(ParameterError, match="SOURCE_DATE_EPOCH must be an integer number of seconds since 1970") as caught:
        ps.certify("gaussian(sigma=4)", delta=1e-6)
    assert len(str(caught.value)) < 300


def test_trials_that_leak_outright_too_often_are_named():
    with pytest.raises(ParameterError, match=r"one trial reveals everything with probability 2e-07, and 600 trials are expected$"):
        ps.certify("ptr(gaussian(sigma=9), gdp(mu=0.1, delta=1e-7), failure=1e-7, calibrated=true)", "geometric(mean=600)", delta=1e-6)


@pytest.mark.parametrize(
    ("calibrated", "wrong"),
    [(True, "releases a bound that is wrong for the data"), (False, "accepts a proposal that is wrong for the data")],
)
def test_a_test_and_a_posterior_sample_say_what_is_taken_for_granted(calibrated, wrong):
    sample = "ops(leverage=0.01, signal=1)"
    whole = f"ptr(gaussian(sigma=10, neighbours=add_remove), {sample}, failure=1e-08{', calibrated=True' if calibrated else ''})"
    certificate = ps.certify(whole, epsilon=2, delta=1e-6)
    granted = f"In {whole} the test {wrong} with probability at most 1e-08; otherwise the release leaks at most {sample}."
    assert granted in certificate.statement
    assert f"In {sample} no row has a larger leverage or signal than stated" in certificate.statement
    assert certificate.theorems == ("Propose-test-release", "Posterior sample", "Composition (upper)")
    pooled = ps.certify("ptr(gaussian(sigma=9), gdp(mu=0.1, delta=1e-9), failure=1e-9, calibrated=true)", epsilon=2, delta=1e-6)
    assert pooled.theorems == ("Propose-test-release",)  # Gaussians are one Gaussian: nothing is composed on a lattice


def test_a_noisy_max_says_what_is_taken_for_granted_about_its_scores():
    choice = "noisy_max(gaussian(sigma=4), m=10, changes=2)"
    certificate = ps.certify(f"composed({choice}, noisy_max(gumbel(scale=3), m=4, rounds=2, monotone=True))", epsilon=6, delta=1e-6)
    assert certificate.theorems == (
        "Two levels",
        "Projected",
        "Bounded range",
        "thm:max_sel",
        "Composition (upper)",
        "Composition (lower)",
    )
    assert (
        f"In each round of {choice} one record changes at most 2 of the scores by at most 1, each score gets noise" in certificate.statement
    )
    assert "one record changes each score by at most 1, all in the same direction, each score gets noise" in certificate.statement
    assert ps.verify(certificate.to_json()).holds
