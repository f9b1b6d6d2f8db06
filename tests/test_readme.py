"""What the README says to type works."""

import re
import shlex
from pathlib import Path

import pytest

import privselect as ps
from privselect.cli import main

REPOSITORY = Path(__file__).parent.parent
README = (REPOSITORY / "README.md").read_text()
FOLDERS = (REPOSITORY / "docs", REPOSITORY / "docs" / "tutorials")
PAGES = {
    path.name: path.read_text()
    for path in (REPOSITORY / "README.md", *(page for folder in FOLDERS for page in sorted(folder.glob("*.md"))))
}
# Pages whose code needs what `make test` does not install.
MARKS = {"opacus.md": [pytest.mark.opacus], "diffprivlib.md": [pytest.mark.diffprivlib]}
# The stock Opacus loop, before it becomes private: Opacus warns that its noise is not hardened, and torch about Opacus's hooks.
BLOCK_MARKS = {"opacus.md-1": [pytest.mark.filterwarnings("ignore::UserWarning")]}


def blocks_of(page: str) -> list[tuple[str, str]]:
    return re.findall(r"^```(\w+)\n(.*?)^```$", page, flags=re.DOTALL | re.MULTILINE)


def files_of(page: str) -> dict[str, str]:
    return {named[1]: code for _, code in blocks_of(page) if (named := re.match(r"# (\w+\.(?:py|toml))\n", code))}


def lines_of(code: str) -> list[str]:
    return code.replace("\\\n", " ").splitlines()


BLOCKS = blocks_of(README)
PYTHON = [
    pytest.param(code, id=f"{name}-{place}", marks=[*MARKS.get(name, []), *BLOCK_MARKS.get(f"{name}-{place}", [])])
    for name, page in PAGES.items()
    for place, (language, code) in enumerate(blocks_of(page))
    if language == "python"
]
COMMANDS = [line for language, code in BLOCKS if language == "sh" for line in lines_of(code)]
# One page is read from top to bottom, in one folder: a command may use the file that an earlier one wrote, and the files that blocks
# with a first line such as `# plan.toml` show.
SESSIONS = [
    pytest.param(commands, files_of(page), id=name, marks=MARKS.get(name, []))
    for name, page in PAGES.items()
    if (commands := [line for kind, code in blocks_of(page) if kind == "sh" for line in lines_of(code) if line.startswith("privselect ")])
]


def test_the_first_blocks_are_the_two_commands():
    assert BLOCKS[:2] == [("sh", "make demo\n"), ("sh", "make test\n")]


def test_every_make_target_is_there():
    makefile = (REPOSITORY / "Makefile").read_text()
    targets = [command.split()[1] for command in COMMANDS if command.startswith("make ")]
    assert {"demo", "test"} <= set(targets)
    for target in targets:
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE)


@pytest.mark.parametrize("code", PYTHON)
def test_python_blocks_run_and_print_what_they_say(code, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "README.md", "exec"), {})  # noqa: S102
    printed = capsys.readouterr().out
    for digits in re.findall(r"(\d+\.\d+)\.\.\.", code):
        assert digits in printed


def test_the_table_of_numbers_is_true():
    found = ps.compare(ps.Selection(ps.Gaussian(sigma=4), ps.Geometric(mean=300)), delta=1e-6).as_dict()["bounds"]
    said = re.findall(r"^\| [^|]*\| \**(\d\.\d+)\** \|$", README, flags=re.MULTILINE)
    true = [found["renyi"], found["paper"], found["exact"]["upper"]]
    # Rounded up, as everything that is claimed.
    assert all(number <= float(shown) < number + 1.001e-3 for shown, number in zip(said, true, strict=True))


@pytest.mark.parametrize(("commands", "files"), SESSIONS)
def test_commands_run_one_after_the_other(commands, files, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    key = ""
    for command in commands:
        with pytest.raises(SystemExit) as stop:
            main(shlex.split(command.replace("PUBLIC_KEY", key), comments=True)[1:])
        printed = capsys.readouterr()
        assert stop.value.code == 0, (command, printed.err)
        assert printed.out
        key = next(iter(re.findall(r"\b[0-9a-f]{64}\b", printed.out)), key) if "--new-key" in command else key
