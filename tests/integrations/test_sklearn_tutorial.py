"""The tutorial's promise: a random search becomes a private one by five changed lines."""

import difflib
import re
from pathlib import Path

import privselect as ps

PAGE = (Path(__file__).parents[2] / "docs" / "tutorials" / "sklearn.md").read_text()


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, flags=re.DOTALL | re.MULTILINE)


def test_at_most_five_lines_change():
    before, after = (code.splitlines() for code in blocks("python")[:2])
    assert any("RandomizedSearchCV(" in line for line in before)
    assert any("PrivateSearch(" in line for line in after)
    changed = [
        max(there[1] - there[0], here[1] - here[0])
        for kind, *places in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
        if kind != "equal" and (there := places[:2]) and (here := places[2:])
    ]
    assert 0 < sum(changed) <= 5


def test_the_difference_that_is_shown_is_the_difference():
    before, after = (code.splitlines() for code in blocks("python")[:2])
    difference = [line for line in difflib.unified_diff(before, after, n=0, lineterm="") if line[:2] not in {"--", "++", "@@"}]
    assert blocks("diff")[0].splitlines() == difference


def test_the_lines_of_the_summary_are_true():
    trial = "disjoint(dpsgd(noise_multiplier=?, sampling_probability=0.2, steps=10), discrete_gaussian(sigma=?, neighbours=add_remove))"
    final = ps.DPSGD(ps.UNKNOWN, 0.2, 100)
    summary = ps.plan(trial, final=final, split="auto", epsilon=1, delta=1e-5).summary().splitlines()
    (shown,) = [block.splitlines() for block in blocks("") if block.startswith("law of K")]
    assert set(shown) <= set(summary)
