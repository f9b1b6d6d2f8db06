"""The tutorial changes only a few lines of an Optuna search. Another test runs the code of all pages."""

import difflib
import re
from pathlib import Path

PAGE = (Path(__file__).parents[2] / "docs" / "tutorials" / "optuna.md").read_text()
MOST_CHANGED = 5


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, flags=re.DOTALL | re.MULTILINE)


def searches():
    """The code blocks before and after."""
    before, after, *_ = (block.splitlines() for block in blocks("python") if "def objective(trial)" in block)
    return before, after


def changed():
    return [line for line in difflib.unified_diff(*searches(), n=0, lineterm="") if line[:2] not in {"--", "++", "@@"}]


def test_a_stock_search_becomes_private_by_a_handful_of_changed_lines():
    added, removed = ([line for line in changed() if line.startswith(sign)] for sign in "+-")
    assert 0 < len(removed) <= len(added) <= MOST_CHANGED


def test_the_difference_that_is_shown_is_the_difference():
    assert blocks("diff")[0].splitlines() == changed()


def test_the_objective_only_reads_what_to_run_and_the_stock_search_is_stock():
    before, after = searches()
    objectives = [
        text[text.index("def objective(trial):") : text.index("optuna.logging.set_verbosity(optuna.logging.WARNING)")]
        for text in (before, after)
    ]
    (place,) = [place for place, (old, new) in enumerate(zip(*objectives, strict=True)) if old != new]
    assert objectives[1][place].strip() == "steps, noise_multiplier = trial.mechanism.steps, trial.mechanism.noise_multiplier"
    before, after = "\n".join(before), "\n".join(after)
    assert "optuna.create_study(" in before
    assert "privselect" not in before
    assert "optuna.create_study(" not in after
    assert "epsilon=1, delta=1e-5" in after
