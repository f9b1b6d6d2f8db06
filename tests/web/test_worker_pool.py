"""Worker processes: limited in time, memory and number, and never left behind."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from wire import QUICK as QUICK_FIELDS
from wire import SLOW as SLOW_FIELDS

from privselect.web import worker_pool
from privselect.web.schemas import AnswerRequest, RefusedError
from privselect.web.worker_pool import ANSWER_JOBS, BusyError, CancelledByShutdownError, InternalError, LimitError, WorkerPool

QUICK, SLOW = AnswerRequest(**QUICK_FIELDS), AnswerRequest(**SLOW_FIELDS)
LARGE_MECHANISM = "dpsgd(noise_multiplier=1, sampling_probability=0.001, steps=1000000)"
LARGE = QUICK.model_copy(update={"mechanism": LARGE_MECHANISM, "count": "fixed(k=300)"})
INVALID = QUICK.model_copy(update={"mechanism": "gaussian(sigma=-1)"})


def run(scenario, **limits):
    """Run a scenario on a new pool, optionally with other time limits."""

    async def whole():
        pool, jobs = WorkerPool(), ANSWER_JOBS
        if limits:
            jobs = replace(ANSWER_JOBS, **limits)
            pool._queues[jobs] = worker_pool._Queue(jobs)
        try:
            return await scenario(pool, jobs)
        finally:
            pool.close()

    return asyncio.run(whole())


def test_a_question_is_answered_by_another_process():
    async def scenario(pool, jobs):
        await pool.start()
        first = await pool.run("answer", QUICK, jobs)
        second = await pool.run("answer", QUICK, jobs)
        return first, second

    first, second = run(scenario)
    assert first == second
    assert first["cost"]["upper"] < 1.79


def test_a_refusal_and_a_fault_leave_the_process_at_work():
    async def scenario(pool, jobs):
        with pytest.raises(RefusedError) as refused:
            await pool.run("answer", INVALID, jobs)
        (worker,) = pool._queues[jobs].idle
        with pytest.raises(InternalError):
            await pool.run("no such kind", QUICK, jobs)
        assert pool._queues[jobs].idle == [worker]
        return refused.value.field

    assert run(scenario) == "mechanism"


def test_a_slow_question_is_ended_and_the_next_one_answered():
    async def scenario(pool, jobs):
        begun = time.monotonic()
        with pytest.raises(LimitError, match="takes longer than the limit of 1 seconds"):
            await pool.run("answer", SLOW, jobs)
        assert time.monotonic() - begun < 5.0
        assert not pool._queues[jobs].idle
        return await pool.run("answer", QUICK, jobs)

    assert run(scenario, seconds=1.0)["value"] < 1.79


def test_a_slow_question_gives_way_to_others_that_wait():
    async def scenario(pool, jobs):
        slow = asyncio.ensure_future(pool.run("answer", SLOW, jobs))
        await asyncio.sleep(1.5)
        assert not slow.done()  # alone, it may go on
        quick = await pool.run("answer", QUICK, jobs)
        with pytest.raises(LimitError, match="while others wait"):
            await slow
        return quick

    assert run(scenario, workers=1, seconds=100.0, busy_seconds=1.0)["value"] < 1.79


def test_a_cancelled_question_is_ended():
    async def scenario(pool, jobs):
        asking = asyncio.ensure_future(pool.run("answer", SLOW, jobs))
        (child,) = await at_work()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert child not in children()
        return await pool.run("answer", QUICK, jobs)

    assert run(scenario, workers=1)["value"] < 1.79


def test_a_cancelled_waiting_question_is_not_started():
    async def scenario(pool, jobs):
        first = asyncio.ensure_future(pool.run("answer", SLOW, jobs))
        await asyncio.sleep(0.5)
        second = asyncio.ensure_future(pool.run("answer", SLOW, jobs))
        await asyncio.sleep(0.1)
        assert pool._queues[jobs].waiting == 1
        second.cancel()
        first.cancel()
        await asyncio.gather(first, second, return_exceptions=True)
        assert pool._queues[jobs].waiting == 0
        return await pool.run("answer", QUICK, jobs)

    assert run(scenario, workers=1)["value"] < 1.79


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits what a process holds")
def test_a_question_that_takes_too_much_memory_is_refused():
    async def scenario(pool, jobs):
        with pytest.raises(LimitError, match="more memory"):
            await pool.run("answer", LARGE, jobs)
        assert not pool._queues[jobs].idle  # its caches may be incomplete
        return await pool.run("answer", QUICK, jobs)

    assert run(scenario)["value"] < 1.79


def test_a_process_that_dies_is_replaced():
    async def scenario(pool, jobs):
        asking = asyncio.ensure_future(pool.run("answer", SLOW, jobs))
        for child in await at_work():
            os.kill(child, signal.SIGKILL)
        with pytest.raises(LimitError):
            await asking
        first = await pool.run("answer", QUICK, jobs)
        (worker,) = pool._queues[jobs].idle
        worker._process.kill()  # while it waits for a question
        worker._process.join()
        return first, await pool.run("answer", QUICK, jobs)

    first, second = run(scenario)
    assert first == second


def test_a_process_that_has_grown_is_replaced(monkeypatch):
    monkeypatch.setattr(worker_pool._Worker, "reusable", property(lambda _: False, lambda *_: None), raising=False)

    async def scenario(pool, jobs):
        await pool.run("answer", QUICK, jobs)
        return list(pool._queues[jobs].idle)

    assert run(scenario) == []


def test_too_many_questions_are_refused_as_busy(monkeypatch):
    monkeypatch.setattr(worker_pool, "MAX_WAITING", 3)

    async def scenario(pool, jobs):
        asking = [asyncio.ensure_future(pool.run("answer", QUICK, jobs)) for _ in range(30)]
        return await asyncio.gather(*asking, return_exceptions=True)

    found = run(scenario)
    busy = [one for one in found if isinstance(one, BusyError)]
    assert len(busy) + sum(isinstance(one, dict) for one in found) == 30
    assert busy


def test_questions_are_dropped_at_the_end_whether_they_have_begun_or_wait():
    async def scenario(pool, jobs):
        asking = [asyncio.ensure_future(pool.run("answer", SLOW, jobs)) for _ in range(4)]
        await asyncio.sleep(0.5)
        pool.cancel_all()
        found = await asyncio.wait_for(asyncio.gather(*asking, return_exceptions=True), 5.0)
        assert not children()
        return found

    assert [type(one) for one in run(scenario)] == [CancelledByShutdownError] * 4


PROGRAM = """
import asyncio, sys
from privselect.web.schemas import AnswerRequest
from privselect.web.worker_pool import ANSWER_JOBS, WorkerPool

