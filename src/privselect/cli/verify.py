"""``privselect verify``."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from privselect.cli.options import AsJson
from privselect.cli.printing import print_json, working
from privselect.cli.reading import read_promise
from privselect.errors import ParameterError

if TYPE_CHECKING:
    from privselect.certificates.verification_result import Verdict

CertificateFile = Annotated[Path, typer.Argument(metavar="FILE", help="The certificate.")]
Key = Annotated[str | None, typer.Option("--key", metavar="K", help="The public key that must have signed.")]
AgreedPlan = Annotated[Path | None, typer.Option("--plan", metavar="FILE", help="The plan file that was agreed on.")]
PlanHash = Annotated[str | None, typer.Option("--plan-hash", metavar="H", help="The hash of the plan that was agreed on.")]

_REFUSED = 1


def verify(file: CertificateFile, key: Key = None, plan: AgreedPlan = None, plan_hash: PlanHash = None, json: AsJson = False) -> None:
    """Compute a certificate's claim again from its text forms, and say whether it holds: exit code 0 if so, 1 if not."""
    from privselect.certificates.certificate import read_bytes
    from privselect.certificates.verify import verify as check

    if plan is not None:
        if plan_hash is not None:
            raise ParameterError(f"the plan is given by its file or by its hash, got --plan {str(plan)!r} and --plan-hash")
        plan_hash = read_promise(plan).digest()
    content = read_bytes(file)
    with working("computing the claim again"):
        verdict = check(content, promise_digest=plan_hash, key=key)
    if json:
        print_json(verdict.as_dict())
    else:
        print(verdict.line)
        _explain(verdict, expected=key is not None)
    if not verdict.holds:
        raise typer.Exit(_REFUSED)


def _explain(verdict: "Verdict", *, expected: bool) -> None:
    for reason in verdict.reasons:
        print(f"- {reason}")
    if verdict.holds and verdict.certificate is not None:
        print(verdict.certificate.statement)
    if verdict.signed_by is not None and not expected:
        print("The signature proves that the holder of this key signed; whose key it is must be known from elsewhere: give it with --key.")
    if verdict.holds and verdict.unprotected:
        alone = "Unsigned. Only a signature" if verdict.signed_by is None else "Only a signature by a known key"
        print(f"{alone} protects, as anyone can change it and make all the rest anew:")
        for part in verdict.unprotected:
            print(f"- {part}")
