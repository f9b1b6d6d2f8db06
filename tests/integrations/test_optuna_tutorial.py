"""The tutorial changes only a few lines of an Optuna search. Another test runs the code of all pages."""

import difflib
import re
from pathlib import Path

PAGE = (Path(__file__).parents[2] / "docs" / "tutorials" / "optuna.md").read_text()
MOST_CHANGED = 5


def searches():
    """The code blocks before and after."""
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE, flags=re.DOTALL | re.MULTILINE)
    before, after = (block.splitlines() for block in blocks if "def objective(trial)" in block)
    return before, after


def test_a_stock_search_becomes_private_by_a_handful_of_changed_lines():
    before, after = searches()
    differences = list(difflib.ndiff(before, after))
    added, removed = ([line for line in differences if line.startswith(sign)] for sign in "+-")
    assert 0 < len(removed) <= len(added) <= MOST_CHANGED


def test_the_objective_is_the_same_and_the_stock_search_is_stock():
    before, after = ("\n".join(block) for block in searches())
    objective = before[before.index("def objective") : before.index("mechanism =")]
    assert objective in after
    assert "optuna.create_study(" in before
    assert "PrivateStudy" not in before
    assert "optuna.create_study(" not in after
