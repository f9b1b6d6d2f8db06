"""Charts are well-formed, named, and inside their frame, whatever is drawn."""

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import privselect as ps
from privselect.report.document import Bar, Bars, Curve
from privselect.report.survival_curve import survival
from privselect.report.svg import bars_svg, curve_svg


def profile(points, mark=None, **options):
    return Curve(
        "profile", "a <title>", 'a "description" & more', "epsilon", "delta", tuple(points), logarithmic=True, mark=mark, **options
    )


def read(markup):
    chart = ET.fromstring(markup)  # noqa: S314 - our own
    names = {element.get("id"): element.text for element in chart if element.tag in {"title", "desc"}}
    assert chart.get("role") == "img"
    assert names[chart.get("aria-labelledby")]
    assert names[chart.get("aria-describedby")]
    return chart


def places(chart):
    return [float(number) for number in re.findall(r"[\d.]+", chart.find("path").get("d"))]


@given(st.lists(st.tuples(st.floats(0.0, 700.0), st.floats(0.0, 1.0)), min_size=1, max_size=20), st.booleans())
def test_any_curve_stays_in_its_frame(points, marked):
    chart = read(curve_svg(profile(sorted(points), (points[0][0], max(points[0][1], 1e-300), "here") if marked else None)))
    assert all(0.0 <= place <= 400.0 for place in places(chart))
    assert "nan" not in ET.tostring(chart, encoding="unicode")


def test_the_certified_point_lies_on_the_curve():
    curve = ((0.0, 0.1), (1.0, 1e-3), (2.0, 1e-6))
    chart = read(curve_svg(profile(curve, (1.0, 1e-3, "(1, 1e-03)"))))
    point = chart.find("circle")
    assert f"L{point.get('cx')} {point.get('cy')}" in chart.find("path").get("d")
    assert "(1, 1e-03)" in "".join(chart.itertext())


def test_what_falls_to_nothing_ends_at_the_bottom():
    chart = read(curve_svg(profile([(0.0, 0.5), (1.0, 0.0)], (1.0, 1e-6, "x"))))
    assert places(chart)[-1] == 226.0


@pytest.mark.parametrize(
    "law", ["geometric(mean=3)", "fixed(k=1)", "fixed(k=10)", "poisson(mean=0.1)", "geometric(mean=1e12)", "finite({0: 1, 5: 9})"]
)
def test_the_law_of_k_falls_as_it_does(law):
    count = ps.parse(law)
    points = survival(count)
    assert [k for k, _ in points] == sorted({k for k, _ in points})
    for k, chance in points[:40]:
        if k < 1000:  # P(K > k), which is where the line falls to at k
            truth = 1.0 - float(np.exp(count.log_pmf(np.arange(int(k) + 1))).sum())
            assert abs(truth - chance) <= 0.0051
    read(curve_svg(Curve("law", "law", "steps", "k", "P", points, steps=True)))


def test_bars_are_as_long_as_what_they_stand_for():
    bars = Bars("bounds", "bounds", "bars", (Bar("a", 1.0, "1", "exact"), Bar("<b>", 4.0, "4", "bound"), Bar("c", 2.0, "2", "other")))
    chart = read(bars_svg(bars))
    first, second, third = (float(bar.get("width").removesuffix("%")) for bar in chart.findall("rect"))
    assert second == pytest.approx(4 * first) == pytest.approx(2 * third)
    assert chart.findall("rect")[2].get("stroke-dasharray") == "8 2 1 2 1 2"
    assert [text.text for text in chart.findall("text")] == ["a", "1", "<b>", "4", "c", "2"]


def test_bars_of_nothing_are_drawn():
    read(bars_svg(Bars("bounds", "bounds", "bars", (Bar("a", 0.0, "0", "exact"),))))
