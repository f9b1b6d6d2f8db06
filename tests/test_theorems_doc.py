"""docs/theorems.md and docs/errata.md say what is so."""

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
THEOREMS = (ROOT / "docs" / "theorems.md").read_text(encoding="utf-8")
ERRATA = (ROOT / "docs" / "errata.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| (\S[^|]*?) \|[^|]*\| `([\w.]+)` \|$", THEOREMS, flags=re.MULTILINE)

# Every labelled result of the paper.
PAPER = {
    "thm:main_thm",
    "eq:thm_statement_continuous",
    "thm:negbin",
    "cor:pointwise0",
    "cor:pointwise",
    "lem:GDP",
    "thm:hs_bin",
    "cor:binomial_to_poisson",
    "cor:adjust",
    "thm:rdp_negbin",
    "thm:rdp_poisson",
    "lem:rdp_to_dp",
    "thm:max_sel",
    "lem:composition_rnm",
    "lem:convert2_eps_delta",
    "lem:zhu_lemma5",
    "thm:gptr",
    "lem:f_convex",
    "lem:aux0",
}
OURS = {
    "**Ratio**",
    "**Pointwise**",
    "**Exact** (upper)",
    "**Exact** (lower)",
    "**Design**",
    "**Points**",
    "**Mixture**",
    "**Disjoint**",
    "**One rival**",
    "**Projected**",
    "**Two levels**",
    "**Bounded range**",
    "**Propose-test-release**",
    "**Posterior sample**",
    "**Under a target**",
    "**Composition** (upper)",
    "**Composition** (lower)",
    "**Product**",
    "**Subsampled**",
}


def test_the_table_is_read_whole():
    lines = [line for line in THEOREMS.splitlines() if line.startswith("| ") and "| label |" not in line]
    assert len(lines) == len(ROWS) > 15


@pytest.mark.parametrize(("label", "path"), ROWS, ids=[path for _, path in ROWS])
def test_each_function_exists_and_names_its_label(label, path):
    module, name = path.rsplit(".", 1)
    function = getattr(importlib.import_module(module if module.startswith("research.") else f"privselect.{module}"), name)
    assert f"Label: {label.strip('`')}." in " ".join((function.__doc__ or "").split())


def test_each_label_and_each_function_stands_once():
    labels, functions = zip(*ROWS, strict=True)
    assert len(set(labels)) == len(labels)
    assert len(set(functions)) == len(functions)
    assert set(labels) >= OURS


@pytest.mark.parametrize("label", sorted(PAPER))
def test_no_result_of_the_paper_is_forgotten(label):
    assert THEOREMS.count(f"`{label}`") == 1


def test_each_slip_names_tests_that_exist():
    source = (ROOT / "tests" / "selection" / "test_errata.py").read_text(encoding="utf-8")
    named = set(re.findall(r"`(test_\w+)`", ERRATA))
    written = set(re.findall(r"^def (test_\w+)", source, flags=re.MULTILINE))
    assert named == written
