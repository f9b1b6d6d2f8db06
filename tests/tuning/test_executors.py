"""Engines of this machine that need no cluster: in this process, and in processes by loky."""

import contextlib
import os
import secrets
import sys
import tempfile
from pathlib import Path

import pytest
from engines_suite import PATIENCE, SEEDS, Closed, Conformance, LosesTrials, Workers, run_script, work
from loky import cpu_count

from privselect.errors import MissingExtraError, ParameterError
from privselect.tuning.executors import Serial, read_engine
from privselect.tuning.executors.dask import Dask
from privselect.tuning.executors.processes import Processes
from privselect.tuning.executors.ray import Ray
from privselect.tuning.trial import TrialSetup, run_trial


class TestSerial(Conformance):
    @staticmethod
    def make():
        return Serial()


class TestProcesses(Conformance, Workers, LosesTrials):
    @staticmethod
    def make():
        return Processes(2)

    def test_after_a_loss_every_submission_is_told_as_lost(self, engine, tmp_path):
        executor, futures = self.lose_one(engine, tmp_path)
        assert all(future.exception(PATIENCE) is not None for future in futures)
        assert executor.submit(run_trial, {"do": "draw"}, SEEDS[0]).exception(PATIENCE) is not None
        executor.shutdown()

    @pytest.mark.parametrize(("given", "seen"), [(None, 1.0), ("3", 3.0)])
    def test_one_thread_unless_the_user_says_otherwise(self, monkeypatch, given, seen):
        monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
        if given is not None:
            monkeypatch.setenv("OMP_NUM_THREADS", given)
        with contextlib.closing(Closed(Processes(1).open(work()))) as opened:
            assert opened.executor.submit(run_trial, {"do": "look", "variable": "OMP_NUM_THREADS"}, SEEDS[0]).result(PATIENCE).score == seen

    def test_the_data_is_in_no_file(self, engine, monkeypatch, tmp_path):
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
        monkeypatch.setenv("TMPDIR", str(tmp_path))
        mark = secrets.token_bytes(32)
        with contextlib.closing(Closed(engine.open(TrialSetup(lambda _c, d, _r: (len(d), None), mark * 10_000)))) as opened:
            assert opened.executor.submit(run_trial, {}, SEEDS[0]).result(PATIENCE).score == 320_000
            places = [*tmp_path.rglob("*"), *Path("/dev/shm").glob("*")]  # noqa: S108 - to look, not to write
            for place in places:
                with contextlib.suppress(OSError):  # of others, or gone
                    assert mark not in place.read_bytes()
            assert not list(tmp_path.rglob("*"))

    def test_an_executor_that_is_never_used_or_closed_leaves_no_word(self, engine, tmp_path):
        ran = run_script(tmp_path, engine, "sys.exit()")
        assert (ran.stdout, ran.stderr, ran.returncode) == ("", "", 0)

    def test_by_default_one_worker_for_each_usable_core(self):
        assert Processes().workers == cpu_count() <= (os.cpu_count() or 1)
        assert read_engine("processes") == Processes()
        assert read_engine("processes", 3) == Processes(3)


@pytest.mark.parametrize("workers", [0, -1, 1.5, "two", True, 10_001])
def test_a_bad_number_of_workers_is_one_sentence(workers):
    with pytest.raises(ParameterError, match=r"^`workers` must be an integer >= 1 and <= 10000, got "):
        Processes(workers)


@pytest.mark.parametrize(
    ("engine", "module", "extra"),
    [(Processes, "loky", "tune"), (Processes, "cloudpickle", "tune"), (Dask, "distributed", "dask"), (Ray, "ray", "ray")],
)
def test_a_missing_package_is_one_sentence(monkeypatch, engine, module, extra):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=rf"^this engine needs {module}; install it with: pip install 'privselect\[{extra}\]'$"):
        engine()


def test_what_cannot_be_pickled_is_one_sentence():
    with pytest.raises(ParameterError, match=r"^the objective and its data must be picklable, got a TypeError$"):
        Processes(1).open(TrialSetup(lambda: None, (line for line in "ab")))
