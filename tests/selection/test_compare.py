"""The comparison: its numbers, the reasons for missing bounds, its table, its JSON and its plot."""

import io
import json
import math
import sys

import numpy as np
import pytest

import privselect as ps
from privselect._util import atomic_files
from privselect.errors import MissingExtraError, ParameterError
from privselect.selection import plots
from privselect.selection.bounds.ratio import ratio_epsilon
from privselect.selection.compare import BOUNDS, compare, composition_runs
from privselect.selection.comparison_curves import comparison_curves

GAUSSIAN = ps.Gaussian(sigma=4)
SELECTION = ps.Selection(GAUSSIAN, ps.Geometric(mean=300))
SMALL_DPSGD = "dpsgd(noise_multiplier=2, sampling_probability=0.1, steps=10)"

# Epsilon at delta = 1e-6, sigma = 4, to four decimals.
KNOWN = {
    ps.Geometric(mean=30): {"renyi": 2.5551, "paper": 2.2883, "ratio": 1.8868, "exact": 1.7886},
    ps.Geometric(mean=300): {"renyi": 3.0442, "paper": 2.7938, "ratio": 2.3773, "exact": 2.2473},
    ps.NegativeBinomial(eta=-0.5, mean=30): {"renyi": 1.8027, "paper": 1.6833, "ratio": 1.5830, "exact": 1.5425},
    ps.Poisson(mean=10): {"renyi": 2.0394, "paper": 2.1765, "ratio": 2.1765, "exact": 1.9698},
    ps.Binomial(n=20, p=0.5): {"renyi": None, "paper": 2.4895, "ratio": 2.4895, "exact": 2.1922},
}


def strictly_read(payload):
    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(json.dumps(payload, allow_nan=False), parse_constant=refuse)


def printed(comparison, width=80):
    from rich.console import Console

    console = Console(file=io.StringIO(), width=width)
    console.print(comparison.table())
    return console.file.getvalue()


@pytest.fixture(scope="module")
def gaussian():
    return compare(SELECTION, delta=1e-6)


# -- numbers -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", KNOWN, ids=str)
def test_known_numbers(count):
    bounds = compare(ps.Selection(GAUSSIAN, count), delta=1e-6).as_dict()["bounds"]
    for name, known in KNOWN[count].items():
        ends = bounds[name].values() if name == "exact" else [bounds[name]]
        assert all(end == (known if known is None else pytest.approx(known, rel=1e-3)) for end in ends)


def test_all_but_composition_bound_the_exact_price(gaussian):
    truth = gaussian.bounds["exact"].lower
    assert gaussian.base.upper < truth
    assert all(gaussian.bounds[name] >= truth for name in BOUNDS if name != "composition")
    assert 0 <= gaussian.selection_gap < 1e-3


def test_composition_is_of_the_mean_number_of_runs_rounded_up(gaussian):
    assert gaussian.composition_runs == 300
    # 300 Gaussians of noise 4 are one of noise 4/sqrt(300).
    assert gaussian.bounds["composition"] == pytest.approx(ps.Gaussian(sigma=4 / math.sqrt(300)).epsilon_at(1e-6).upper, rel=1e-9)


@pytest.mark.parametrize(
    ("count", "runs"), [(ps.Geometric(mean=3), 3), (ps.Geometric(mean=3.2), 4), (ps.Poisson(mean=0.2), 1), (ps.Fixed(k=7), 7)], ids=str
)
def test_runs_to_compose(count, runs):
    assert composition_runs(count) == runs


def test_one_run_composed_is_the_trial_itself():
    found = compare(ps.Selection(GAUSSIAN, ps.Poisson(mean=0.2)), delta=1e-6)
    assert found.bounds["composition"] == found.base.upper


