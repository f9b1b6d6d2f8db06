"""The page of a certificate shows what was proved."""

import json
import os
import re

import pytest
from page_parser import Page, assert_harmless
from report_certificates import DECLARED, certified, searched, searched_visibly, selected

import privselect as ps
from privselect._util.rounding import format_digits_down, format_digits_up
from privselect.certificates.model import Composition, ProfilePoint, RunMetadata
from privselect.certificates.profile import fit_gdp
from privselect.certificates.sign import new_key, sign
from privselect.certificates.statement import Costs, derived_fields
from privselect.certificates.verify import verify
from privselect.errors import CertificateError, ParameterError
from privselect.report import write_report
from privselect.report.attack_bounds import max_detection_rate, max_guess_probability
from privselect.report.number_format import format_upper, percent_up, ratio_down

HOSTILE = "</q><script>alert('x')</script> \" ' & <img src=http://attack onerror=y> \u05d0\u05d1 " + 700 * "long"


def test_the_numbers_are_those_of_the_certificate(page_of):
    certificate = selected()
    page, total, bounds = page_of(certificate), certificate.total, certificate.bounds
    assert_harmless(page)
    assert f"({format_digits_up(total.upper)}, 1e-06)-differential privacy" in page.text
    assert "plus delta = 1e-06 (1 in 1,000,000)." in page.text
    assert f"epsilon 2 at delta 1e-06, of which {percent_up(total.upper / 2.0)} is used" in page.text
    for share in (0.01, 0.05):
        assert f"{share:.0%} at most {percent_up(max_detection_rate(certificate.curve, share))}" in page.text
    assert f"a guess is correct with probability at most {percent_up(max_guess_probability(certificate.curve))}." in page.text
    for bound in (total.upper, bounds.paper, bounds.renyi, bounds.liu_talwar, bounds.ratio, bounds.pointwise, certificate.base.upper):
        assert page.text.count(format_digits_up(bound)) >= 1
    assert f"as multiples of the exact epsilon: {ratio_down(bounds.paper, total.upper)} by the paper\u2019s privacy profiles" in page.text
    assert f"costs {ratio_down(certificate.composition.epsilon, total.upper)} times the exact epsilon" in page.text
    for text in (certificate.statement, certificate.hash, certificate.plan_hash, certificate.issued_at, certificate.released, "one person"):
        assert text in page.text
    for text in (*certificate.withheld, *certificate.theorems, *verify(certificate).unprotected):
        assert text in page.text


def test_the_law_of_k_is_shown(page_of):
    text = page_of(selected()).text
    law = ps.Geometric(mean=30)
    assert "expected number of trials 30 " in text
    for level in (0.5, 0.9, 0.99):
        assert f"number of trials, {level:.0%} quantile {law.quantile(level)} " in text
    assert re.search(r"among the best 5% of candidates 61\.\d%", text)  # 0.05 * 30 / (1 + 0.05 * 29)


def test_the_same_certificate_gives_the_same_bytes(tmp_path):
    (tmp_path / "c.json").write_text(certified().to_json())
    pages = [write_report(tmp_path / "c.json", tmp_path / name).file.read_bytes() for name in ("a.html", "b.html")]
    assert pages[0] == pages[1]


def test_without_a_law_of_k_nothing_is_compared(page_of):
    page = page_of(certified())
    assert_harmless(page)
    assert len(page.charts) == 1
    assert "Comparison with other bounds" not in page.text
    assert "law of K" not in page.text
    assert "One computation runs on private data. Released: the output of the mechanism." in page.text


@pytest.mark.parametrize("mechanism", ["pure(epsilon=1)", "selection(gaussian(sigma=4), geometric(mean=3))", "gaussian(sigma=0.05)"])
def test_other_shapes_of_curves_are_drawn(page_of, mechanism):
    page = page_of(certified(mechanism))
    assert_harmless(page)
    assert ("almost no protection" in page.text) == ("0.05" in mechanism)


def test_every_chart_is_named(page_of):
    charts = page_of(selected()).charts
    assert [chart.find("title").text for chart in charts] == ["delta over epsilon", "the law of K", "epsilon by every bound"]
    for chart in charts:
        assert chart.get("role") == "img"
        assert len(chart.find("desc").text) > 30


