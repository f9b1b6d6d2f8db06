"""What verify refuses, each with its own reason, and what only a signature protects."""

import json

import pytest
from example_certificates import DECLARED, fields, issued, rehashed, remade
from hypothesis import given
from hypothesis import strategies as st

import privselect as ps
from privselect.certificates.model import RunMetadata
from privselect.errors import CertificateError, ParameterError


def at(place, value):
    """A change: this field, this value."""

    def change(data):
        *path, last = place.split(".")
        inner = data
        for name in path:
            inner = inner[int(name)] if isinstance(inner, list) else inner[name]
        inner[int(last) if isinstance(inner, list) else last] = value(inner[last]) if callable(value) else value

    return change


def lower_everything(data):
    """Epsilon lowered wherever it stands."""
    data["total"] = {"lower": 1.0, "upper": 1.5, "delta": 1e-6}
    data["plan"]["epsilon"] = 1.5
    data["curve"] = [point for point in data["curve"] if point["epsilon"] < 1.5] + [{"epsilon": 1.5, "delta": 1e-6}, data["curve"][-1]]


def raise_lower(data):
    data["total"] |= {"lower": 2.0, "upper": 2.0}
    data["plan"]["epsilon"] = 2.0


def swap_points(data):
    data["curve"][3], data["curve"][4] = data["curve"][4], data["curve"][3]


def drop_certified(data):
    data["curve"] = [point for point in data["curve"] if point["epsilon"] != data["total"]["upper"]]


def say_infinite_loss(data):
    data["plan"]["mechanism"] = "approximate(epsilon=1, delta=0.001)"