async def main():
    pool = WorkerPool()
    await pool.start()
    print("ready", flush=True)
    await pool.run("answer", AnswerRequest(**QUESTION), ANSWER_JOBS)

if __name__ == "__main__":
    asyncio.run(main())
"""


@pytest.mark.skipif(not Path("/proc").exists(), reason="processes are looked up in /proc")
def test_no_process_outlives_a_killed_server(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.replace("QUESTION", repr(SLOW_FIELDS)))
    with subprocess.Popen([sys.executable, str(program)], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout.readline() == "ready\n"
        time.sleep(0.5)
        family = descendants(parent.pid)
        assert len(family) >= 3
        parent.kill()
    until = time.monotonic() + 10.0
    while any(alive(one) for one in family):
        assert time.monotonic() < until, "a process goes on without its server"
        time.sleep(0.1)


def children():
    """Return the worker processes of this test: the children of the fork server."""
    return [one for server in children_of(os.getpid()) if "forkserver" in command(server) for one in children_of(server)]


async def at_work():
    """Wait for the first worker processes and return all of them a moment later."""
    until = time.monotonic() + 20.0
    while not children():
        assert time.monotonic() < until, "no process was begun"
        await asyncio.sleep(0.05)
    await asyncio.sleep(0.3)
    return children()


def children_of(pid):
    return [int(stat.parent.name) for stat in Path("/proc").glob("[0-9]*/stat") if parent_of(stat) == pid]


def descendants(pid):
    own = children_of(pid)
    return own + [one for child in own for one in descendants(child)]


def parent_of(stat):
    try:
        return int(stat.read_text().rpartition(")")[2].split()[1])
    except OSError:
        return None


def command(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
