"""A search tells neither K nor a losing score, however much its estimator talks."""

from pathlib import Path

import pytest

from run_apart import run_apart

SCRIPT = Path(__file__).with_name("sklearn_secret_run.py")
CANARY = b"canary-4711"


@pytest.mark.parametrize(
    ("kind", "workers"),
    [
        ("public", "1"),
        pytest.param("counted", "1", marks=pytest.mark.slow),
        pytest.param("covered", "2", marks=pytest.mark.slow),
    ],
)
def test_a_talkative_estimator_is_not_heard(tmp_path, kind, workers):
    ended = run_apart(tmp_path, SCRIPT, kind, workers)
    assert ended.returncode == 0, ended.stderr.decode()
    scores = (tmp_path / "aside" / "scores").read_text().split()
    assert len(scores) == len(set(scores)) == 128  # by the seed of the script
    places = {str(path): path.read_bytes() for name in ("work", "temporary", "home", "ledgers") for path in files_in(tmp_path / name)}
    places |= {"stdout": ended.stdout, "stderr": ended.stderr}
    assert ended.stdout.startswith(b"heard 0\nreleased {")
    assert ended.stderr == b""
    assert not files_in(tmp_path / "temporary")
    best = max(scores, key=float) if kind != "counted" else None
    for name, content in places.items():
        assert CANARY not in content, name
        assert not [score for score in scores if score != best and score[:16].encode() in content], name
        for mark in (b" %d ", b"=%d,", b": %d,", b"(%d)", b"%d trials"):
            assert mark % len(scores) not in content, name
    assert best is None or best.encode() in places["stdout"]  # the search does find what is there


def files_in(folder):
    return [path for path in folder.rglob("*") if path.is_file()]