# What is changed, and the reason that must be among those given even when both hashes have been made anew.
CHANGES = {
    "epsilon lowered": (at("total", {"lower": 1.7, "upper": 1.7885, "delta": 1e-6}), "the claimed epsilon 1.7885 is too small"),
    "epsilon lowered everywhere": (lower_everything, "the claimed epsilon 1.5 is too small"),
    "law of K changed": (at("plan.count", "geometric(mean=40)"), "the claimed epsilon 1.78"),
    "mechanism changed": (at("plan.mechanism", "gaussian(sigma=3)"), "the claimed epsilon 1.78"),
    "mechanism without a finite epsilon": (say_infinite_loss, "the claim cannot be recomputed"),
    "delta of the claim lowered": (at("total.delta", 1e-9), "the claim is for delta 1e-09, the plan for 1e-06"),
    "delta of the plan lowered": (at("plan.delta", 1e-9), "the claimed epsilon 1.78"),
    "budget lowered": (at("plan.epsilon", 1.0), "is above the budget of the plan, 1.0"),
    "lower end raised": (raise_lower, "the claimed lower bound 2.0 is above the proved one"),
    "point of the curve lowered": (at("curve.20.delta", lambda delta: 0.95 * delta), "of the curve at epsilon"),
    "curve out of order": (swap_points, "the curve must start at epsilon 0"),
    "curve without the claim": (drop_certified, "the curve does not contain the certified point"),
    "mu lowered": (at("gaussian_dp.mu", lambda mu: 0.99 * mu), "does not cover the curve"),
    "leak lowered": (at("gaussian_dp.delta", 1e-15), "does not cover the curve"),
    "Gaussian DP taken out": (at("gaussian_dp", None), "the Gaussian DP pair is missing"),
    "one trial lowered": (at("base", {"lower": 0.5, "upper": 0.9}), "one trial alone has epsilon"),
    "one trial's lower end raised": (at("base", {"lower": 5.0, "upper": 6.0}), "the lower bound of one trial alone, 5.0"),
    "another bound lowered": (at("bounds.renyi", 2.0), "the bound `renyi` has epsilon"),
    "bounds taken out": (at("bounds", None), "the other bounds are present without a law of K, or missing with one"),
    "composition lowered": (at("composition.epsilon", 1.0), "full composition has epsilon"),
    "runs of the composition changed": (at("composition.runs", 3), "full composition has 30 runs, the certificate claims 3"),
    "labels changed": (at("theorems", ["Exact (upper)", "Mixture"]), "the theorem labels"),
    "neighbours changed": (
        at("neighbours", "replace_one"),
        "the neighbouring relation is replace_one, but the mechanism has any",
    ),
    "accuracy changed": (at("accuracy.gap", 1e-9), "the accuracy does not match"),
    "direction changed": (at("accuracy.rounding", "all bounds are exact"), "the accuracy does not match"),
    "released changed": (at("released", "every trial"), "`released` does not match"),
    "withheld shortened": (at("withheld", []), "`withheld` does not match"),
    "statement edited": (at("statement", lambda text: text.replace("1.7888", "0.7888")), "the statement does not follow"),
    "draft mark removed": (
        at("plan.declared.unit", None),
        "the draft mark does not match the declarations: the unit of privacy not declared",
    ),
    "draft mark set": (at("draft", True), "the draft mark does not match the declarations: nothing is missing"),
    "made in the future": (at("issued_at", "2999-01-01T00:00:00Z"), "is in the future"),
}
# The same for a search and a final training.
STAGE_CHANGES = {
    "final training left out": (at("plan.final", None), "the epsilon of the final training alone is present without"),
    "final training changed": (at("plan.final", "gaussian(sigma=2)"), "the claimed epsilon"),
    "search trial changed": (at("plan.mechanism", "gaussian(sigma=2)"), "the claimed epsilon"),
    "search made visible": (lambda data: data["plan"].update(count=None, visible=30), "the claimed epsilon"),
    "cost of the final training left out": (at("final_alone", None), "or missing with one"),
    "cost of the final training lowered": (at("final_alone", {"lower": 0.1, "upper": 0.2}), "the final training alone has epsilon"),
    "lower end of the final training raised": (
        at("final_alone", {"lower": 5.0, "upper": 6.0}),
        "the lower bound of the final training alone, 5.0",
    ),
    "one trial lowered": (at("base", {"lower": 0.5, "upper": 0.9}), "one trial alone has epsilon"),
    "released shortened": (at("released", "only the output of the best-scoring search trial"), "`released` does not match"),
    "reason of a fixed symbol revealed": (at("withheld", lambda lines: lines[:3]), "`withheld` does not match"),
}
VISIBLE_CHANGES = {
    "more trials": (at("plan.visible", 7), "the claimed epsilon"),
    "trial changed": (at("plan.mechanism", "gaussian(sigma=7)"), "the claimed epsilon"),
    "final training lowered": (at("final_alone", {"lower": 0.1, "upper": 0.2}), "the final training alone has epsilon"),
    "other bounds added": (
        at("bounds", dict.fromkeys(["pointwise", "ratio", "paper", "renyi", "liu_talwar"], "not covered")),
        "the other bounds are present without a law of K",
    ),
}
# What no field can be changed to.
MISFITS = {
    "field removed": (lambda data: data.pop("theorems"), "`theorems` is missing"),
    "uncovered accesses removed": (
        lambda data: data["plan"]["declared"].pop("not_covered"),
        "`plan.declared.not_covered` is missing",
    ),
    "signature removed": (lambda data: data.pop("signature"), "`signature` is missing"),
    "budget removed": (lambda data: data["plan"].pop("epsilon"), "`plan`: `epsilon` is missing"),
    "field added": (lambda data: data.update(note="trust me"), "`note` is not a known field"),
    "field with a hostile name": (lambda data: data.update({"a\x1b[2Jb\n": 1}), r"`a\x1b[2Jb\n` is not a known field"),
    "brackets in brackets": (at("statement", json.loads(300 * "[" + 300 * "]")), "does not fit format 3"),
    "number as text": (at("total.upper", "1.79"), "`upper` must be a valid number, got '1.79'"),
    "epsilon below 0": (at("total", {"lower": None, "upper": -1.0, "delta": 1e-6}), "`upper` must be"),
    "ends out of order": (at("total.lower", 3.0), "an interval needs lower <= upper"),
    "delta of 1": (at("plan.delta", 1.0), "`delta` must be less than 1"),
    "text form that is none": (at("plan.mechanism", "__import__('os')"), "`mechanism`"),
    "law in place of a mechanism": (at("plan.mechanism", "geometric(mean=3)"), "`mechanism` must be a mechanism such as"),
    "statement of several lines": (at("released", "a\nb"), "`released` must be one line"),
    "no time": (at("issued_at", "yesterday"), "`issued_at` must be a time"),
    "a day that is none": (at("issued_at", "2026-02-30T00:00:00Z"), "`issued_at` must be a time"),
    "a search that is secret and visible": (at("plan.visible", 3), "a search is either secret, with `count`, or visible"),
    "a visible search of nothing": (at("plan.visible", 0), "`visible` must be"),
    "final training without a search": (
        lambda data: data["plan"].update(count=None, final="gaussian(sigma=4)"),
        "`final` needs a search before it",
    ),
    "sample larger than the data": (at("plan.subsample", "3/2"), "`subsample` must be a probability in (0, 1]"),
    "sample that is no number": (at("plan.subsample", "some"), "`subsample`: expected a number"),
    "final training that is none": (at("plan.final", "geometric(mean=3)"), "`final` must be a mechanism such as"),
    "cost of the final training removed": (lambda data: data.pop("final_alone"), "`final_alone` is missing"),
    "claim removed": (
        lambda data: data.update(run={"randomness": "the operating system's entropy", "insecure": False, "runs": 1, "notes": []}),
        "is missing",
    ),
    "no hash": (at("hash", "sha256:0"), "`hash` must match"),
    "unknown relation": (at("neighbours", "friends"), "`neighbours` must be"),
    "secure flag on a seed": (
        at("run", {"randomness": "seed 7", "insecure": False, "runs": 1, "notes": []}),
        "`insecure` must be true",
    ),
}


