"""``privselect sign``."""

from pathlib import Path
from typing import Annotated

import typer

from privselect._util.atomic_files import check_output_file
from privselect.errors import ParameterError

CertificateFile = Annotated[Path | None, typer.Argument(metavar="FILE", help="The certificate to sign.")]
KeyFile = Annotated[Path | None, typer.Option("--key-file", metavar="PEM", help="The private key to sign with.")]
NewKey = Annotated[Path | None, typer.Option("--new-key", metavar="PEM", help="Make a private key in this new file, first.")]
Out = Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Where to write the signed certificate. Without it: in place.")]

_REFUSED = 1


def sign(file: CertificateFile = None, key_file: KeyFile = None, new_key: NewKey = None, out: Out = None) -> None:
    """Sign a certificate whose claim holds, with an Ed25519 key; or make such a key."""
    key = new_key or key_file
    if key is None or (new_key and key_file):
        raise ParameterError("`sign` needs one of --key-file and --new-key, got both or neither")
    if file is None and (out is not None or new_key is None):
        raise ParameterError("`sign` needs the certificate to sign, got none")
    if new_key is not None:
        from privselect.certificates.sign import new_key as make_key

        print(f"public key: {make_key(new_key)}")
    if file is not None:
        _sign(file, key, check_output_file("out", file if out is None else out))


def _sign(file: Path, key: Path, target: Path) -> None:
    from privselect.certificates.certificate import read_bytes
    from privselect.certificates.sign import sign as signed_with
    from privselect.certificates.verify import verify

    # Nobody should put their name to a claim that does not hold.
    verdict = verify(read_bytes(file))
    if verdict.certificate is None or not verdict.holds:
        print(verdict.line)
        raise typer.Exit(_REFUSED)
    signed = signed_with(verdict.certificate, key)
    signed.write(target)
    print(signed.statement)
    print(f"signed by {signed.signature and signed.signature.key}, written to {target}")
