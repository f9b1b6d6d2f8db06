"""The tutorial's promise: a loop over trainings with Opacus becomes a private search by five changed lines."""

import difflib
import re
from pathlib import Path

PAGE = (Path(__file__).parents[2] / "docs" / "tutorials" / "opacus.md").read_text()


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, flags=re.DOTALL | re.MULTILINE)


def changed():
    before, after = (code.splitlines() for code in blocks("python")[:2])
    return [line for line in difflib.unified_diff(before, after, n=0, lineterm="") if line[:2] not in {"--", "++", "@@"}]


def test_at_most_five_lines_change():
    before, after = blocks("python")[:2]
    assert "PrivacyEngine()" in before
    assert "privselect" not in before
    assert "PrivacyEngine()" not in after
    assert "epsilon=3, delta=1e-5" in after
    added, removed = ([line for line in changed() if line.startswith(sign)] for sign in "+-")
    assert 0 < len(removed) <= len(added) <= 5


def test_the_difference_that_is_shown_is_the_difference():
    assert blocks("diff")[0].splitlines() == changed()


def test_the_sentence_of_the_probe_is_shown_as_it_is():
    source = (Path(__file__).parents[2] / "src" / "privselect" / "integrations" / "opacus" / "gradient_probe.py").read_text()
    summed = "".join(re.findall(r'"([^"]*)"', source[source.index("SUMMED = (") : source.index("MIXED = (")]))
    assert summed.startswith("the gradients grow")
    assert summed in " ".join(PAGE.split())