@pytest.mark.parametrize("name", ["epsilon lowered", "law of K changed", "statement edited", "withheld shortened", "mu lowered"])
def test_a_change_is_seen_by_the_hash(name):
    data = fields(issued())
    CHANGES[name][0](data)
    verdict = ps.verify(json.dumps(data))
    assert not verdict.holds
    assert verdict.reasons[0].startswith("the hash does not match the content")
    assert verdict.summary.startswith("REFUSED: the hash")


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_with_new_hashes_is_refused_for_its_own_reason(name):
    change, reason = CHANGES[name]
    data = fields(issued())
    change(data)
    verdict = ps.verify(json.dumps(rehashed(data)))
    assert not verdict.holds
    assert any(reason in said for said in verdict.reasons), verdict.reasons
    assert not any("hash" in said for said in verdict.reasons)
    assert all("\n" not in said for said in verdict.reasons)


OF_STAGES = {("two stages", name): STAGE_CHANGES[name] for name in STAGE_CHANGES}
OF_STAGES |= {("visible, then train", name): VISIBLE_CHANGES[name] for name in VISIBLE_CHANGES}


@pytest.mark.parametrize(("certificate", "name"), OF_STAGES)
def test_a_change_of_a_stage_is_refused_for_its_own_reason(certificate, name):
    change, reason = OF_STAGES[certificate, name]
    data = fields(issued(certificate))
    change(data)
    reasons = ps.verify(json.dumps(rehashed(data))).reasons
    assert any(reason in said for said in reasons), reasons


@pytest.mark.parametrize(
    ("certificate", "name"), [key for key in OF_STAGES if any(word in key[1] for word in ("changed", "visible", "more", "lowered"))]
)
def test_a_forger_cannot_lower_the_cost_of_a_stage(certificate, name):
    data = fields(issued(certificate))
    OF_STAGES[certificate, name][0](data)
    assert not ps.verify(json.dumps(remade(data))).holds


def test_the_mark_of_a_claimed_mechanism_follows_from_the_run():
    run = RunMetadata(mechanism_claimed=True)
    data = fields(ps.certify("gaussian(sigma=4)", "geometric(mean=3)", delta=1e-6, declared=DECLARED, run=run))
    assert "What one trial leaks is a claim of the user: the trainer does not state it." in data["statement"]
    verdict = ps.verify(json.dumps(data))
    assert verdict.holds
    assert verdict.summary.endswith("; mechanism claimed by the user; unsigned")
    assert verdict.as_dict()["mechanism_claimed"] is True
    data["run"]["mechanism_claimed"] = False
    assert "the statement does not follow from the other fields" in ps.verify(json.dumps(rehashed(data))).reasons
    forged = ps.verify(json.dumps(remade(data)))
    assert forged.holds  # only a signature protects the mark
    assert any("who states the mechanism" in fact for fact in forged.unprotected)


