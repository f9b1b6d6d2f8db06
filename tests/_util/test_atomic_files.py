"""Bounded reading of files."""

import pytest

from privselect._util.atomic_files import read_limited, read_prefix
from privselect.errors import CertificateError, ParameterError


def test_a_file_of_the_largest_size_is_read_and_a_larger_one_refused(tmp_path):
    file = tmp_path / "file"
    file.write_bytes(b"12345")
    assert read_limited("a plan", file, 5) == b"12345"
    assert read_prefix("a plan", file, 3) == b"123"
    with pytest.raises(ParameterError, match="a plan must have at most 4 bytes, got more in "):
        read_limited("a plan", file, 4)


@pytest.mark.parametrize("name", ["missing", "n" * 5000, "null\0character"])
def test_an_unreadable_file_gives_the_requested_error(name):
    with pytest.raises(CertificateError, match="the certificate must be a file that can be read, got "):
        read_limited("the certificate", name, 10, CertificateError)
