"""A script in a folder of its own, so that all that it writes can be looked at."""

import os
import subprocess
import sys

_KEPT = {"PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "VIRTUAL_ENV"}


def run_apart(place, script, *arguments, **environment):
    """In ``work``; temporary files, its home, what the test is told (``aside``) and the ledgers lie beside that, each apart."""
    for name in ("work", "aside", "temporary", "home"):
        (place / name).mkdir(parents=True)
    given = {
        **{name: value for name, value in os.environ.items() if name in _KEPT},
        "SOURCE_DATE_EPOCH": "1700000000",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "LEDGERS": str(place / "ledgers"),
        "ASIDE": str(place / "aside"),
        "TMPDIR": str(place / "temporary"),
        "HOME": str(place / "home"),
        **environment,
    }
    return subprocess.run([sys.executable, script, *map(str, arguments)], cwd=place / "work", env=given, capture_output=True, check=False)
