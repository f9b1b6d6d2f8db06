"""Charts, checked by their pixels and captions."""

import csv

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser


def caption(planner, chart):
    return planner.page.locator(f"#{chart}-chart figcaption p").inner_text()


@pytest.mark.parametrize("delta", [1e-20, 1e-50])
def test_the_smallest_deltas_are_drawn_and_their_table_keeps_them(planner, quick, tmp_path, delta):
    planner.open({**quick, "delta": str(delta)}).is_complete()
    with planner.downloaded("download-csv", tmp_path).open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if (row["chart"], row["curve"]) == ("profile", "exact")]
    assert any(float(row["y"]) == delta for row in rows)
    epsilons = [float(row["x"]) for row in rows]
    end = 1.05 * max(epsilons)  # of the axis
    first, middle, last = planner.heights(
        "profile", *(at / end for at in (min(epsilons) + 0.01, sum(epsilons) / len(rows), max(epsilons) - 0.01))
    )
    assert 1 > first > middle > last > 0


def test_lines_are_straight_between_what_was_computed(planner, quick):
    def bent(curves):
        flat = [1.0, 1.0, 2.0]
        names = ("exact", "exact_lower", "paper", "renyi", "composition", "base")
        return {**curves, "mean": {"x": [1.0, 10.0, 100.0], **dict.fromkeys(names, [None] * 3), "exact": flat}}

    planner.replies("curves", bent).open(quick).is_complete()
    low, middle, quarter = planner.heights("mean", 0.25, 0.75, 0.875)
    top = low * 2  # the height of 2; low is the height of 1
    assert middle == pytest.approx(0.75 * top, abs=0.01)
    assert quarter == pytest.approx(0.875 * top, abs=0.01)
    assert "All computed points hold simultaneously" in caption(planner, "profile")
    assert "straight lines connect them" in caption(planner, "profile")


def test_the_law_is_drawn_in_steps_that_end_at_their_places(planner, quick):
    survival = {"k": [1, 1000, 1001], "probability": [0.5, 0.25, 0.0]}
    planner.replies("answer", lambda answer: {**answer, "survival": survival})
    planner.open({**quick, "count": "finite({0: 2, 1: 1, 1000: 1})"}).is_complete()
    heights = planner.heights("survival", 0.1, 0.5, 0.9)
    assert max(heights) == min(heights) == pytest.approx(0.25 / 1.04, abs=0.01)


def test_what_is_said_of_the_law_is_worth_saying(planner, quick):
    for count, begun, none in [
        ("fixed(k=8)", "K is always 8.", False),
        ("poisson(mean=30)", "K is at most 30 with probability 50%", False),  # no trial with 9e-14
        ("poisson(mean=5)", "K is at most 5 with probability 50%", True),
        ("finite({8: 999, 1000: 1})", "K is at most 8 with probability 99%.", False),
    ]:
        planner.open({**quick, "count": count}).is_answered()
        expect(planner.page.locator("#survival-chart figcaption p")).to_contain_text(begun)
        assert ("no trial is run." in caption(planner, "survival")) == none


def test_labels_stand_above_the_frame_where_no_line_runs(planner, quick):
    planner.open({**quick, "count": "fixed(k=8)"}).is_answered()
    above, inside = planner.at("survival-chart").evaluate(
        """figure => {
            const [canvas, frame] = [figure.querySelector("canvas"), figure.querySelector(".u-over")];
            const columns = (top, height) => {
                const { data, width } = canvas.getContext("2d").getImageData(0, top, canvas.width, height);
                const spots = [...Array(data.length / 4).keys()].filter((spot) => data[4 * spot + 3] > 99);
                return new Set(spots.filter((spot) => data[4 * spot + 2] - data[4 * spot] > 60).map((spot) => spot % width)).size;
            };
            return [columns(0, frame.offsetTop), columns(frame.offsetTop, frame.offsetHeight)];
        }"""
    )
    assert above > 20  # words
    assert inside < 5  # a rule