# With all that follows made anew as well, the numbers alone decide.
@pytest.mark.parametrize(
    "name",
    ["epsilon lowered everywhere", "law of K changed", "mechanism changed", "delta of the plan lowered", "budget lowered", "mu lowered"],
)
def test_a_forger_without_a_key_cannot_lower_a_number(name):
    data = fields(issued())
    CHANGES[name][0](data)
    verdict = ps.verify(json.dumps(remade(data)))
    assert not verdict.holds


@pytest.mark.parametrize("name", MISFITS)
def test_fields_that_do_not_fit_are_refused_with_the_reason(name):
    change, reason = MISFITS[name]
    data = fields(issued())
    change(data)
    verdict = ps.verify(json.dumps(data))
    assert not verdict.holds
    assert verdict.certificate is None
    assert reason in verdict.summary, verdict.summary


def test_the_reasons_are_told_apart():
    given = [reason for _, reason in [*CHANGES.values(), *MISFITS.values()]]
    assert len(set(given)) >= 30


def test_a_wrong_hash_of_the_plan_is_refused():
    data = fields(issued())
    data["plan_hash"] = "sha256:" + 64 * "0"
    data["hash"] = remade(data)["hash"]
    assert "the hash of the plan does not match the plan" in ps.verify(json.dumps(data)).reasons


def test_what_only_a_signature_protects():
    # Anyone can change what no program can know, and make all the rest anew; verify says so, and the hash of the plan tells.
    data = fields(issued())
    data["plan"]["declared"]["not_covered"] = []
    data["issued_at"] = "2020-01-01T00:00:00Z"
    forged = json.dumps(remade(data))
    verdict = ps.verify(forged)
    assert verdict.holds
    assert any("accesses that are not covered" in part for part in verdict.unprotected)
    assert any("time of issue" in part for part in verdict.unprotected)
    told = ps.verify(forged, plan_hash=issued().plan_hash)
    assert not told.holds
    assert told.reasons[0].startswith("the plan is a different one")


def test_the_hash_of_the_plan_from_elsewhere_protects_the_plan():
    verdict = ps.verify(issued(), plan_hash=issued().plan_hash)
    assert verdict.holds
    assert len(verdict.unprotected) == 2


def test_a_looser_claim_holds():
    data = fields(issued())
    data["plan"]["epsilon"] = data["total"]["upper"] = 1.8
    data["curve"] = [point for point in data["curve"] if point["epsilon"] < 1.78] + [{"epsilon": 1.8, "delta": 1e-6}, data["curve"][-1]]
    data["gaussian_dp"]["mu"] = 0.8
    assert ps.verify(json.dumps(remade(data))).holds


@pytest.mark.parametrize("name", ["geometric", "one trial"])
def test_nothing_below_what_is_proved_to_be_needed_passes(name):
    data = fields(issued(name))
    lowered = data["total"]["lower"] * (1 - 1e-9)
    for point in data["curve"]:
        if point["epsilon"] == data["total"]["upper"]:
            point["epsilon"] = lowered
    data["total"] = {"lower": None, "upper": lowered, "delta": 1e-6}
    data["plan"]["epsilon"] = lowered
    reasons = ps.verify(json.dumps(remade(data))).reasons
    assert any("is necessary" in reason for reason in reasons)
    assert any("the budget" in reason for reason in reasons)


def test_a_lower_end_above_the_proved_one_is_refused():
    # Two runs together: their ends are some percent apart.
    data = fields(ps.certify("gaussian(sigma=4)", "geometric(mean=3)", delta=1e-6, declared=DECLARED, run=RunMetadata(runs=2)))
    assert data["total"]["lower"] < 0.99 * data["total"]["upper"]
    data["total"]["lower"] = data["total"]["upper"]
    reasons = ps.verify(json.dumps(remade(data))).reasons
    assert any("is above the proved one" in reason for reason in reasons)


def test_a_text_form_is_written_as_it_is_hashed():
    data = fields(issued("one trial"))
    data["plan"]["mechanism"] = "  gaussian(sigma=4.0000000000000000000001)"
    (reason,) = ps.verify(json.dumps(data)).reasons
    assert "which are hashed" in reason


def test_a_lower_end_next_to_nothing_is_a_reason_not_an_error():
    data = fields(issued("one trial"))
    data["total"]["lower"] = 5e-324
    assert not ps.verify(json.dumps(rehashed(data))).holds


