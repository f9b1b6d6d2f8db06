"""Time one fit of each private linear regressor, and the privacy profile of one posterior sample."""

from __future__ import annotations

import warnings

import numpy as np
from lines import Line, seconds

from privselect.integrations import (
    AdaSSPRegressor,
    OPSPTRRegressor,
    OPSRegressor,
    OutputPerturbationRegressor,
    SSPRegressor,
    sized_for_search,
)
from privselect.regression import OPS

ROWS, COLUMNS = 50_000, 20
EPSILONS = np.linspace(0.0, 3.0, 100)
KINDS = (OPSRegressor, OPSPTRRegressor, AdaSSPRegressor, SSPRegressor, OutputPerturbationRegressor)


def regression_lines() -> list[Line]:
    rng = np.random.default_rng(7)
    rows = rng.normal(size=(ROWS, COLUMNS))
    rows /= np.linalg.norm(rows, axis=1)[:, None]
    targets = np.clip(rows @ rng.normal(size=COLUMNS) / 4, -1, 1)
    AdaSSPRegressor().fit(rows[:100], targets[:100])  # warm up lazy imports
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # Each fit has another epsilon, so no mechanism is cached.
        fits = [
            Line(
                f"regression: {kind.__name__}, fit of {ROWS:,} x {COLUMNS}{', with intercept' if intercept else ''}",
                seconds(
                    lambda kind=kind, index=index, intercept=intercept: kind(epsilon=1 + index, fit_intercept=intercept).fit(rows, targets)
                ),  # type: ignore[misc]
                "s",
                1.0,
            )
            for index, kind in enumerate(KINDS)
            for intercept in (False, True)
        ]
    return [
        *fits,
        *(
            Line(
                f"regression: OPS of leverage {leverage:g}, 100 epsilons",
                seconds(lambda ops=ops: ops.delta_at(EPSILONS)),
                "s",
                0.5,
            )  # type: ignore[misc]
            for leverage in (0.001, 0.01, 0.1)
            for ops in (OPS(leverage, 0.05 / leverage),)
        ),
        Line(
            "regression: OPS-PTR sized for 600 trials",
            seconds(lambda: sized_for_search(OPSPTRRegressor(), "geometric(mean=600)", epsilon=1.0, delta=1e-6)),
            "s",
        ),
    ]


if __name__ == "__main__":
    for line in regression_lines():
        print(*line.cells(), sep="  ")
