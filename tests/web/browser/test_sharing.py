"""The URL holds the question."""

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser


def test_a_shared_address_restores_the_question_and_the_answer(planner, planners, server, quick):
    planner.open(quick).is_answered()
    planner.at("mechanism").select_option("laplace")
    planner.at("count").select_option("negative_binomial")
    planner.at("count-eta").fill("-1/2")
    planner.at("unknown").select_option("mechanism.scale")
    planner.at("delta").fill("3e-7")
    planner.is_answered()
    address = planner.copied("copy-link")
    assert address.startswith(server.url)
    other = planners(server.url).open(fragment=address.removeprefix(server.url)).is_answered()
    assert other.state == planner.state
    assert other.sentence == planner.sentence
    assert other.at("question-text").inner_text() == planner.at("question-text").inner_text()


def test_the_address_follows_every_change(planner, quick):
    planner.open(quick).is_answered()
    planner.at("mechanism-sigma-slider").press("ArrowRight")
    sigma = planner.at("mechanism-sigma").input_value()
    planner.page.wait_for_url(lambda url: f"sigma%3D{sigma})" in url)
    planner.is_answered()
    planner.page.reload()
    planner.is_answered()
    assert planner.at("mechanism-sigma").input_value() == sigma


def test_an_address_pasted_into_the_open_page_is_taken(planner, quick):
    planner.open(quick).is_answered()
    planner.open({**quick, "count": "poisson(mean=7)", "delta": "1e-4"})
    expect(planner.at("count")).to_have_value("poisson")
    planner.is_answered()
    assert planner.at("count-mean").input_value() == "7"
    assert "about 7 runs" in planner.sentence


@pytest.mark.parametrize("count", ["", "finite({1: 5, 2: 7})", "geometric(mean=10, cap=40)"])
def test_one_trial_and_text_forms_are_restored(planner, planners, server, quick, count):
    planner.open({**quick, "count": count}).is_answered()
    other = planners(server.url).open(fragment=planner.copied("copy-link").removeprefix(server.url)).is_answered()
    assert other.at("count").input_value() == ("text" if count else "one")
    assert other.state == planner.state
    assert other.sentence == planner.sentence


def test_an_address_written_by_hand_is_read(planner):
    planner.open(fragment="#mechanism=gaussian(sigma=4)&count=geometric(mean=30)&epsilon=?&delta=1e-6").is_answered()
    assert planner.at("notice").is_hidden()
    assert planner.at("mechanism-sigma").input_value() == "4"
    assert planner.at("count-mean").input_value() == "30"


def test_the_answer_does_not_depend_on_the_way_to_the_question(planner):
    planner.open({"mechanism": "gaussian(sigma=?)", "count": "geometric(mean=30)", "epsilon": "1.5", "delta": "1e-5"}).is_complete()
    before, requested = planner.at("mechanism-sigma").input_value(), []

    def note(request):
        if "/api/" in request.url:
            requested.append((request.url.rpartition("/")[2], request.post_data_json.get("search_start")))

    planner.page.on("request", note)
    planner.at("count-mean").fill("300")
    planner.is_complete()
    planner.at("count-mean").fill("30")
    planner.is_complete()
    assert planner.at("mechanism-sigma").input_value() == before
    assert [kind for kind, _ in requested] == 2 * ["answer", "answer", "curves", "compare"]
    assert [start is None for kind, start in requested if kind == "answer"] == 2 * [False, True]


DAMAGED = [
    "#nonsense",
    "#mechanism=%E0%A4%A&count=&epsilon=1&delta=?",
    "#mechanism=gaussian(sigma%3D4)&count=&epsilon=1&delta=1e-6",  # no unknown
    "#mechanism=gaussian(sigma%3D%3F)&count=&epsilon=%3F&delta=1e-6",  # two unknowns
    "#mechanism=gaussian(sigma%3D%3F)&count=&epsilon=1",
    "#mechanism=gaussian(sigma%3D4)&count=&epsilon=1%3F&delta=1e-6",  # not a lone ?
    "#mechanism=gaussian(sigma%3D%3F)&count=&epsilon=1&delta=1e-6&more=1",
    "#%00%ff<script>",
]


def test_a_damaged_address_is_said_and_the_first_question_asked(planner, quick):
    for fragment in DAMAGED:  # the first is opened, the others are pasted into the open page
        planner.open(fragment=fragment)
        expect(planner.at("notice")).to_have_text("The link is invalid. The page shows the default question.")
        planner.is_answered()
        assert planner.at("mechanism").input_value() == "dpsgd"
        assert "noise multiplier of 2.83" in planner.sentence
        planner.open(quick)
        expect(planner.at("notice")).to_be_hidden()
        planner.is_answered()
        assert planner.at("mechanism").input_value() == "gaussian"


def test_nonsense_in_an_address_is_answered_beside_its_field(planner, quick):
    planner.open({**quick, "mechanism": "gaussian(sigma=abc)"}).is_stale()
    assert "`sigma` must be a number, got 'abc'" in planner.message_of("mechanism-sigma").inner_text()
    assert planner.at("sentence").inner_text() == "No answer yet."
    planner.at("mechanism-sigma").fill("4")
    planner.is_answered()
