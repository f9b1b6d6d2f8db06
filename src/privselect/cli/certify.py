"""``privselect certify``."""

from pathlib import Path
from typing import Annotated, Any

import typer

from privselect._util.atomic_files import check_output_file
from privselect.cli.options import AccuracyText, CountText, OptionalDelta, OptionalMechanism, PlanFile
from privselect.cli.printing import working
from privselect.cli.reading import read_accuracy, read_budget, read_count, read_delta, read_mechanism, read_promise
from privselect.errors import ParameterError

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
    plan: PlanFile = None,
    mechanism: OptionalMechanism = None,
    delta: OptionalDelta = None,
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
    within = read_accuracy(accuracy)
    promised = {"--mechanism": mechanism, "--delta": delta, "--count": count, "--epsilon": epsilon}
    told: dict[str, Any] = {
        "unit": unit,
        "trust_model": trust_model,
        "records_public": records_public,
        "score": score,
        "not_covered": not_covered,
    }
    if out is not None:
        check_output_file("out", out)  # before the work begins

    from privselect.certificates.certify import certify as issue

    if plan is not None:
        both = [name for name, value in promised.items() if value is not None]
        both += ["--" + name.replace("_", "-") for name, value in told.items() if value not in (None, [])]
        if both:
            raise ParameterError(f"a plan file says all that is promised and declared, got {str(plan)!r} and {both[0]}")
        promise = read_promise(plan)
        with working("certifying"):
            certificate = issue(
                promise.mechanism, promise.count, delta=promise.delta, epsilon=promise.epsilon, declared=promise.declared, accuracy=within
            )
    else:
        if mechanism is None or delta is None:
            raise ParameterError(f"a certificate needs --mechanism and --delta, or a plan file, got no {_first_missing(promised)}")
        at, budget = read_delta(delta), read_budget(epsilon)
        trial, law = read_mechanism(mechanism), read_count(count)

        from privselect.certificates.declarations import Declared

        declared = Declared(**{**told, "not_covered": tuple(not_covered or ())})
        with working("certifying"):
            certificate = issue(trial, law, delta=at, epsilon=budget, declared=declared, accuracy=within)
    if out is None:
        print(certificate.to_json(), end="")
        return
    certificate.write(out)
    print(certificate.statement)
    print(f"{'draft ' if certificate.draft else ''}certificate written to {out}")
    print(f"hash of the plan: {certificate.promise_hash}")


def _first_missing(promised: dict[str, str | None]) -> str:
    return next(name for name, value in promised.items() if value is None)
