"""Check a certificate from its text forms alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from privselect._util.validation import format_value
from privselect.certificates.certificate import Certificate
from privselect.certificates.recompute import check_contents, check_numbers
from privselect.certificates.sign import check_key, is_signed
from privselect.certificates.verification_result import Verdict
from privselect.errors import FieldsError, ParameterError

if TYPE_CHECKING:
    from collections.abc import Iterator

_PLAN = (
    "that this mechanism, this law of K, this delta and this budget are the ones agreed on",
    "what is declared: the unit of privacy, the trust model, whether n is public, the score, what is not covered",
)
_MAKING = (
    "whether it is about a plan or a run, how many runs on the same data there were, their randomness and notes",
    "when and with which versions it was made",
)


def verify(certificate: Certificate | str | bytes, *, promise_digest: str | None = None, key: str | None = None) -> Verdict:
    """Recompute every number from the text forms, and compare every other field with what follows from them.

    ``promise_digest`` is the hash of the plan that was agreed on, ``key`` the public key that must have signed. A text that is no
    certificate of a known version is a ``CertificateError``; every other fault is a reason in the verdict.
    """
    wanted = None if key is None else check_key(key)
    if promise_digest is not None and not isinstance(promise_digest, str):
        raise ParameterError(f"`promise_digest` must be the hash of a plan, got {format_value(promise_digest)}")
    if not isinstance(certificate, Certificate | str | bytes):
        raise ParameterError(f"`certificate` must be a certificate or its text, got {format_value(certificate)}")
    try:
        found = certificate if isinstance(certificate, Certificate) else Certificate.from_json(certificate)
    except FieldsError as error:
        return Verdict(False, (str(error),), None, True, None, (), None)  # noqa: FBT003 - refused, and as good as a draft
    recomputed, curve, wrong = check_numbers(found)
    reasons = (*_check_origin(found, promise_digest, wanted), *wrong, *check_contents(found))
    known = wanted is not None and found.signature is not None and found.signature.key == wanted
    signer = found.signature.key if found.signature is not None and is_signed(found) else None
    return Verdict(
        holds=not reasons,
        reasons=reasons,
        signed_by=signer,
        draft=bool(found.promise.declared.missing),
        recomputed=recomputed,
        # A signature by a key that nobody asked for protects nothing: anyone can make one.
        unprotected=() if known else (_MAKING if promise_digest is not None else _PLAN + _MAKING),
        certificate=found,
        curve=curve,
    )


def _check_origin(certificate: Certificate, promise_digest: str | None, key: str | None) -> Iterator[str]:
    if certificate.hash != certificate.digest():
        yield "the hash does not belong to the content: something was changed after the certificate was made"
    if promise_digest is not None and certificate.promise.digest() != promise_digest:
        yield f"the plan is another one: its hash is {certificate.promise.digest()}, expected was {format_value(promise_digest)[1:-1]}"
    if certificate.signature is not None and not is_signed(certificate):
        yield "the signature does not belong to the content and the key that it names"
    if key is not None and certificate.signature is None:
        yield f"the certificate is unsigned, expected was a signature by {key}"
    elif key is not None and certificate.signature is not None and certificate.signature.key != key:
        yield f"the certificate is signed by {certificate.signature.key}, expected was {key}"
