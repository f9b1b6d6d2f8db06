"""Benchmark the planner page: latency for one and for ten clients, memory, and the time until the page shows an answer."""

from __future__ import annotations

import asyncio
import itertools
import re
import subprocess
import sys
import time
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING

import httpx
from lines import Line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    MakeQuestion = Callable[[], dict[str, object]]

MILLI = 1e3
ROUNDS = 60
CLIENTS = 10
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
_POLL_SECONDS = 0.05
_NUMBERS = itertools.count(1)


def web_lines() -> list[Line]:
    with _server() as (address, process):
        asyncio.run(_time_answers(address, _evaluation, 1, 6))  # warm-up
        lines = [
            *_latency(address, "an evaluation", _evaluation, (150.0, 1000.0)),
            *_latency(address, "a solve", _solve, (1000.0, 5000.0)),
            Line("web: peak memory of the server and its workers", _peak_memory(address, process.pid, _solve), "MB", 400.0),
            Line("web: peak memory for fixed(k=2)", _peak_memory(address, process.pid, _two_trials), "MB"),
        ]
        return [*lines, Line("web: time until the page shows an answer", _page_ready(address), "ms", 1000.0)]


def _latency(address: str, what: str, make_question: MakeQuestion, limits: tuple[float, float]) -> Iterator[Line]:
    for clients, limit in zip((1, CLIENTS), limits, strict=True):
        times, errors = asyncio.run(_time_answers(address, make_question, clients, ROUNDS // clients))
        times.sort()
        name = f"web: {what}, {clients} client{'s' if clients > 1 else ''} at once"
        yield Line(f"{name}, 95th percentile", times[int(0.95 * len(times))] * MILLI, "ms", limit)
        yield Line(f"{name}, errors", float(errors), "", 0.0)


def _evaluation() -> dict[str, object]:
    """Return a new question each time, so that caches do not help. Gaussian and DP-SGD alternate."""
    place = next(_NUMBERS)
    noise = 1.0 + 1e-3 * place
    trial = f"gaussian(sigma={4 * noise})" if place % 2 else _dpsgd(2.5 * noise)
    return {"mechanism": trial, "count": "geometric(mean=30)", "epsilon": "?", "delta": "1e-6"}


def _solve() -> dict[str, object]:
    place = next(_NUMBERS)
    trial = "gaussian(sigma=?)" if place % 2 else _dpsgd("?")
    return {"mechanism": trial, "count": "geometric(mean=30)", "epsilon": 2.0 + 1e-3 * place, "delta": "1e-6"}


def _dpsgd(noise: object) -> str:
    return f"dpsgd(noise_multiplier={noise}, sampling_probability=1024/60000, steps=600)"


async def _time_answers(address: str, make_question: MakeQuestion, clients: int, rounds: int) -> tuple[list[float], int]:
    """Return all response times and the number of errors. Each client asks again as soon as it has an answer."""
    times: list[float] = []
    errors = 0

    async def one() -> None:
        nonlocal errors
        async with httpx.AsyncClient(base_url=address, timeout=60.0) as client:
            for _ in range(rounds):
                start = time.perf_counter()
                answer = await client.post("/api/answer", json=make_question())
                times.append(time.perf_counter() - start)
                errors += answer.status_code != 200

    await asyncio.gather(*(one() for _ in range(clients)))
    return times, errors


def _two_trials() -> dict[str, object]:
    """Return a question with a small fixed K, which needs the most memory of all laws of K."""
    return {**_evaluation(), "count": "fixed(k=2)"}


def _peak_memory(address: str, pid: int, make_question: MakeQuestion) -> float:
    return asyncio.run(_watch_memory(address, pid, make_question))


async def _watch_memory(address: str, pid: int, make_question: MakeQuestion) -> float:
    """Return the peak memory while clients request answers, curves and comparisons at once."""
    kinds: list[tuple[str, MakeQuestion]] = [("answer", make_question), ("answer", _evaluation)]
    kinds += [(kind, lambda: {**_evaluation(), "value": 2.0}) for kind in ("curves", "compare")]
    async with httpx.AsyncClient(base_url=address, timeout=60.0) as client:

        async def send(kind: str, make_question: MakeQuestion) -> None:
            for _ in range(ROUNDS // CLIENTS):
                (await client.post(f"/api/{kind}", json=make_question())).raise_for_status()

        running = asyncio.gather(*(send(*one) for one in kinds))
        peak = 0.0
        while not running.done():
            peak = max(peak, _memory(pid))
            await asyncio.sleep(_POLL_SECONDS)
        await running
    return peak


def _memory(pid: int) -> float:
    """Return the memory of a process and its descendants in MB. Shared pages count once."""
    try:
        rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    held = int(re.search(r"^Pss:\s+(\d+)", rollup, re.MULTILINE)[1])  # type: ignore[index]
    return held / 1e3 + sum(_memory(child) for task in tasks for child in _children(task))


def _children(task: Path) -> list[int]:
    try:
        return [int(child) for child in (task / "children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def _page_ready(address: str) -> float | None:
    """Return the time from the request to the first answer in a running browser, or None without Chromium."""
    chromium = which("chromium")
    if find_spec("playwright") is None or chromium is None:
        return None
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        page = browser.new_page()
        page.goto("about:blank")
        start = time.perf_counter()
        page.goto(address)
        page.get_by_text(re.compile(r"lets you release")).first.wait_for()
        seconds = time.perf_counter() - start
        browser.close()
    return seconds * MILLI


@contextmanager
def _server() -> Iterator[tuple[str, subprocess.Popen[str]]]:
    command = [str(Path(sys.executable).with_name("privselect")), "serve", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield re.search(r"http://\S+?/", process.stdout.readline())[0], process  # type: ignore[index,union-attr]
        finally:
            process.terminate()


if __name__ == "__main__":
    for line in web_lines():
        print(*line.cells(), sep="  ")
