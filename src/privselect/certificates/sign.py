"""Ed25519 signatures: the holder of a key has signed exactly this content."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from privselect._util.atomic_files import check_output_file, write_error
from privselect._util.validation import format_value
from privselect.certificates.canonical import canonical
from privselect.certificates.model import Signature
from privselect.errors import MissingExtraError, ParameterError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from privselect.certificates.certificate import Certificate

_KEY = re.compile(r"[0-9a-f]{64}")
_FIELD = 2**255 - 19
# The y coordinates of all points of order 1, 2, 4 and 8 on edwards25519.
_EIGHTH = 2707385501144840649318225287225658788936804267575313519463743609750303402022
_SMALL_ORDER = {1, _FIELD - 1, 0, _EIGHTH, _FIELD - _EIGHTH}
_LARGEST_KEY_FILE = 10_000  # bytes; an Ed25519 key has 119


def new_key(path: str | Path) -> str:
    """Generate a key, write it to a new file that only its owner can read, and return the public key."""
    _require_cryptography()
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    file = check_output_file("new-key", path)
    key = Ed25519PrivateKey.generate()
    content = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    try:
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as opened:
            opened.write(content)
    except FileExistsError:
        raise ParameterError(f"`new-key` must be a file that does not exist yet, got {format_value(str(path))}") from None
    except OSError as error:
        raise write_error("new-key", file, error) from None
    return _public(key)


def sign(certificate: Certificate, key_file: str | Path) -> Certificate:
    """Return the certificate with a signature by this key; an existing signature is replaced."""
    key = _read_key(key_file)
    value = key.sign(canonical(certificate.content())).hex()
    return certificate.model_copy(update={"signature": Signature(public_key=_public(key), value=value), "hash": certificate.digest()})


def is_signed(certificate: Certificate) -> bool:
    """Return whether the signature is valid for the content and for the key that it names."""
    _require_cryptography()
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    if certificate.signature is None or _has_small_order(certificate.signature.public_key):
        return False
    try:
        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(certificate.signature.public_key))
        key.verify(bytes.fromhex(certificate.signature.value), canonical(certificate.content()))
    except (InvalidSignature, ValueError):
        return False
    return True


def check_key(text: str) -> str:
    """Check a public key in the form that :func:`new_key` returns."""
    if not isinstance(text, str) or not _KEY.fullmatch(text) or _has_small_order(text):
        raise ParameterError(f"`key` must be a public key of 64 digits 0-9a-f, got {format_value(text)}")
    return text


def _has_small_order(key: str) -> bool:
    """Return whether the key is a point of small order: anyone can forge signatures for such a key."""
    return (int.from_bytes(bytes.fromhex(key), "little") & (2**255 - 1)) % _FIELD in _SMALL_ORDER


def _read_key(path: str | Path) -> Ed25519PrivateKey:
    _require_cryptography()
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    # The content of the file is secret: error messages show only its name.
    try:
        with Path(path).open("rb") as file:
            key = load_pem_private_key(file.read(_LARGEST_KEY_FILE), password=None)
        if isinstance(key, Ed25519PrivateKey):
            return key
        reason: str | None = "another type of key"
    except (OSError, ValueError, TypeError, UnsupportedAlgorithm) as error:
        reason = error.strerror if isinstance(error, OSError) else "not an unencrypted private key in PEM"
    raise ParameterError(f"`key-file` must be an Ed25519 key made by `privselect sign --new-key`, got {format_value(str(path))} ({reason})")


def _public(key: Ed25519PrivateKey) -> str:
    return key.public_key().public_bytes_raw().hex()


def _require_cryptography() -> None:
    try:
        import cryptography  # noqa: F401 - only whether it is there
    except ModuleNotFoundError:
        raise MissingExtraError("signatures need cryptography; install it with: pip install 'privselect[sign]'") from None
