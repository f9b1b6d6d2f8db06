"""Questions: every field, every unknown, and the messages if there is no answer."""

import contextlib

import pytest
from playwright.sync_api import Error, expect

pytestmark = pytest.mark.browser

DPSGD = {
    "mechanism": "dpsgd(noise_multiplier=4, sampling_probability=0.01, steps=100)",
    "count": "geometric(mean=30)",
    "epsilon": "?",
    "delta": "1e-6",
}
POINT = {
    "mechanism": "approximate(epsilon=0.3, delta=1e-9)",
    "count": "negative_binomial(eta=2, mean=10)",
    "epsilon": "?",
    "delta": "1e-6",
}
PLACES = {"mechanism": "gaussian(sigma=4)", "count": "binomial(n=20, p=0.5)", "epsilon": "?", "delta": "1e-6"}


def test_it_opens_with_an_answer_and_no_errors(planner):
    planner.open().is_complete()
    assert "noise multiplier of 2.83" in planner.sentence
    assert "0.99" in planner.at("proof").inner_text()
    assert planner.at("mechanism-noise_multiplier").input_value().startswith("2.83")
    assert planner.page.locator("canvas").count() == 3
    assert planner.page.locator("#compare tbody tr").count() == 5
    assert planner.at("notice").is_hidden()
    assert planner.console == []
    assert "nothing leaves this machine" in planner.page.locator("header").inner_text()
    assert planner.page.locator("a[href^=http]").count() == 0


def test_a_slider_moves_the_sentence_and_every_picture(planner, quick):
    planner.open(quick).is_complete()
    before = planner.sentence, planner.at("question-text").inner_text(), *map(planner.picture, ("mean", "profile", "survival"))
    described = planner.page.locator("#mean-chart .plot").get_attribute("aria-label")
    box = planner.at("count-mean-slider").bounding_box()
    mouse, height = planner.page.mouse, box["y"] + box["height"] / 2
    thumb = float(planner.at("count-mean-slider").evaluate("slider => slider.value / slider.max"))
    mouse.move(box["x"] + 8 + thumb * (box["width"] - 16), height)
    mouse.down()
    for step in range(1, 6):
        mouse.move(box["x"] + 8 + (thumb + 0.05 * step) * (box["width"] - 16), height)
    expect(planner.at("sentence")).not_to_have_text(before[0])  # the button is still down
    mouse.up()
    planner.is_complete()
    after = planner.sentence, planner.at("question-text").inner_text(), *map(planner.picture, ("mean", "profile", "survival"))
    assert all(old != new for old, new in zip(before, after, strict=True))
    assert planner.page.locator("#mean-chart .plot").get_attribute("aria-label") != described
    assert planner.at("count-mean-slider").get_attribute("aria-valuetext") == planner.at("count-mean").input_value()


def test_one_slider_step_of_an_integer_changes_it(planner, quick):
    planner.open({**quick, "count": "binomial(n=8, p=0.5)"}).is_answered()
    planner.at("count-n-slider").press("ArrowRight")
    assert planner.at("count-n").input_value() == "9"
    planner.at("count-n-slider").press("ArrowLeft")
    assert planner.at("count-n").input_value() == "8"
    planner.is_answered()


def test_an_arrow_key_always_changes_the_number(planner, quick):
    planner.open(quick).is_answered()
    slider, field = planner.at("delta-slider"), planner.at("delta")
    slider.press("Home")
    assert field.input_value() == "1e-12"
    seen = []
    for key in ("ArrowRight", "ArrowUp", "ArrowLeft", "ArrowDown", "ArrowDown"):
        slider.press(key)
        seen.append(float(field.input_value()))
    assert seen == [1.1e-12, 1.2e-12, 1.1e-12, 1e-12, 1e-12]  # the end of the scale
    field.fill("1e-5")
    slider.press("ArrowRight")
    assert field.input_value() == "1.1e-5"
    planner.is_answered()


REFUSALS = [
    (DPSGD, "mechanism", "`steps` must be small enough, got 7", "mechanism-steps"),
    (DPSGD, "count", "the law takes too long: `mean` is too large", "count-mean"),
    (DPSGD, None, "the budget is met by every `mean` tried", "count-mean"),
    (DPSGD, "mechanism", "a trial takes too long", "mechanism"),
    (DPSGD, "count", "exactly one number must be written as ?, got 2: `mean`, `cap`", "count-mean"),
    (POINT, "mechanism", "`epsilon` of `approximate` must be less", "mechanism-epsilon"),
    (POINT, "epsilon", "`epsilon` must be less", "epsilon"),
    ({**PLACES, "mechanism": "gdp(mu=1)"}, "mechanism", "exactly one number must be written as ?, got 2: `mu`, `p`", "mechanism-text"),
]


