"""``privselect certify``."""

from pathlib import Path
from typing import Annotated

import typer

from privselect.cli.options import AccuracyText, CountText, DeltaText, MechanismText
from privselect.cli.reading import read_accuracy, read_budget, read_count, read_delta, read_mechanism
from privselect.files import check_target

BudgetText = Annotated[
    str | None,
    typer.Option("--epsilon", metavar="E", help="The budget: above it no certificate is issued. Without it: what the plan costs."),
]
Unit = Annotated[str | None, typer.Option("--unit", metavar="TEXT", help='Whose data is protected, such as "one person".')]
TrustModel = Annotated[
    str | None, typer.Option("--trust-model", metavar="TEXT", help='Who sees what, such as "central: the curator sees the data".')
]
RecordsPublic = Annotated[
    bool | None, typer.Option("--records-public/--records-private", help="Whether the number of records is public.", show_default=False)
]
Score = Annotated[str | None, typer.Option("--score", metavar="TEXT", help="How the score is private.")]
NotCovered = Annotated[
    list[str] | None, typer.Option("--not-covered", metavar="TEXT", help="An access to the data that is not covered; may be repeated.")
]
Out = Annotated[
    Path | None, typer.Option("--out", metavar="FILE", help="Write the certificate into this file. Without it: print its JSON.")
]


def certify(
    mechanism: MechanismText,
    delta: DeltaText,
    count: CountText = None,
    epsilon: BudgetText = None,
    accuracy: AccuracyText = None,
    unit: Unit = None,
    trust_model: TrustModel = None,
    records_public: RecordsPublic = None,
    score: Score = None,
    not_covered: NotCovered = None,
    out: Out = None,
) -> None:
    """Issue a certificate for a plan; `privselect verify` checks it."""
    at, budget, within = read_delta(delta), read_budget(epsilon), read_accuracy(accuracy)
    if out is not None:
        check_target("out", out)  # before the work begins
    trial, law = read_mechanism(mechanism), read_count(count)

    from privselect.certificates.certify import certify as issue
    from privselect.certificates.declared import Declared

    declared = Declared(
        unit=unit, trust_model=trust_model, records_public=records_public, score=score, not_covered=tuple(not_covered or ())
    )
    certificate = issue(trial, law, delta=at, epsilon=budget, declared=declared, accuracy=within)
    if out is None:
        print(certificate.to_json(), end="")
        return
    certificate.write(out)
    print(certificate.statement)
    print(f"{'draft ' if certificate.draft else ''}certificate written to {out}")
    print(f"hash of the plan: {certificate.promise_hash}")
