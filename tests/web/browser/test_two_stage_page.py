"""A search and a final training: the way is chosen, both stages are shown, shared and exported."""

import json
import os
from pathlib import Path

import pytest
from playwright.sync_api import expect

import privselect as ps

pytestmark = pytest.mark.browser

SEARCH = {
    "mechanism": "gaussian(sigma=?)",
    "count": "geometric(mean=10)",
    "epsilon": "1",
    "delta": "1e-5",
    "final": "gaussian(sigma=?)",
    "final_noise": "1.07",
}
AXE = Path(os.environ.get("AXE", "build/npm/node_modules/axe-core/axe.min.js"))
VISIBLE = {**SEARCH, "count": "", "visible": "6"}
FOLDER = os.environ.get("PRIVSELECT_SCREENSHOTS")  # where to keep screenshots, to look at them


@pytest.fixture
def screenshot(tmp_path):
    """Return a function that takes a screenshot of the whole page."""

    def take(planner, name):
        file = tmp_path / f"{name}.png"
        planner.page.screenshot(path=file, full_page=True)
        if FOLDER:
            planner.page.screenshot(path=f"{FOLDER}/{name}.png", full_page=True)
        return file

    return take


def test_one_shot_becomes_a_search_and_a_final_training(planner, quick):
    planner.open({**quick, "mechanism": "gaussian(sigma=?)", "epsilon": "1"}).is_complete()
    alone = planner.sentence
    assert planner.at("final-part").is_hidden()
    planner.at("way").select_option("secret")
    planner.is_complete()
    assert "and then train once with sigma" in planner.sentence
    assert planner.at("final-rule").input_value() == "ruled"
    assert planner.at("unknown").input_value() == "mechanism.sigma"
    search, final = (float(planner.at(f"{side}-sigma").input_value()) for side in ("mechanism", "final"))
    assert planner.at("final-sigma").evaluate("field => field.readOnly")
    assert final < search
    assert planner.at("design-open").is_hidden()
    rows = planner.page.locator("#compare tbody th").all_inner_texts()
    assert [row.splitlines()[0] for row in rows] == ["exact", "composition", "search alone", "final training alone", "one trial alone"]
    planner.at("way").select_option("one")
    planner.is_complete()
    assert planner.sentence == alone
    assert planner.at("final-part").is_hidden()


def test_a_search_trial_has_a_tenth_of_the_steps(planner):
    planner.open().is_answered()
    planner.page.route("**/api/*", lambda _: None)  # no answer is needed
    planner.at("way").select_option("secret")
    assert planner.at("mechanism-steps").input_value() == "60"
    assert planner.at("final-steps").input_value() == "600"
    planner.at("way").select_option("visible")
    assert planner.at("visible").input_value() == "6"
    assert planner.at("count").is_hidden()
    planner.at("way").select_option("one")
    assert planner.at("mechanism-steps").input_value() == "600"
    assert planner.at("unknown").input_value() == "mechanism.noise_multiplier"


def test_a_visible_search_has_a_number_of_trials_and_no_law_of_k(planner):
    planner.open(VISIBLE).is_complete()
    assert "search with 6 visible trials" in planner.sentence
    assert planner.page.locator("#mean-chart h2").inner_text() == "Epsilon by number of trials"
    assert "nothing about K is secret" in planner.page.locator("#survival-chart figcaption").inner_text()
    planner.at("visible").fill("12")
    planner.is_complete()
    assert "search with 12 visible trials" in planner.sentence
    planner.at("visible").fill("0")
    planner.is_stale()
    assert "`visible` must be an integer >= 1" in planner.message_of("visible").inner_text()
    planner.at("visible").fill("?")
    planner.is_stale()
    assert planner.message_of("visible").inner_text() == "`visible` must be a number, got '?'"
    planner.at("visible").fill("12")
    planner.is_answered()


def test_the_answer_leaves_room_for_the_charts(planner):
    planner.open(SEARCH).is_complete()
    assert planner.at("answer").evaluate("answer => answer.offsetHeight") < 200
    planner.open(VISIBLE).is_complete()
    assert planner.at("survival-chart").evaluate("chart => chart.offsetHeight < document.getElementById('profile-chart').offsetHeight")


