"""``privselect plan``."""

from pathlib import Path
from typing import Annotated

import typer

from privselect._util.validation import POSITIVE
from privselect.cli.options import AsJson, OptionalDelta, PlanFile
from privselect.cli.printing import print_json, working
from privselect.cli.reading import read_budget, read_delta
from privselect.errors import ParameterError

OpenMechanism = Annotated[
    str | None, typer.Option("--mechanism", metavar="M", help="What one trial leaks, such as gaussian(sigma=?) or gaussian(sigma=4).")
]
OpenCount = Annotated[
    str | None,
    typer.Option("--count", metavar="C", help="The law of K, such as geometric(mean=30) or geometric(mean=?). Without it: one trial."),
]
Budget = Annotated[str | None, typer.Option("--epsilon", metavar="E", help="The budget for everything that is released, above 0.")]
OutFile = Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Write the plan into this .toml file.")]


def plan(
    file: PlanFile = None,
    mechanism: OpenMechanism = None,
    count: OpenCount = None,
    epsilon: Budget = None,
    delta: OptionalDelta = None,
    json: AsJson = False,
    out: OutFile = None,
) -> None:
    """Solve for the one number written as ? so that the budget is met."""
    options = {"--mechanism": mechanism, "--epsilon": epsilon, "--delta": delta}
    if file is not None and (given := next((name for name, value in {**options, "--count": count}.items() if value is not None), None)):
        raise ParameterError(f"a plan is read from a file or made from options, got {str(file)!r} and {given}")
    if file is None and (missing := next((name for name, value in options.items() if value is None), None)):
        raise ParameterError(f"a plan needs --mechanism, --epsilon and --delta, or a plan file, got no {missing}")
    if out is not None:
        from privselect._util.atomic_files import check_output_file

        check_output_file("out", out, (".toml",))  # before the work begins
    read = None
    if file is not None:
        from privselect.planning.plan_file import read_plan

        read = read_plan(file)
        with working("planning"):
            answer = read.plan()
    else:
        from privselect.planning.plan import plan as solve

        budget, at = float(read_budget(epsilon, POSITIVE) or 0.0), read_delta(str(delta))
        with working("planning"):
            answer = solve(str(mechanism), count, epsilon=budget, delta=at)
    if out is not None:
        from privselect.planning.plan_file import write_plan

        write_plan(answer, out, None if read is None else read.declared, read)
    if json:
        print_json(answer.as_dict())
        return
    print(answer.summary())
    if out is not None:
        print(f"plan written to {out}")
