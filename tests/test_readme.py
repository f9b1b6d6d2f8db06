"""What the README says to type works."""

import re
import shlex
from pathlib import Path

import pytest

import privselect as ps
from privselect.cli import main

REPOSITORY = Path(__file__).parent.parent
README = (REPOSITORY / "README.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", README, flags=re.DOTALL | re.MULTILINE)
PYTHON = [code for language, code in BLOCKS if language == "python"]
COMMANDS = [line for language, code in BLOCKS if language == "sh" for line in code.replace("\\\n", " ").splitlines()]


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
    said = re.findall(r"^\| .*?\| \**(\d\.\d+)\** \|$", README, flags=re.MULTILINE)
    true = [found["renyi"], found["paper"], found["exact"]["upper"]]
    assert [float(number) for number in said] == [pytest.approx(number, abs=5e-4) for number in true]


@pytest.mark.parametrize("command", [command for command in COMMANDS if command.startswith("privselect ")])
def test_commands_run(command, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stop:
        main(shlex.split(command)[1:])
    assert stop.value.code == 0
    assert capsys.readouterr().out
