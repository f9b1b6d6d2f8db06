"""Exported files and texts give the same numbers elsewhere."""

import csv
import re
import shlex

import pytest
from PIL import Image

pytestmark = pytest.mark.browser

PLAN = {"mechanism": "gaussian(sigma=?)", "count": "geometric(mean=30)", "epsilon": "2", "delta": "1e-6"}


def number(text, name):
    return float(re.search(rf"{name}\D*?([\d.]+(?:e-?\d+)?)", text)[1])


def test_the_plan_and_the_certificate_hold(planner, tmp_path, run):
    planner.open(PLAN).is_answered()
    solved = planner.page.locator("form input[readonly]").input_value()
    plan = planner.downloaded("download-plan", tmp_path)
    assert plan.name == "plan.toml"
    assert f"={solved}" in run("privselect", "plan", plan)
    certificate = planner.downloaded("download-certificate", tmp_path)
    assert "draft" in certificate.name
    checked = run("privselect", "verify", certificate, "--plan", plan)
    assert "the claim holds" in checked
    assert f"={solved}" in checked
    assert "DRAFT" in checked


def test_the_picture_is_white_with_ink_on_it_in_any_scheme(planners, server, quick, tmp_path):
    planner = planners(server.url, color_scheme="dark").open(quick).is_complete()
    path = planner.downloaded("download-png", tmp_path)
    with Image.open(path) as image:
        picture = image.convert("L")
    assert picture.width >= 2000
    assert picture.getpixel((5, 5)) == picture.getpixel((picture.width - 5, picture.height - 5)) == 255
    dark = picture.point(lambda level: 255 * (level < 100))
    quarter = picture.height // 4
    assert all(dark.crop((0, part * quarter, picture.width, (part + 1) * quarter)).getbbox() for part in range(4))


def test_the_table_of_curves_can_be_read(planner, quick, tmp_path):
    planner.open(quick).is_complete()
    with planner.downloaded("download-csv", tmp_path).open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["chart", "curve", "x", "y"]
    curves = {(row["chart"], row["curve"]) for row in rows}
    assert {("mean", "exact"), ("mean", "paper"), ("mean", "renyi"), ("mean", "composition"), ("mean", "base")} <= curves
    assert {("profile", "exact"), ("profile", "base"), ("profile", "question"), ("survival", "survival")} <= curves
    marked = next(row for row in rows if (row["chart"], row["curve"]) == ("profile", "question"))
    assert float(marked["x"]) == pytest.approx(float(planner.at("epsilon").input_value()), rel=1e-3)
    assert float(marked["y"]) == 1e-6
    assert all(float(row["y"]) >= 0 for row in rows)


@pytest.mark.parametrize(
    ("question", "unknown"), [(PLAN, "sigma"), ({**PLAN, "mechanism": "gaussian(sigma=4)", "epsilon": "?"}, "between")]
)
def test_the_copied_texts_give_the_shown_number(planner, run, question, unknown):
    planner.open(question).is_answered()
    shown = float(planner.page.locator("#sentence strong").inner_text())
    assert number(run("-c", planner.copied("copy-python")), unknown) == pytest.approx(shown, rel=2e-3)
    words = shlex.split(planner.copied("copy-command"))
    assert words[0] == "privselect"
    assert number(run(*words), unknown) == pytest.approx(shown, rel=2e-3)


def test_the_copied_texts_of_delta_run(planner, run):
    planner.open({**PLAN, "mechanism": "gaussian(sigma=4)", "delta": "?"}).is_answered()
    shown = planner.page.locator("#sentence strong").inner_text()
    assert shown[:3] in run("-c", planner.copied("copy-python"))
    assert shown[:3] in run(*shlex.split(planner.copied("copy-command")))
