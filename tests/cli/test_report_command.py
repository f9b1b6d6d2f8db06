"""`privselect report`: the page of a run, how it exits, and that nothing secret is in it."""

import json

import pytest

import privselect as ps
from privselect.cli import main
from privselect.report import write_report

# By this seed K is 128, which no public number of the run is.
SEED, K = 16, 128
TOLD = 'noisy = float(data.clip(0.0, 1.0).sum() + 4.0 * randomness.numpy().normal())\n    open("aside.txt", "a").write(f"{noisy!r}\\n")'


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as caught:
        main([str(argument) for argument in arguments])
    printed = capsys.readouterr()
    return caught.value.code, printed.out, printed.err


@pytest.fixture(scope="module")
def issued():
    return ps.certify("gaussian(sigma=4)", delta=1e-6, epsilon=2)


@pytest.fixture
def file(tmp_path, issued):
    issued.write(tmp_path / "c.json")
    return tmp_path / "c.json"


def test_a_page_lies_beside_its_certificate(capsys, file):
    code, out, err = run(capsys, "report", file)
    assert (code, err) == (0, "")
    assert out.splitlines() == ["the claim holds: (1.0608, 1e-06)-DP; draft; unsigned", f"report written to {file.with_suffix('.html')}"]
    assert file.with_suffix(".html").read_text().startswith("<!DOCTYPE html>\n")


def test_a_page_goes_where_it_is_told_to_and_replaces_an_earlier_one(capsys, file, tmp_path):
    (tmp_path / "page.html").write_text("earlier")
    assert run(capsys, "report", file, "--out", tmp_path / "page.html")[0] == 0
    assert "The claim holds" in (tmp_path / "page.html").read_text()
    assert not file.with_suffix(".html").exists()


def test_a_refused_certificate_gets_a_page_that_says_so(capsys, file):
    data = json.loads(file.read_text())
    file.write_text(json.dumps({**data, "draft": False}))
    code, out, err = run(capsys, "report", file)
    assert (code, err) == (1, "")
    assert out.startswith("REFUSED: ")
    page = file.with_suffix(".html").read_text()
    assert "REFUSED" in page
    assert "-differential privacy" not in page


def test_the_plan_and_the_key_are_held_against_it(capsys, file, tmp_path):
    (tmp_path / "other.toml").write_text('version = 2\nepsilon = 2.0\ndelta = 1e-6\n[search]\nmechanism = "gaussian(sigma=5)"\n')
    assert run(capsys, "report", file, "--plan", tmp_path / "other.toml")[0] == 1
    key = run(capsys, "sign", "--new-key", tmp_path / "key.pem")[1].split()[-1]
    code, out, _ = run(capsys, "report", file, "--key", key)
    assert (code, out.splitlines()[0]) == (1, f"REFUSED: the certificate is unsigned, expected a signature by {key}")
    (tmp_path / "same.toml").write_text('version = 2\nepsilon = 2.0\ndelta = 1e-6\n[search]\nmechanism = "gaussian(sigma=4)"\n')
    assert run(capsys, "report", file, "--plan", tmp_path / "same.toml")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["missing.json"], "the certificate must be a file that can be read, got 'missing.json'"),
        (["empty"], "a release folder must contain certificate.json, got 'empty'"),
        (["bad.json"], "the certificate is not JSON"),
        (["c.json", "--out", "empty"], "`out` must be a file, got the directory 'empty'"),
        (["c.json", "--out", "nowhere/page.html"], "`out` must be a file in a folder that exists"),
        (["c.json", "--out", "page.txt"], "`out` must end in .html, .htm"),
        (["c.json", "--out", "closed/page.html"], "`out` must be a file that can be written"),
        (["c.json", "--out", "n" * 300 + ".html"], "`out` must be a file that can be written"),
        (["c.html"], "`out` must be another file than the certificate"),
        (["c.json", "--plan", "missing.toml"], "missing.toml"),
        (["c.json", "--key", "mine"], "`key` must be a public key"),
        (["n" * 5000], "the certificate must be a file that can be read"),
        (["a\0b"], "null byte"),
        ([], "RUN_OR_CERTIFICATE"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(capsys, monkeypatch, file, arguments, said):
    folder = file.parent
    monkeypatch.chdir(folder)
    (folder / "empty").mkdir()
    (folder / "closed").mkdir()
    (folder / "bad.json").write_text("bad")
    (folder / "c.html").write_bytes(file.read_bytes())
    if "closed/page.html" in arguments:  # who is root may write into any folder, so the disk is full instead
        monkeypatch.setattr("privselect.report.write.atomic_write", full)
    before = sorted(folder.rglob("*"))
    code, out, err = run(capsys, "report", *arguments)
    assert (code, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1
    assert sorted(folder.rglob("*")) == before
    assert (folder / "c.html").read_bytes() == file.read_bytes()


def full(_file, _content):
    raise OSError(28, "No space left on device")


def test_a_run_has_its_page_and_nothing_secret_is_in_it(project):
    project.edit("geometric(mean=3)", "geometric(mean=40)")
    project.edit("epsilon = 2.0", "epsilon = 3.0")
    module = project.folder / "toy_run.py"
    module.write_text(module.read_text().replace(TOLD.partition("\n")[0], TOLD))
    assert project.tune("--insecure-seed", SEED)[0] == 0
    scores = [float(line) for line in (project.folder / "aside.txt").read_text().split()][1:]  # the first was on synthetic data
    assert len(scores) == K
    code, out, err = project.run("report", "release", "--plan", "plan.toml")
    assert (code, err) == (0, "")
    assert out.splitlines()[-1] == "report written to release/report.html"
    page = (project.folder / "release" / "report.html").read_text()
    assert repr(max(scores)) in page
    lost = sorted(scores)[:-1]
    assert not [score for score in lost for digits in (6, 15, 17) if f"{score:.{digits}g}" in page]
    # As text between characters that are neither digits nor letters; the bare digits are found by chance in hashes.
    assert not [form for form in (f" {K} ", f">{K}<", f"={K}", f"({K}", f" {K}<", f">{K} ", f" {K},", f" {K}.") if form in page]
    assert "SECRET" not in page
    assert "one person" in page
    assert "INSECURE" in page
    assert page.count("layers") == 1


@pytest.mark.parametrize("arguments", [("release",), ("release/certificate.json",), ("release", "--out", "release/other.html")])
def test_a_page_in_the_folder_of_a_release_does_not_tell_when_the_run_ended(project, arguments):
    assert project.tune()[0] == 0
    folder = project.folder / "release"
    before = {place.stat().st_mtime_ns for place in (folder, *folder.iterdir())}
    assert project.run("report", *arguments)[0] == 0
    assert list(folder.glob("*.html"))
    assert {place.stat().st_mtime_ns for place in (folder, *folder.iterdir())} == before
    assert len(before) == 1


def test_a_folder_whose_time_may_not_be_set_gets_its_page(project, monkeypatch):
    assert project.tune()[0] == 0

    def forbidden(*_, **__):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr("os.utime", forbidden)  # as in a folder that belongs to somebody else, who lets others write in it
    assert write_report(project.folder / "release").file.exists()


def test_the_page_of_a_run_needs_nothing_but_the_released_folder(project, tmp_path_factory):
    assert project.tune()[0] == 0
    here = write_report("release").file.read_bytes()
    moved = tmp_path_factory.mktemp("elsewhere") / "moved"
    (project.folder / "release").rename(moved)
    assert write_report(moved).file.read_bytes() == here
