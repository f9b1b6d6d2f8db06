"""What can be said of estimators without diffprivlib."""

import subprocess
import sys
from pathlib import Path

import pytest

from privselect.errors import ParameterError
from privselect.integrations import diffprivlib_mechanism, mechanism_from_estimator
from privselect.integrations.diffprivlib import _REFUSED, _SUPPORTED, NOTES

PAGE = Path(__file__).parents[2] / "docs" / "tutorials" / "diffprivlib.md"


@pytest.mark.parametrize("ask", [mechanism_from_estimator, diffprivlib_mechanism])
@pytest.mark.parametrize(("estimator", "name"), [(3, "builtins.int"), (None, "builtins.NoneType"), ("GaussianNB", "builtins.str")])
def test_what_is_no_estimator_of_diffprivlib_is_refused(ask, estimator, name):
    with pytest.raises(ParameterError) as caught:
        ask(estimator)
    assert str(caught.value) == f"`estimator` must be an estimator of diffprivlib.models, got '{name}'"


def test_scikit_learns_own_estimators_are_refused():
    naive_bayes = pytest.importorskip("sklearn.naive_bayes")
    with pytest.raises(ParameterError, match=r"an estimator of diffprivlib.models, got 'sklearn.naive_bayes.GaussianNB'"):
        mechanism_from_estimator(naive_bayes.GaussianNB())


def test_the_module_loads_neither_diffprivlib_nor_scikit_learn():
    check = "import sys, privselect.integrations.diffprivlib; assert not {'sklearn', 'diffprivlib'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", check], check=True)


def test_notes_are_one_line_each():
    assert all(note and "\n" not in note for note in NOTES)


@pytest.mark.parametrize("name", [*(known.rpartition(".")[2] for known in _SUPPORTED), *_REFUSED])
def test_the_page_says_how_each_model_is_judged(name):
    assert f"| `{name}` |" in PAGE.read_text(encoding="utf-8")
