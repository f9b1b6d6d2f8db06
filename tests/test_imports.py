"""What an import may load, and which way imports go."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import privselect

ROOT = Path(privselect.__file__).parent
HEAVY = {"numpy", "scipy", "dp_accounting", "matplotlib", "torch"}
EXTRAS = {
    "typer",
    "rich",
    "matplotlib",
    "torch",
    "opacus",
    "optuna",
    "sklearn",
    "dask",
    "ray",
    "fastapi",
    "pydantic",
    "cryptography",
    "jinja2",
}

# From bottom to top: a part may import the parts below its own row, and itself.
ROWS = (
    {"errors"},
    {"_util"},
    {"interval"},
    {"open_spec"},
    {"text_forms", "pairs"},
    {"counts", "mechanisms"},
    {"selection", "noisy_max", "regression"},
    {"certificates"},
    {"planning"},
    {"tuning"},
    {"audit", "report"},
    {"integrations"},
    {"web"},
    {"cli"},
)
RANK = {part: rank for rank, row in enumerate(ROWS) for part in row}


def test_importing_the_package_loads_nothing_heavy():
    assert not loaded_by("import privselect") & HEAVY


def test_help_loads_nothing_heavy():
    assert not loaded_by("from privselect.cli import main; main(['--help'])") & (HEAVY | {"rich", "pydantic", "jinja2"})


def test_the_core_loads_no_extra():
    use = "import privselect as ps; ps.Selection(ps.Gaussian(sigma=4), ps.Geometric(mean=3)).epsilon_at(delta=1e-6)"
    assert not loaded_by(use) & EXTRAS


def test_a_certificate_without_pydantic_asks_for_it():
    use = "import sys; sys.modules['pydantic'] = None; import privselect as ps; ps.certify"
    result = subprocess.run([sys.executable, "-c", use], capture_output=True, text=True, check=False)
    assert result.stderr.splitlines()[-1].endswith("install it with: pip install 'privselect[certificates]'")


@pytest.mark.parametrize("name", privselect.__all__)
def test_every_public_name_is_there(name):
    assert getattr(privselect, name) is not None
    assert name in dir(privselect)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = privselect.nothing


def test_type_checkers_see_the_same_names_from_the_same_modules():
    tree = ast.parse((ROOT / "__init__.py").read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {alias.name: node.module for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert seen == {name: f"privselect.{home}" for name, home in privselect._MODULES.items()}


@pytest.mark.parametrize("path", sorted(ROOT.rglob("*.py")), ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_go_one_way(path):
    part = path.relative_to(ROOT).parts[0].removesuffix(".py")
    if part == "__init__":
        return
    assert part in RANK, f"give {part} its row in ROWS"
    for imported in imports_of(path):
        if imported != part:
            assert RANK[imported] < RANK[part], f"{part} imports {imported}"


@pytest.mark.parametrize("path", sorted(ROOT.rglob("*.py")), ids=lambda path: str(path.relative_to(ROOT)))
def test_the_package_never_imports_research(path):
    modules = {module for node in ast.walk(ast.parse(path.read_text())) for module in modules_of(node)}
    assert not {module for module in modules if module.split(".")[0] in {"research", "tests", "benchmarks"}}


def loaded_by(statement: str) -> set[str]:
    """The top-level packages that a fresh interpreter loads for this statement."""
    result = subprocess.run([sys.executable, "-X", "importtime", "-c", statement], capture_output=True, text=True, check=True)
    names = [line.rsplit("|", 1)[1].strip() for line in result.stderr.splitlines() if line.startswith("import time:")]
    assert "privselect" in names
    return {name.split(".")[0] for name in names}


def imports_of(path: Path) -> Iterator[str]:
    """The parts of privselect that a file imports, at once or later, when it runs or for type checkers."""
    for node in ast.walk(ast.parse(path.read_text())):
        for module in modules_of(node):
            if module.startswith("privselect."):
                yield module.split(".")[1]


def modules_of(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        assert node.level == 0, "imports are written in full"
        return [f"privselect.{alias.name}" for alias in node.names] if node.module == "privselect" else [str(node.module)]
    return []
