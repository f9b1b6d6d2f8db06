"""Verify a certificate and write its report."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from privselect._util.atomic_files import check_output_file, write_error, atomic_write
from privselect._util.validation import format_value
from privselect.certificates.verify import verify
from privselect.errors import ParameterError
from privselect.report.build import Checked, content_of
from privselect.report.render import page_of
from privselect.report.source import find, read_release
from privselect.tuning.release import add_to_folder

if TYPE_CHECKING:
    from pathlib import Path

    from privselect.certificates.verification_result import Verdict

_ENDINGS = (".html", ".htm")


@dataclass(frozen=True, slots=True)
class Written:
    """Where the report is, and what verify found."""

    file: Path
    verdict: Verdict


def write_report(
    source: str | Path, out: str | Path | None = None, *, promise_digest: str | None = None, key: str | None = None
) -> Written:
    """One page about the certificate in ``source``, a file or the folder of a release; it is verified first, as by :func:`verify`.

    Without ``out`` the page is report.html in the folder, or lies beside the file under its name with .html. The same certificate gives
    the same bytes. One that is refused gives a page that says so, with the reasons and without its claim.
    """
    found = find(source)
    file = check_output_file("out", found.page if out is None else out, _ENDINGS)
    if out is None and file.is_symlink():  # whoever made the folder would choose what is overwritten
        raise ParameterError(f"`out` must be given where {format_value(str(file))} is a link")
    if file.exists() and file.samefile(found.certificate):
        raise ParameterError(f"`out` must be another file than the certificate, got {format_value(str(file))}")
    verdict = verify(found.content, promise_digest=promise_digest, key=key)
    released = None
    if verdict.holds and verdict.certificate is not None and found.release is not None:
        if verdict.certificate.run is None:
            raise ParameterError(f"a certificate beside {found.release.name} must be of a run, got one of a plan")
        released = read_release(found.release, verdict.certificate.hash)
    page = page_of(content_of(Checked(found.certificate.name, verdict, promise_digest, key, released)))
    try:
        atomic_write(file, page.encode("utf-8"))
        if found.holds(file):
            with contextlib.suppress(PermissionError):  # a folder of somebody else's, who is not the one that ran it just now
                add_to_folder(file.parent, file.name)
    except OSError as error:
        raise write_error("out", file, error) from None
    return Written(file, verdict)