@pytest.mark.parametrize(
    ("certificate", "marks"),
    [
        (certified, ["Plan", "Unsigned"]),
        (lambda: certified(declared=None), ["Draft", "Plan", "Unsigned"]),
        (lambda: certified(run=RunMetadata(randomness="the seed 7", insecure=True)), ["Insecure", "Unsigned"]),
        (lambda: certified(run=RunMetadata(runs=3)), ["3 runs", "Unsigned"]),
    ],
)
def test_what_must_be_known_first_stands_first(page_of, certificate, marks):
    page = page_of(certificate())
    start, end = page.source.index("marks"), page.source.index("<nav")
    assert re.findall(r"<strong>(.*?)</strong>", page.source[start:end]) == marks
    grave = {"Draft", "Insecure"} & set(marks)
    assert ('class="verdict grave"' in page.source) == bool(grave)
    for mark in grave:
        assert f"The claim holds ({mark.lower()})" in page.text


def test_several_runs_are_compared_by_one(page_of):
    certificate = selected(RunMetadata(runs=3))
    page, one = page_of(certificate), format_digits_up(selected().total.upper)
    assert format_digits_up(certificate.total.upper) in page.text
    assert f"These numbers are for one run. At this delta, the exact epsilon of the selection is {one}." in page.text
    assert "Each of the 3 runs drew its own K." in page.text


def test_signatures(tmp_path):
    key = new_key(tmp_path / "key.pem")
    file = tmp_path / "c.json"
    file.write_text(sign(certified(), tmp_path / "key.pem").to_json())
    asked = Page(write_report(file, key=key).file.read_text())
    assert f"Signed Signed with the expected key, {key}" in asked.text
    assert "The certificate matches the given signer." in asked.text
    assert "protects the following" not in asked.text
    assert "Signer not checked" in Page(write_report(file).file.read_text()).text
    other = new_key(tmp_path / "other.pem")
    assert "REFUSED" in Page(write_report(file, key=other).file.read_text()).text


def test_another_plan_is_refused(page_of):
    digest = certified().plan.digest()
    assert "The certificate matches the given plan." in page_of(certified(), plan_hash=digest).text
    assert "REFUSED" in page_of(certified("gaussian(sigma=5)"), plan_hash=digest).text


def test_bounds_that_claim_nothing_have_no_bar(page_of):
    page = page_of(certified("gaussian(sigma=4)", "finite({1: 1, 3: 2})"))
    assert_harmless(page)
    assert page.text.count("not covered") >= 3
    assert "Earlier bounds" not in page.text
    labels = [text.text for text in page.charts[2].findall("text")][::2]
    assert labels == ["one trial alone", "exact", "ratio", "all runs released (composition)"]


# -- a search and a final training -------------------------------------------------------------------------------------------


def test_both_stages_are_shown(page_of):
    certificate = searched()
    page = page_of(certificate)
    assert_harmless(page)
    search, base = certificate.plan.search.epsilon_at(1e-6), certificate.base
    for text in (
        "Plan: the best of K private trials, then a final training",
        "K search trials run on private data. K is drawn at random from a public distribution and stays secret.",
        "Then one final training runs on all records with the candidate of the best trial.",
        "for the search and the final training together",
        f"one search trial alone epsilon between {format_digits_down(base.lower)} and {format_digits_up(base.upper)}",
        f"search alone epsilon between {format_digits_down(search.lower)} and {format_digits_up(search.upper)} at the same delta",
        f"final training alone epsilon between {format_digits_down(certificate.final_alone.lower)}",
        "one search trial gaussian(sigma=4) law of K geometric(mean=30) final training gaussian(sigma=5)",
        "leaks no more than stated, and neither does the final training.",
        "Secret search: K is drawn from its distribution and is never revealed",
        "Final training: Its candidate is a function of what the search released and of public numbers.",
        "Probability that k or more trials run.",
    ):
        assert text in page.text
    assert [chart.find("title").text for chart in page.charts][:2] == ["delta over epsilon", "the law of K"]


def test_a_visible_search_has_no_law_of_k(page_of):
    page = page_of(searched_visibly())
    assert_harmless(page)
    for text in (
        "Plan: 6 trials, all released, then a final training",
        "6 search trials run on private data. All results are released, so each candidate may depend on earlier results.",
        "Then one final training runs on all records with a candidate chosen from these results.",
        "number of trials 6, fixed in advance final training gaussian(sigma=5)",
        "Visible search (composition, adaptive candidates): The noise, the sampling rate, the number of steps and the number of trials",
        "how the score is private",
    ):
        assert text in page.text
    for text in ("stays secret", "law of K", "never revealed", "Comparison with other bounds"):
        assert text not in page.text
    assert len(page.charts) == 1


