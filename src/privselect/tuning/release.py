"""What leaves a run: the winner, or the fallback, with the certificate. Nothing else, and nothing that depends on anything else."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privselect._util.atomic_files import sync_folder, write_error
from privselect._util.validation import format_value
from privselect.certificates.certificate import read_time
from privselect.errors import ParameterError

if TYPE_CHECKING:
    from privselect.certificates.certificate import Certificate
    from privselect.tuning.space import Candidate

CERTIFICATE, RELEASE, PLAN = "certificate.json", "release.json", "plan.json"


@dataclass(frozen=True)
class Release:
    """Public: the winner's candidate, score and artifact, and what their release costs.

    Where no trial was drawn, or every one failed, ``candidate`` and ``score`` are None and the artifact is the declared fallback.
    """

    candidate: Candidate | None
    score: float | None
    artifact: Any
    certificate: Certificate
    out: Path | None = None
    laws: dict[str, Any] | None = None  # of each hyperparameter, where the objective drew these itself

    def public_facts(self) -> dict[str, Any]:
        """All that other tools may be told of a run, as plain values: nothing here depends on K, on what lost, or on a clock.

        Not when the certificate was made: beside the time at which a tool is told, that would tell how long the run took.
        """
        certificate = self.certificate
        promise, run = certificate.promise, certificate.run
        return {
            "candidate": None if self.candidate is None else dict(self.candidate),
            "score": self.score,
            "fallback": self.is_fallback,
            "epsilon": certificate.total.upper,
            "delta": promise.delta,
            "neighbours": certificate.neighbours,
            "mechanism": promise.mechanism,
            "count": promise.count,
            "runs": 1 if run is None else run.runs,
            "insecure": run is not None and run.insecure,
            "draft": certificate.draft,
            "declared": promise.declared.plain(),
            "notes": [] if run is None else list(run.notes),
            "statement": certificate.statement,
            "plan": None if run is None else run.plan,
            "certificate": certificate.hash,
        }

    @property
    def is_fallback(self) -> bool:
        """Whether the fallback is released: either K was 0 or all trials failed, and which of the two stays secret."""
        return self.candidate is None


def written(value: Any) -> bytes:
    """JSON, the same for the same value."""
    return (json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n").encode("utf-8")


def check_out(path: str | Path) -> Path:
    """A folder that can be made or is empty: to be asked before the work begins."""
    out = Path(path).absolute()
    try:
        # A folder is given its name in one step, which neither a link nor a mounted disk lets happen.
        if out.is_symlink() or out.is_mount():
            raise ParameterError(f"`out` must be a new folder or an empty one, got {format_value(str(path))}, which is a link or a mounted disk")
        _part(out, 8 * "0").exists()  # a name that is too long is refused here
        if out.exists() and (not out.is_dir() or any(out.iterdir())):
            raise ParameterError(f"`out` must be a new folder or an empty one, got {format_value(str(path))}, which holds something")
        if not out.parent.is_dir():
            raise ParameterError(f"`out` must be a folder in one that exists, got {format_value(str(path))}")
        if not os.access(out.parent, os.W_OK):
            raise ParameterError(f"`out` must be a folder that can be written, got {format_value(str(path))}")
    except OSError as error:
        raise write_error("out", out, error) from None
    return out


def write_folder(out: Path, files: dict[str, bytes], certificate: Certificate) -> None:
    """All files or none: written beside the folder first, then given its name. Once more with the same files changes nothing.

    Every file and the folder bear the time of the certificate, which was made before K was drawn.
    """
    if _holds(out, files):
        return
    part = _part(out, certificate.hash[-8:])  # the same each time: what a killed run left is used up
    try:
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir()
        for name, content in files.items():
            with (part / name).open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        made = read_time(certificate.made).timestamp()
        for place in (*part.iterdir(), part):
            os.utime(place, (made, made))
        sync_folder(part)
        part.rename(out)
        sync_folder(out.parent)  # the secrets are destroyed after this, and the release could not be made again
    except OSError as error:
        shutil.rmtree(part, ignore_errors=True)
        raise ParameterError(
            f"the release could not be written to {format_value(str(out))} ({error.strerror}); nothing is lost: "
            "run the same again when it can be, and the same is released"
        ) from None


def add_to_folder(out: Path, *names: str) -> None:
    """Files that were put into the folder of a release afterwards bear the time of the others, and so does the folder again.

    Written soon after the run, their own would tell when it ended, and with the time of the certificate how long it took.
    """
    made = (out / CERTIFICATE).stat().st_mtime_ns
    for place in (*(out / name for name in names), out):
        os.utime(place, ns=(made, made))


def _part(out: Path, mark: str) -> Path:
    return out.with_name(f".{out.name}.{mark}.part")


def _holds(out: Path, files: dict[str, bytes]) -> bool:
    """Whether the folder holds these very files, as after a kill just after they were written."""
    if not out.is_dir() or {place.name for place in out.iterdir()} != set(files):
        return False
    return all((out / name).read_bytes() == content for name, content in files.items())
