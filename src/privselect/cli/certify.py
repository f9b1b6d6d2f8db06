"""``privselect certify``."""

from pathlib import Path
from typing import Annotated, Any

import typer

from privselect._util.validation import NON_NEGATIVE
from privselect.cli.options import (
    AccuracyOption,
    CountOption,
    FinalOption,
    MechanismOption,
    OptionalDelta,
    PlanArgument,
    SubsampleOption,
    VisibleOption,
    number_option,
    option,
    output_option,
    read_solved_plan,
)
from privselect.cli.output import spinner
from privselect.errors import ParameterError

_BUDGET = "The budget. A plan that costs more gets no certificate. Default: the cost of the plan."
BudgetOption = Annotated[float | None, number_option("epsilon", "E", NON_NEGATIVE, _BUDGET)]
UnitOption = Annotated[str | None, option("unit", "TEXT", 'The protected unit, such as "one person".')]
TrustModelOption = Annotated[str | None, option("trust-model", "TEXT", 'The trust model, such as "central: the curator sees the data".')]
RecordsPublicOption = Annotated[
    bool | None,
    typer.Option("--records-public/--records-private", help="Declare whether the number of records is public.", show_default=False),
]
ScoreOption = Annotated[str | None, option("score", "TEXT", "How the score is kept private.")]
NotCoveredOption = Annotated[list[str] | None, option("not-covered", "TEXT", "An access to the data that is not covered. May be repeated.")]
OutOption = Annotated[Path | None, output_option("Write the certificate into this file. Default: print its JSON.")]


def certify(
    plan: PlanArgument = None,
    mechanism: MechanismOption = None,
    delta: OptionalDelta = None,
    count: CountOption = None,
    visible: VisibleOption = None,
    subsample: SubsampleOption = None,
    final: FinalOption = None,
    epsilon: BudgetOption = None,
    accuracy: AccuracyOption = None,
    unit: UnitOption = None,
    trust_model: TrustModelOption = None,
    records_public: RecordsPublicOption = None,
    score: ScoreOption = None,
    not_covered: NotCoveredOption = None,
    out: OutOption = None,
) -> None:
    """Issue a certificate for a plan. The command `privselect verify` checks it."""
    terms: dict[str, Any] = {"mechanism": mechanism, "count": count, "visible": visible, "subsample": subsample, "final": final}
    terms |= {"delta": delta, "epsilon": epsilon}
    declarations: dict[str, Any] = {"unit": unit, "trust_model": trust_model, "records_public": records_public, "score": score}
    declarations["not_covered"] = tuple(not_covered or ())
    from privselect.certificates.certify import certify as issue
    from privselect.certificates.model import Declared

    if plan is not None:
        given = [name.replace("_", "-") for name, value in (terms | declarations).items() if value not in (None, ())]
        if given:
            raise ParameterError(f"a plan file contains all terms and declarations, got {str(plan)!r} and --{given[0]}")
        agreed = read_solved_plan(plan).terms()
        terms, declared = {name: getattr(agreed, name) for name in terms}, agreed.declared
    elif mechanism is None or delta is None:
        missing = "delta" if mechanism is not None else "mechanism"
        raise ParameterError(f"a certificate needs --mechanism and --delta, or a plan file, got no --{missing}")
    else:
        declared = Declared(**declarations)
    with spinner("certifying"):
        certificate = issue(**terms, declared=declared, accuracy=accuracy)
    if out is None:
        print(certificate.to_json(), end="")
        return
    certificate.write(out)
    print(certificate.statement)
    print(f"{'draft ' if certificate.draft else ''}certificate written to {out}")
    print(f"hash of the plan: {certificate.plan_hash}")
