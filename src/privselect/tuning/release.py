"""What leaves a run: the winner or the fallback, with the certificate, written to its folder at the stated time."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privselect._util.atomic_files import sync_folder, write_error
from privselect._util.validation import format_value
from privselect.certificates.certificate import parse_time
from privselect.errors import ParameterError

if TYPE_CHECKING:
    from privselect.certificates.certificate import Certificate
    from privselect.counts import Count
    from privselect.tuning.executors import Engine
    from privselect.tuning.space import Candidate

CERTIFICATE, RELEASE, PLAN = "certificate.json", "release.json", "plan.json"
_STARTUP_SECONDS = 60.0  # for loading data and starting workers
_SECONDS_BETWEEN_TRIALS = 1.0  # of one worker


@dataclass(frozen=True)
class Release:
    """The public result: the winner's candidate, score and artifact, and what releasing them costs.

    If no trial was drawn, or every trial failed, ``candidate`` and ``score`` are None and the artifact is the declared fallback.
    """

    candidate: Candidate | None
    score: float | None
    artifact: Any
    certificate: Certificate
    out: Path | None = None
    distributions: dict[str, Any] | None = None  # of each hyperparameter, if the objective drew them itself

    def public_facts(self) -> dict[str, Any]:
        """Return the public facts about a run for other tools. Nothing depends on K, a losing trial or a clock.

        The certificate's time is left out: compared with the time at which a tool gets these facts, it would reveal the run's duration.
        """
        certificate = self.certificate
        plan, run = certificate.plan, certificate.run
        return {
            "candidate": None if self.candidate is None else dict(self.candidate),
            "score": self.score,
            "fallback": self.is_fallback,
            "epsilon": certificate.total.upper,
            "delta": plan.delta,
            "neighbours": certificate.neighbours,
            "mechanism": plan.mechanism,
            "count": plan.count,
            "runs": 1 if run is None else run.runs,
            "insecure": run is not None and run.insecure,
            "draft": certificate.draft,
            "declared": plan.declared.as_dict(),
            "notes": [] if run is None else list(run.notes),
            "statement": certificate.statement,
            "plan": None if run is None else run.spec_hash,
            "certificate": certificate.hash,
        }

    @property
    def is_fallback(self) -> bool:
        """Whether the fallback is released: either K was 0 or all trials failed, and which of the two stays secret."""
        return self.candidate is None


def to_json_bytes(value: Any) -> bytes:
    """Write a value as JSON; equal values give equal bytes."""
    return (json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n").encode("utf-8")


# -- the folder ----------------------------------------------------------------------------------------------------------------


def check_release_folder(path: str | Path) -> Path:
    """Return the absolute path of a folder that is empty or can be created, or raise an error before any work is done."""
    out = Path(path).absolute()
    try:
        # The folder gets its name by a rename, which is impossible for a link or a mounted disk.
        if out.is_symlink() or out.is_mount():
            raise ParameterError(f"`out` must be a new or empty folder, got {format_value(str(path))}, which is a link or a mounted disk")
        _partial_folder(out, 8 * "0").exists()  # raises if the name is too long
        if out.exists() and (not out.is_dir() or any(out.iterdir())):
            raise ParameterError(f"`out` must be a new or empty folder, got {format_value(str(path))}, which is not empty")
        if not out.parent.is_dir():
            raise ParameterError(f"`out` must be in an existing folder, got {format_value(str(path))}")
        if not os.access(out.parent, os.W_OK):
            raise ParameterError(f"`out` must be in a writable folder, got {format_value(str(path))}")
    except OSError as error:
        raise write_error("out", out, error) from None
    return out


def write_release(out: Path, files: dict[str, bytes], certificate: Certificate) -> None:
    """Write all files or none: into a temporary folder, which is then renamed. Writing the same files again changes nothing.

    Every file and the folder get the time of the certificate, which was made before K was drawn.
    """
    # After a kill just after the files were written, the folder holds exactly these.
    same_names = out.is_dir() and {path.name for path in out.iterdir()} == set(files)
    if same_names and all((out / name).read_bytes() == content for name, content in files.items()):
        return
    part = _partial_folder(out, certificate.hash[-8:])  # the same name each time, so a killed run leaves no second one
    try:
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir()
        for name, content in files.items():
            with (part / name).open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        made = parse_time(certificate.issued_at).timestamp()
        for path in (*part.iterdir(), part):
            os.utime(path, (made, made))
        sync_folder(part)
        part.rename(out)
        sync_folder(out.parent)  # the secrets are destroyed next, and the release could not be made again
    except OSError as error:
        shutil.rmtree(part, ignore_errors=True)
        raise ParameterError(
            f"the release could not be written to {format_value(str(out))} ({error.strerror}). Nothing is lost: fix the folder and run "
            "the same command again to release the same result"
        ) from None


def set_release_time(out: Path, *names: str) -> None:
    """Give files added to a release folder, and the folder, the time of its other files.

    Their own time would show when the run ended and, with the time of the certificate, how long it took.
    """
    made = (out / CERTIFICATE).stat().st_mtime_ns
    for path in (*(out / name for name in names), out):
        os.utime(path, ns=(made, made))


def _partial_folder(out: Path, mark: str) -> Path:
    return out.with_name(f".{out.name}.{mark}.part")


# -- a release at a fixed time, which then reveals nothing about K -------------------------------------------------------------


def parse_release_time(value: Any) -> datetime | None:
    """Return a time with its time zone, such as 2030-01-31T23:59:00Z; None stays None."""
    moment = value
    if isinstance(value, str):
        with contextlib.suppress(ValueError):
            moment = datetime.fromisoformat(value)
    if moment is None or (isinstance(moment, datetime) and moment.tzinfo is not None):
        return moment
    raise ParameterError(f"`release_at` must be a time with a time zone, such as 2030-01-31T23:59:00Z, got {format_value(value)}")


def check_release_time(moment: datetime, count: Count, engine: Engine, timeout: float | None) -> None:
    """Refuse a release time that the run might miss. This needs a bound on K and on the time of each trial."""
    if count.largest is None:
        raise ParameterError(f"`release_at` needs a law of K with a largest K, such as geometric(mean=30, cap=100), got {count}")
    if timeout is None:
        raise ParameterError("`release_at` needs a `timeout` for each trial, got none")
    rounds = -(-count.largest // engine.workers)
    needed, left = rounds * (timeout + _SECONDS_BETWEEN_TRIALS) + _STARTUP_SECONDS, seconds_until(moment)
    if left < needed:
        raise ParameterError(
            f"`release_at` must be at least {needed:.0f} seconds from now, the most that {count.largest} trials can take, got {left:.0f}"
        )


def seconds_until(moment: datetime) -> float:
    """Return the number of seconds from now to this moment, negative if it has passed."""
    return (moment - datetime.now(UTC)).total_seconds()


def wait_until(moment: datetime) -> None:
    """Sleep until this moment."""
    while (left := seconds_until(moment)) > 0.0:
        time.sleep(min(left, 60.0))
