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
    planner.page.get_by_role("button", name="Find the law").click()
    expect(planner.at("design-use")).to_be_visible()
    rows = planner.page.locator("#design tbody tr").evaluate_all("all => all.map(row => [...row.children].map(cell => cell.innerText))")
    chances = {name: float(share.rstrip("%")) for name, share in rows if share != "none"}
    assert chances["designed"] == max(chances.values())
    assert {"geometric", "negative binomial", "binomial"} <= {name for name, _ in rows}
    planner.at("design-use").click()
    planner.is_answered()
    assert planner.at("count").input_value() == "text"
    assert planner.at("count-text").input_value().startswith("finite({")
    assert "finite" in planner.at("asked").inner_text()


def test_it_can_be_cancelled(open_panel):
    planner = open_panel
    planner.page.route("**/api/design", lambda _: None)  # which never answers
    planner.page.get_by_role("button", name="Find the law").click()
    expect(planner.at("design")).to_have_attribute("aria-busy", "true")
    planner.page.get_by_role("button", name="Cancel").click()
    expect(planner.page.locator("#design [role=status]")).to_have_text("Cancelled.")
    expect(planner.page.get_by_role("button", name="Find the law")).to_be_enabled()
    expect(planner.page.get_by_role("button", name="Find the law")).to_be_focused()


def test_nonsense_is_answered_beside_its_field(open_panel):
    planner = open_panel
    for field, nonsense in [("tau", "abc"), ("tau", "2"), ("cap", "0"), ("cap", ""), ("mean", "-1")]:
        good, beside = planner.at(f"design-{field}").input_value(), planner.message_beside(f"design-{field}")
        planner.at(f"design-{field}").fill(nonsense)
        planner.page.get_by_role("button", name="Find the law").click()
        expect(beside).not_to_be_empty()
        assert field in beside.inner_text()
        assert planner.at(f"design-{field}").get_attribute("aria-invalid") == "true"
        planner.at(f"design-{field}").fill(good)
        expect(beside).to_be_empty()
