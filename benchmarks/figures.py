"""Every figure of the paper, by the command that makes them."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from lines import Line, seconds

ROOT = Path(__file__).parents[1]


def figure_lines() -> list[Line]:
    with tempfile.TemporaryDirectory() as out:
        command = [sys.executable, "-m", "research.figures", "all", "--out", out]
        taken = seconds(lambda: subprocess.run(command, check=True, capture_output=True, cwd=ROOT))
    return [Line("figures: all of the paper's, number 5 from stored results", taken, "s", 60.0)]


if __name__ == "__main__":
    for line in figure_lines():
        print(*line.cells(), sep="  ")
