"""What all engines with workers share: the work is packed once, unpacked once in each worker, and run there without a word."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import pickle
import shutil
import signal
import sys
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privselect._util.validation import check_number, integer_range
from privselect.errors import MissingExtraError, ParameterError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from privselect.tuning.trial import Work

_MOST_WORKERS = 10_000


def usable_cores() -> int:
    """The cores that this process may use, which in a container are fewer than the machine has."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def usable_memory() -> int | None:
    """The memory that this process may use, in bytes: the machine's, or its container's; None where nobody says."""
    try:
        there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None
    with contextlib.suppress(OSError, ValueError):  # no container, or one without a limit
        there = min(there, int(Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii")))
    return there


def checked_workers(workers: object) -> int:
    """A number of workers; by default one for each usable core."""
    return usable_cores() if workers is None else int(check_number("workers", workers, integer_range(1, _MOST_WORKERS)))


def check_installed(module: str, extra: str) -> None:
    """Before anything is drawn: an engine without its package is refused when it is named."""
    for needed in (module, "loky", "cloudpickle"):
        if importlib.util.find_spec(needed) is None:
            raise MissingExtraError(f"this engine needs {needed}; install it with: pip install 'privselect[{extra}]'")


def packed(work: Work) -> bytes:
    """The work as bytes; also an objective of a script or a notebook, a lambda or a closure."""
    import cloudpickle

    try:
        return pickle.dumps((_places(), "torch" in sys.modules, bytes(cloudpickle.dumps(work))))
    except Exception as error:  # noqa: BLE001 - of a user's own object
        # Not its text, which may show a record.
        raise ParameterError(f"the objective and its data must be picklable, got a {type(error).__name__}") from None


def _places() -> list[str]:
    """Where the coordinator finds modules: those beside a plan file or a script are found in a worker too, if it has these folders."""
    return [str(Path(place or ".").resolve()) for place in sys.path]


def unpacked(parcel: bytes) -> Work:
    """The work in a worker. Where it cannot be had, every worker says the same, and no trial is run."""
    try:
        places, with_torch, inner = pickle.loads(parcel)  # noqa: S301 - our own bytes, from the coordinator
        sys.path.extend(place for place in places if place not in sys.path and Path(place).is_dir())
        if with_torch:
            importlib.import_module("torch")  # before a trial sets the generators of the process
        work: Work = pickle.loads(inner)  # noqa: S301 - as above
    except BaseException as error:  # noqa: BLE001 - a module of the user may do anything on import
        raise ParameterError(f"the objective and its data must load in a worker, got a {type(error).__name__}") from None
    return work


def run(work: Work, function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """The function on the work. What escapes it is the engine's trouble, and is told without a text that may show a record."""
    try:
        return function(work, *arguments, **named)
    except KeyboardInterrupt:
        return None  # Ctrl-C stops the coordinator, never a worker: this one is the objective's own, a failure like any other
    except BaseException:  # noqa: BLE001 - see above
        raise RuntimeError("a worker failed outside of a trial") from None


def told(lost: BaseException | None) -> Exception:
    """What a cluster says of a lost worker, without its text: names of machines and tracebacks are not for the coordinator's user."""
    return lost if isinstance(lost, ParameterError) else RuntimeError("a worker was lost")


def start_trackers(*others: Any) -> None:
    """The processes that tidy up after a killed coordinator, Python's own and others; what they would write to its terminal is noise."""
    from multiprocessing import resource_tracker

    option = "ignore:resource_tracker"  # how their messages begin
    sys.warnoptions.append(option)  # these options are handed to them, and read by nobody else
    try:
        for tracker in (resource_tracker, *others):
            tracker.ensure_running()
    finally:
        sys.warnoptions.remove(option)


@contextlib.contextmanager
def private_folder(root: str | None = None) -> Iterator[Path]:
    """For the files of a cluster of our own: of this user alone, and removed also where the coordinator is killed."""
    from loky.backend import resource_tracker

    start_trackers(resource_tracker)
    folder = tempfile.mkdtemp(prefix="ps-", dir=root)
    resource_tracker.register(folder, "folder")
    try:
        yield Path(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        resource_tracker.unregister(folder, "folder")


def be_silent() -> None:
    """For a worker that is ours alone: it writes nowhere, not even its last words, and leaves Ctrl-C to the coordinator."""
    for descriptor in (1, 2):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, descriptor)
        os.close(nowhere)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a dump would hold the data


class Cache:
    """The last work that a worker of a cluster unpacked, by a random token; the next run's takes its place."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: dict[str, Work] = {}

    def get(self, token: str, parcel: bytes) -> Work:
        """The work, unpacked where this worker has not done so."""
        with self._lock:
            if token not in self._kept:
                self._kept.clear()
                self._kept[token] = unpacked(parcel)
            return self._kept[token]

    def forget(self, token: str) -> None:
        """Private data does not outlive its run."""
        with self._lock:
            self._kept.pop(token, None)
