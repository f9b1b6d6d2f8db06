"""The page of a certificate."""

import pytest
from page_parser import Page

from privselect.report import write_report


@pytest.fixture
def page_of(tmp_path):
    """The page of a certificate, or of the text of one."""

    def page(certificate, **options):
        file = tmp_path / "certificate.json"
        file.write_text(certificate if isinstance(certificate, str) else certificate.to_json(), encoding="utf-8")
        return Page(write_report(file, **options).file.read_text(encoding="utf-8"))

    return page
