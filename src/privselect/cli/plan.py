"""``privselect plan``."""

from pathlib import Path
from typing import Annotated

from privselect._util.validation import POSITIVE
from privselect.cli.options import JsonOption, OptionalDelta, PlanArgument, number_option, option, output_option
from privselect.cli.output import print_json, spinner
from privselect.errors import ParameterError

_MECHANISM = "The mechanism of one trial, such as gaussian(sigma=?) or gaussian(sigma=4)."
OpenMechanism = Annotated[str | None, option("mechanism", "M", _MECHANISM)]
_COUNT = "The law of K, such as geometric(mean=30) or geometric(mean=?). Default: one trial."
OpenCount = Annotated[str | None, option("count", "C", _COUNT)]
Budget = Annotated[float | None, number_option("epsilon", "E", POSITIVE, "The budget of the whole release, above 0.")]
OutFile = Annotated[Path | None, output_option("Write the plan into this .toml file.", ".toml")]


def plan(
    file: PlanArgument = None,
    mechanism: OpenMechanism = None,
    count: OpenCount = None,
    epsilon: Budget = None,
    delta: OptionalDelta = None,
    json: JsonOption = False,
    out: OutFile = None,
) -> None:
    """Solve for the open number, written as ?, under a budget."""
    terms = {"mechanism": mechanism, "epsilon": epsilon, "delta": delta, "count": count}
    given = [name for name, value in terms.items() if value is not None]
    if file is not None and given:
        raise ParameterError(f"a plan needs either a file or options, got {str(file)!r} and --{given[0]}")

    from privselect.planning.plan import plan as solve
    from privselect.planning.plan_file import read_plan, write_plan

    plan_file = None
    if file is not None:
        plan_file = read_plan(file)
        with spinner("planning"):
            solution = plan_file.plan()
    elif mechanism is None or epsilon is None or delta is None:
        missing = next(name for name in ("mechanism", "epsilon", "delta") if name not in given)
        raise ParameterError(f"a plan needs --mechanism, --epsilon and --delta, or a plan file, got no --{missing}")
    else:
        with spinner("planning"):
            solution = solve(mechanism, count, epsilon=epsilon, delta=delta)
    if out is not None:
        write_plan(solution, out, None if plan_file is None else plan_file.declared, plan_file)
    if json:
        print_json(solution.as_dict())
        return
    print(solution.summary())
    if out is not None:
        print(f"plan written to {out}")
