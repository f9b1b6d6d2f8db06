"""``privselect tune`` of a plan with a final training: what it releases, how it resumes, and what it refuses."""

import json
import os
import signal

import pytest

from privselect.planning.plan_file import read_plan

TRANSFERS = """

def leaves(candidate):
    return {**candidate, "rate": 7.0}


def raises(candidate):
    return candidate["nothing"]


def exits(candidate):
    raise SystemExit("a text")


def alternates(candidate):
    global calls
    calls += 1
    return {**candidate, "layers": 1 + calls % 2}


def prints(candidate):
    print("SECRET-PRINT")
    return candidate
"""
TRAIN = '[train]\nmechanism = "gaussian(sigma=9)"\n'


@pytest.fixture
def staged(project):
    """A plan with a final training, and transfer rules next to it."""
    project.edit("[declared]", f"{TRAIN}\n[declared]")
    with (project.folder / "toy_run.py").open("a") as module:
        module.write(TRANSFERS)
    return project


def released(project):
    return {path.name: path.read_bytes() for path in (project.folder / "release").iterdir()}


def test_a_plan_with_a_final_training_is_run_and_verifies(staged):
    staged.edit(TRAIN, f'{TRAIN}transfer = "toy_run:prints"\n')
    code, out, err = staged.tune()
    assert (code, err) == (0, "")
    assert "SECRET" not in out
    assert [line.split()[0] for line in out.splitlines()] == [
        *("candidate", "score", "trained", "search", "training", "claimed", "epsilon", "files"),
        *(f"release/{name}" for name in ("model.npz", "plan.json", "release.json")),
        "verify",
    ]
    found = json.loads((staged.folder / "release" / "release.json").read_text())
    assert found["trained_with"] == found["candidate"]
    assert staged.run("verify", "release/certificate.json", "--plan", "plan.toml")[0] == 0


@pytest.mark.parametrize("trial", [1, 4], ids=["search", "final training"])
def test_a_killed_run_resumes_to_the_same_release(staged, monkeypatch, trial):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    staged.edit("geometric(mean=3)", "fixed(k=3)")
    staged.edit('synthetic = "toy_run:synthetic"\n', "")
    assert staged.tune("--insecure-seed", "5", "--ledger", "other")[0] == 0
    expected = released(staged)
    (staged.folder / "release").rename(staged.folder / "first")
    with (staged.folder / "toy_run.py").open("a") as module:  # the objective itself stays the same
        module.write(
            "\n\nfrom privselect.tuning import trial\n_run, _number = trial.TrialSetup.run, 0\n\n\ndef waits(*arguments):\n"
            f"    global _number\n    _number += 1\n    while told('wait here') and _number == {trial}:\n"
            "        Path('waiting').touch()\n        time.sleep(0.01)\n"
            "    return _run(*arguments)\n\n\ntrial.TrialSetup.run = waits\n"
        )
    staged.flag("wait here")
    process = staged.start("--insecure-seed", "5")
    staged.wait_for("waiting")
    os.kill(process.pid, signal.SIGKILL)
    assert process.communicate(timeout=60) == ("", "")
    assert not (staged.folder / "release").exists()
    assert [path.suffix for path in staged.ledgers] == [".sqlite", ".sqlite-journal"]
    staged.flag("wait here", there=False)
    process = staged.start("--insecure-seed", "5")
    _, err = process.communicate(timeout=120)
    assert (process.returncode, err) == (0, "")
    assert released(staged) == expected
    assert [path.suffix for path in staged.ledgers] == [".sqlite"]


