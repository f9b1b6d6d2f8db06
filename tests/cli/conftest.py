"""A small run as a user would write it: a plan file, and a module beside it."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import privselect
from privselect.certificates.certify import certify
from privselect.cli import main

MODULE = """
import resource
import time
from pathlib import Path

import numpy as np

SPACE_OF_NOBODY = 7
calls = 0


def told(flag):
    return Path(flag).exists()


def data():
    print("loading SECRET-PRINT")
    if told("broken"):
        raise ValueError("record 17 of SECRET-PERSON cannot be read")
    if told("leaving"):
        raise SystemExit("record 18 of SECRET-PERSON")
    return np.array([float(line) for line in Path("records.txt").read_text().split()])


def synthetic():
    return np.zeros(20)


def objective(candidate, data, randomness):
    global calls
    calls += 1
    print("in a trial SECRET-PRINT")
    private = len(data) != 20 or data.any()
    if told("text"):
        return "a text"
    if told("failing"):
        raise ValueError("record 19 of SECRET-PERSON")
    if told("stop") and private:
        raise KeyboardInterrupt
    if told("wait") and private:
        Path("waiting").touch()
        while not told("go"):
            time.sleep(0.01)
    noisy = float(data.clip(0.0, 1.0).sum() + 4.0 * randomness.numpy().normal())
    if told("limit") and private and calls > 2:  # the trial on synthetic data was the first
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
        noisy = -1e6
    return noisy, {"total": np.full(100_000 if told("large") else 1, noisy)}


def training(candidate, data, randomness):
    return None, {"total": np.array([randomness.numpy().normal()])}


def correct(artifact, holdout):
    return holdout > artifact["total"][0]


def ids(data):
    return [f"record {place}" for place in range(len(data))]


def bad_ids(data):
    raise ValueError("record 20 of SECRET-PERSON")


def holdout():
    return np.arange(7.0)


def space(suggest):
    suggest.uniform("rate", 0.0, 1.0)


def as_bytes(artifact):
    return artifact["total"].tobytes()


def nothing():
    return {"total": np.zeros(1)}


def declared(candidate):
    import privselect as ps

    return ps.Gaussian(sigma=4 + candidate["rate"])
"""

PLAN = """\
version = 2
epsilon = 2.0
delta = 1e-6

[search]
mechanism = "gaussian(sigma=4)"
count = "geometric(mean=3)"

[declared]
unit = "one person"
trust_model = "central: the curator sees the data"
records_public = true

[space]
rate = { log_uniform = [0.01, 1] }
layers = { choice = [1, 2], weights = ["1/3", "2/3"] }

[tune]
objective = "toy_run:objective"
data = "toy_run:data"
synthetic = "toy_run:synthetic"
score = "public"
export = "arrays"
fallback = { total = [0.0] }
executor = "serial"
out = "release"
"""


class Project:
    """A folder with a plan and its module, in which `privselect` is run."""

    def __init__(self, folder, capfd):
        self.folder, self._capfd = folder, capfd
        self.plan = folder / "plan.toml"
        self.plan.write_text(PLAN)
        (folder / "toy_run.py").write_text(MODULE)
        (folder / "records.txt").write_text(" ".join(str(number % 3) for number in range(50)))

    def edit(self, old, new):
        text = self.plan.read_text()
        assert old in text
        self.plan.write_text(text.replace(old, new))

    def flag(self, name, *, there=True):
        (self.folder / name).touch() if there else (self.folder / name).unlink()

    def run(self, *arguments):
        """Exit code, stdout and stderr, in this process; the module is imported anew."""
        sys.modules.pop("toy_run", None)
        with pytest.raises(SystemExit) as stop:
            main([str(argument) for argument in arguments])
        printed = self._capfd.readouterr()
        return stop.value.code, printed.out, printed.err

    def tune(self, *options):
        return self.run("tune", "plan.toml", *options)

    def refused(self, *options, code=2):
        """The one line of a refusal."""
        before = self.files()
        found, out, err = self.tune(*options)
        assert (found, out) == (code, "")
        assert err.count("\n") == 1
        assert "Traceback" not in err
        assert "SECRET" not in err
        assert {name: content for name, content in self.files().items() if name in before} == before
        return err

    def files(self):
        """Every file with its content, ledgers included."""
        places = sorted(place for place in self.folder.rglob("*") if place.is_file() and "__pycache__" not in place.parts)
        return {str(place.relative_to(self.folder)): place.read_bytes() for place in places}

    @property
    def ledgers(self):
        return sorted((self.folder / ".privselect").glob("*")) if (self.folder / ".privselect").is_dir() else []

    def wait_for(self, name, seconds=60.0):
        until = time.monotonic() + seconds
        while not (self.folder / name).exists():
            assert time.monotonic() < until, f"{name} did not come"
            time.sleep(0.01)

    def start(self, *options, before="", **settings):
        """The command in a process of its own, after some lines of Python."""
        code = f"{before}\nfrom privselect.cli import main\nmain({['tune', 'plan.toml', *options]!r})"
        path = os.pathsep.join([str(Path(privselect.__file__).parent.parent), os.environ.get("PYTHONPATH", "")])
        return subprocess.Popen(
            [sys.executable, "-c", code],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": path},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **settings,
        )

    def tune_limited(self, most, *options):
        """With a limit on the size of files, as on a disk that is full."""
        before = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({most}, resource.RLIM_INFINITY))"
        process = self.start(*options, before=before)
        out, err = process.communicate(timeout=120)
        return process.returncode, out, err


CERTIFIED = {}


def certified(*arguments, **options):
    """Certificates of one plan are alike but for their time; computing each once makes these tests quick."""
    key = repr((arguments, options))
    if key not in CERTIFIED:
        CERTIFIED[key] = certify(*arguments, **options)
    return CERTIFIED[key]


@pytest.fixture
def project(tmp_path, capfd, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("privselect.tuning.tuning_run.certify", certified)
    yield Project(tmp_path, capfd)
    sys.modules.pop("toy_run", None)
