"""How long the command line takes to say what it can do, and what an import loads."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from statistics import median

from lines import Line, side_by_side

MILLI = 1e3
HEAVY = ("scipy.stats", "dp_accounting", "matplotlib", "torch")


def startup_lines(rounds: int = 11) -> list[Line]:
    privselect = str(Path(sys.executable).with_name("privselect"))

    def run(*command: str) -> None:
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)

    def helped() -> None:
        run(privselect, "--help")

    def numpy() -> None:
        run(sys.executable, "-c", "import numpy")

    helped()
    numpy()
    ours, theirs = map(median, side_by_side((helped, numpy) for _ in range(rounds)))
    return [
        Line("python -c 'import numpy'", theirs * MILLI, "ms"),
        Line("privselect --help", ours * MILLI, "ms"),
        Line("privselect --help / import numpy", ours / theirs, "x", 2.0),
        Line(f"of {', '.join(HEAVY)}, loaded by import privselect", float(len(_loaded())), "", 0.0),
    ]


def _loaded() -> list[str]:
    command = [sys.executable, "-X", "importtime", "-c", "import privselect"]
    report = subprocess.run(command, check=True, capture_output=True, text=True).stderr
    names = {line.rsplit("|", 1)[-1].strip() for line in report.splitlines()}
    return [name for name in HEAVY if name in names]
