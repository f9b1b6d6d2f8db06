"""What leaves a run: the winner or the fallback, with the certificate, written to its folder."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privselect._util.atomic_files import sync_folder, write_error
from privselect._util.validation import format_value
from privselect.certificates.certificate import parse_time
from privselect.errors import ParameterError

if TYPE_CHECKING:
    from privselect.certificates.certificate import Certificate
    from privselect.planning.plan_result import Plan
    from privselect.tuning.space import Candidate

CERTIFICATE, RELEASE, PLAN = "certificate.json", "release.json", "plan.json"


@dataclass(frozen=True)
class Release:
    """The public result: the winner's candidate, score and artifact, and what releasing them costs.

    After a final training, ``artifact`` is what it trained and ``trained_with`` the candidate it used; ``score`` is the winner's score
    in the search. If no trial was drawn, every trial failed or the final training failed, all of these are None and the artifact is
    the declared fallback. ``plan`` says which mechanisms were run, and why if they were solved for.
    """

    candidate: Candidate | None
    score: float | None
    artifact: Any
    certificate: Certificate
    out: Path | None = None
    distributions: dict[str, Any] | None = None  # of each hyperparameter, if the objective drew them itself
    trained_with: Candidate | None = None
    plan: Plan | None = None

    def public_facts(self) -> dict[str, Any]:
        """Return the public facts about a run for other tools. Nothing depends on K, a losing trial or a clock.

        The certificate's time is left out: compared with the time at which a tool gets these facts, it would reveal the run's duration.
        """
        certificate = self.certificate
        plan, run = certificate.plan, certificate.run
        return {
            "candidate": None if self.candidate is None else dict(self.candidate),
            "score": self.score,
            "trained_with": None if self.trained_with is None else dict(self.trained_with),
            "fallback": self.is_fallback,
            "epsilon": certificate.total.upper,
            "delta": plan.delta,
            "neighbours": certificate.neighbours,
            "mechanism": plan.mechanism,
            "count": plan.count,
            "visible": plan.visible,
            "subsample": plan.subsample,
            "final": plan.final,
            "mechanism_claimed": run is not None and run.mechanism_claimed,
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
        """Whether the fallback is released: K was 0, all trials failed or the final training failed, and which it was stays secret."""
        return self.candidate is None


def to_json_bytes(value: Any) -> bytes:
    """Write a value as JSON; equal values give equal bytes."""
    return (json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n").encode("utf-8")


def files_of_release(release: Release, spec: dict[str, Any], artifact_file: str | None) -> dict[str, bytes]:
    """Return the files of a release, except the artifact."""
    released = {
        "version": 2,
        "fallback": release.is_fallback,
        "candidate": release.candidate,
        "score": release.score,
        "trained_with": release.trained_with,
        "artifact": artifact_file,
        "certificate": release.certificate.hash,
    }
    if release.distributions is not None:
        released["distributions"] = release.distributions
    return {
        PLAN: to_json_bytes(spec),
        CERTIFICATE: release.certificate.to_json().encode("utf-8"),
        RELEASE: to_json_bytes(released),
    }


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