def test_two_orders_of_neighbours_take_the_greater():
    base = ps.parse(SMALL_DPSGD)
    found = compare(ps.Selection(base, ps.Geometric(mean=5)), delta=1e-6).bounds
    assert found["exact"].lower <= found["exact"].upper <= found["ratio"] * (1 + 1e-9) <= found["paper"] * (1 + 1e-9)
    for bracket in base.brackets:
        one = ratio_epsilon(bracket.upper, ps.Geometric(mean=5), 1e-6)
        assert one <= found["ratio"]


# -- what does not apply ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("count", "silent"),
    [
        ("geometric(mean=3)", {}),
        ("logarithmic(mean=3)", {"liu_talwar": "geometric"}),
        ("poisson(mean=3)", {"liu_talwar": "geometric"}),
        ("binomial(n=4, p=0.5)", {"renyi": "no Renyi bound is known for binomial K", "liu_talwar": "geometric"}),
        pytest.param("binomial(n=2, p=1)", {"paper": "p < 1", "renyi": "binomial", "liu_talwar": "geometric"}, marks=pytest.mark.slow),
        ("geometric(mean=3, cap=9)", {"paper": "capped", "renyi": "capped", "liu_talwar": "uncapped"}),
        ("finite({1: 1, 2: 1})", {"paper": "finite", "renyi": "finite", "liu_talwar": "geometric"}),
    ],
)
def test_what_does_not_apply_is_none_with_a_sentence(count, silent):
    found = strictly_read(compare(ps.Selection(GAUSSIAN, ps.parse(count)), delta=1e-6).as_dict())
    absent = {name for name, bound in found["bounds"].items() if bound is None}
    infinite = {name for name in absent if found["notes"][name].startswith("infinite")}
    assert absent - infinite == set(silent)
    for name, words in silent.items():
        assert words in found["notes"][name]


def test_an_infinite_bound_is_null_with_a_note_and_infinite_in_the_table():
    comparison = compare(ps.Selection(ps.GaussianDP(mu=0.25, delta=1e-9), ps.Geometric(mean=3)), delta=1e-6)
    assert comparison.bounds["renyi"] == math.inf
    found = strictly_read(comparison.as_dict())
    assert found["bounds"]["renyi"] is None
    assert found["notes"]["renyi"] == "infinite: a trial may reveal everything, so its Renyi divergences are infinite"
    assert "infinite" in printed(comparison)


def test_composition_out_of_reach_is_not_tried():
    comparison = compare(ps.Selection(GAUSSIAN, ps.Geometric(mean=1e9)), delta=1e-6)
    assert comparison.bounds["composition"] is None
    assert "1000000000 runs" in comparison.notes["composition"]


def test_a_mechanism_alone_has_only_its_base():
    comparison = compare(GAUSSIAN, delta=1e-6)
    found = strictly_read(comparison.as_dict())
    assert found["count"] is None
    assert found["base_epsilon"]["upper"] == pytest.approx(1.0607, rel=1e-3)
    assert set(found["bounds"].values()) == {None}
    assert set(found["notes"]) == set(found["bounds"])
    assert "1.0607" in printed(comparison)


@pytest.mark.parametrize("thing", [None, "gaussian(sigma=4)", ps.Geometric(mean=3)], ids=str)
def test_what_is_no_mechanism_is_refused(thing):
    with pytest.raises(ParameterError, match="`mechanism` must be a mechanism or a selection, got"):
        compare(thing, delta=1e-6)


@pytest.mark.parametrize("delta", [0, 1, -1, math.nan, math.inf])
def test_a_bad_delta_is_refused(delta):
    with pytest.raises(ParameterError, match=r"`delta` must be in \(0, 1\)"):
        compare(SELECTION, delta=delta)


# -- JSON and table --------------------------------------------------------------------------------------------------------


def test_json(gaussian):
    found = strictly_read(gaussian.as_dict())
    assert list(found) == [
        *("delta", "mechanism", "count", "visible", "subsample", "final", "base_epsilon", "final_epsilon"),
        *("bounds", "selection_gap", "composition_runs", "notes"),
    ]
    assert list(found["bounds"]) == ["exact", "pointwise", "ratio", "paper", "renyi", "liu_talwar", "composition"]
    assert (found["mechanism"], found["count"], found["delta"]) == ("gaussian(sigma=4)", "geometric(mean=300)", 1e-6)
    assert "not a bound" in found["notes"]["composition"]


