"""The complete example, from a budget to a verified release."""

import re

import pytest

from privselect.certificates.certificate import Certificate, parse_time
from privselect.cli import main


def run(*words):
    with pytest.raises(SystemExit) as stop:
        main(list(words))
    return stop.value.code


@pytest.mark.slow
def test_the_demonstration_releases_a_model_that_verifies_and_can_be_shown_again(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run("demo") == 0
    printed = capsys.readouterr()
    assert not printed.err
    assert {file.name for file in (tmp_path / "demo").iterdir()} == {
        "bounds-over-delta.png",
        "bounds.png",
        "certificate.json",
        "model.npz",
        "plan.json",
        "release.json",
        "report.html",
    }
    # A tenth is what guessing reaches; the chance that K is 1 and its candidate that bad is below 1e-3.
    assert float(re.search(r"^accuracy +([\d.]+)% of the test digits", printed.out, flags=re.MULTILINE)[1]) > 30
    assert re.search(r"^report +demo/report\.html", printed.out, flags=re.MULTILINE)
    assert "The claim holds" in (tmp_path / "demo" / "report.html").read_text()
    certificate = Certificate.read(tmp_path / "demo" / "certificate.json")
    assert certificate.total.upper <= 3.0
    assert not certificate.draft
    # What is added after the run would tell by its time when the run ended.
    made = parse_time(certificate.issued_at).timestamp()
    assert {place.stat().st_mtime for place in (tmp_path / "demo", *(tmp_path / "demo").iterdir())} == {made}
    assert certificate.run.runs == 1
    # Both stages together; the final training alone costs most of the budget by every bound.
    assert certificate.bounds.renyi > certificate.bounds.paper > 1.15 * certificate.total.upper
    assert run("verify", "demo/certificate.json", "--plan", "demo.toml") == 0

    assert run("demo") == 0
    assert "an earlier demonstration is replaced" in capsys.readouterr().out
    assert Certificate.read(tmp_path / "demo" / "certificate.json").run.runs == 1


def test_a_folder_with_something_else_is_not_touched(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / "mine.txt").write_text("mine")
    assert run("demo") == 2
    assert capsys.readouterr().err.startswith("error: `out` must be a new or empty folder")
    assert (tmp_path / "demo" / "mine.txt").read_text() == "mine"
