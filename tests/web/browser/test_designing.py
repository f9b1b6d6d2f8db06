"""Designing the law of K from the page."""

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser

SMALL = {"mechanism": "gaussian(sigma=4)", "count": "geometric(mean=6)", "epsilon": "?", "delta": "1e-6"}


@pytest.fixture
def open_panel(planner):
    planner.open(SMALL).is_answered()
    planner.at("design-open").click()
    planner.at("design-cap").fill("12")
    planner.at("design-tau").fill("0.05")
    return planner


def test_a_law_is_designed_and_used(open_panel):
    planner = open_panel
    assert planner.at("design-mean").input_value() == "6"
    planner.page.get_by_role("button", name="Find best law of K").click()
    expect(planner.at("design-use")).to_be_visible()
    rows = planner.page.locator("#design tbody tr").evaluate_all("all => all.map(row => [...row.children].map(cell => cell.innerText))")
    probabilities = {name: float(share.rstrip("%")) for name, share in rows if share != "none"}
    assert probabilities["designed"] == max(probabilities.values())
    assert {"geometric (no cap)", "negative binomial", "binomial"} <= {name for name, _ in rows}
    assert "No law of K with at most 12 trials and mean at most 6 exceeds" in planner.at("design").inner_text()
    planner.at("design-use").click()
    planner.is_answered()
    assert planner.at("count").input_value() == "text"
    assert planner.at("count-text").input_value().startswith("finite({")
    assert "finite" in planner.at("question-text").inner_text()


def test_it_can_be_cancelled(open_panel):
    planner = open_panel
    planner.page.route("**/api/design", lambda _: None)  # never answers
    planner.page.get_by_role("button", name="Find best law of K").click()
    expect(planner.at("design")).to_have_attribute("aria-busy", "true")
    planner.page.get_by_role("button", name="Cancel").click()
    expect(planner.page.locator("#design [role=status]")).to_have_text("Cancelled.")
    expect(planner.page.get_by_role("button", name="Find best law of K")).to_be_enabled()
    expect(planner.page.get_by_role("button", name="Find best law of K")).to_be_focused()


def test_nonsense_is_answered_beside_its_field(open_panel):
    planner = open_panel
    for field, nonsense in [("tau", "abc"), ("tau", "2"), ("cap", "0"), ("cap", ""), ("mean", "-1")]:
        good, message = planner.at(f"design-{field}").input_value(), planner.message_of(f"design-{field}")
        planner.at(f"design-{field}").fill(nonsense)
        planner.page.get_by_role("button", name="Find best law of K").click()
        expect(message).not_to_be_empty()
        assert field in message.inner_text()
        assert planner.at(f"design-{field}").get_attribute("aria-invalid") == "true"
        planner.at(f"design-{field}").fill(good)
        expect(message).to_be_empty()


def test_a_law_that_is_not_the_best_does_not_look_it(open_panel):
    planner = open_panel
    ends = {"lower": 1.4, "upper": 1.5}
    other = {"count": "geometric(mean=6)", "success_probability": 0.09178, "epsilon": ends}
    found = {
        "count": "finite({6: 1})",
        "success_probability": 0.09101,
        "epsilon": ends,
        "expected": 5.99999,
        "upper_bound": 0.09104,
        "fits": {"geometric": other, "negative_binomial": None, "binomial": {**other, "success_probability": 0.05}},
    }
    planner.page.route("**/api/design", lambda route: route.fulfill(json=found))
    planner.at("design-tau").fill("0.012345")
    planner.page.get_by_role("button", name="Find best law of K").click()
    text = planner.page.locator("#design .design-result p")
    expect(text).to_contain_text(
        "With probability 9.101%, some trial is among the best 1.235% of candidates, at the same privacy cost, with 6 trials on average."
    )
    expect(text).to_contain_text("No law of K with at most 12 trials and mean at most 6 exceeds 9.104%.")
    expect(planner.page.locator("#design tbody tr")).to_have_text(
        ["designed9.101%", "geometric (no cap)9.178%", "negative binomialnone", "binomial5%"]
    )
    assert planner.page.locator("#design tr.exact").count() == 0


def test_what_was_typed_is_there_when_the_panel_is_opened_again(open_panel):
    planner = open_panel
    planner.at("design-open").click()
    planner.at("count-mean").fill("9")
    planner.is_answered()
    planner.at("design-open").click()
    assert [planner.at(f"design-{name}").input_value() for name in ("tau", "cap", "mean")] == ["0.05", "12", "9"]