def test_rounding_of_another_version_is_allowed_for():
    data = fields(issued())
    lowered = data["total"]["upper"] * (1 - 0.9e-4)
    for point in data["curve"]:
        if point["epsilon"] == data["total"]["upper"]:
            point["epsilon"] = lowered
    data["total"]["upper"] = data["plan"]["epsilon"] = lowered
    assert ps.verify(json.dumps(remade(data))).holds


def test_the_order_of_fields_and_spaces_do_not_matter():
    data = dict(reversed(fields(issued()).items()))
    assert ps.verify(json.dumps(data, indent=7)).holds
    assert ps.verify(json.dumps(data).encode()).holds


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the certificate is empty"),
        ("  \n", "the certificate is empty"),
        ("epsilon = 1", "the certificate is not JSON"),
        ("[1, 2]", "a certificate must be a JSON object"),
        ('{"version": NaN}', "NaN is not a JSON number"),
        ('{"version": 3, "x": Infinity}', "Infinity is not a JSON number"),
        ('{"version": 3, "x": 1}}', "the certificate is not JSON"),
        ("{}", "it has no `version`"),
        ('{"version": 2}', "The certificate has format 2; this version reads format 3. Issue it again with privselect certify."),
        ('{"version": 4}', "The certificate has format 4; this version reads format 3. Update privselect to read it."),
        ('{"version": 0}', "`version` of a certificate must be"),
        ('{"version": "1"}', "`version` of a certificate must be"),
        ('{"version": true}', "`version` of a certificate must be"),
        ('{"version": 1.0}', "`version` of a certificate must be"),
        ('{"version": ' + 5000 * "1" + "}", "nests too deeply or has huge integers"),
        ("[" * 100_000, "nests too deeply or has huge integers"),
        (" " * 2_000_001, "at most 2000000 bytes"),
        (b"\xff\xfe{}", "not text in UTF-8"),
    ],
)
def test_what_is_no_certificate_is_an_error(text, said):
    with pytest.raises(CertificateError) as caught:
        ps.verify(text)
    assert said in str(caught.value)
    assert len(str(caught.value)) < 300
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("share", [0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99])
def test_a_truncated_certificate_is_said_to_be_truncated(share):
    text = issued().to_json()
    with pytest.raises(CertificateError, match="the certificate is truncated"):
        ps.verify(text[: int(share * len(text))])


def test_a_field_that_stands_twice_is_refused():
    text = issued().to_json().replace('"draft": false', '"draft": false, "draft": false', 1)
    verdict = ps.verify(text)
    assert not verdict.holds
    assert "contains `draft` twice" in verdict.summary


@pytest.mark.parametrize("wrong", [None, 4, {"version": 1}])
def test_what_is_neither_certificate_nor_text_is_refused(wrong):
    with pytest.raises(ParameterError, match="`certificate` must be"):
        ps.verify(wrong)


def test_a_number_beyond_floats_is_refused():
    data = json.dumps(fields(issued())).replace('"epsilon": 0.0', '"epsilon": 1e999', 1)
    assert "finite number" in ps.verify(data).summary


LEAVES = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=20) | st.just([]) | st.just({})


@given(st.data())
def test_whatever_is_changed_no_smaller_epsilon_is_accepted(data):
    # Any leaf becomes any value, and the hashes are made anew: a verdict or a CertificateError, and never a smaller claim.
    changed = fields(issued("one trial"))
    inner = changed
    while True:
        key = data.draw(st.sampled_from(sorted(inner)) if isinstance(inner, dict) else st.integers(0, len(inner) - 1))
        if not isinstance(inner[key], dict | list) or not inner[key]:
            break
        inner = inner[key]
    scale = st.floats(0.0, 2.0).map(lambda factor: factor * inner[key]) if isinstance(inner[key], float) else LEAVES
    inner[key] = data.draw(LEAVES | scale)
    try:
        text = json.dumps(rehashed(changed))
    except ParameterError:  # not finite: no JSON
        text = json.dumps(changed)
    try:
        verdict = ps.verify(text)
    except CertificateError:
        return
    if verdict.holds:
        assert verdict.certificate.total.upper >= verdict.recomputed.upper * (1 - 1e-4)
        assert verdict.certificate.plan.mechanism == "gaussian(sigma=4)"
    else:
        assert verdict.reasons
    assert "\n" not in verdict.summary
    assert verdict.summary.isprintable()
