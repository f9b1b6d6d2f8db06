"""Where trials are run: one file for each engine."""

from __future__ import annotations

from privselect._util.validation import format_value
from privselect.errors import ParameterError
from privselect.tuning.executors.base import Engine

NAMES = ("serial", "processes", "dask", "ray")


def read_engine(given: Engine | str, workers: int | None = None) -> Engine:
    """An engine, or its name with a number of workers; by default as many as the machine has cores."""
    if isinstance(given, Engine):
        return given
    if given == "serial":
        from privselect.tuning.executors.serial import Serial

        return Serial()
    if given == "processes":
        from privselect.tuning.executors.processes import Processes

        return Processes(workers)
    if given == "dask":
        from privselect.tuning.executors.dask import Dask

        return Dask(workers=workers)
    if given == "ray":
        from privselect.tuning.executors.ray import Ray

        return Ray(workers=workers)
    raise ParameterError(f"`executor` must be one of {', '.join(NAMES)}, got {format_value(given)}")
