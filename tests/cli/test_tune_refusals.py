"""``privselect tune`` on bad input: one line, exit code 2, nothing lost and nothing half-written."""

import json
import sqlite3
from datetime import UTC, datetime, timedelta

import pytest

from privselect.counts import Geometric
from privselect.planning.plan_file import read_plan
from privselect.tuning.randomness import Stream, derive_key
from privselect.tuning.tuning_run import seeded_secret

SOON = (datetime.now(UTC) + timedelta(seconds=30)).isoformat()
LATE = (datetime.now(UTC) + timedelta(days=3)).isoformat()
COUNTED = 'score = { correct = "toy_run:correct", sigma = 8, fraction = "1/5", ids = "toy_run:ids" }'
SERIAL = 'executor = "serial"'

BAD = {
    "no [tune]": ("[tune]\n", "[problem]\n", "`problem`: `mechanism` is missing"),
    "objective missing": ('objective = "toy_run:objective"\n', "", "`tune`: `objective` is missing"),
    "data missing": ('data = "toy_run:data"\n', "", "`tune`: `data` is missing"),
    "score missing": ('score = "public"\n', "", "`tune`: `score` is missing"),
    "out missing": ('out = "release"\n', "", "a run needs a folder for its release, `out` in [tune] or --out, got none"),
    "count missing": ('count = "geometric(mean=3)"\n', "", "a run needs `count` in [search] of its plan, the law of K"),
    "open": ("sigma=4", "sigma=?", "the plan must not contain a ?: solve for it with `privselect plan plan.toml --out FILE`"),
    "unknown key": (SERIAL, 'colour = "red"', "`tune`: `colour` is not a known field"),
    "no space": ("[space]\n", "[tune.fallback]\n", "a plan must be TOML"),
    "empty space": ('rate = { log_uniform = [0.01, 1] }\nlayers = { choice = [1, 2], weights = ["1/3", "2/3"] }', "", "at least one hyper"),
    "unknown distribution": ("log_uniform", "lognormal", "`rate` of the space must be one of { uniform = [low, high] }, { log_uniform"),
    "not a distribution": ("{ log_uniform = [0.01, 1] }", "3", "`rate` of the space must be one of"),
    "low > high": ("[0.01, 1]", "[2, 1]", "`rate` of the space: `low` must be at most `high`, got 2.0 and 1.0"),
    "one end": ("[0.01, 1]", "[2]", "`rate` of the space: `log_uniform` must be [low, high]"),
    "low of 0": ("[0.01, 1]", "[0, 1]", "`rate` of the space: `low` must be in (0, inf), got 0"),
    "too few weights": ('["1/3", "2/3"]', '["1/3"]', "`layers` of the space: `weights` must be a list of 2 weights, one per option"),
    "negative weight": ('["1/3", "2/3"]', "[1, -1]", "`layers` of the space: a weight must be positive, got -1"),
    "no weight": ('["1/3", "2/3"]', '["1/0", 1]', "`layers` of the space: a weight must be a positive number or fraction"),
    "space function beside a law": ("[space]\n", '[space]\nfunction = "toy_run:space"\n', "`function` of the space must be its only entry"),
    "not a name": ("toy_run:objective", "toy_run.objective", "`tune`: `objective` must be a name such as module:function"),
    "no module": ("toy_run:objective", "no_such_module:objective", "(No module named 'no_such_module')"),
    "no attribute": ("toy_run:objective", "toy_run:nobody", "'toy_run' has no nobody"),
    "not callable": ("toy_run:objective", "toy_run:SPACE_OF_NOBODY", "`objective` must be a function, got 'toy_run:SPACE_OF_NOBODY'"),
    "no loader": ("toy_run:data", "toy_run:nobody", "`data` must be an existing module:function"),
    "no synthetic": ("toy_run:synthetic", "toy_run:nobody", "`synthetic` must be an existing module:function"),
    "score": (
        '"public"',
        '"raw"',
        "`tune`: `score` must be 'public' or 'covered', or a table with correct, sigma and the hold-out",
    ),
    "noisy count without sigma": (
        '"public"',
        '{ correct = "toy_run:correct", fraction = "1/5", ids = "toy_run:ids" }',
        "`sigma` of the score must be given, or be that of a discrete_gaussian(...) in the mechanism, got none",
    ),
    "noisy count of no noise": (
        '"public"',
        '{ correct = "toy_run:correct", sigma = 0 }',
        "`score`: `sigma` must be in (0, 1e+06], got 0",
    ),
    "noisy count of no hold-out": (
        '"public"',
        '{ correct = "toy_run:correct", sigma = 8 }',
        "a noisy count needs either `holdout`, or `fraction` and `ids`",
    ),
    "noisy count of no ids": (
        '"public"',
        '{ correct = "toy_run:correct", sigma = 8, fraction = 0.2 }',
        "`ids` must be a column name or a function that returns a stable id per record",
    ),
    "fraction": ('"public"', '{ correct = "toy_run:correct", sigma = 8, fraction = "6/5", ids = "n" }', "`fraction` must be in (0, 1)"),
    "noise not accounted": ('score = "public"', COUNTED, "`mechanism` must be disjoint(what training leaks, discrete_gaussian(sigma=8))"),
    "export": ('"arrays"', '"pickle"', "`export` must be one of arrays, safetensors, or module:function, got 'pickle'"),
    "fallback": (
        "{ total = [0.0] }",
        '"zero"',
        "`tune`: `fallback` must be a table of arrays, or a name such as module:function",
    ),
    "fallback without export": ('export = "arrays"\n', "", "`fallback` must be None when nothing is exported"),
    "executor": (SERIAL, 'executor = "threads"', "`executor` must be one of serial, processes, dask, ray, got 'threads'"),
    "seed_bits": (SERIAL, f"{SERIAL}\nseed_bits = 0", "`seed_bits` must be an integer >= 1 and <= 128, got 0"),
    "timeout": (SERIAL, f"{SERIAL}\ntimeout = -1", "`timeout` must be in (0, inf), got -1"),
    "memory_limit": (SERIAL, f"{SERIAL}\nmemory_limit = 1000000000", "`memory_limit` must be None with the executor serial"),
    "losses": (SERIAL, f"{SERIAL}\nlosses = -1", "`losses` must be an integer >= 0"),
    "deadline": (SERIAL, f'{SERIAL}\ndeadline = "soon"', "`tune`: `deadline` must be a valid number, got 'soon'"),
    "constant_work": (SERIAL, f"{SERIAL}\nconstant_work = true", "`constant_work` needs a law of K with a largest K"),
    "release_at without cap": (SERIAL, f"{SERIAL}\nrelease_at = {LATE}\ntimeout = 1", "`release_at` needs a law of K with a largest K"),
    "release_at without zone": (SERIAL, f"{SERIAL}\nrelease_at = 2099-01-01T00:00:00", "`release_at` must be a time with a time zone"),
    "release_at of no time": (SERIAL, f'{SERIAL}\nrelease_at = "soon"', "`release_at` must be a time with a time zone"),
    "budget": ("epsilon = 2.0", "epsilon = 0.5", "`epsilon` must be at least 1.2"),
}