SPACE = "[space]\n"
WEIGHT = f"{SPACE}defaults = [{{ rate = 0.5 }}]\nweight"
BAD = {
    "transfer": (TRAIN, f'{TRAIN}transfer = "halve"\n', '`transfer` must be "same", "noise", or the name of a function'),
    "transfer not there": (TRAIN, f'{TRAIN}transfer = "toy_run:nothing_there"\n', "`transfer` must be an existing module:function"),
    "transfer leaves": (TRAIN, f'{TRAIN}transfer = "toy_run:leaves"\n', "error: `transfer` must return a candidate of the space: `rate`"),
    "transfer raises": (TRAIN, f'{TRAIN}transfer = "toy_run:raises"\n', "error: `transfer` must be a function that succeeds, got KeyError"),
    "transfer exits": (TRAIN, f'{TRAIN}transfer = "toy_run:exits"\n', "error: `transfer` must be a function that succeeds, got SystemExit"),
    "transfer alternates": (TRAIN, f'{TRAIN}transfer = "toy_run:alternates"\n', "`transfer` must be a function of the candidate alone"),
    "noise without DP-SGD": (TRAIN, f'{TRAIN}transfer = "noise"\n', "the transfer rule 'noise' needs a dpsgd(...) in both stages"),
    "learning rate": (TRAIN, f'{TRAIN}learning_rate = "rate"\n', '`learning_rate` needs transfer = "noise"'),
    "split": (TRAIN, f'{TRAIN}split = "auto"\n', "`split` needs an open number in both stages, got none in the final training"),
    "final_noise": (TRAIN, f"{TRAIN}final_noise = 1.07\n", "`final_noise` needs an open number in both stages"),
    "final above the budget": (TRAIN, '[train]\nmechanism = "gaussian(sigma=1)"\n', "`epsilon` must be at least 5.2"),
    "open": (TRAIN, '[train]\nmechanism = "gaussian(sigma=?)"\n', "the plan must not contain a ?"),
    "final of nothing": (TRAIN, "[train]\n", "`train`: `mechanism` is missing"),
    "budget of nan": ("epsilon = 2.0", "epsilon = nan", "`epsilon` must be a finite number, got nan"),
    "no budget": ("epsilon = 2.0\n", "", "`epsilon` is missing"),
    "weight": (SPACE, f"{WEIGHT} = 2\n", "`weight` of the defaults must be a probability in [0, 1]"),
    "weight of nan": (SPACE, f"{WEIGHT} = nan\n", "must be a probability in [0, 1], such as 1/2, got nan"),
    "weight alone": (SPACE, f"{SPACE}weight = 0.5\n", "`weight` is the probability of the defaults and needs `defaults`"),
    "default outside": (SPACE, f"{SPACE}defaults = [{{ rate = 5 }}]\n", "`rate` of default 1 must be in [0.01, 1.0], got 5"),
    "default unknown": (SPACE, f"{SPACE}defaults = [{{ speed = 5 }}]\n", "`defaults` must use hyperparameters of the space"),
    "subsample": ("[search]\n", "[search]\nsubsample = 2\n", "`subsample` must be a probability in (0, 1] such as 1/10, got 2"),
    "visible": ('count = "geometric(mean=3)"', "visible = 3", "a visible search is run from Python, with ps.VisibleSearch"),
    "final_timeout": ('executor = "serial"', 'executor = "serial"\nfinal_timeout = -1', "`final_timeout` must be in (0, inf), got -1"),
}


@pytest.mark.parametrize(("old", "new", "said"), BAD.values(), ids=BAD)
def test_bad_plans_of_both_stages_are_refused_before_anything_is_drawn(staged, old, new, said):
    staged.edit(old, new)
    assert said in staged.refused()
    assert not staged.ledgers
    assert not (staged.folder / "release").exists()


def test_different_neighbouring_relations_are_refused(staged):
    staged.edit('"gaussian(sigma=4)"\ncount', '"gaussian(sigma=4, neighbours=add_remove)"\ncount')
    staged.edit(TRAIN, '[train]\nmechanism = "gaussian(sigma=4, neighbours=replace_one)"\n')
    assert "must be stated for the same neighbouring relation" in staged.refused()
    assert not staged.ledgers


def test_the_plan_is_solved_as_the_guide_says(staged):
    staged.edit('"gaussian(sigma=4)"\ncount', '"gaussian(sigma=?)"\ncount')
    staged.edit(TRAIN, '[train]\nmechanism = "gaussian(sigma=?)"\nsplit = "auto"\n')
    assert staged.run("plan", "plan.toml", "--out", "solved.toml")[0] == 0
    assert not read_plan(staged.folder / "solved.toml").is_open
    assert staged.run("tune", "solved.toml")[0] == 0