def test_one_visible_trial_is_one(page_of):
    text = page_of(certified(visible=1)).text
    assert "Plan: 1 trial, all released" in text
    assert "1 trial runs on private data." in text


def test_a_claimed_mechanism_is_marked_first(page_of):
    page = page_of(searched(RunMetadata(mechanism_claimed=True)))
    assert "The claim holds (mechanism claimed by the user)" in page.text
    assert "Claimed What one trial and the final training leak is a claim of the user: the trainer does not state it." in page.text
    assert 'class="verdict grave"' in page.source
    assert "claim of the user" not in page_of(searched(RunMetadata())).text


# -- what a certificate may say that is not quite so -------------------------------------------------------------------------


def forged(certificate, **fields):
    """With other fields, what follows from them written anew, and a hash that fits."""
    other = certificate.model_copy(update=fields)
    right = derived_fields(other.plan, Costs.of(other), other.run, other.accuracy.requested)
    other = other.model_copy(update=right)
    return other.model_copy(update={"hash": other.digest()})


def test_what_is_proved_here_is_shown_where_the_claim_is_a_little_lower(page_of):
    certificate = selected()
    claimed = certificate.total.upper * (1 - 5e-5)  # as much as verify lets pass, for versions that round differently
    curve = tuple(
        point.model_copy(update={"epsilon": claimed}) if point.epsilon == certificate.total.upper else point for point in certificate.curve
    )
    low = forged(certificate, total=certificate.total.model_copy(update={"upper": claimed}), curve=curve)
    assert verify(low).holds
    assert format_digits_up(claimed) != format_digits_up(certificate.total.upper)
    page = page_of(low)
    assert f"({format_digits_up(certificate.total.upper)}, 1e-06)-differential privacy" in page.text
    assert f"= e<sup>{format_digits_up(certificate.total.upper)}</sup> = 5.983," in page.source


def test_nothing_that_verify_lets_pass_is_shown_where_less_is_proved(page_of):
    """Every number is a little better than is proved here, by as much as versions may differ: none of them is on the page."""
    right = selected()
    upper, lower = right.total.upper * (1 - 0.9e-4), right.total.lower * (1 + 0.9e-4)
    total = right.total.model_copy(update={"upper": upper, "lower": min(lower, upper)})
    points = {point.epsilon: point.delta * (1 - 1.9e-3) for point in right.curve if point.epsilon != right.total.upper}
    curve = tuple(ProfilePoint(epsilon=at, delta=delta) for at, delta in sorted({**points, upper: total.delta}.items()))
    shaved = forged(right, total=total, curve=curve, gaussian_dp=fit_gdp(curve, total.delta))
    verdict = verify(shaved)
    assert verdict.holds
    assert verdict.summary == verify(right).summary
    page, truth = page_of(shaved), page_of(right)
    assert [shown for shown in (shaved.gaussian_dp.mu, lower) if format_upper(shown) in truth.text] == []
    told = page.text.replace(shaved.statement, "").replace(shaved.hash, "")
    assert told == truth.text.replace(right.statement, "").replace(right.hash, "")
    drawn = page.source[page.source.index('id="profile-title"') :]
    assert drawn[: drawn.index("</svg>")] == truth.source[truth.source.index('id="profile-title"') :][: drawn.index("</svg>")]


def test_what_others_charge_is_computed_here(page_of):
    certificate = selected()
    bounds = certificate.bounds.model_copy(update={"renyi": 500.0, "liu_talwar": 900.0})
    base = certificate.base.model_copy(update={"upper": 77.0})
    boasting = forged(certificate, bounds=bounds, base=base, composition=Composition(runs=certificate.composition.runs, epsilon=5e4))
    assert verify(boasting).holds
    page = page_of(boasting)
    assert f"{ratio_down(certificate.bounds.renyi, certificate.total.upper)} by R" in page.text
    for boast in ("500", "900", "77.000", "50,000", "5.0000e+4"):
        assert boast not in page.text.replace(boasting.statement, "").replace(boasting.hash, "").replace(boasting.plan_hash, "")


