"""Banks that are there are kept, whatever happened to the run that made them."""

import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import psutil
import pytest
from experiments_made import KILLED, KILLED_REPETITIONS, KILLED_STEPS, TINY

from research.experiments import bank, banks, settings, trainers
from research.experiments.bank import bank_file, stored_bank, train_bank, trained_bank
from research.experiments.banks import train_banks

pytestmark = pytest.mark.usefixtures("quick")
ROOT = Path(__file__).parents[3]
SCRIPT = Path(__file__).with_name("banks_run.py")
TOLD = re.compile(r"bank (\d) of (\d): (\w+), repetition (\d); about \d+ minutes left")


@pytest.fixture
def trained(monkeypatch):
    """The repetitions that were trained, in this very process."""
    done = []

    def remembered(setting, repetition, data, folder):
        done.append(repetition)
        train_bank(setting, repetition, data, folder)

    monkeypatch.setattr(banks, "ProcessPoolExecutor", ThreadPoolExecutor)
    monkeypatch.setattr(banks, "REPETITIONS", 3)
    monkeypatch.setattr(banks, "train_bank", remembered)
    return done


def test_every_repetition_is_trained_and_told_beside_the_answer(trained, tmp_path, capsys):
    train_banks([TINY], None, tmp_path, 1)
    assert trained == [0, 1, 2]
    assert all(stored_bank(tmp_path, TINY, repetition) is not None for repetition in range(3))
    out, err = capsys.readouterr()
    first, *others = err.splitlines()
    assert (out, first) == ("", "0 of 3 banks are there, 3 to train")
    assert [TOLD.fullmatch(line).groups() for line in others] == [(str(n), "3", "tiny", str(n)) for n in (1, 2, 3)]
    assert others[-1].endswith("about 0 minutes left")


def test_what_is_there_is_not_trained_again_and_what_is_broken_is(trained, tmp_path, capsys):
    train_banks([TINY], None, tmp_path, 1)
    bank_file(tmp_path, TINY, 1).write_bytes(bank_file(tmp_path, TINY, 1).read_bytes()[:-9])
    trained.clear()
    capsys.readouterr()
    train_banks([TINY], None, tmp_path, 1)
    assert trained == [1]
    assert capsys.readouterr().err.startswith("2 of 3 banks are there, 1 to train\n")
    train_banks([TINY], None, tmp_path, 1)
    assert trained == [1]
    assert capsys.readouterr().err == "3 of 3 banks are there, 0 to train\n"


def test_an_error_is_raised_and_what_was_trained_before_is_kept(trained, tmp_path, monkeypatch):
    def failing(setting, repetition, data, folder):
        trained.append(repetition)
        if repetition == 1:
            raise ArithmeticError("no bank")
        train_bank(setting, repetition, data, folder)

    monkeypatch.setattr(banks, "train_bank", failing)
    with pytest.raises(ArithmeticError, match="no bank"):
        train_banks([TINY], None, tmp_path, 1)
    assert stored_bank(tmp_path, TINY, 0) is not None
    assert stored_bank(tmp_path, TINY, 1) is None
    assert not list(tmp_path.glob(".*"))  # and nothing half-written


def test_a_network_and_more_records_are_more_work():
    works = [banks._work(setting) for setting in settings.SETTINGS]
    assert min(works) > 0.0
    by_name = {setting.name: banks._work(setting) for setting in settings.SETTINGS}
    assert by_name["mnist-48000"] > by_name["mnist-6000"] > by_name["mnist-2000"]
    assert works[0] > works[-1]


def run(folder):
    """In a session of its own, so that its workers are killed with it."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}  # research/ is not installed
    return subprocess.Popen([sys.executable, SCRIPT, folder], stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True)


def test_a_run_that_was_killed_goes_on_where_it_was(tmp_path, monkeypatch):
    wanted = [(setting, repetition) for setting in KILLED for repetition in range(KILLED_REPETITIONS)]
    with run(tmp_path) as process:
        while len(list(tmp_path.glob("[!.]*.npz"))) < 2:  # some are there
            assert process.poll() is None
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    for module in (settings, bank, trainers):
        monkeypatch.setattr(module, "STEPS", KILLED_STEPS)
    kept = {bank_file(tmp_path, *one): bank_file(tmp_path, *one).stat().st_mtime_ns for one in wanted if stored_bank(tmp_path, *one)}
    # Every file under a bank's name is a whole bank: none was half-written.
    assert set(kept) == set(tmp_path.glob("[!.]*.npz"))
    assert 2 <= len(kept) < len(wanted)
    with run(tmp_path) as process:
        told = process.stderr.read().splitlines()
    assert process.returncode == 0
    missing = len(wanted) - len(kept)
    assert told[0] == f"{len(kept)} of {len(wanted)} banks are there, {missing} to train"
    assert len(told) == missing + 1
    assert all(file.stat().st_mtime_ns == before for file, before in kept.items())
    # One that was kept and one that was trained later are what they would have been without the kill.
    for setting, repetition in (wanted[0], wanted[-1]):
        assert np.array_equal(stored_bank(tmp_path, setting, repetition).right, trained_bank(setting, repetition, None).right)


def test_workers_end_with_the_run_that_asked_for_them(tmp_path):
    with run(tmp_path) as process:
        while not list(tmp_path.glob("[!.]*.npz")):
            assert process.poll() is None
            time.sleep(0.01)
        process.kill()  # the parent alone
        process.wait()
        ends = time.monotonic() + 120.0
        while members(process.pid) and time.monotonic() < ends:
            time.sleep(0.1)
        assert not members(process.pid)


def members(session):
    """Processes of a session that still run; a killed parent's are nobody's children any more."""
    return [process for process in psutil.process_iter() if _session(process) == session]


def _session(process):
    try:
        return None if process.status() == psutil.STATUS_ZOMBIE else os.getsid(process.pid)
    except (psutil.Error, ProcessLookupError):
        return None
