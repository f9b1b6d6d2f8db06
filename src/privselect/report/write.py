"""Verify a certificate and write its report."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from privselect._util.atomic_files import atomic_write, check_output_file, write_error
from privselect._util.validation import format_value
from privselect.certificates.verify import verify
from privselect.errors import ParameterError
from privselect.report.page import render_page
from privselect.report.source import find_source, read_release
from privselect.report.template_values import template_values
from privselect.tuning.release import set_release_time

if TYPE_CHECKING:
    from pathlib import Path

    from privselect.certificates.verify import VerificationResult

_SUFFIXES = (".html", ".htm")


@dataclass(frozen=True, slots=True)
class Report:
    """The file of a report, and the verification result it shows."""

    file: Path
    verification: VerificationResult


def write_report(source: str | Path, out: str | Path | None = None, *, plan_hash: str | None = None, key: str | None = None) -> Report:
    """Verify the certificate in ``source``, a file or the folder of a release, and write a page about it.

    Without ``out``, the page of a folder is report.html in the folder, and the page of a file is next to it with the suffix .html.
    The same certificate gives the same bytes. The page of a refused certificate shows the reasons and not the claim. ``plan_hash`` is
    the hash of the agreed plan and ``key`` the public key that must have signed.
    """
    found = find_source(source)
    file = check_output_file("out", found.default_out if out is None else out, _SUFFIXES)
    if out is None and file.is_symlink():  # the creator of the folder would choose which file is overwritten
        raise ParameterError(f"`out` must be given because {format_value(str(file))} is a link")
    if file.exists() and file.samefile(found.certificate):
        raise ParameterError(f"`out` must be another file than the certificate, got {format_value(str(file))}")
    result = verify(found.content, plan_hash=plan_hash, key=key)
    release = None
    if result.holds and result.certificate is not None and found.release is not None:
        if result.certificate.run is None:
            raise ParameterError(f"a certificate next to {found.release.name} must be of a run, got one of a plan")
        release = read_release(found.release, result.certificate.hash)
    page = render_page(template_values(found.certificate.name, result, plan_hash=plan_hash, key=key, release=release))
    try:
        atomic_write(file, page.encode("utf-8"))
        if found.shares_release_folder(file):
            with contextlib.suppress(PermissionError):  # the folder belongs to another user, whose run did not end just now
                set_release_time(file.parent, file.name)
    except OSError as error:
        raise write_error("out", file, error) from None
    return Report(file, result)