def refusing(field, message):
    return lambda route: route.fulfill(status=422, json={"error": {"field": field, "message": message}})


def test_a_refusal_stands_beside_the_number_that_it_names_or_beside_the_field(planner):
    for question, field, message, place in REFUSALS:
        planner.page.goto("about:blank")
        planner.open(question).is_answered()
        planner.page.route("**/api/answer", refusing(field, message))
        planner.at("delta").fill("2e-6")
        planner.is_stale()
        assert planner.page.locator("form [aria-invalid]").evaluate_all("all => all.map(one => one.id)") == [place]
        assert planner.message_of(place).inner_text() == message
        planner.page.unroute("**/api/answer")


def test_endless_nonsense_is_cut(planner, quick):
    planner.open(quick).is_answered()
    planner.at("delta").fill("w" * 3000)
    planner.is_stale()
    message = planner.message_of("delta")
    assert message.inner_text() == f"`delta` must be a number, got '{'w' * 77}...'"
    assert message.evaluate("place => place.scrollWidth <= place.clientWidth")
    planner.at("design-open").click()
    planner.at("design-tau").fill("w" * 3000)
    planner.page.get_by_role("button", name="Find best law of K").click()
    assert len(planner.message_of("design-tau").inner_text()) < 130


@pytest.mark.parametrize(
    ("question", "nonsense"),
    [
        (
            DPSGD,
            [
                ("mechanism-noise_multiplier", "abc", "`noise_multiplier` must be a number, got 'abc'"),
                ("mechanism-noise_multiplier", "-1", "noise_multiplier"),
                ("mechanism-sampling_probability", "2", "sampling_probability"),
                ("mechanism-steps", "1.5", "steps"),
                ("mechanism-steps", "", "`steps` must be a number, got ''"),
                ("count-mean", "0", "mean"),
                ("count-mean", "30, cap=4)", "mean"),
                ("delta", "2", "delta"),
                ("delta", "<b>1</b>", "`delta` must be a number, got '<b>1</b>'"),
            ],
        ),
        ({**DPSGD, "epsilon": "1", "delta": "?"}, [("epsilon", "-1", "epsilon"), ("epsilon", "?1", "epsilon")]),
        (POINT, [("mechanism-epsilon", "-1", "epsilon"), ("mechanism-delta", "7", "delta"), ("count-eta", "-3", "eta")]),
        (PLACES, [("mechanism-sigma", "0", "sigma"), ("count-n", "1/2", "n"), ("count-p", "1.5", "p")]),
        (
            {**PLACES, "mechanism": "laplace(scale=4)", "count": "poisson(mean=9)"},
            [("mechanism-scale", "1/0", "scale"), ("count-mean", "-9", "mean")],
        ),
        ({**PLACES, "count": "fixed(k=8)"}, [("count-k", "0", "k")]),
        (
            {**PLACES, "mechanism": "gdp(mu=1)", "count": "geometric(mean=10, cap=40)"},
            [
                ("mechanism-text", "gaussian(sigma=", ""),
                ("count-text", "nothing(1)", "nothing"),
                ("count-text", "gaussian(sigma=4)", ""),
                ("count-text", " ", "Enter a text form"),
            ],
        ),
    ],
)
def test_nonsense_is_answered_beside_its_field_and_the_last_good_answer_stays(planner, question, nonsense):
    planner.open(question).is_answered()
    sentence = planner.sentence
    for field, text, expected in nonsense:
        good, message = planner.at(field).input_value(), planner.message_of(field)
        planner.at(field).fill(text)
        planner.is_stale()
        expect(message).not_to_be_empty()
        assert expected in message.inner_text()
        assert planner.at(field).get_attribute("aria-invalid") == "true"
        assert planner.page.locator("form [aria-invalid]").count() == 1
        assert planner.sentence == sentence
        assert "last valid question" in planner.at("status").inner_text()
        planner.at(field).fill(good)
        planner.is_answered()
        expect(message).to_be_empty()
        assert planner.at(field).get_attribute("aria-invalid") is None
        assert planner.sentence == sentence


@pytest.mark.parametrize("question", [DPSGD, POINT, PLACES])
def test_every_number_can_be_the_unknown(planner, question):
    planner.open(question).is_answered()
    options = planner.at("unknown").locator("option").evaluate_all("all => all.map(one => one.value)")
    assert len(options) == 2 + sum(question[side].count("=") for side in ("mechanism", "count"))
    for option in options:
        planner.at("unknown").select_option(option)
        planner.is_answered()
        solved = planner.page.locator("form input[readonly]")
        assert solved.evaluate_all("all => all.map(one => one.id)") == [option.replace(".", "-")]
        assert float(solved.input_value()) > -1
        assert planner.page.locator("#sentence strong").inner_text() in planner.sentence
        assert planner.at(f"{option.replace('.', '-')}-slider").is_disabled()


