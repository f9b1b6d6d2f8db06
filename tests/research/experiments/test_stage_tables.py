"""Averages, demands and tables of two stages, on tables made by hand."""

import numpy as np
import pytest
from scipy.stats import norm

from research.csv_io import as_csv
from research.experiments import stage_summary
from research.experiments.stage_summary import LABELS, Averages, averages, better_of, findings, main, share_closed
from research.experiments.stage_tables import (
    ahead_table,
    averages_table,
    findings_table,
    options_table,
    short_table,
    stage_accuracy_table,
    stage_tables,
)

MEANS = {
    "one_shot": (0.70, 0.60),
    "free": (0.80, 0.70),
    "mean_default": (0.72, 0.78),
    "best_default": (0.78, 0.80),
    "two_stages_0": (0.70, 0.65),
    "two_stages_50": (0.77, 0.75),
    "two_stages_90": (0.775, 0.795),
    "two_stages_100": (0.775, 0.797),
}
SETTINGS = (("mnist-6000", "plain", 6000), ("mnist-hard-6000", "hard", 6000))


def single_rows(shift=0.0, repetitions=(0, 1, 2)):
    """Repetitions differ in all regimes alike, except by ``shift`` times their number in two stages with w = 0.5."""
    return [
        {
            "setting": name,
            "validation": "public",
            "epsilon": "1",
            "regime": regime,
            "repetition": str(repetition),
            "accuracy": f"{mean[at] + 0.01 * repetition + (shift * (repetition - 1) if regime == 'two_stages_50' else 0.0)}",
        }
        for at, (name, _, _) in enumerate(SETTINGS)
        for regime, mean in MEANS.items()
        for repetition in repetitions
    ]


def result_rows():
    """What the experiment writes of the same accuracies, with intervals of 0.02."""
    rows = []
    for at, (name, space, records) in enumerate(SETTINGS):
        for regime, mean in MEANS.items():
            row = {"setting": name, "validation": "public", "epsilon": "1", "regime": regime}
            row |= {"problem": "mnist", "model": "softmax", "space": space, "records": str(records)}
            private = regime.startswith("two_stages")
            row |= {"trials": "geometric(mean=10)" if private else "", "split": "1.07" if private else ""}
            row |= {"search_noise": "2.5541" if private else "", "final_noise": "1.89" if private else ""}
            for title, value in (
                ("accuracy", mean[at]),
                *((f"over_{other}", mean[at] - MEANS[other][at]) for other in ("one_shot", "free", "mean_default", "best_default")),
            ):
                row |= {f"{title}_{end}": f"{value + more:.7g}" for end, more in (("mean", 0.0), ("low", -0.02), ("high", 0.02))}
            rows.append(row)
    return rows


def cells(table):
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]


def test_averages_are_over_settings_in_the_repetitions_that_all_have():
    single = single_rows()
    found = averages(single, "public", 1.0)
    assert found.settings == ("mnist-6000", "mnist-hard-6000")
    assert set(found.values) == set(MEANS)
    assert found.mean("two_stages_50") == pytest.approx([0.76, 0.77, 0.78], abs=1e-12)
    lost = [row for row in single if (row["setting"], row["repetition"]) != ("mnist-6000", "1")]
    assert averages(lost, "public", 1.0).mean("two_stages_50") == pytest.approx([0.76, 0.78], abs=1e-12)
    # A regime that one setting lacks has no average; the others keep theirs.
    part = [row for row in single if (row["setting"], row["regime"]) != ("mnist-6000", "two_stages_0")]
    assert set(averages(part, "public", 1.0).values) == set(MEANS) - {"two_stages_0"}
    assert averages(single, "public", 3.0) is None
    assert averages(single, "paid", 1.0) is None
    assert averages(single_rows(repetitions=(0,)), "public", 1.0) is None


def test_the_share_that_is_closed():
    found = averages(single_rows(), "public", 1.0)
    assert share_closed(found, "two_stages_50", found.mean("free")) == pytest.approx((1.1, 1.1, 1.1), abs=1e-9)
    plain = found.only(lambda name: "hard" not in name)
    assert share_closed(plain, "two_stages_50", plain.mean("free"))[0] == pytest.approx(0.7, abs=1e-9)
    # Free tuning is better in the first setting, the luckiest default in the second.
    assert better_of(found, "free", "best_default") == pytest.approx([0.80, 0.81, 0.82], abs=1e-12)
    assert share_closed(found, "two_stages_50", better_of(found, "free", "best_default"))[0] == pytest.approx(11 / 15, abs=1e-9)


def test_the_interval_of_the_share_holds_the_share_as_often_as_it_says(fresh_rng):
    hits, runs = 0, 1000
    for _ in range(runs):
        base, distance = fresh_rng.normal(0.7, 0.01, 10), fresh_rng.normal(0.1, 0.01, 10)
        gained = 0.6 * distance + fresh_rng.normal(0.0, 0.01, 10)
        values = {"one_shot": base[None], "two_stages_50": (base + gained)[None]}
        _, low, high = share_closed(Averages(("any",), values), "two_stages_50", base + distance)
        hits += low <= 0.6 <= high
    # 95% up to the linearization, which is good to one point here; false alarms below 1e-6.
    assert abs(hits / runs - 0.95) < 0.01 + norm.isf(5e-7) * np.sqrt(0.05 * 0.95 / runs)