def test_a_law_of_k_that_was_solved_for_is_left_for_a_visible_search(planner):
    planner.open({**SEARCH, "mechanism": "gaussian(sigma=8)", "count": "geometric(mean=?)", "epsilon": "1.5"}).is_answered()
    assert planner.at("unknown").input_value() == "count.mean"
    planner.at("way").select_option("visible")
    assert planner.at("unknown").input_value() == "mechanism.sigma"
    planner.is_answered()


def test_the_noise_of_the_final_training_is_given_or_follows_from_the_budget(planner):
    planner.open(SEARCH).is_complete()
    ruled = planner.at("final-sigma").input_value()
    planner.at("final-rule").select_option("given")
    planner.is_answered()
    assert float(planner.at("final-sigma").input_value()) == pytest.approx(float(ruled), rel=0.005)
    assert planner.at("final_noise").count() == 0
    planner.at("final-sigma").fill("6")
    planner.is_answered()
    assert "train once at" in planner.sentence
    planner.at("unknown").select_option("final.sigma")
    planner.is_answered()
    assert "in the final training lets you search" in planner.sentence
    planner.at("final-rule").select_option("ruled")
    planner.is_answered()
    assert planner.at("unknown").input_value() == "mechanism.sigma"
    assert planner.at("final-sigma").input_value() == ruled
    planner.at("unknown").select_option("epsilon")
    planner.is_answered()
    assert planner.at("final-rule").input_value() == "given"
    assert "costs epsilon" in planner.sentence


def test_more_noise_in_the_end_leaves_more_for_the_search(planner):
    planner.open(SEARCH).is_answered()
    before = float(planner.at("mechanism-sigma").input_value())
    planner.at("final_noise").fill("1.3")
    planner.is_answered()
    assert float(planner.at("mechanism-sigma").input_value()) < before
    planner.at("final_noise").fill("1")
    planner.is_stale()
    assert "`final_noise` must be in (1, inf), got '1'" in planner.message_of("final_noise").inner_text()


def test_other_mechanisms_and_text_forms_in_the_end(planner):
    planner.open(SEARCH).is_answered()
    planner.at("final").select_option("laplace")
    planner.is_answered()
    assert planner.at("final-rule").input_value() == "ruled"
    assert float(planner.at("final-scale").input_value()) > 0
    planner.at("final").select_option("text")
    assert "laplace(scale=" in planner.at("final-text").input_value()
    planner.at("final-text").fill("composed(gaussian(sigma=?), times=2)")
    planner.is_answered()
    planner.at("final-text").fill("composed(gaussian(sigma=20), times=2)")
    planner.is_answered()
    planner.at("final-text").fill("nonsense(")
    planner.is_stale()
    assert planner.message_of("final-text").inner_text()


def test_a_refusal_stands_beside_the_part_it_is_about(planner):
    planner.open({**SEARCH, "final": "gaussian(sigma=6)", "final_noise": ""}).is_answered()
    planner.at("final-sigma").fill("0.5")
    planner.is_stale()
    assert "`final` must cost less than the budget" in planner.message_of("final").inner_text()
    planner.at("final-sigma").fill("6")
    planner.is_answered()
    planner.at("subsample").fill("2")
    planner.is_stale()
    assert "`subsample` must be a probability in (0, 1]" in planner.message_of("subsample").inner_text()


@pytest.mark.parametrize("question", [SEARCH, VISIBLE, {**SEARCH, "final": "gaussian(sigma=6)", "final_noise": "", "subsample": "1/2"}])
def test_a_shared_address_restores_both_stages(planner, planners, server, question):
    planner.open(question).is_answered()
    address = planner.copied("copy-link")
    other = planners(server.url).open(fragment=address.removeprefix(server.url)).is_answered()
    assert other.state == planner.state
    assert other.sentence == planner.sentence
    assert other.at("question-text").inner_text() == planner.at("question-text").inner_text()


DAMAGED = [
    {**SEARCH, "final": ""},  # a rule for nothing
    {**SEARCH, "visible": "6"},  # secret and visible
    {**SEARCH, "count": ""},  # neither
    {**SEARCH, "final_noise": ""},  # two unknowns
    {**SEARCH, "epsilon": "?"},
]


def test_a_damaged_address_is_refused(planner):
    for question in DAMAGED:
        planner.page.goto("about:blank")
        planner.open(question)
        expect(planner.at("notice")).to_have_text("The link is invalid. The page shows the default question.")


