"""With an objective that prints its scores, neither a losing score nor K appears in output or files."""

import re
from pathlib import Path

import pytest

from run_apart import run_apart

SCRIPT = Path(__file__).with_name("optuna_run.py")
SEEDS = (12, 5)  # by which K is 28 and 60


def files_of(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("n_jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_runs_with_different_k_print_and_write_the_same(tmp_path, n_jobs):
    runs, told = {}, {}
    for seed in SEEDS:
        runs[seed] = run_apart(tmp_path / "place", SCRIPT, n_jobs, seed)
        (tmp_path / "place").rename(tmp_path / str(seed))
        told[seed] = (tmp_path / str(seed) / "aside" / "scores").read_text().split()
    first, second = (runs[seed] for seed in SEEDS)
    assert first.returncode == second.returncode == 0, first.stderr.decode()
    assert [len(told[seed]) for seed in SEEDS] == [28, 60]  # the trials were run, and talked
    assert first.stdout == second.stdout
    assert first.stderr == second.stderr == b""
    for name in ("work", "temporary", "home"):
        assert files_of(tmp_path / "12" / name) == files_of(tmp_path / "5" / name)
    for seed in SEEDS:
        written = [content for name in ("work", "home") for content in files_of(tmp_path / str(seed) / name).values()]
        seen = b"".join([runs[seed].stdout, *written])
        kept = b"".join(files_of(tmp_path / str(seed) / "ledgers").values())
        assert b"canary" not in seen + kept
        for score in told[seed]:
            assert score[:10].encode() not in seen + kept
    assert set(files_of(tmp_path / "5" / "work")) == {
        f"released/{name}" for name in ("certificate.json", "model.npz", "plan.json", "release.json")
    }
    # What is printed shows the winner alone: the best trial, and the only one of the exported study, at the time of the certificate.
    printed = first.stdout.decode()
    assert "'depth': 3" in printed
    assert re.findall(r"number=(\d+)", printed) == ["0", "0"]
    assert set(re.findall(r"datetime_\w+=(.*?\))", printed)) == {"datetime.datetime(2023, 11, 14, 22, 13, 20)"}
