"""The plan file: written whole, read back as it was, refused in one sentence."""

import tomllib

import pytest

import privselect as ps
from privselect._util import atomic_files
from privselect.certificates.model import Declared
from privselect.errors import ParameterError
from privselect.planning.plan_file import plan_file_of, read_plan, write_plan

HEAD = "version = 2\nepsilon = 1.8\ndelta = 1e-6\n"
GOOD = HEAD + '[search]\nmechanism = "gaussian(sigma=4)"\ncount = "geometric(mean=30)"\n'


@pytest.fixture(scope="module")
def solved():
    return ps.plan("gaussian(sigma=?)", "geometric(mean=30)", epsilon=2, delta=1e-6)


def test_a_plan_is_read_back_as_it_was_written(solved, tmp_path):
    declared = Declared(
        unit='one "person" \\ household', trust_model="zentral: die Behörde", records_public=False, not_covered=("a look", "two looks")
    )
    file = tmp_path / "plan.toml"
    write_plan(solved, file, declared)
    read = read_plan(file)
    assert read == plan_file_of(solved, declared)
    assert read.declared == declared
    assert read.problem.mechanism == "gaussian(sigma=?)"
    again = read.plan()
    assert (again.mechanism, again.count, again.cost, again.problem) == (solved.mechanism, solved.count, solved.cost, solved.problem)
    write_plan(again, tmp_path / "again.toml", read.declared)
    assert (tmp_path / "again.toml").read_bytes() == file.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["again.toml", "plan.toml"]


def test_the_hash_covers_the_terms(solved, tmp_path):
    write_plan(solved, tmp_path / "plan.toml")
    read = read_plan(tmp_path / "plan.toml")
    terms = read.terms()
    assert terms.digest() == plan_file_of(solved).terms().digest()
    assert terms.digest() != read.model_copy(update={"epsilon": 2.5}).terms().digest()
    assert terms.digest() == read.model_copy(update={"problem": None}).terms().digest()


def test_every_comment_is_a_field_that_may_be_uncommented(solved, tmp_path):
    file = tmp_path / "plan.toml"
    write_plan(solved, file)
    text = file.read_text()
    file.write_text("\n".join(line.removeprefix("# ") if " = " in line else line for line in text.splitlines()))
    assert tomllib.loads(file.read_text())["declared"]["records_public"] is True
    assert read_plan(file).declared.missing == ()


def test_a_file_may_leave_a_number_open(tmp_path):
    file = tmp_path / "plan.toml"
    file.write_text(GOOD.replace("sigma=4", "sigma=?"))
    plan = read_plan(file).plan()
    assert [(one.stage, one.parameter) for one in plan.solved] == [("search", "sigma")]
    assert plan.cost.upper <= 1.8


BAD = [
    ("", "`version` is missing"),
    (GOOD.replace("version = 2", "version = 3"), "`version` of a plan must be 2, got 3: a later privselect has written it"),
    (GOOD.replace("version = 2", "version = 1"), "must be 2, got 1: move `mechanism` and `count` into a table"),
    (GOOD.replace("version = 2", "version = 0"), "`version` of a plan must be 2, got 0"),
    (GOOD.replace("version = 2", "version = true"), "`version` of a plan must be 2, got True"),
    (GOOD.replace("epsilon = 1.8", f"epsilon = 1{5000 * '0'}"), "a plan must be TOML"),
    (GOOD + '[problem]\nmechanism = "a\\u007f"\n', "unknown mechanism|unexpected"),
    (GOOD.replace('mechanism = "gaussian(sigma=4)"\n', ""), "`search`: `mechanism` is missing"),
    (GOOD.replace("epsilon = 1.8", 'epsilon = "1.8"'), "`epsilon` must be"),
    (GOOD.replace("epsilon = 1.8", "epsilon = nan"), "`epsilon` must be"),
    (GOOD.replace("delta = 1e-6", "delta = 2"), "`delta` must be in"),
    ("colour = 3\n" + GOOD, "`colour` is not a known field"),
    (GOOD + "colour = 3\n", "`search`: `colour` is not a known field"),
    (GOOD + "[declared]\nunit = 3\n", "`unit` must be"),
    (GOOD + '[declared]\nunit = "a\\nb"\n', "must be one line of visible text"),
    (GOOD.replace("gaussian(sigma=4)", "gaussian(sigma=-4)"), "`sigma` must be in"),
    (GOOD.replace("gaussian(sigma=4)", "geometric(mean=4)"), "`mechanism` must be a mechanism such as"),
    (GOOD.replace("epsilon = 1.8", "epsilon = 1.7"), "the plan must meet its budget, epsilon 1.7 at delta 1e-06"),
    (GOOD[:-5], "a plan must be TOML"),
    ("version = 2\n" + GOOD, "a plan must be TOML"),
]


@pytest.mark.parametrize(("text", "said"), BAD)
def test_what_is_no_plan_is_refused_in_one_sentence(text, said, tmp_path):
    file = tmp_path / "plan.toml"
    file.write_text(text)
    with pytest.raises((ParameterError, ps.errors.TextFormError), match=said) as refusal:
        read_plan(file).plan()
    assert "\n" not in str(refusal.value)


def test_a_file_that_cannot_be_read_is_refused(tmp_path):
    with pytest.raises(ParameterError, match="must be a file that can be read"):
        read_plan(tmp_path / "nowhere.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ParameterError, match="must be text in UTF-8"):
        read_plan(tmp_path / "bytes.toml")
    (tmp_path / "long.toml").write_bytes(b"#" * 1_000_001)
    with pytest.raises(ParameterError, match="at most 1000000 bytes"):
        read_plan(tmp_path / "long.toml")


def test_a_failure_while_writing_leaves_the_old_file(solved, tmp_path, monkeypatch):
    file = tmp_path / "plan.toml"
    file.write_text("before")

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(atomic_files.os, "replace", fail)
    with pytest.raises(ParameterError, match="No space left on device"):
        write_plan(solved, file)
    assert file.read_text() == "before"
    assert list(tmp_path.iterdir()) == [file]
    with pytest.raises(ParameterError, match=r"must end in \.toml"):
        write_plan(solved, tmp_path / "plan.json")
