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
)
from privselect.integrations.sklearn.open_noise import EPSILON, OpenFit, open_fit
from privselect.integrations.sklearn.trial_mechanism import declared_mechanism
from privselect.pairs.compose import ACCURACY
from privselect.planning.plan import plan
from privselect.planning.search_range import FastOptions
from privselect.regression import OPS

ROWS, COLUMNS = 50_000, 20
EPSILONS = np.linspace(0.0, 3.0, 100)
KINDS = (OPSRegressor, OPSPTRRegressor, AdaSSPRegressor, SSPRegressor, OutputPerturbationRegressor)


def _open_fit() -> OpenFit:
    """One of 600 fits of a search whose budget is that of the whole search."""
    estimator = OPSPTRRegressor(epsilon=None, delta=1e-6 / 600)
    return open_fit(estimator, EPSILON, lambda one: declared_mechanism(one)({}))


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
            "regression: the budget of one OPS-PTR fit of 600",
            seconds(lambda: plan(_open_fit(), "geometric(mean=600)", epsilon=1.0, delta=1e-6, fast=FastOptions(ACCURACY))),
            "s",
        ),
    ]


if __name__ == "__main__":
    for line in regression_lines():
        print(*line.cells(), sep="  ")
