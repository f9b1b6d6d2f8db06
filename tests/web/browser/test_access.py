"""Keyboard, phone, dark scheme and screen reader."""

import os
import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser

AXE = Path(os.environ.get("AXE", "build/npm/node_modules/axe-core/axe.min.js"))
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True, "device_scale_factor": 2}


def focused(planner):
    return planner.page.evaluate("document.activeElement.id")


def tab_to(planner, name):
    for _ in range(80):
        if focused(planner) == name:
            return
        planner.page.keyboard.press("Tab")
    pytest.fail(f"Tab does not reach {name}")


def test_everything_is_reached_by_tab_and_nothing_traps(planner, quick):
    planner.open(quick).is_complete()
    wanted = planner.page.locator("button, select, input, textarea, pre, a").evaluate_all(
        "all => all.filter(one => !one.disabled && one.checkVisibility()).map(one => one.id)"
    )
    planner.page.keyboard.press("Tab")
    visited = [focused(planner)]
    assert visited == ["skip"]
    for _ in range(80):
        planner.page.keyboard.press("Tab")
        name = focused(planner)
        if planner.page.evaluate("document.activeElement === document.body"):
            break
        ring = planner.page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert ring != "none", name
        visited.append(name)
    else:
        pytest.fail("Tab never leaves the page")
    assert set(wanted) <= set(visited)
    order = [
        visited.index(name)
        for name in ("unknown", "mechanism", "mechanism-sigma", "mechanism-sigma-slider", "count", "delta", "download-csv")
    ]
    assert order == sorted(order)


def test_a_value_is_changed_and_a_file_taken_by_keyboard_alone(planner, quick, tmp_path):
    planner.open(quick).is_complete()
    sentence = planner.sentence
    tab_to(planner, "count-mean-slider")
    for _ in range(3):
        planner.page.keyboard.press("ArrowRight")
    expect(planner.at("sentence")).not_to_have_text(sentence)
    planner.is_complete()
    tab_to(planner, "download-csv")
    with planner.page.expect_download() as download:
        planner.page.keyboard.press("Enter")
    download.value.save_as(tmp_path / "curves.csv")
    mean = re.search("mean,question,(.*),", (tmp_path / "curves.csv").read_text())
    assert float(mean[1]) == pytest.approx(float(planner.at("count-mean").input_value()))


def test_the_skip_link_leads_to_the_answer_and_keeps_the_question(planner, quick):
    planner.open(quick).is_answered()
    tab_to(planner, "skip")
    planner.page.keyboard.press("Enter")
    assert focused(planner) == "answer"
    assert planner.at("mechanism").input_value() == "gaussian"


@pytest.mark.parametrize("law", ["geometric(mean=30)", "finite({" + ", ".join(f"{k}: {k**9}" for k in range(1, 40)) + "})"])
def test_a_phone_shows_one_column_that_does_not_scroll_sideways(planners, server, quick, law):
    planner = planners(server.url, **PHONE).open({**quick, "count": law}).is_complete()
    planner.at("design-open").click()
    planner.at("delta").fill("nonsense" * 12)
    planner.is_stale()
    wide = planner.page.evaluate("[document.documentElement.scrollWidth, document.body.scrollWidth, innerWidth]")
    assert max(wide) == 390
    small = planner.page.locator("button, select, input[type=text], input[type=range]").evaluate_all(
        "all => all.filter(one => one.checkVisibility() && one.getBoundingClientRect().height < 44).map(one => one.id || one.innerText)"
    )
    assert small == []


def test_on_a_phone_the_sentence_stays_in_sight_while_sliders_move(planners, server, quick):
    planner = planners(server.url, **PHONE).open(quick).is_complete()
    planner.at("delta-slider").scroll_into_view_if_needed()
    before, slider = planner.at("sentence").bounding_box(), planner.at("delta-slider").bounding_box()
    assert 0 <= before["y"] < before["y"] + before["height"] < slider["y"] < 844
    sentence = planner.sentence
    planner.page.touchscreen.tap(slider["x"] + 0.9 * slider["width"], slider["y"] + slider["height"] / 2)
    expect(planner.at("sentence")).not_to_have_text(sentence)
    assert planner.at("sentence").bounding_box()["y"] >= 0