def test_a_selection_inside_the_mechanism_rests_on_the_same(page_of):
    inside = page_of(certified("selection(gaussian(sigma=4), geometric(mean=3))"))
    for line in ("K is drawn from its distribution and is never revealed", "The guarantee of a trial covers its score"):
        assert line in inside.text
    assert "how the score is private" in inside.text
    assert "Released: only the output of the best-scoring trial." in inside.text
    composed = page_of(certified("composed(gaussian(sigma=4), selection(gaussian(sigma=8), geometric(mean=3)))"))
    assert "with only the winner of each selection in it" in composed.text
    assert "K is drawn from its distribution" in composed.text
    alone = page_of(certified())
    assert "K is drawn from its distribution" not in alone.text
    assert "The protected unit is one record." in alone.text
    disjoint = page_of(certified("disjoint(gaussian(sigma=4), laplace(scale=4))"))
    assert "Disjoint parts of the data share no record." in disjoint.text.replace(certified().statement, "")


@pytest.mark.parametrize("delta", [5e-324, 1e-310, 1e-300])
def test_the_least_delta_is_told(page_of, delta):
    certificate = ps.certify("pure(epsilon=1)", delta=delta, declared=DECLARED)
    assert re.search(r"1 in \d\.\d+e\+3\d\d", page_of(certificate).text)


def test_words_of_versions_are_quoted(page_of):
    certificate = certified()
    versions = certificate.versions.model_copy(update={"python": "3. Audited by the authority"})
    assert ">3. Audited by the authority</q>" in page_of(forged(certificate, versions=versions)).source


def test_a_fixed_number_of_trials_is_no_secret(page_of):
    page = page_of(ps.certify("pure(epsilon=0.1)", "fixed(k=1)", delta=1e-6, declared=DECLARED))
    assert "1 trial runs on private data." in page.text
    assert "stays secret" not in page.text


def test_a_folder_cannot_choose_what_is_overwritten(tmp_path):
    folder = released(tmp_path / "run", certified(run=RunMetadata()))
    precious = tmp_path / "precious"
    precious.write_text("precious")
    (folder / "report.html").symlink_to(precious)
    with pytest.raises(ParameterError, match="is a link"):
        write_report(folder)
    assert precious.read_text() == "precious"


def test_a_release_beside_a_plan_is_refused(tmp_path):
    with pytest.raises(ParameterError, match=r"a certificate next to release\.json must be of a run, got one of a plan"):
        write_report(released(tmp_path / "run", certified()))


@pytest.mark.parametrize("name", ["release.json", "certificate.json"])
def test_what_is_no_file_is_not_waited_for(tmp_path, name):
    folder = released(tmp_path / "run", certified(run=RunMetadata()))
    (folder / name).unlink()
    os.mkfifo(folder / name)
    with pytest.raises(ParameterError, match="must be a regular file"):
        write_report(folder)


# -- refused ---------------------------------------------------------------------------------------------------------------


def changed(certificate, **fields):
    return json.dumps({**json.loads(certificate.to_json()), **fields})


def test_a_refused_certificate_is_refused_in_large_letters_and_nothing_of_it_repeated(page_of):
    total = {"lower": 0.1, "upper": 0.2, "delta": 1e-6}
    page = page_of(changed(selected(), total=total))
    assert_harmless(page)
    assert '<p class="headline">REFUSED</p>' in page.source
    assert "the claimed epsilon 0.2 is too small" in page.text
    for claimed in ("differential privacy", "one person", "geometric", "The claim holds", certified().hash):
        assert claimed not in page.text


@pytest.mark.parametrize("text", ["<script>\u202e\u0000</script>", 3000 * "x", "two\nlines", "\u2800"])
def test_hidden_text_in_a_certificate_is_refused_and_not_shown(page_of, text):
    promise = json.loads(certified().to_json())["plan"]
    promise["declared"]["unit"] = text
    page = page_of(changed(certified(), plan=promise))
    assert_harmless(page)
    assert "REFUSED" in page.text
    assert page.text.isprintable()


def test_an_unknown_field_with_a_hostile_name_stays_text(page_of):
    page = page_of(changed(certified(), **{HOSTILE: 1}))
    assert_harmless(page)
    assert "REFUSED" in page.text


# -- strangers -------------------------------------------------------------------------------------------------------------


def test_hostile_words_in_a_certificate_that_verifies_stay_words(page_of):
    words = HOSTILE[:999]
    declared = ps.Declared(unit=words, trust_model=words, records_public=False, score=words, not_covered=(words, "<b>"))
    page = page_of(certified(declared=declared, run=RunMetadata(randomness=words, insecure=True, notes=(words,))))
    assert_harmless(page)
    assert page.text.count(" ".join(words.split())) >= 6
    assert page.attributes("dir").count("auto") >= 6