def test_every_mechanism_and_every_law_can_be_chosen(planner, quick):
    planner.open(quick).is_answered()
    for side, kinds in {
        "mechanism": ["laplace", "approximate", "text", "gaussian"],
        "count": ["poisson", "binomial", "fixed", "one", "text"],
    }.items():
        for kind in kinds:
            before = planner.at("question-text").inner_text()
            planner.at(side).select_option(kind)
            planner.is_answered()
            assert planner.page.locator("form [aria-invalid]").count() == 0
            assert planner.at("question-text").inner_text() != before or kind == "text"


def test_a_question_mark_in_a_text_form_is_the_unknown(planner, quick):
    planner.open({**quick, "mechanism": "composed(gaussian(sigma=9), times=3)"}).is_answered()
    planner.at("mechanism-text").fill("composed(gaussian(sigma=?), times=3)")
    planner.is_answered()
    assert planner.at("unknown").input_value() == "mechanism.text"
    assert planner.at("epsilon").input_value() != "?"
    planner.at("unknown").select_option("delta")
    planner.is_answered()
    assert "?" not in planner.at("mechanism-text").input_value()


def test_an_infinite_answer_is_stated_and_nothing_is_drawn(planner):
    planner.open(
        {"mechanism": "approximate(epsilon=0.3, delta=1e-4)", "count": "geometric(mean=30)", "epsilon": "?", "delta": "1e-9"}
    ).is_complete()
    assert "No finite epsilon" in planner.sentence
    assert planner.at("epsilon").input_value() == "infinite"
    assert "no finite answer" in planner.page.locator("#mean-chart figcaption").inner_text()
    assert "no finite answer" in planner.at("compare").inner_text()
    planner.at("download-plan").click()
    expect(planner.at("download-message")).to_have_text("There is no finite answer to export.")
    planner.at("delta").fill("0.1")
    planner.is_complete()
    assert planner.page.locator("#compare tbody tr").count() == 5
    assert planner.console == []


def test_only_the_latest_question_is_asked_again_and_the_old_answer_is_marked(planner, quick):
    planner.open(quick).is_answered()
    sentence, held, requested = planner.sentence, [], []

    def hold(route):
        requested.append(route.request.post_data_json["delta"])
        held.append(route) if len(requested) == 1 else route.continue_()

    planner.page.route("**/api/answer", hold)
    for delta in ("1e-5", "1e-4", "1e-3", "1e-2"):
        planner.at("delta").fill(delta)
        planner.page.wait_for_timeout(100)  # longer than the delay of the page
    expect(planner.at("answer")).to_have_attribute("data-state", "computing")
    assert planner.sentence == sentence
    assert planner.at("status").inner_text() == "Computing."
    held[0].continue_()
    planner.is_answered()
    assert requested == ["1e-5", "1e-2"]
    assert "at delta 0.01" in planner.sentence


def test_a_busy_server_is_asked_again(planner, quick):
    planner.open(quick).is_answered()
    turned_away = []

    def busy(route):
        if turned_away:
            return route.continue_()
        turned_away.append(route)
        return route.fulfill(
            status=429, headers={"Retry-After": "1"}, json={"error": {"field": None, "message": "Server busy. Retry in a few seconds."}}
        )

    planner.page.route("**/api/answer", busy)
    planner.at("delta").fill("1e-4")
    expect(planner.at("status")).to_have_text("Server busy. Retrying.")
    planner.is_answered()
    assert "1e-4" in planner.at("question-text").inner_text()


def test_an_unreachable_server_is_reported_and_the_next_change_retries(planner, quick):
    planner.open(quick).is_answered()
    sentence = planner.sentence
    planner.page.route("**/api/answer", lambda route: route.abort())
    planner.at("delta").fill("1e-4")
    planner.is_stale()
    assert "does not answer" in planner.at("status").inner_text()
    assert planner.sentence == sentence
    planner.page.unroute("**/api/answer")
    planner.at("delta").fill("1e-5")
    planner.is_answered()
    assert planner.sentence != sentence


def test_messages_disappear_when_the_server_is_back(planner, quick):
    planner.open(quick).is_answered()
    planner.at("design-open").click()
    for kind in ("plan", "design"):
        planner.page.route(f"**/api/{kind}", lambda route: route.abort())
    planner.at("download-plan").click()
    planner.page.get_by_role("button", name="Find best law of K").click()
    places = planner.at("download-message"), planner.page.locator("#design [role=status]")
    for place in places:
        expect(place).to_have_text("The server does not answer.")
    planner.at("delta").fill("1e-5")
    for place in places:
        expect(place).to_be_empty()


