"""Find the certificate of a released folder, and what is public beside it."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from privselect._util.validation import format_value
from privselect.certificates.certificate import read_bytes
from privselect.certificates.untrusted_json import MOST_BYTES
from privselect.errors import CertificateError, ParameterError
from privselect.tuning.release import CERTIFICATE, RELEASE

_RELEASE_VERSION = 1
_PAGE = "report.html"


@dataclass(frozen=True, slots=True)
class Source:
    """Where a certificate lies, what it holds, and the release beside it."""

    certificate: Path
    content: bytes
    release: Path | None
    page: Path  # where its report goes unless told otherwise

    def holds(self, file: Path) -> bool:
        """Whether a file lies in the folder of a release, beside the certificate."""
        folder = self.certificate.parent
        return self.certificate.name == CERTIFICATE and (folder / RELEASE).exists() and file.parent.samefile(folder)


@dataclass(frozen=True, slots=True)
class Released:
    """What a folder says of its release: public, all of it."""

    candidate: dict[str, Any] | None
    score: float | None
    artifact: str | None


def find(source: str | Path) -> Source:
    """The certificate in a folder of a release, or the file itself."""
    place = Path(source)
    if not _is_folder(place):
        return Source(place, read_bytes(place), None, place.with_suffix(".html"))
    certificate, release = place / CERTIFICATE, place / RELEASE
    for file in (certificate, release):
        if file.exists() and not file.is_file():
            raise ParameterError(f"{file.name} of a release must be a regular file, got {format_value(str(file))}")
    if not certificate.exists():
        raise ParameterError(f"a folder of a release must hold {CERTIFICATE}, got {format_value(str(source))}, which does not")
    return Source(certificate, read_bytes(certificate), release if release.exists() else None, place / _PAGE)


def read_release(file: Path, certificate_hash: str) -> Released:
    """What was released under this certificate; refused where it names another."""
    said = _json(file)
    if not isinstance(said, dict) or said.get("version") != _RELEASE_VERSION:
        raise ParameterError(f"{RELEASE} must be what `privselect tune` writes, of version {_RELEASE_VERSION}, got {format_value(said)}")
    if said.get("certificate") != certificate_hash:
        raise ParameterError(f"{RELEASE} must name the certificate beside it, {certificate_hash}, got {format_value(said.get('certificate'))}")
    candidate, score, artifact = (said.get(name) for name in ("candidate", "score", "artifact"))
    if not (isinstance(candidate, dict | None) and _is_score(score) and _is_name(artifact)):
        raise ParameterError(f"{RELEASE} must hold a candidate, a score and the name of a file, or null, got {format_value(said)}")
    return Released(candidate, score, artifact)


def _is_score(said: object) -> bool:
    return said is None or (isinstance(said, int | float) and not isinstance(said, bool) and math.isfinite(said))


def _is_name(said: object) -> bool:
    return said is None or (isinstance(said, str) and not set(said) & {"/", "\\"})


def _is_folder(place: Path) -> bool:
    try:
        return place.is_dir()
    except (OSError, ValueError) as error:  # a name that is too long, or with a null character
        reason = error.strerror if isinstance(error, OSError) else error
        raise CertificateError(f"the certificate must be a file that can be read, got {format_value(str(place))} ({reason})") from None


def _json(file: Path) -> object:
    try:
        with file.open("rb") as opened:
            content = opened.read(MOST_BYTES + 1)
    except OSError as error:
        raise ParameterError(f"{RELEASE} must be a file that can be read, got {format_value(str(file))} ({error.strerror})") from None
    if len(content) > MOST_BYTES:
        raise ParameterError(f"{RELEASE} must have at most {MOST_BYTES} bytes, got more")
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        raise ParameterError(f"{RELEASE} must be JSON, got something else in {format_value(str(file))}") from None