def released(folder, issued, **said):
    folder.mkdir(exist_ok=True)
    (folder / "certificate.json").write_text(issued.to_json())
    plain = {"version": 2, "fallback": False, "candidate": {"rate": 0.5}, "score": 0.25, "artifact": None, "certificate": issued.hash}
    (folder / "release.json").write_text(json.dumps({**plain, **said}))
    return folder


def test_a_released_folder_shows_what_was_released(tmp_path):
    folder = released(tmp_path / "run", certified(run=RunMetadata()), artifact="model.npz")
    report = write_report(folder)
    page = Page(report.file.read_text())
    assert report.file == folder / "report.html"
    assert "candidate rate = 0.5 score of the winner 0.25 file model.npz" in page.text


def test_a_fallback_is_called_one(tmp_path):
    page = Page(
        write_report(released(tmp_path / "run", certified(run=RunMetadata()), fallback=True, candidate=None, score=None)).file.read_text()
    )
    assert "no trial was drawn or all trials failed. Which of the two stays secret." in page.text


def test_what_the_final_training_was_trained_with(tmp_path):
    folder = released(tmp_path / "run", searched(RunMetadata()), trained_with={"rate": 0.25}, artifact="model.npz")
    text = Page(write_report(folder).file.read_text()).text
    assert "candidate rate = 0.5 score of the winner 0.25 trained with rate = 0.25 file model.npz" in text
    lost = released(tmp_path / "lost", searched(RunMetadata()), fallback=True, candidate=None, score=None)
    text = Page(write_report(lost).file.read_text()).text
    assert "no trial was drawn, all trials failed or the final training failed. Which of them stays secret." in text


def test_hostile_words_in_a_release_stay_words(tmp_path):
    words = HOSTILE + "\u202e\u0000\ud800\n"
    folder = released(
        tmp_path / "run", certified(run=RunMetadata()), candidate={words: [words, {words: None}]}, artifact=words.replace("/", "")
    )
    page = Page(write_report(folder).file.read_text(encoding="utf-8"))
    assert_harmless(page)
    assert "No hash or signature protects that file: anyone can change it." in page.text
    assert page.text.isprintable()
    assert r"\u202e\u0000\ud800\u000a" in page.text


@pytest.mark.parametrize(
    ("said", "complaint"),
    [
        ({"certificate": "sha256:" + 64 * "0"}, "must name the certificate next to it"),
        ({"version": 1}, "with version 2"),
        ({"trained_with": [1]}, "must contain candidates"),
        ({"candidate": [1]}, "must contain candidates"),
        ({"score": "high"}, "must contain candidates"),
        ({"score": True}, "must contain candidates"),
        ({"score": float("nan")}, "must contain candidates"),
        ({"artifact": "../elsewhere"}, "must contain candidates"),
    ],
)
def test_a_release_that_does_not_fit_is_refused(tmp_path, said, complaint):
    folder = released(tmp_path / "run", certified(run=RunMetadata()), **said)
    with pytest.raises(ParameterError, match=complaint):
        write_report(folder)
    assert not (folder / "report.html").exists()


@pytest.mark.parametrize("content", [b"", b"[", b"\xff", b"[]", b"[" * 100_000, b" " * 2_000_001])
def test_a_release_that_is_no_json_is_refused(tmp_path, content):
    folder = released(tmp_path / "run", certified(run=RunMetadata()))
    (folder / "release.json").write_bytes(content)
    with pytest.raises(ParameterError, match=r"release\.json must"):
        write_report(folder)


@pytest.mark.parametrize("content", ["", "{", "[]", '{"version": 2}', '{"version": 4}', "no json"])
def test_what_cannot_be_judged_has_no_page(tmp_path, content):
    (tmp_path / "c.json").write_text(content)
    with pytest.raises(CertificateError):
        write_report(tmp_path / "c.json")
    assert not (tmp_path / "c.html").exists()


def test_the_certificate_is_never_written_over(tmp_path):
    file = tmp_path / "c.html"
    file.write_text(certified().to_json())
    for out in (None, file, tmp_path / "." / "c.html"):
        with pytest.raises(ParameterError, match="another file than the certificate"):
            write_report(file, out)
    assert file.read_text() == certified().to_json()


def test_a_page_is_for_people_who_declare(page_of):
    text = page_of(certified(declared=ps.Declared(unit=DECLARED.unit))).text
    assert "Not declared: the trust model and whether the number of records is public." in text
    assert text.count("not declared") >= 2