def test_the_files_and_texts_hold_both_stages(planner, tmp_path, run):
    planner.open(SEARCH).is_complete()
    sigma = planner.at("mechanism-sigma").input_value()
    plan = planner.downloaded("download-plan", tmp_path)
    assert "[train]" in plan.read_text()
    certificate = planner.downloaded("download-certificate", tmp_path)
    assert ps.verify(certificate.read_text()).holds
    assert json.loads(certificate.read_text())["plan"]["final"].startswith("gaussian(sigma=")
    script = tmp_path / "question.py"
    script.write_text(planner.copied("copy-python"))
    assert sigma[:4] in run(script)
    assert "then gaussian(sigma=" in planner.at("question-text").inner_text()
    planner.downloaded("download-png", tmp_path)
    table = planner.downloaded("download-csv", tmp_path).read_text()
    assert "mean,search," in table
    assert "mean,final," in table


def test_the_ways_are_compared_and_one_is_used(planner):
    ways = [
        {"way": "no tuning", "search_noise": None, "released_noise": 4.0, "extra_noise": 0.0, "trials": None, "good_candidate": None},
        {"way": "secret search", "search_noise": 9.0001, "released_noise": 4.3, "extra_noise": 0.07, "trials": "poisson(mean=6)"},
    ]
    ways[1] |= {"good_candidate": 0.45, "question": {**SEARCH, "visible": None, "final_noise": 1.07}}
    ways[0] |= {"question": {**SEARCH, "count": None, "final": None, "final_noise": None, "visible": None}}
    advice = {"parameter": "sigma", "recommended": "secret search", "reason": "it needs less noise", "caution": "check it", "ways": ways}
    asked = []

    def answer(route):
        asked.append(route.request.post_data_json)
        route.fulfill(json=advice)

    planner.page.route("**/api/advise", answer)
    planner.open({"mechanism": "gaussian(sigma=?)", "count": "geometric(mean=3)", "epsilon": "1", "delta": "1e-5"}).is_complete()
    planner.at("advice-compare").click()
    expect(planner.at("advice-result")).to_contain_text("Recommended: search, then train, because it needs less noise.")
    assert asked == [{"mechanism": "gaussian(sigma=?)", "epsilon": 1, "delta": 1e-5}]
    expect(planner.at("advice-result")).to_contain_text("Check it.")
    expect(planner.page.locator("#advice tbody tr").nth(1)).to_contain_text("poisson(mean=6)")
    expect(planner.page.locator("#advice tbody tr").nth(1)).to_contain_text("9.001")  # noise is rounded up
    planner.page.set_viewport_size({"width": 390, "height": 900})
    frame = planner.page.locator("#advice .scroll")
    assert frame.evaluate("frame => frame.scrollWidth <= frame.clientWidth")  # every number and button is in view
    heights = planner.page.locator("#advice button").evaluate_all("all => all.map(one => one.getBoundingClientRect().height)")
    assert min(heights) >= 44  # for fingers
    planner.page.set_viewport_size({"width": 1280, "height": 900})
    planner.page.get_by_role("button", name="Use search, then train").click()
    planner.is_complete()
    assert planner.at("way").input_value() == "secret"
    expect(planner.at("advice-result")).to_have_attribute("data-state", "stale")
    planner.at("mechanism").select_option("approximate")
    planner.at("way").select_option("one")
    planner.is_answered()


def test_the_real_advice(planner):
    planner.open({"mechanism": "gaussian(sigma=?)", "count": "geometric(mean=3)", "epsilon": "1", "delta": "1e-5"}).is_complete()
    planner.at("advice-compare").click()
    expect(planner.page.locator("#advice tbody tr")).to_have_count(4, timeout=120_000)
    expect(planner.at("advice-message")).to_have_text("")


@pytest.mark.parametrize("width", [390, 1280])
def test_both_stages_fit_the_page(planners, server, screenshot, width):
    planner = planners(server.url, viewport={"width": width, "height": 900})
    planner.open(SEARCH).is_complete()
    assert planner.page.evaluate("document.documentElement.scrollWidth") <= width
    assert screenshot(planner, f"two-stages-{width}").stat().st_size > 10_000


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_both_stages_are_accessible(planners, server, scheme):
    planner = planners(server.url, bypass_csp=True, color_scheme=scheme)
    planner.open(SEARCH).is_complete()
    planner.page.add_script_tag(content=AXE.read_text())
    found = planner.page.evaluate("axe.run()")
    assert [(each["id"], [node["html"] for node in each["nodes"]]) for each in found["violations"]] == []
