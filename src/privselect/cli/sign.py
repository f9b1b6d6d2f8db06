"""``privselect sign``."""

from pathlib import Path
from typing import Annotated

import typer

from privselect._util.atomic_files import check_output_file
from privselect.cli.options import option
from privselect.cli.output import EXIT_FAILED
from privselect.errors import ParameterError

CertificateFile = Annotated[Path | None, typer.Argument(metavar="FILE", help="The certificate to sign.")]
KeyFile = Annotated[Path | None, option("key-file", "PEM", "The private key to sign with.")]
NewKey = Annotated[Path | None, option("new-key", "PEM", "Create a private key in this new file and sign with it.")]
OutOption = Annotated[Path | None, option("out", "FILE", "The file of the signed certificate. Default: replace the certificate.")]


def sign(file: CertificateFile = None, key_file: KeyFile = None, new_key: NewKey = None, out: OutOption = None) -> None:
    """Sign a certificate, or create an Ed25519 key. A certificate whose claim does not hold is not signed."""
    key = new_key or key_file
    if key is None or (new_key and key_file):
        raise ParameterError("`sign` needs one of --key-file and --new-key, got both or neither")
    if file is None and (out is not None or new_key is None):
        raise ParameterError("`sign` needs the certificate to sign, got none")
    if new_key is not None:
        from privselect.certificates.sign import new_key as create_key

        print(f"public key: {create_key(new_key)}")
    if file is not None:
        _sign(file, key, check_output_file("out", out or file))


def _sign(file: Path, key: Path, target: Path) -> None:
    from privselect.certificates.certificate import read_bytes
    from privselect.certificates.sign import sign as sign_with
    from privselect.certificates.verify import verify

    result = verify(read_bytes(file))  # a claim that does not hold gets no signature
    if result.certificate is None or not result.holds:
        print(result.summary)
        raise typer.Exit(EXIT_FAILED)
    signed = sign_with(result.certificate, key)
    signed.write(target)
    print(signed.statement)
    print(f"signed by {signed.signature and signed.signature.public_key}, written to {target}")
