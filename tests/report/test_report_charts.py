"""Charts are well-formed, named, and inside their frame, whatever is drawn."""

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import privselect as ps
from privselect.report.charts import Bar, BarChart, CurveChart, survival_steps
from privselect.report.page import template_environment


def profile(points, marker=None, **options):
    return CurveChart(
        "profile", "a <title>", 'a "description" & more', "epsilon", "delta", tuple(points), logarithmic=True, marker=marker, **options
    )


def draw(chart):
    macro = "curve" if isinstance(chart, CurveChart) else "bars"
    template = template_environment().from_string('{% import "charts.svg.j2" as charts %}{{ charts.' + macro + "(chart) }}")
    drawn = ET.fromstring(template.render(chart=chart))  # noqa: S314 - our own
    names = {element.get("id"): element.text for element in drawn if element.tag in {"title", "desc"}}
    assert drawn.get("role") == "img"
    assert names[drawn.get("aria-labelledby")] == chart.title
    assert names[drawn.get("aria-describedby")] == chart.description
    return drawn


def positions(drawn):
    return [float(number) for number in re.findall(r"[\d.]+", drawn.find("path").get("d"))]


@given(st.lists(st.tuples(st.floats(0.0, 700.0), st.floats(0.0, 1.0)), min_size=1, max_size=20), st.booleans())
def test_any_curve_stays_in_its_frame(points, marked):
    drawn = draw(profile(sorted(points), (points[0][0], max(points[0][1], 1e-300), "here") if marked else None))
    assert all(0.0 <= position <= 400.0 for position in positions(drawn))
    assert "nan" not in ET.tostring(drawn, encoding="unicode")


def test_the_certified_point_lies_on_the_curve():
    curve = ((0.0, 0.1), (1.0, 1e-3), (2.0, 1e-6))
    drawn = draw(profile(curve, (1.0, 1e-3, "(1, 1e-03)")))
    point = drawn.find("circle")
    assert f"L{point.get('cx')} {point.get('cy')}" in drawn.find("path").get("d")
    assert "(1, 1e-03)" in "".join(drawn.itertext())


def test_a_curve_that_falls_to_zero_ends_at_the_bottom():
    drawn = draw(profile([(0.0, 0.5), (1.0, 0.0)], (1.0, 1e-6, "x")))
    assert positions(drawn)[-1] == 226.0


@pytest.mark.parametrize(
    "law", ["geometric(mean=3)", "fixed(k=1)", "fixed(k=10)", "poisson(mean=0.1)", "geometric(mean=1e12)", "finite({0: 1, 5: 9})"]
)
def test_the_steps_are_those_of_the_law_of_k(law):
    count = ps.parse(law)
    points = survival_steps(count)
    assert [k for k, _ in points] == sorted({k for k, _ in points})
    for k, probability in points[:40]:
        if k < 1000:  # P(K > k), to which the line falls at k
            truth = 1.0 - float(np.exp(count.log_pmf(np.arange(int(k) + 1))).sum())
            assert abs(truth - probability) <= 0.0051
    draw(CurveChart("law", "law", "steps", "k", "P", points, steps=True))


def test_bars_are_as_long_as_their_values():
    bars = BarChart("bounds", "bounds", "bars", (Bar("a", 1.0, "1", "exact"), Bar("<b>", 4.0, "4", "bound"), Bar("c", 2.0, "2", "other")))
    drawn = draw(bars)
    first, second, third = (float(bar.get("width").removesuffix("%")) for bar in drawn.findall("rect"))
    assert second == pytest.approx(4 * first) == pytest.approx(2 * third)
    assert [bar.get("stroke-dasharray") for bar in drawn.findall("rect")] == [None, None, "8 2 1 2 1 2"]
    assert [text.text for text in drawn.findall("text")] == ["a", "1", "<b>", "4", "c", "2"]


def test_bars_of_zero_are_drawn():
    draw(BarChart("bounds", "bounds", "bars", (Bar("a", 0.0, "0", "exact"),)))
