"""``privselect tune``: what it releases, what it prints, and how it refuses."""

import json
import re
import signal

import pytest

from privselect.planning.plan_file import read_plan

OUT = ["certificate.json", "model.npz", "plan.json", "release.json"]


def test_a_run_is_released_and_its_certificate_verified_against_the_plan(project):
    code, out, err = project.tune()
    assert (code, err) == (0, "")
    assert [line.split()[0] for line in out.splitlines()] == [
        "candidate", "score", "claimed", "epsilon", "files", *[f"release/{name}" for name in OUT[1:]], "verify",
    ]  # fmt: skip
    assert sorted(place.name for place in (project.folder / "release").iterdir()) == OUT
    code, out, err = project.run(*re.search(r"privselect (verify .*)", out).group(1).split())
    assert (code, err) == (0, "")
    assert out.startswith("the claim holds")
    assert "draft" not in out.splitlines()[0]
    assert "computed from the private output of the trial and from public data" in out


def test_json_says_the_same(project):
    code, out, _ = project.tune("--json")
    told, released = json.loads(out), json.loads((project.folder / "release/release.json").read_text())
    total = certificate_of(project)["total"]
    assert code == 0
    assert (told["candidate"], told["score"], told["fallback"]) == (released["candidate"], released["score"], released["fallback"])
    assert (told["epsilon"]["upper"], told["delta"]) == (total["upper"], total["delta"])
    assert told["files"] == [f"release/{name}" for name in OUT]


def test_options_stand_in_the_place_of_the_file(project):
    project.edit('executor = "serial"\nout = "release"\n', 'executor = "nowhere"\n')
    code, _, err = project.tune("--executor", "serial", "--out", "elsewhere", "--ledger", "kept", "--insecure-seed", "3")
    assert (code, err) == (0, "")
    assert sorted(place.name for place in (project.folder / "elsewhere").iterdir()) == OUT
    assert len(list((project.folder / "kept").iterdir())) == 1
    assert not project.ledgers
    assert certificate_of(project, "elsewhere")["run"]["insecure"] is True


def test_the_curators_view_is_shown_with_a_warning_and_only_where_asked_for(project):
    code, out, err = project.tune("--curator")
    assert code == 0
    assert err.startswith("warning: curator view")
    assert re.search(r"trial 1 of \d+", err)
    assert "trial" not in out


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('rate = { log_uniform = [0.01, 1] }\nlayers = { choice = [1, 2], weights = ["1/3", "2/3"] }', 'function = "toy_run:space"'),
        ('export = "arrays"\nfallback = { total = [0.0] }', 'export = "toy_run:as_bytes"\nfallback = "toy_run:nothing"'),
        ('export = "arrays"\nfallback = { total = [0.0] }', ""),
        ('score = "public"', 'score = "covered"'),
        ('executor = "serial"', 'executor = "serial"\nmechanism_of = "toy_run:declared"\nseed_bits = 32\ntimeout = 60\nlosses = 1'),
        ('count = "geometric(mean=3)"', 'count = "geometric(mean=3, cap=4)"'),
    ],
)
def test_every_kind_of_field_is_read_and_the_certificate_is_of_the_plan(project, old, new):
    project.edit(old, new)
    code, _, err = project.tune()
    assert (code, err) == (0, "")
    assert certificate_of(project)["plan_hash"] == read_plan("plan.toml").terms().digest()


def test_the_plan_still_serves_the_other_commands(project):
    assert project.run("plan", "plan.toml", "--out", "again.toml")[0] == 0
    assert read_plan("again.toml") == read_plan("plan.toml")
    assert project.run("certify", "again.toml", "--out", "planned.json")[0] == 0
    assert project.run("verify", "planned.json", "--plan", "plan.toml")[0] == 0


