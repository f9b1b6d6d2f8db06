"""What is built is what is promised: typed, light to import, and clear about what is missing."""

import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder], cwd=REPOSITORY, check=True)
    (path,) = folder.glob("privselect-*.whl")
    return path


@pytest.mark.slow
def test_the_wheel_holds_every_module_the_marker_of_types_and_the_licence(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    source = REPOSITORY / "src"
    assert {str(path.relative_to(source)) for path in source.rglob("*.py")} <= set(names)
    data = [path for path in source.rglob("*") if path.is_file() and path.suffix not in {".py", ".pyc"}]
    assert {str(path.relative_to(source)) for path in data} <= set(names)  # the page and the report's style
    assert {Path(name).parts[0] for name in names} == {"privselect", next(name for name in names if ".dist-info/" in name).split("/")[0]}
    assert not [name for name in names if {"research", "paper", "experiments", "tests", "benchmarks"} & set(Path(name).parts)]
    assert "privselect/web/page/index.html" in names
    assert "privselect/web/page/vendor/uPlot.LICENSE" in names
    assert "privselect/py.typed" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)


@pytest.mark.slow
def test_without_any_dependency_it_imports_and_names_the_missing_extra(wheel, tmp_path):
    venv.create(tmp_path / "bare", with_pip=True)
    python = tmp_path / "bare" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "-qq", "--no-index", "--no-deps", wheel], check=True)
    version = subprocess.run([python, "-c", "import privselect; print(privselect.__version__)"], capture_output=True, text=True, check=True)
    assert version.stdout.strip() == wheel.name.split("-")[1]
    refused = subprocess.run([python.with_name("privselect"), "--help"], capture_output=True, text=True, check=False)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr == "error: the command line needs typer and rich; install them with: pip install 'privselect[cli]'\n"
