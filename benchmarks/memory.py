"""Peak memory of one answer, each in a process of its own."""

from __future__ import annotations

import subprocess
import sys

from lines import Line

LIMIT = 500.0  # MB

QUESTIONS = {
    "gaussian + geometric": "selection(gaussian(sigma=4), geometric(mean=300))",
    "laplace + poisson": "selection(laplace(scale=4), poisson(mean=10))",
    "mixture + binomial": "selection(mixture(0.5*gaussian(sigma=4), 0.5*gaussian(sigma=8)), binomial(n=20, p=0.5))",
    "gaussian + fixed, the widest mesh": "selection(gaussian(sigma=4), fixed(k=2))",
    "dpsgd (14063 steps) + geometric": (
        "selection(dpsgd(noise_multiplier=1.1, sampling_probability=256/60000, steps=14063), geometric(mean=30))"
    ),
    "dpsgd (250 steps, q = 0.33) + geometric": (
        "selection(dpsgd(noise_multiplier=21.1, sampling_probability=16384/50000, steps=250), geometric(mean=300))"
    ),
}

# Linux's ru_maxrss is never below what the parent held when it started the process, so the peak is read from /proc where there is one.
PROGRAM = """
import pathlib, resource, sys
import privselect as ps
exec(sys.argv[1])
status = pathlib.Path("/proc/self/status")
if status.exists():
    print(next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmHWM")) * 1024 / 1e6)
else:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6)
"""


def memory_lines() -> list[Line]:
    return [Line(f"peak memory: {name}", peak(text), "MB", LIMIT) for name, text in QUESTIONS.items()]


def peak(text: str) -> float:
    return peak_of(f"ps.parse({text!r}).epsilon_at(delta=1e-6)")


def peak_of(statement: str) -> float:
    done = subprocess.run([sys.executable, "-c", PROGRAM, statement], check=True, capture_output=True, text=True)
    return float(done.stdout)