@pytest.mark.parametrize(
    "holdout",
    ['fraction = "1/5", ids = "toy_run:ids"', 'fraction = 0.2, ids = "toy_run:ids"', 'holdout = "toy_run:holdout"'],
)
def test_a_noisy_count_is_read_and_its_words_are_those_of_the_plan(project, holdout):
    project.edit('"gaussian(sigma=4)"', '"disjoint(gaussian(sigma=4), discrete_gaussian(sigma=8))"')
    project.edit("toy_run:objective", "toy_run:training")
    project.edit('score = "public"', f'score = {{ correct = "toy_run:correct", sigma = 8, {holdout} }}')
    code, out, err = project.tune()
    assert (code, err) == (0, "")
    assert re.search(r"^score +-?\d+\.0$", out, flags=re.MULTILINE)
    assert certificate_of(project)["plan_hash"] == read_plan("plan.toml").terms().digest()
    assert "plus noise: discrete_gaussian(sigma=8" in certificate_of(project)["statement"]


def test_a_law_with_no_trial_releases_the_fallback(project):
    project.edit("geometric(mean=3)", "finite({0: 1000000000, 1: 1})")  # one trial in a billion runs of this test
    code, out, err = project.tune()
    assert (code, err) == (0, "")
    assert out.startswith("released   the fallback: no trial was drawn or all trials failed")
    none = (project.folder / "release").rename(project.folder / "none")
    project.edit("finite({0: 1000000000, 1: 1})", "geometric(mean=3)")
    project.edit('synthetic = "toy_run:synthetic"\n', "")
    project.flag("failing")
    code, failed, err = project.tune()
    assert (code, err) == (0, "")
    assert re.sub("epsilon.*", "", failed) == re.sub("epsilon.*", "", out)
    assert (none / "model.npz").read_bytes() == (project.folder / "release/model.npz").read_bytes()


def test_two_runs_with_another_k_print_alike(project):
    shapes = set()
    for seed in range(4):
        code, out, err = project.tune("--insecure-seed", seed, "--ledger", f"ledger{seed}", "--out", f"release{seed}")
        shapes.add((code, re.sub(r"\d+(\.\d+)?(e-?\d+)?", "N", out).replace("-", ""), err))
    assert len(shapes) == 1


def test_ctrl_c_is_one_line_and_the_run_goes_on_as_if_it_had_not_been(project):
    project.flag("stop")
    assert project.refused("--insecure-seed", "5", code=130) == "interrupted; nothing is released, and the run can be resumed\n"
    assert not (project.folder / "release").exists()
    project.flag("stop", there=False)
    code, _, err = project.tune("--insecure-seed", "5")
    assert (code, err) == (0, "")
    assert project.tune("--insecure-seed", "5", "--ledger", "other", "--out", "whole")[0] == 0
    for name in ("model.npz", "plan.json"):
        assert (project.folder / "release" / name).read_bytes() == (project.folder / "whole" / name).read_bytes()


def test_a_signal_to_the_process_is_the_same(project):
    project.flag("wait")
    process = project.start()
    project.wait_for("waiting")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    assert err == "interrupted; nothing is released, and the run can be resumed\n"
    project.flag("go")
    assert project.tune()[0] == 0


def test_a_deadline_releases_nothing_and_is_exit_code_1(project):
    project.edit('out = "release"', 'out = "release"\ndeadline = 1e-9')
    assert "the run missed its deadline; nothing is released" in project.refused(code=1)
    assert not (project.folder / "release").exists()


def test_no_word_of_a_failing_trial_or_of_what_is_printed_is_seen(project):
    project.edit('synthetic = "toy_run:synthetic"\n', "")
    project.flag("failing")
    code, out, err = project.tune()
    assert (code, err) == (0, "")
    assert "SECRET" not in out
    assert "the fallback" in out