def test_demands_are_met_or_not():
    found = {one.text: one for one in findings(single_rows())}
    values = [(round(one.mean, 6), one.demanded, one.met) for one in found.values()]
    assert values == [
        (1.1, "at least 60%", True),
        (0.7, "", None),
        (0.733333, "", None),
        (0.005, "at most 1 point", True),
        (0.035, "more than 0 points", True),
    ]
    assert findings([]) == []


@pytest.mark.parametrize(
    ("regime", "value", "place"), [("two_stages_50", 0.69, 0), ("two_stages_90", 0.7, 3), ("mean_default", 0.9, 4), ("free", 1.5, 0)]
)
def test_a_demand_that_is_missed_is_said_to_be(regime, value, place):
    single = [{**row, "accuracy": str(value)} if row["regime"] == regime else row for row in single_rows()]
    assert findings(single)[place].met is False
    assert cells(findings_table(single))[place][-1] == "**no**"


def test_findings_and_averages_as_tables():
    body = cells(findings_table(single_rows()))
    assert body[0][1:] == ["at least 60%", "110% (110 to 110)", "yes"]
    assert body[1][1:] == ["-", "70% (70 to 70)", "-"]
    assert body[3][1:] == ["at most 1 point", "0.50 points (0.50 to 0.50)", "yes"]
    wider = cells(findings_table(single_rows(shift=0.005)))[0][2]
    # The gain deviates by 0.005 among three repetitions: t at 97.5% with two degrees of freedom is 4.3027.
    half = 4.302653 * 0.005 / np.sqrt(3.0) / 0.1
    assert wider == f"110% ({100 * (1.1 - half):.0f} to {100 * (1.1 + half):.0f})"
    lines = cells(averages_table(single_rows()))
    assert lines[0] == ["one shot", "66.00", "-", "-", "-"]
    assert ["**two stages, w = 0.9**", "79.50", "-", "-", "-"] in lines
    assert lines[-1] == ["average over", "2 settings, 3 repetitions", "-", "-", "-"]
    assert len(lines) == len(LABELS) + 1


def test_accuracies_options_and_counts_as_tables():
    rows = result_rows()
    body = cells(stage_accuracy_table(rows, "public"))
    assert [line[:3] for line in body] == [["MNIST, softmax", "6,000", "1"], ["MNIST, softmax, hard space", "6,000", "1"]]
    assert body[0][3:6] == ["70.0 ± 2.0", "70.0 ± 2.0", "77.0 ± 2.0"]
    assert body[0][3 + list(LABELS).index("visible_tpe")] == "-"
    assert cells(stage_accuracy_table(rows, "paid")) == []
    options = cells(options_table(rows))
    assert options[1][3:] == ["`geometric(mean=10)`, 2.555, 1.890", *["`geometric(mean=10)`, 2.555, 1.890"] * 2, "-"]
    counts = {line[0]: line[1:] for line in cells(ahead_table(rows))}
    assert counts["**two stages, w = 0.5**"] == [
        "2",
        "2 (2 clearly; 0 clearly behind)",
        "1 (1 clearly; 1 clearly behind)",
        "1 (1 clearly; 1 clearly behind)",
        "0 (0 clearly; 1 clearly behind)",
    ]
    # Ahead of the mean default by 5.5 and 1.5 points, behind the luckiest by half a point, with intervals of 2 points.
    assert counts["**two stages, w = 0.9**"][3:] == ["2 (1 clearly; 0 clearly behind)", "0 (0 clearly; 0 clearly behind)"]
    assert "visible, TPE" not in counts


def test_the_short_table_has_the_averages_of_public_validation_to_one_digit():
    lines = short_table(single_rows()).splitlines()
    assert lines[0] == "| way to tune | epsilon 1 | epsilon 3 |"
    assert "| one shot | 66.0 | - |" in lines  # the mean of 0.70 and 0.60, and of three repetitions 0.00 to 0.02 above
    assert "| **two stages, w = 0.9** | 79.5 | - |" in lines


def test_every_table_has_a_mark():
    made = stage_tables(result_rows(), single_rows())
    assert set(made) == {f"two-stages-{name}" for name in ("findings", "averages", "short", "public", "paid", "ahead", "options")}


def test_the_command_prints_the_averages_and_findings(tmp_path, capsys):
    (tmp_path / stage_summary._TABLE).write_bytes(as_csv(single_rows()))
    main([str(tmp_path)])
    out = capsys.readouterr().out
    assert out == f"{averages_table(single_rows())}\n\n{findings_table(single_rows())}\n"
    (tmp_path / stage_summary._TABLE).unlink()
    with pytest.raises(SystemExit):
        main([str(tmp_path)])
    assert "error: `folder` must hold two_stages_repetitions.csv, got '" in capsys.readouterr().err.splitlines()[-1]