def test_the_table_names_every_bound_and_rounds_up(gaussian):
    text = printed(gaussian)
    rows = {line.split()[0]: line.split() for line in text.splitlines() if line.strip()}
    assert set(gaussian.bounds) < set(rows)
    for name in ("exact", "ratio", "renyi"):
        bound = gaussian.bounds[name]
        upper = bound.upper if name == "exact" else bound
        assert upper <= float(rows[name][1]) <= upper + 2e-5
    assert rows["exact"][2] == "1.000"
    assert float(rows["renyi"][2]) == pytest.approx(3.0442 / 2.2473, abs=2e-3)
    assert "another mechanism" in text
    assert "300 runs" in text


def test_without_rich_the_table_is_one_sentence(gaussian, monkeypatch):
    monkeypatch.setitem(sys.modules, "rich.table", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'privselect\[cli\]'"):
        gaussian.table()


# -- curves ----------------------------------------------------------------------------------------------------------------


def test_curves_over_the_mean():
    curves = comparison_curves(ps.Selection(GAUSSIAN, ps.Geometric(mean=30)), delta=1e-6, over="mean", points=5)
    assert {len(curve) for curve in curves.values()} == {5}
    assert curves["mean"][0] == 1.0
    assert 30.0 in curves["mean"]
    assert curves["mean"][-1] == pytest.approx(300)
    exact = curves["exact_upper"]
    assert exact == sorted(exact)
    assert exact[0] == pytest.approx(curves["base"][0], rel=1e-4)  # one trial
    at = curves["mean"].index(30.0)
    assert exact[at] == pytest.approx(1.7886, rel=1e-3)
    assert curves["renyi"][at] == pytest.approx(2.5551, rel=1e-3)
    assert all(low <= high for low, high in zip(curves["exact_lower"], exact, strict=True))
    strictly_read(curves)


def test_composition_is_followed_only_while_it_is_near():
    curves = comparison_curves(ps.Selection(GAUSSIAN, ps.Geometric(mean=300)), delta=1e-6, over="mean", points=6)
    followed = [value for value in curves["composition"] if value is not None]
    assert followed == sorted(followed)
    assert 2 <= len(followed) < 6
    assert curves["composition"][len(followed) :] == [None] * (6 - len(followed))


def test_curves_over_delta():
    curves = comparison_curves(ps.Selection(GAUSSIAN, ps.Poisson(mean=10)), delta=1e-6, over="delta", points=5)
    assert 1e-6 in curves["delta"]
    assert np.all(np.diff(curves["delta"]) > 0)
    assert curves["exact_upper"][curves["delta"].index(1e-6)] == pytest.approx(1.9698, rel=1e-3)
    assert curves["exact_upper"] == sorted(curves["exact_upper"], reverse=True)
    assert curves["liu_talwar"] == [None] * 5


@pytest.mark.parametrize(
    ("count", "means"),
    [
        ("binomial(n=4, p=0.5)", [0.5, 1.5, 2.0, 8.0, 20.0]),
        pytest.param("fixed(k=2)", [1, 2, 4, 9, 20], marks=pytest.mark.slow),
        ("poisson(mean=0.5)", None),
        ("geometric(gamma=0.25)", None),
        ("negative_binomial(eta=0.5, mean=4, cap=50)", None),
    ],
)
def test_every_family_with_a_mean_can_vary_it(count, means):
    law = ps.parse(count)
    curves = comparison_curves(ps.Selection(ps.Gaussian(sigma=8), law), delta=1e-4, over="mean", points=5)
    assert any(place == pytest.approx(law.expected()) for place in curves["mean"])
    assert means is None or curves["mean"] == means
    assert all(value is not None for value in curves["exact_upper"])


def test_an_axis_that_cannot_be_is_refused():
    with pytest.raises(ParameterError, match="`over` must be one of mean, delta, got 'sigma'"):
        comparison_curves(SELECTION, delta=1e-6, over="sigma")
    with pytest.raises(ParameterError, match="`over` must be delta, got 'mean': no law of K is given"):
        comparison_curves(GAUSSIAN, delta=1e-6, over="mean")
    finite = ps.Selection(GAUSSIAN, ps.parse("finite({1: 1, 2: 1})"))
    with pytest.raises(ParameterError, match="`over` must be delta, got 'mean': a finite law of K has no mean to vary"):
        comparison_curves(finite, delta=1e-6, over="mean")


# -- pictures --------------------------------------------------------------------------------------------------------------


@pytest.fixture
def few_points(monkeypatch):
    whole = comparison_curves
    monkeypatch.setattr(plots, "comparison_curves", lambda mechanism, **options: whole(mechanism, points=3, **options))


@pytest.mark.parametrize(
    ("name", "signature"), [("plot.png", b"\x89PNG\r\n\x1a\n"), ("plot.svg", b"<?xml"), ("plot.pdf", b"%PDF"), ("PLOT.PNG", b"\x89PNG")]
)
@pytest.mark.usefixtures("few_points")
def test_pictures(gaussian, tmp_path, name, signature):
    gaussian.plot(tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(signature)
    assert [file.name for file in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize(("over", "label"), [("mean", "expected number of trials"), ("delta", "geometric(mean=300)")])
@pytest.mark.usefixtures("few_points")
def test_a_picture_says_what_it_shows(gaussian, tmp_path, over, label):
    gaussian.plot(tmp_path / "plot.svg", over=over)
    drawn = (tmp_path / "plot.svg").read_text()
    # Letters are drawn as shapes; the text itself stands beside them in comments.
    for words in (label, "gaussian(sigma=4)", "exact", "ratio", "paper", "one trial alone", "all runs released"):
        assert words in drawn


@pytest.mark.usefixtures("few_points")
def test_a_mechanism_alone_is_drawn_over_delta(tmp_path):
    compare(GAUSSIAN, delta=1e-6).plot(tmp_path / "plot.svg")
    assert (tmp_path / "plot.svg").read_text().count("one trial alone") == 1


@pytest.mark.usefixtures("few_points")
def test_the_same_numbers_give_the_same_picture_without_pyplot(gaussian, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    gaussian.plot(tmp_path / "one.png")
    gaussian.plot(tmp_path / "two.png")
    assert (tmp_path / "one.png").read_bytes() == (tmp_path / "two.png").read_bytes()


@pytest.mark.parametrize("name", ["plot.xyz", "plot", "plot.jpeg"])
def test_an_unknown_ending_is_refused(gaussian, tmp_path, name):
    with pytest.raises(ParameterError, match=r"^`plot` must end in \.png, \.pdf, \.svg, got '.*'$"):
        gaussian.plot(tmp_path / name)


def test_a_folder_that_is_not_there_is_refused(gaussian, tmp_path):
    with pytest.raises(ParameterError, match="`plot` must be a file in a folder that exists"):
        gaussian.plot(tmp_path / "nowhere" / "plot.png")


def test_without_matplotlib_the_plot_is_one_sentence(gaussian, tmp_path, monkeypatch):
    monkeypatch.setattr("privselect._util.plotting.find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match=r"pip install 'privselect\[plot\]'"):
        gaussian.plot(tmp_path / "plot.png")


@pytest.mark.usefixtures("few_points")
def test_a_failure_leaves_the_old_file_and_nothing_else(gaussian, tmp_path, monkeypatch):
    file = tmp_path / "plot.png"
    file.write_text("before")

    def fail(*_):
        raise OSError("no space left")

    monkeypatch.setattr(atomic_files.os, "replace", fail)
    with pytest.raises(OSError, match="no space"):
        gaussian.plot(file)
    assert file.read_text() == "before"
    assert list(tmp_path.iterdir()) == [file]