def test_the_dark_scheme_is_dark_and_charts_follow_it(planner, quick):
    planner.open(quick).is_complete()
    light, line = planner.picture("mean"), planner.page.locator("#mean-chart .key line").first
    paper = "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).reduce((sum, part) => sum + Number(part), 0)"
    assert planner.page.evaluate(paper) > 600
    planner.page.emulate_media(color_scheme="dark")
    assert planner.page.evaluate(paper) < 100
    expect(line).to_have_attribute("stroke", "#ffffff")
    assert planner.picture("mean") != light
    planner.page.emulate_media(color_scheme="light")
    expect(line).to_have_attribute("stroke", "#000000")
    assert planner.picture("mean") == light


def test_what_was_copied_is_said_and_stays_a_while(planner, quick):
    planner.open(quick).is_answered()
    button = planner.page.get_by_role("button", name="Copy Python")
    button.click()
    expect(planner.page.get_by_role("button", name="Copied Python")).to_be_visible()
    expect(planner.at("copied")).to_have_text("Copied")
    planner.page.wait_for_timeout(1000)
    planner.at("copy-python").click()
    planner.page.wait_for_timeout(800)  # after the end of the first
    assert planner.at("copy-python").inner_text() == "Copied"
    expect(button).to_be_visible()
    expect(planner.at("copied")).to_be_empty()


def test_long_texts_scroll_in_their_place(planner, quick):
    law = "finite({" + ", ".join(f"{k}: {k**9}" for k in range(1, 300)) + "})"
    planner.open({**quick, "count": law}).is_answered()
    for name in ("python", "command"):
        assert planner.at(name).bounding_box()["height"] < 300
        assert planner.at(name).get_attribute("tabindex") == "0"


@pytest.mark.parametrize("width", [1280, 1000, 390])
@pytest.mark.parametrize("final", [{}, {"final": "gaussian(sigma=9)"}], ids=["one shot", "two stages"])
def test_every_choice_fits_into_its_list(planners, server, quick, width, final):
    planner = planners(server.url, viewport={"width": width, "height": 900}).open({**quick, **final}).is_answered()
    cut = planner.page.locator("select").evaluate_all(
        """all => all.flatMap(list => {
            const style = getComputedStyle(list);
            const pen = new OffscreenCanvas(1, 1).getContext("2d");
            pen.font = `${style.fontSize} ${style.fontFamily}`; // the font as a whole is empty where digits are of one width
            const room = list.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
            const labels = list.checkVisibility() ? [...list.options].map(one => one.label) : [];
            return labels.filter(label => pen.measureText(label).width > room);
        })"""
    )
    assert cut == []


def test_the_ring_around_a_slider_crosses_nothing(planner, quick):
    planner.open(quick).is_answered()
    tab_to(planner, "mechanism-sigma-slider")
    ring = planner.at("mechanism-sigma-slider").evaluate("one => getComputedStyle(one).outlineOffset")
    width = planner.at("mechanism-sigma-slider").evaluate("one => getComputedStyle(one).outlineWidth")
    assert float(ring.removesuffix("px")) + float(width.removesuffix("px")) <= 0


@pytest.mark.parametrize("options", [{}, {"color_scheme": "dark"}, PHONE], ids=["light", "dark", "phone"])
def test_axe_finds_nothing_serious(planners, server, quick, options):
    planner = planners(server.url, bypass_csp=True, reduced_motion="reduce", **options).open(quick).is_complete()
    planner.page.evaluate(AXE.read_text())

    def serious():
        found = planner.page.evaluate("axe.run()")
        assert found["passes"]
        return [
            (one["id"], [node["target"] for node in one["nodes"]])
            for one in found["violations"]
            if one["impact"] in {"serious", "critical"}
        ]

    assert serious() == []
    planner.at("design-open").click()
    planner.at("count").select_option("text")
    planner.is_answered()
    assert serious() == []
    planner.at("delta").fill("abc")
    planner.is_stale()
    assert serious() == []
