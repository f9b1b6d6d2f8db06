"""What the engines with workers share: packing the setup of a trial, unpacking it in a worker, and running trials there silently."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import pickle
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privselect._util.validation import check_number, integer_range
from privselect.errors import MissingExtraError, ParameterError
from privselect.tuning.isolation import discard_descriptor

if TYPE_CHECKING:
    from collections.abc import Callable

    from privselect.tuning.trial import TrialSetup

_MAX_WORKERS = 10_000


def check_workers(workers: object) -> int:
    """Return the number of workers, by default the number of cores that this process may use."""
    from loky import cpu_count

    return int(cpu_count()) if workers is None else int(check_number("workers", workers, integer_range(1, _MAX_WORKERS)))


def check_installed(module: str, extra: str) -> None:
    """Refuse an engine whose package is missing when the engine is named, before anything is drawn."""
    for needed in (module, "loky", "cloudpickle"):
        if importlib.util.find_spec(needed) is None:
            raise MissingExtraError(f"this engine needs {needed}; install it with: pip install 'privselect[{extra}]'")


def pack_setup(setup: TrialSetup) -> bytes:
    """Pickle the setup; the objective may be from a script or a notebook, a lambda or a closure."""
    import cloudpickle

    # Where the coordinator finds modules, so a worker also finds those next to a plan file or a script.
    folders = [str(Path(place or ".").resolve()) for place in sys.path]
    try:
        return pickle.dumps((folders, "torch" in sys.modules, bytes(cloudpickle.dumps(setup))))
    except Exception as error:  # noqa: BLE001 - from the user's own object
        # Without its text, which may contain a record.
        raise ParameterError(f"the objective and its data must be picklable, got a {type(error).__name__}") from None


def unpack_setup(parcel: bytes) -> TrialSetup:
    """Unpickle the setup in a worker. If that fails, it fails in every worker, and no trial is run."""
    try:
        places, with_torch, inner = pickle.loads(parcel)  # noqa: S301 - our own bytes, from the coordinator
        sys.path.extend(place for place in places if place not in sys.path and Path(place).is_dir())
        if with_torch:
            importlib.import_module("torch")  # before a trial sets the generators of the process
        setup: TrialSetup = pickle.loads(inner)  # noqa: S301 - as above
    except BaseException as error:  # noqa: BLE001 - a module of the user may raise anything on import
        raise ParameterError(f"the objective and its data must load in a worker, got a {type(error).__name__}") from None
    return setup


def run_in_worker(setup: TrialSetup, function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """Run the function on the setup. An error that escapes it is the engine's, and its text is hidden: it may contain a record."""
    try:
        return function(setup, *arguments, **named)
    except KeyboardInterrupt:
        return None  # raised by the objective: a real Ctrl-C stops the coordinator, never a worker. Count it as a failed trial
    except BaseException:  # noqa: BLE001 - see above
        raise RuntimeError("a worker failed outside of a trial") from None


def silence_worker() -> None:
    """Set up a process used only as our worker: it writes nowhere and leaves Ctrl-C to the coordinator."""
    for descriptor in (1, 2):
        discard_descriptor(descriptor)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a core dump would contain the data


def start_trackers(*others: Any) -> None:
    """Start the processes that clean up after a killed coordinator, without their warnings on its terminal."""
    from multiprocessing import resource_tracker

    option = "ignore:resource_tracker"  # the start of their messages
    sys.warnoptions.append(option)  # passed on to the trackers, and read by nothing else
    try:
        for tracker in (resource_tracker, *others):
            tracker.ensure_running()
    finally:
        sys.warnoptions.remove(option)