@pytest.mark.parametrize(("old", "new", "said"), BAD.values(), ids=BAD)
def test_bad_plans_are_refused_before_anything_is_drawn(project, old, new, said):
    project.edit(old, new)
    assert said in project.refused()
    assert not project.ledgers
    assert not (project.folder / "release").exists()


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (f"release_at = {LATE}", "`release_at` needs a `timeout`"),
        (f"release_at = {SOON}\ntimeout = 1", "`release_at` must be at least 68"),
    ],
    ids=["no timeout", "too soon"],
)
def test_a_release_at_a_time_that_is_not_certain_is_refused(project, more, said):
    project.edit("geometric(mean=3)", "geometric(mean=3, cap=4)")
    project.edit(SERIAL, f"{SERIAL}\n{more}")
    assert said in project.refused()
    assert not project.ledgers


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("import no_such_module\n", "(No module named 'no_such_module')"),
        ("1 / 0\n", "ZeroDivisionError"),
        ("(", "SyntaxError"),
    ],
)
def test_a_module_that_breaks_is_refused(project, content, said):
    (project.folder / "toy_run.py").write_text(content)
    assert said in project.refused()
    assert not project.ledgers


@pytest.mark.parametrize(("flag", "said"), [("text", "must return (score, artifact), got 'str'"), ("failing", "failed with ValueError")])
def test_a_wrong_objective_is_found_on_synthetic_data_before_the_draw(project, flag, said):
    project.flag(flag)
    assert said in project.refused()
    assert not project.ledgers


