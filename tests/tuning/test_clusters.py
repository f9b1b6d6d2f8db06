"""The same suite on real local clusters of Dask and Ray, and what is theirs alone."""

import contextlib
import stat
import tempfile
from pathlib import Path

import pytest
from engines_suite import PATIENCE, SEEDS, Closed, Conformance, LosesTrials, Workers, work

from privselect.errors import ParameterError
from privselect.tuning.executors import read_engine
from privselect.tuning.executors.dask import Dask
from privselect.tuning.executors.ray import Ray, _own_cluster
from privselect.tuning.trial import run_trial

pytestmark = pytest.mark.engines


class TestDask(Conformance, Workers):
    @staticmethod
    def make():
        return Dask(workers=2)

    def test_dask_runs_the_trial_of_a_killed_worker_again(self, engine, tmp_path):
        executor, futures = self.lose_one(engine, tmp_path)
        try:
            assert [future.result(PATIENCE) for future in futures] == [run_trial(work(), {"do": "look"}, SEEDS[0])] * 2
        finally:
            executor.shutdown()

    def test_its_folder_is_private_and_goes(self, engine, monkeypatch, tmp_path):
        check_folder(engine, monkeypatch, tmp_path)

    def test_a_given_cluster_is_used_and_left(self, tmp_path):
        distributed = pytest.importorskip("distributed")
        options = {"n_workers": 2, "threads_per_worker": 2, "dashboard_address": None, "scheduler_kwargs": {"dashboard_address": ":0"}}
        with (
            distributed.LocalCluster(**options, memory_limit=0, local_directory=str(tmp_path)) as cluster,
            distributed.Client(cluster) as client,
        ):
            engine = Dask(client)
            assert engine.workers == 4
            for _ in range(2):
                with contextlib.closing(Closed(engine.open(work()))) as opened:
                    assert opened.executor.submit(run_trial, {"do": "draw"}, SEEDS[0]).result(PATIENCE) == run_trial(
                        work(), {"do": "draw"}, SEEDS[0]
                    )
                    assert client.who_has()  # the work
                assert set(client.run(kept).values()) == {0}
            assert client.submit(int, "7").result(PATIENCE) == 7

    def test_what_is_no_client_is_refused(self):
        with pytest.raises(ParameterError, match=r"^`client` must be a distributed.Client, got 'str'$"):
            Dask("tcp://somewhere:8786")


def kept():
    from privselect.tuning.executors import cluster_futures

    return len(cluster_futures._SETUPS)


class TestRay(Conformance, Workers, LosesTrials):
    @staticmethod
    def make():
        return Ray(workers=2)


class TestOwnRay:
    """Not beside an executor that is open, whose Ray would be used."""

    @pytest.fixture
    def engine(self):
        return Ray(workers=2)

    def test_its_folder_is_private_and_goes(self, engine, monkeypatch, tmp_path):
        check_folder(engine, monkeypatch, tmp_path)

    def test_no_key_is_written_into_the_home(self, engine, monkeypatch, tmp_path):
        monkeypatch.setenv("HOME", str(tmp_path))
        engine.open(work()).shutdown()
        assert not list(tmp_path.iterdir())

    def test_a_ray_of_the_user_is_used_and_left(self, engine):
        ray = pytest.importorskip("ray")
        with _own_cluster(2):
            for _ in range(2):
                with contextlib.closing(Closed(engine.open(work()))) as opened:
                    assert opened.executor.submit(run_trial, {"do": "draw"}, SEEDS[0]).result(PATIENCE) == run_trial(
                        work(), {"do": "draw"}, SEEDS[0]
                    )
                assert ray.is_initialized()
        assert not ray.is_initialized()

    def test_what_is_no_address_is_refused(self):
        with pytest.raises(ParameterError, match=r"^`address` must be a text such as 'auto', got 6379$"):
            Ray(address=6379)


def check_folder(engine, monkeypatch, tmp_path):
    root = Path(tempfile.mkdtemp(dir="/tmp"))  # a name of pytest's own would be too long for Ray
    monkeypatch.setattr(tempfile, "tempdir", str(root))
    with contextlib.closing(Closed(engine.open(work()))) as opened:
        opened.executor.submit(run_trial, {"do": "look", "file": str(tmp_path / "pids")}, SEEDS[0]).result(PATIENCE)
        (made,) = root.iterdir()
        assert stat.S_IMODE(made.stat().st_mode) == 0o700
    root.rmdir()


@pytest.mark.parametrize("name", ["dask", "ray"])
@pytest.mark.parametrize("workers", [0, -1, 1.5, "two"])
def test_a_bad_number_of_workers_is_one_sentence_on_a_cluster(name, workers):
    with pytest.raises(ParameterError, match=r"^`workers` must be an integer >= 1 and <= 10000, got "):
        read_engine(name, workers)
