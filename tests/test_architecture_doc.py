"""docs/architecture.md and CONTRIBUTING.md name functions, packages and files that exist."""

import importlib
import importlib.util
import re
from pathlib import Path

import pytest

import privselect

ROOT = Path(__file__).parent.parent
ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
STEPS = re.findall(r"^\| `([a-z_]+(?:\.\w+)+)` \|", ARCHITECTURE, flags=re.MULTILINE)


def test_three_paths_are_drawn():
    assert ARCHITECTURE.count("## Path of ") == 3
    assert len(STEPS) > 25


@pytest.mark.parametrize("step", STEPS)
def test_each_step_of_a_path_exists(step):
    found: object = privselect
    parts = step.split(".")
    while hasattr(found, "__path__"):
        if importlib.util.find_spec(f"{found.__name__}.{parts[0]}") is None:
            break
        found = importlib.import_module(f"{found.__name__}.{parts.pop(0)}")
    for part in parts:
        found = getattr(found, part)
    assert callable(found)


def test_every_package_has_its_row():
    table = ARCHITECTURE[ARCHITECTURE.index("## Packages") : ARCHITECTURE.index("## Path of ")]
    parts = {path.name.removesuffix(".py") for path in Path(privselect.__file__).parent.iterdir() if not path.name.startswith("__")}
    assert parts - {"py.typed"} <= set(re.findall(r"`(\w+)`", table))


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`((?:src|research|tests|docs|benchmarks)/[\w./]+)`", CONTRIBUTING))))
def test_each_file_named_for_contributors_exists(path):
    assert (ROOT / path).exists()