def test_a_plan_without_the_tables_or_that_is_not_there_is_refused(project):
    text = project.plan.read_text()
    project.plan.write_text(text[: text.index("[tune]")])
    assert "a run needs a table [tune] in its plan, with objective, data and score, got none" in project.refused()
    project.plan.write_text(text[: text.index("[space]")] + text[text.index("[tune]") :])
    assert "a run needs a table [space] in its plan" in project.refused()
    project.plan.unlink()
    assert "must be a file that can be read" in project.refused()


def test_an_output_folder_that_holds_something_is_refused(project):
    (project.folder / "release").mkdir()
    (project.folder / "release/thesis.txt").write_text("mine")
    assert "`out` must be a new or empty folder" in project.refused()
    assert "`out` must be in an existing folder" in project.refused("--out", "nowhere/release")
    assert not project.ledgers


def test_data_smaller_than_the_split_is_refused_and_the_run_goes_on_with_more(project):
    project.edit('"gaussian(sigma=4)"', '"disjoint(gaussian(sigma=4), discrete_gaussian(sigma=8))"')
    project.edit("toy_run:objective", "toy_run:training")
    project.edit('score = "public"', COUNTED)
    records = (project.folder / "records.txt").read_text()
    (project.folder / "records.txt").write_text("1 2 3")
    assert "`data` must have enough records for a hold-out of 1/5 of them, got too few" in project.refused()
    (project.folder / "records.txt").write_text(records)
    assert project.tune()[0] == 0


# -- the ledger -----------------------------------------------------------------------------------------------------------------


@pytest.fixture
def begun(project):
    """A run that was interrupted."""
    project.flag("stop")
    assert project.tune()[0] == 130
    project.flag("stop", there=False)
    assert len(project.ledgers) == 1
    return project


def test_changed_data_is_refused_and_the_right_data_released(begun):
    records = (begun.folder / "records.txt").read_text()
    (begun.folder / "records.txt").write_text(records + " 2")
    assert "the data or the objective has changed since it started" in begun.refused()
    (begun.folder / "records.txt").write_text(records)
    assert begun.tune()[0] == 0


def test_another_plan_budget_or_folder_for_a_run_that_was_begun_is_refused(begun):
    assert "its `out` folder is" in begun.refused("--out", "elsewhere")
    begun.edit("epsilon = 2.0", "epsilon = 3.0")
    assert "its certificate states another budget or declaration" in begun.refused()
    begun.edit("epsilon = 3.0", "epsilon = 2.0")
    begun.edit("[0.01, 1]", "[0.02, 1]")
    assert "`out` must not belong to an unfinished run of another plan" in begun.refused()
    assert len(begun.ledgers) == 1
    begun.edit("[0.02, 1]", "[0.01, 1]")
    assert begun.tune()[0] == 0


def overwritten(path):
    with path.open("r+b") as file:
        file.seek(4096 + 40)
        file.write(bytes(range(200, 256)) * 80)


def another_database(path):
    path.unlink()
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE accounts (name TEXT)")
        connection.execute("INSERT INTO accounts VALUES ('mine')")
    connection.close()


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (another_database, "is not a ledger of privselect; nothing in it was changed"),
        (lambda path: path.write_text("a diary\n"), "is not a ledger of privselect; nothing in it was changed"),
        (lambda path: path.write_text("a diary\n" * 5000), "is not a ledger of privselect; nothing in it was changed"),
        (overwritten, "is damaged; nothing in it was changed"),
        (lambda path: path.write_bytes(path.read_bytes()[:5000]), "is damaged; nothing in it was changed"),
        (lambda path: path.write_bytes(path.read_bytes()[:90]), "the ledger"),
    ],
    ids=["another database", "a short text", "a long text", "overwritten", "cut short", "cut very short"],
)
def test_a_ledger_that_is_not_ours_or_damaged_is_refused_and_left_as_it_is(begun, spoil, said):
    spoil(begun.ledgers[0])
    begun.ledgers[0].chmod(0o600)
    assert said in begun.refused()  # which compares the bytes of all files
    assert len(begun.ledgers) == 1


