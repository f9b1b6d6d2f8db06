"""The runner opens as many executors as it needs, one after the other, and closes each."""

import os
from concurrent.futures import Future

import pytest

from privselect.errors import AbortedError, ParameterError
from privselect.tuning.distributions import Uniform
from privselect.tuning.executors import Engine, Serial
from privselect.tuning.ledger import Ledger, RunRecord
from privselect.tuning.runner import RunDraws, Runner, RunnerOptions
from privselect.tuning.space import Space
from privselect.tuning.trial import TrialSetup


class Counting(Engine):
    """Serial, with every opening and closing noted; the trials whose numbers are given lose their worker."""

    name, workers = "counting", 1

    def __init__(self, lose=(), error=RuntimeError):
        self.lose, self.error, self.opened, self.closed, self.submitted = set(lose), error, 0, 0, 0

    def open(self, work):
        assert self.opened == self.closed  # never two at a time
        self.opened += 1
        executor = Serial().open(work)
        submit, shutdown = executor.submit, executor.shutdown

        def counted_submit(function, *arguments):
            self.submitted += 1
            if self.submitted in self.lose:
                lost = Future()
                lost.set_exception(self.error("a worker was lost"))
                return lost
            return submit(function, *arguments)

        def counted_shutdown(**named):
            self.closed += 1
            shutdown(**named)

        executor.submit, executor.shutdown = counted_submit, counted_shutdown
        return executor


def run(engine, trials, losses=3):
    ledger, secret = Ledger.in_memory(), os.urandom(32)
    ledger.begin(RunRecord("sha256:" + 64 * "0", "{}", None, secret, trials, None, released=False))
    conduct = RunnerOptions(engine, losses=losses)
    return Runner(ledger, RunDraws(secret, trials, Space({"x": Uniform(0, 1)})), conduct).run(
        TrialSetup(lambda c, _d, _r: (c["x"], None), None)
    )


@pytest.mark.parametrize("trials", [0, 1, 7])
def test_one_executor_for_a_run_whatever_k_is(trials):
    engine = Counting()
    best = run(engine, trials)
    assert (best is None) == (trials == 0)
    assert (engine.opened, engine.closed, engine.submitted) == (1, 1, trials)


def test_another_one_for_each_loss():
    engine = Counting(lose={2, 5})
    assert run(engine, 7) is not None
    assert (engine.opened, engine.closed, engine.submitted) == (3, 3, 9)


def test_a_trial_that_loses_its_worker_too_often_ends_the_run():
    engine = Counting(lose=range(2, 100))
    with pytest.raises(AbortedError, match="one trial lost its worker more than 2 times; nothing is released"):
        run(engine, 7, losses=2)
    assert engine.opened == engine.closed


def test_work_that_cannot_be_shipped_ends_the_run_at_once():
    engine = Counting(lose={1}, error=ParameterError)
    with pytest.raises(AbortedError, match="nothing is released, and the run can be resumed"):
        run(engine, 7)
    assert (engine.opened, engine.closed, engine.submitted) == (1, 1, 1)
