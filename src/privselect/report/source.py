"""Find a certificate, and read the released values next to it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from privselect._util.atomic_files import read_error, read_limited
from privselect._util.validation import format_value
from privselect.certificates.certificate import LARGEST_CERTIFICATE, read_bytes
from privselect.errors import CertificateError, ParameterError
from privselect.tuning.release import CERTIFICATE, RELEASE

_RELEASE_VERSION = 2
_LARGEST_SCORE = 1e308  # an integer of JSON may exceed every float


@dataclass(frozen=True, slots=True)
class ReportSource:
    """A certificate file with its content, the release.json next to it, and the default place of the report."""

    certificate: Path
    content: bytes
    release: Path | None
    default_out: Path

    def shares_release_folder(self, file: Path) -> bool:
        """Return whether ``file`` lies in the folder of a release, next to the certificate."""
        folder = self.certificate.parent
        return self.certificate.name == CERTIFICATE and (folder / RELEASE).exists() and file.parent.samefile(folder)


@dataclass(frozen=True, slots=True)
class ReleasedValues:
    """The public values in release.json."""

    candidate: dict[str, Any] | None
    score: float | None
    artifact: str | None
    trained_with: dict[str, Any] | None = None


def find_source(source: str | Path) -> ReportSource:
    """Find the certificate, which is ``source`` itself or lies in the release folder ``source``."""
    place = Path(source)
    if not _is_folder(place):
        return ReportSource(place, read_bytes(place), None, place.with_suffix(".html"))
    certificate, release = place / CERTIFICATE, place / RELEASE
    for file in (certificate, release):
        if file.exists() and not file.is_file():
            raise ParameterError(f"{file.name} of a release must be a regular file, got {format_value(str(file))}")
    if not certificate.exists():
        raise ParameterError(f"a release folder must contain {CERTIFICATE}, got {format_value(str(source))} without it")
    return ReportSource(certificate, read_bytes(certificate), release if release.exists() else None, place / "report.html")


def read_release(file: Path, certificate_hash: str) -> ReleasedValues:
    """Read release.json, and check that it names the certificate with this hash."""
    content = _read_json(file)
    if not isinstance(content, dict) or content.get("version") != _RELEASE_VERSION:
        raise ParameterError(f"{RELEASE} must be a file of `privselect tune` with version {_RELEASE_VERSION}, got {format_value(content)}")
    named = content.get("certificate")
    if named != certificate_hash:
        raise ParameterError(f"{RELEASE} must name the certificate next to it, {certificate_hash}, got {format_value(named)}")
    candidate, score, artifact, trained_with = (content.get(name) for name in ("candidate", "score", "artifact", "trained_with"))
    if not (isinstance(candidate, dict | None) and isinstance(trained_with, dict | None) and _is_score(score) and _is_file_name(artifact)):
        raise ParameterError(f"{RELEASE} must contain candidates, a score and a file name, or null, got {format_value(content)}")
    return ReleasedValues(candidate, score, artifact, trained_with)


def _is_score(value: object) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= _LARGEST_SCORE)


def _is_file_name(value: object) -> bool:
    return value is None or (isinstance(value, str) and not set(value) & {"/", "\\"})


def _is_folder(place: Path) -> bool:
    try:
        return place.is_dir()
    except (OSError, ValueError) as error:  # a name that is too long, or with a null character
        raise read_error("the certificate", place, error, CertificateError) from None


def _read_json(file: Path) -> object:
    content = read_limited(RELEASE, file, LARGEST_CERTIFICATE)
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        raise ParameterError(f"{RELEASE} must be JSON, got other content in {format_value(str(file))}") from None