def test_a_directory_in_the_place_of_a_ledger_or_a_file_in_that_of_the_folder_is_refused(begun):
    path = begun.ledgers[0]
    path.unlink()
    path.mkdir(mode=0o700)
    assert "the ledger" in begun.refused()
    assert path.is_dir()
    (begun.folder / "file").write_text("mine")
    assert "the ledger must be a writable file" in begun.refused("--ledger", "file")


def test_a_folder_of_ledgers_that_others_may_enter_is_refused(begun):
    (begun.folder / ".privselect").chmod(0o755)
    assert "must be open to its owner only (mode 0700)" in begun.refused()
    (begun.folder / ".privselect").chmod(0o700)
    begun.ledgers[0].chmod(0o644)
    assert "must be readable by its owner only (mode 0600)" in begun.refused()


def test_a_released_plan_is_run_again_only_where_asked_for_and_the_certificate_covers_both(project):
    assert project.tune()[0] == 0
    first = project.files()
    assert "this plan was already run and released" in project.refused("--out", "second")
    project.edit("epsilon = 2.0", "epsilon = 1.3")
    assert "`epsilon` must be at least" in project.refused("--out", "second", "--again")
    assert len(project.ledgers) == 1
    project.edit("epsilon = 1.3", "epsilon = 3.0")
    code, _, err = project.tune("--out", "second", "--again")
    assert (code, err) == (0, "")
    assert len(project.ledgers) == 2
    certificate = json.loads((project.folder / "second/certificate.json").read_text())
    assert certificate["run"]["runs"] == 2
    assert certificate["plan_hash"] == read_plan("plan.toml").terms().digest()
    assert "This certificate covers 2 runs of a plan" in certificate["statement"]
    assert "gaussian(sigma=4) 2 times on the same data, with K drawn from" in certificate["statement"]
    assert {name: project.files()[name] for name in first if name != "plan.toml"} == {
        name: content for name, content in first.items() if name != "plan.toml"
    }


def test_a_second_coordinator_is_refused_while_the_first_goes_on(project):
    project.flag("wait")
    first = project.start()
    project.wait_for("waiting")
    project.edit('synthetic = "toy_run:synthetic"\n', "")
    assert "is in use: another process is running this plan" in project.refused()
    project.flag("go")
    out, err = first.communicate(timeout=60)
    assert (first.returncode, err) == (0, "")
    assert out.startswith("candidate")


# -- a full disk ----------------------------------------------------------------------------------------------------------------


def seed_of_two_trials():
    return next(seed for seed in range(100) if Geometric(mean=3).sample(Stream(derive_key(seeded_secret(seed, 1), "count"))) == 2)


def same_as_whole(project, seed):
    code, _, err = project.tune("--insecure-seed", seed, "--ledger", "other", "--out", "whole")
    assert (code, err) == (0, "")
    for name in ("model.npz", "plan.json"):
        assert (project.folder / "release" / name).read_bytes() == (project.folder / "whole" / name).read_bytes()


@pytest.mark.parametrize("most", [0, 5000, 200_000])
def test_no_room_for_the_ledger_is_one_sentence_and_the_run_goes_on_later(project, most):
    seed = seed_of_two_trials()
    project.flag("large")
    code, out, err = project.tune_limited(most, "--insecure-seed", str(seed))
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "could not be read or written. Check the disk, then run the same command again to resume" in err
    assert not (project.folder / "release").exists()
    assert project.tune("--insecure-seed", seed)[0] == 0
    same_as_whole(project, seed)


def test_no_room_for_the_release_is_one_sentence_and_the_same_is_released_later(project):
    seed = seed_of_two_trials()
    project.flag("large")
    project.flag("limit")  # set by the second trial, when the ledger already has its size
    process = project.start("--insecure-seed", str(seed))
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err.count("\n")) == (2, "", 1)
    assert "the release could not be written to" in err
    assert "File too large" in err
    assert not [name for name in project.files() if "release" in name]
    assert project.tune("--insecure-seed", seed)[0] == 0
    released = (project.folder / "release/release.json").read_text()
    assert '"fallback": false' in released
    assert "-1000000" not in released