@pytest.mark.parametrize(("flag", "said"), [("broken", "ValueError"), ("leaving", "SystemExit")])
def test_of_a_loader_that_fails_only_the_type_is_seen_and_the_run_can_go_on(project, flag, said):
    project.flag(flag)
    assert f"`data` must be a function that succeeds, got {said} from 'toy_run:data'" in project.refused()
    assert "--dry-run" in project.refused()
    project.flag(flag, there=False)
    assert project.tune()[0] == 0


def test_of_ids_that_fail_only_the_type_is_seen(project):
    project.edit('"gaussian(sigma=4)"', '"disjoint(gaussian(sigma=4), discrete_gaussian(sigma=8))"')
    project.edit('synthetic = "toy_run:synthetic"\n', "")
    project.edit("toy_run:objective", "toy_run:training")
    project.edit('score = "public"', 'score = { correct = "toy_run:correct", sigma = 8, fraction = "1/5", ids = "toy_run:bad_ids" }')
    assert "`score.ids` must be a function that succeeds, got ValueError" in project.refused()
    project.edit("toy_run:bad_ids", "number")  # data has no such column
    assert "the run ended with IndexError. Its text is not shown" in project.refused("--out", "elsewhere")


# -- the dry run ----------------------------------------------------------------------------------------------------------------


def test_a_dry_run_shows_everything_and_touches_nothing(project):
    project.flag("broken")  # the data could not even be loaded
    before = project.files()
    code, out, err = project.tune("--dry-run")
    assert (code, err) == (0, "")
    assert out.count("in a trial SECRET-PRINT") == 4
    line = r"^trial \d: rate = .*, layers = \d: score -?[\d.]+, \d+\.\d{3} s, \d+ bytes exported$"
    assert len(re.findall(line, out, flags=re.MULTILINE)) == 3
    assert out.endswith("no private data was used, no ledger was created, nothing is released\n")
    assert "note" not in out
    assert project.files() == before


def test_a_dry_run_shows_the_traceback_of_a_wrong_objective(project):
    project.flag("failing")
    code, _, err = project.tune("--dry-run")
    assert code == 1
    assert "Traceback" in err
    assert "record 19" in err
    project.flag("failing", there=False)
    project.flag("text")
    code, _, err = project.tune("--dry-run")
    assert code == 1
    assert "the objective must return (score, artifact), got 'str'" in err


def test_a_dry_run_finds_randomness_from_elsewhere(project):
    module = project.folder / "toy_run.py"
    module.write_text(module.read_text().replace("randomness.numpy().normal()", "np.random.default_rng().normal()"))
    code, out, _ = project.tune("--dry-run")
    assert code == 0
    assert "note: the same randomness gave another outcome" in out


def test_a_dry_run_splits_the_synthetic_data_or_uses_it_as_the_hold_out(project):
    project.edit('"gaussian(sigma=4)"', '"disjoint(gaussian(sigma=4), discrete_gaussian(sigma=8))"')
    project.edit("toy_run:objective", "toy_run:training")
    project.edit('score = "public"', 'score = { correct = "toy_run:correct", sigma = 8, holdout = "toy_run:holdout" }')
    assert project.tune("--dry-run")[0] == 0
    project.edit('holdout = "toy_run:holdout"', 'fraction = "1/5", ids = "toy_run:ids"')
    assert project.tune("--dry-run")[0] == 0


def test_a_dry_run_of_a_module_that_breaks_shows_where(project):
    (project.folder / "toy_run.py").write_text("number = 1 / 0\n")
    code, _, err = project.tune("--dry-run")
    assert code == 1
    assert "ZeroDivisionError" in err
    assert "number = 1 / 0" in err


def test_a_dry_run_needs_synthetic_data_and_tells_no_json(project):
    assert "--json prints a release" in project.refused("--dry-run", "--json")
    project.edit('synthetic = "toy_run:synthetic"\n', "")
    assert "a dry run needs `synthetic` in [tune]" in project.refused("--dry-run")


def certificate_of(project, out="release"):
    return json.loads((project.folder / out / "certificate.json").read_text())
