"""The processes that compute: bounded in time, memory and number, and never left behind."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from wire import QUICK, SLOW

from privselect.web import worker_pool as crews
from privselect.web.worker_pool import ANSWERS, BusyError, Crew, DroppedError, FailedError, LimitError, RefusalError

LARGE = {**QUICK, "mechanism": "dpsgd(noise_multiplier=1, sampling_probability=0.001, steps=1000000)", "count": "fixed(k=300)"}


def run(scenario, **limits):
    """A scenario on a crew of its own, with other limits on time where asked."""

    async def whole():
        crew, lane = Crew(), ANSWERS
        if limits:
            lane = replace(ANSWERS, **limits)
            crew._lanes[lane] = crews._Queue(lane)
        try:
            return await scenario(crew, lane)
        finally:
            crew.close()

    return asyncio.run(whole())


def test_a_question_is_answered_by_another_process():
    async def scenario(crew, lane):
        await crew.begin()
        first = await crew.ask("answer", QUICK, lane)
        second = await crew.ask("answer", QUICK, lane)
        return first, second

    first, second = run(scenario)
    assert first == second
    assert first["cost"]["upper"] < 1.79


def test_a_refusal_and_a_fault_leave_the_process_at_work():
    async def scenario(crew, lane):
        with pytest.raises(RefusalError) as refused:
            await crew.ask("answer", {**QUICK, "delta": "2"}, lane)
        (worker,) = crew._lanes[lane].idle
        with pytest.raises(FailedError):
            await crew.ask("no such kind", QUICK, lane)
        assert crew._lanes[lane].idle == [worker]
        return refused.value.field

    assert run(scenario) == "delta"


def test_a_slow_question_is_ended_and_the_next_one_answered():
    async def scenario(crew, lane):
        begun = time.monotonic()
        with pytest.raises(LimitError, match="takes longer than the 1 seconds"):
            await crew.ask("answer", SLOW, lane)
        assert time.monotonic() - begun < 5.0
        assert not crew._lanes[lane].idle
        return await crew.ask("answer", QUICK, lane)

    assert run(scenario, seconds=1.0)["value"] < 1.79


def test_a_slow_question_gives_way_to_others_that_wait():
    async def scenario(crew, lane):
        slow = asyncio.ensure_future(crew.ask("answer", SLOW, lane))
        await asyncio.sleep(1.5)
        assert not slow.done()  # alone, it may go on
        quick = await crew.ask("answer", QUICK, lane)
        with pytest.raises(LimitError, match="while others wait"):
            await slow
        return quick

    assert run(scenario, seats=1, seconds=100.0, contended=1.0)["value"] < 1.79


def test_a_question_that_nobody_waits_for_is_ended():
    async def scenario(crew, lane):
        asking = asyncio.ensure_future(crew.ask("answer", SLOW, lane))
        (child,) = await at_work()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert child not in children()
        return await crew.ask("answer", QUICK, lane)

    assert run(scenario, seats=1)["value"] < 1.79


def test_a_question_that_nobody_waits_for_any_more_is_not_begun():
    async def scenario(crew, lane):
        first = asyncio.ensure_future(crew.ask("answer", SLOW, lane))
        await asyncio.sleep(0.5)
        second = asyncio.ensure_future(crew.ask("answer", SLOW, lane))
        await asyncio.sleep(0.1)
        assert crew._lanes[lane].waiting == 1
        second.cancel()
        first.cancel()
        await asyncio.gather(first, second, return_exceptions=True)
        assert crew._lanes[lane].waiting == 0
        return await crew.ask("answer", QUICK, lane)

    assert run(scenario, seats=1)["value"] < 1.79


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits what a process holds")
def test_a_question_that_takes_too_much_memory_is_refused():
    async def scenario(crew, lane):
        with pytest.raises(LimitError, match="more memory"):
            await crew.ask("answer", LARGE, lane)
        assert not crew._lanes[lane].idle  # what it has cached may be half done
        return await crew.ask("answer", QUICK, lane)

    assert run(scenario)["value"] < 1.79


def test_a_process_that_dies_is_replaced():
    async def scenario(crew, lane):
        asking = asyncio.ensure_future(crew.ask("answer", SLOW, lane))
        for child in await at_work():
            os.kill(child, signal.SIGKILL)
        with pytest.raises(LimitError):
            await asking
        first = await crew.ask("answer", QUICK, lane)
        (worker,) = crew._lanes[lane].idle
        worker._process.kill()  # while it waits for a question
        worker._process.join()
        return first, await crew.ask("answer", QUICK, lane)

    first, second = run(scenario)
    assert first == second


def test_a_process_that_has_grown_is_replaced(monkeypatch):
    monkeypatch.setattr(crews._Worker, "is_slim", lambda _: False)

    async def scenario(crew, lane):
        await crew.ask("answer", QUICK, lane)
        return list(crew._lanes[lane].idle)

    assert run(scenario) == []


def test_too_many_questions_are_asked_to_come_again(monkeypatch):
    monkeypatch.setattr(crews, "MOST_WAITING", 3)

    async def scenario(crew, lane):
        asking = [asyncio.ensure_future(crew.ask("answer", QUICK, lane)) for _ in range(30)]
        return await asyncio.gather(*asking, return_exceptions=True)

    found = run(scenario)
    busy = [one for one in found if isinstance(one, BusyError)]
    assert len(busy) + sum(isinstance(one, dict) for one in found) == 30
    assert busy


def test_questions_are_dropped_at_the_end_whether_they_have_begun_or_wait():
    async def scenario(crew, lane):
        asking = [asyncio.ensure_future(crew.ask("answer", SLOW, lane)) for _ in range(4)]
        await asyncio.sleep(0.5)
        crew.drop()
        found = await asyncio.wait_for(asyncio.gather(*asking, return_exceptions=True), 5.0)
        assert not children()
        return found

    assert [type(one) for one in run(scenario)] == [DroppedError] * 4


PROGRAM = """
import asyncio, sys
from privselect.web.worker_pool import ANSWERS, Crew

async def main():
    crew = Crew()
    await crew.begin()
    print("ready", flush=True)
    await crew.ask("answer", QUESTION, ANSWERS)

if __name__ == "__main__":
    asyncio.run(main())
"""


@pytest.mark.skipif(not Path("/proc").exists(), reason="processes are looked up in /proc")
def test_no_process_outlives_a_killed_server(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.replace("QUESTION", repr(SLOW)))
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
    """The processes of crews that were begun here: all children of the one that makes them."""
    return [one for server in children_of(os.getpid()) if "forkserver" in command(server) for one in children_of(server)]


async def at_work():
    """The same, once there are any, and a moment later."""
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
