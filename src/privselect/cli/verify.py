"""``privselect verify``."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from privselect._util.rounding import format_digits_up
from privselect.cli.options import AgreedPlan, JsonOption, KeyOption, option
from privselect.cli.output import EXIT_FAILED, print_json, spinner
from privselect.errors import ParameterError

if TYPE_CHECKING:
    from privselect.certificates.certificate import Certificate
    from privselect.certificates.verify import VerificationResult

CertificateFile = Annotated[Path, typer.Argument(metavar="FILE", help="The certificate.")]
PlanHash = Annotated[str | None, option("plan-hash", "H", "The hash of the agreed plan, instead of --plan.")]


def verify(
    file: CertificateFile, key: KeyOption = None, plan: AgreedPlan = None, plan_hash: PlanHash = None, json: JsonOption = False
) -> None:
    """Recompute the claim of a certificate. Exit code 0 means that it holds, 1 that it is refused."""
    if plan is not None and plan_hash is not None:
        raise ParameterError("the agreed plan needs either --plan or --plan-hash, got both")

    from privselect.certificates.certificate import read_bytes
    from privselect.certificates.verify import verify as recompute

    content = read_bytes(file)
    with spinner("recomputing the claim"):
        result = recompute(content, plan_hash=plan or plan_hash, key=key)
    if json:
        print_json(result.as_dict())
    else:
        _print_result(result, key_expected=key is not None)
    if not result.holds:
        raise typer.Exit(EXIT_FAILED)


def _print_stages(certificate: "Certificate") -> None:
    """Print one line per stage of a certificate with a search: what it runs, and what one run of it costs alone."""
    from privselect.certificates.statement import describe_stages

    stages = describe_stages(certificate.plan)
    if "search" not in stages:
        return
    costs = {"search": ("one trial", certificate.base), "final training": ("this training", certificate.final_alone)}
    for stage, text in stages.items():
        what, alone = costs[stage]
        if alone is not None:
            epsilon = "infinite" if alone.upper == "infinite" else format_digits_up(alone.upper)
            print(f"{stage}: {text}; {what} alone has epsilon {epsilon}")


def _print_result(result: "VerificationResult", *, key_expected: bool) -> None:
    print(result.summary)
    for reason in result.reasons:
        print(f"- {reason}")
    if result.holds and result.certificate is not None:
        _print_stages(result.certificate)
        print(result.certificate.statement)
    if result.signed_by is not None and not key_expected:
        print("The owner of this key is not checked. Confirm the key through another channel and pass it as --key.")
    if result.holds and result.unprotected:
        print(f"{'Unsigned. ' if result.signed_by is None else ''}Only a signature by a known key protects the following facts.")
        print("Without one, anyone can change them and rebuild a certificate that verifies:")
        for part in result.unprotected:
            print(f"- {part}")