def test_a_killed_server_is_reported(planners, own_server, quick):
    planner = planners(own_server.url).open(quick).is_answered()
    own_server.end()
    planner.at("delta").fill("1e-4")
    planner.is_stale()
    assert "does not answer" in planner.at("status").inner_text()
    planner.at("download-plan").click()
    expect(planner.at("download-message")).to_have_text("The server does not answer.")


def test_the_final_answer_is_announced(planner, quick):
    planner.open(quick).is_answered()
    expect(planner.at("announcement")).to_have_text(planner.sentence)
    for _ in range(5):
        planner.at("delta-slider").press("ArrowRight")
    planner.is_answered()
    expect(planner.at("announcement")).to_have_text(planner.sentence)


def test_late_charts_of_another_question_are_not_shown(planner, quick):
    planner.open(quick).is_complete()
    held = []

    def hold(route):
        held.append(route)

    planner.page.route("**/api/curves", hold)
    planner.at("mechanism-sigma").fill("4.5")
    planner.is_answered()
    planner.open({**quick, "mechanism": "approximate(epsilon=1, delta=0.001)"}).is_answered()
    assert planner.sentence.startswith("No finite epsilon is proved")
    planner.page.unroute("**/api/curves")
    for route in held:
        with contextlib.suppress(Error):  # the page aborted it
            route.continue_()
    planner.page.wait_for_timeout(1500)
    planner.at("delta").press("End")
    planner.at("delta").press("Space")
    planner.is_answered()
    for chart in ("mean", "profile"):
        assert "There is no finite answer" in planner.at(f"{chart}-chart").inner_text()
        assert planner.page.locator(f"#{chart}-chart canvas").count() == 0


def test_our_own_number_is_the_same_everywhere(planner):
    planner.open({"mechanism": "gaussian(sigma=?)", "count": "geometric(mean=30)", "epsilon": "2", "delta": "1e-5"}).is_complete()
    value = planner.page.locator("#sentence strong").inner_text()
    assert planner.page.locator("#compare tr.exact td").last.inner_text() == value
    assert float(value) >= float(planner.at("mechanism-sigma").input_value())


def test_a_number_solved_for_another_question_does_not_look_solved(planner):
    planner.open({"mechanism": "gaussian(sigma=?)", "count": "geometric(mean=30)", "epsilon": "2", "delta": "1e-5"}).is_complete()
    solved = planner.at("mechanism-sigma")
    assert solved.evaluate("field => getComputedStyle(field).fontStyle") == "normal"
    planner.at("delta").fill("1e-60")
    planner.is_stale()
    assert solved.evaluate("field => getComputedStyle(field).fontStyle") == "italic"


def test_the_table_of_another_question_does_not_stand_out(planner, quick):
    planner.open(quick).is_complete()
    cell = planner.page.locator("#compare tr.exact td").first
    colour, plain = (
        place.evaluate("cell => getComputedStyle(cell).color") for place in (cell, planner.page.locator("#compare thead th").first)
    )
    assert colour != plain
    planner.at("delta").fill("abc")
    planner.is_stale()
    expect(cell).to_have_css("color", plain)


def test_the_solved_field_says_what_the_sentence_says(planner):
    planner.open({"mechanism": "gaussian(sigma=?)", "count": "geometric(mean=30)", "epsilon": "2", "delta": "1e-5"}).is_complete()
    before, held = planner.sentence, []

    def hold(route):
        route.continue_() if held else held.append(route)

    planner.page.route("**/api/answer", hold)
    planner.at("epsilon").fill("3")
    planner.page.wait_for_timeout(100)  # longer than the delay of the page
    planner.at("epsilon").fill("3x")
    planner.is_stale()
    held[0].continue_()
    expect(planner.at("sentence")).not_to_have_text(before)
    value, field = planner.page.evaluate(
        "[document.querySelector('#sentence strong').innerText, document.querySelector('#mechanism-sigma').value]"
    )
    assert float(value) == pytest.approx(float(field), rel=1e-3)
    assert planner.at("epsilon").input_value() == "3x"
    planner.is_stale()


def test_an_answer_found_nearby_stays_where_it_is_not_looked_for_again(planner):
    planner.open({"mechanism": "gaussian(sigma=?)", "count": "geometric(mean=30)", "epsilon": "2", "delta": "1e-5"}).is_complete()
    refuse = refusing(None, "it takes too long")
    planner.page.route("**/api/answer", lambda route: route.continue_() if route.request.post_data_json["search_start"] else refuse(route))
    planner.at("epsilon").fill("3")
    expect(planner.at("answer")).to_have_attribute("data-state", "refining")
    sentence = planner.sentence
    planner.is_complete()
    assert planner.sentence == sentence
    assert planner.page.locator("form [aria-invalid]").count() == 0
