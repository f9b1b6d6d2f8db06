"""``privselect plan``."""

import math
from pathlib import Path
from typing import Annotated, Any

from privselect._util.validation import POSITIVE, Range
from privselect.cli.options import (
    JsonOption,
    OptionalDelta,
    PlanArgument,
    SubsampleOption,
    VisibleOption,
    number_option,
    option,
    output_option,
)
from privselect.cli.output import print_json, spinner
from privselect.errors import ParameterError

_MECHANISM = "The mechanism of one search trial, such as gaussian(sigma=?) or gaussian(sigma=4)."
OpenMechanism = Annotated[str | None, option("mechanism", "M", _MECHANISM)]
_COUNT = "The law of K, such as geometric(mean=30) or geometric(mean=?). Default: one trial; with --final, a law described in docs/plan.md."
OpenCount = Annotated[str | None, option("count", "C", _COUNT)]
_FINAL = "The mechanism of the final training with the winner's candidate, on the same records. Default: no final training."
OpenFinal = Annotated[str | None, option("final", "M", _FINAL)]
_FINAL_NOISE = "If both stages are open: the noise of the final training, as a factor on what it would need alone, such as 1.07."
FinalNoiseOption = Annotated[float | None, number_option("final-noise", "F", Range(1.0, math.inf, low_open=True), _FINAL_NOISE)]
SplitOption = Annotated[str | None, option("split", "RULE", 'If both stages are open: "auto" divides the budget by a public rule.')]
Budget = Annotated[float | None, number_option("epsilon", "E", POSITIVE, "The budget of the whole release, above 0.")]
OutFile = Annotated[Path | None, output_option("Write the plan into this .toml file.", ".toml")]


def plan(
    file: PlanArgument = None,
    mechanism: OpenMechanism = None,
    count: OpenCount = None,
    final: OpenFinal = None,
    visible: VisibleOption = None,
    subsample: SubsampleOption = None,
    final_noise: FinalNoiseOption = None,
    split: SplitOption = None,
    epsilon: Budget = None,
    delta: OptionalDelta = None,
    json: JsonOption = False,
    out: OutFile = None,
) -> None:
    """Solve for the open number, written as ?, under a budget.

    With --final, both stages may have an open number: --final-noise or --split then divides the budget.
    """
    stages: dict[str, Any] = {
        "count": count,
        "final": final,
        "visible": visible,
        "subsample": subsample,
        "final_noise": final_noise,
        "split": split,
    }
    terms = {"mechanism": mechanism, "epsilon": epsilon, "delta": delta, **stages}
    given = [name.replace("_", "-") for name, value in terms.items() if value is not None]
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
            solution = solve(mechanism, **stages, epsilon=epsilon, delta=delta)
    if out is not None:
        write_plan(solution, out, None if plan_file is None else plan_file.declared, plan_file)
    if json:
        print_json(solution.as_dict())
        return
    print(solution.summary())
    if out is not None:
        print(f"plan written to {out}")
