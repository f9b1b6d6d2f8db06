"""The planner page: latency for one client and for ten at once, memory, and how soon the page is ready in a browser."""

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

    Ask = Callable[[], dict[str, object]]

MILLI = 1e3
ROUNDS = 60
CLIENTS = 10
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
_MOMENT = 0.05  # seconds
_FRESH = itertools.count(1)


def web_lines() -> list[Line]:
    with _server() as (address, process):
        asyncio.run(_asked(address, _evaluation, 1, 6))  # warm
        lines = [
            *_latency(address, "an evaluation", _evaluation, (150.0, 1000.0)),
            *_latency(address, "a solve", _solve, (1000.0, 5000.0)),
            Line("web: memory of the server and its processes, at most", _most_memory(address, process.pid, _solve), "MB", 400.0),
            Line("web: the same with two fixed trials asked for", _most_memory(address, process.pid, _two_trials), "MB"),
        ]
        return [*lines, Line("web: page ready, the answer on it", _page_ready(address), "ms", 1000.0)]


def _latency(address: str, what: str, ask: Ask, limits: tuple[float, float]) -> Iterator[Line]:
    for clients, limit in zip((1, CLIENTS), limits, strict=True):
        times, errors = asyncio.run(_asked(address, ask, clients, ROUNDS // clients))
        times.sort()
        name = f"web: {what}, {clients} client{'s' if clients > 1 else ''} at once"
        yield Line(f"{name}, 95th percentile", times[int(0.95 * len(times))] * MILLI, "ms", limit)
        yield Line(f"{name}, errors", float(errors), "", 0.0)


def _evaluation() -> dict[str, object]:
    """Another one each time: nothing that was computed before is of use. Gaussian and DP-SGD in turn."""
    place = next(_FRESH)
    noise = 1.0 + 1e-3 * place
    trial = f"gaussian(sigma={4 * noise})" if place % 2 else _dpsgd(2.5 * noise)
    return {"mechanism": trial, "count": "geometric(mean=30)", "epsilon": "?", "delta": "1e-6"}


def _solve() -> dict[str, object]:
    place = next(_FRESH)
    trial = "gaussian(sigma=?)" if place % 2 else _dpsgd("?")
    return {"mechanism": trial, "count": "geometric(mean=30)", "epsilon": 2.0 + 1e-3 * place, "delta": "1e-6"}


def _dpsgd(noise: object) -> str:
    return f"dpsgd(noise_multiplier={noise}, sampling_probability=1024/60000, steps=600)"


async def _asked(address: str, ask: Ask, clients: int, rounds: int) -> tuple[list[float], int]:
    """The times that all clients waited for, each asking as soon as it has its answer."""
    times: list[float] = []
    errors = 0

    async def one() -> None:
        nonlocal errors
        async with httpx.AsyncClient(base_url=address, timeout=60.0) as client:
            for _ in range(rounds):
                begun = time.perf_counter()
                answer = await client.post("/api/answer", json=ask())
                times.append(time.perf_counter() - begun)
                errors += answer.status_code != 200

    await asyncio.gather(*(one() for _ in range(clients)))
    return times, errors


def _two_trials() -> dict[str, object]:
    """Few fixed trials take more memory than any other law."""
    return {**_evaluation(), "count": "fixed(k=2)"}


def _most_memory(address: str, pid: int, ask: Ask) -> float:
    return asyncio.run(_watched(address, pid, ask))


async def _watched(address: str, pid: int, ask: Ask) -> float:
    """While these answers, and others, curves and tables are asked for at once."""
    kinds: list[tuple[str, Ask]] = [("answer", ask), ("answer", _evaluation)]
    kinds += [(kind, lambda: {**_evaluation(), "value": 2.0}) for kind in ("curves", "compare")]
    async with httpx.AsyncClient(base_url=address, timeout=60.0) as client:

        async def asked(kind: str, ask: Ask) -> None:
            for _ in range(ROUNDS // CLIENTS):
                (await client.post(f"/api/{kind}", json=ask())).raise_for_status()

        asking = asyncio.gather(*(asked(*one) for one in kinds))
        most = 0.0
        while not asking.done():
            most = max(most, _memory(pid))
            await asyncio.sleep(_MOMENT)
        await asking
    return most


def _memory(pid: int) -> float:
    """What the whole family holds; pages that are shared count once, and what ends while it is looked at not at all."""
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
    """From asking for the page to the answer on it, in a browser that is running; None where there is none."""
    chromium = which("chromium")
    if find_spec("playwright") is None or chromium is None:
        return None
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        page = browser.new_page()
        page.goto("about:blank")
        begun = time.perf_counter()
        page.goto(address)
        page.get_by_text(re.compile(r"lets you release")).first.wait_for()
        spent = time.perf_counter() - begun
        browser.close()
    return spent * MILLI


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
