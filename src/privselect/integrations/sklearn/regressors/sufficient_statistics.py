"""Regressions from sums with noise, and from a solution with noise: each is one Gaussian mechanism."""

from __future__ import annotations

from typing import TYPE_CHECKING

from privselect._util.validation import check_number
from privselect.integrations.sklearn.regressors.base import PrivateRegressor
from privselect.integrations.sklearn.regressors.ridge_base import ANY, RidgeRegressor, solvable
from privselect.regression.methods.ada_ssp import AdaSSP
from privselect.regression.methods.output_perturbation import OutputPerturbation
from privselect.regression.methods.ssp import SSP
from privselect.tuning.plan_ids import plan_id

if TYPE_CHECKING:
    from privselect.integrations.sklearn.regressors.budget import Parts
    from privselect.mechanisms import Mechanism


def _one_gaussian(parts: Parts, delta: float) -> Mechanism:  # noqa: ARG001 - a Gaussian needs no delta
    """The same for all of them, whatever the ridge."""
    return AdaSSP(parts.recipe, parts.beside).mechanism


@plan_id("AdaSSPRegressor")
class AdaSSPRegressor(PrivateRegressor):
    """AdaSSP: X'X, X'y and the least eigenvalue of X'X with Gaussian noise, and a ridge that is fitted to it. There is nothing to tune."""

    _leak = staticmethod(_one_gaussian)

    def _recipe(self, parts: Parts, records: int, features: int) -> AdaSSP:  # noqa: ARG002 - what others need
        return AdaSSP(parts.recipe, parts.beside)


@plan_id("SSPRegressor")
class SSPRegressor(RidgeRegressor):
    """Sufficient statistics with noise: X'X and X'y with Gaussian noise, solved with a ``ridge``, which may be 0.

    The ridge is for rows that are scaled to norm 1, and every ridge costs the same.
    """

    _leak = staticmethod(_one_gaussian)

    def _recipe(self, parts: Parts, records: int, features: int) -> SSP:  # noqa: ARG002 - what others need
        return SSP(parts.recipe, check_number("ridge", self.ridge, ANY), parts.beside)


@plan_id("OutputPerturbationRegressor")
class OutputPerturbationRegressor(RidgeRegressor):
    """The ridge solution with Gaussian noise, as much as hides how far one record can move it, whatever the data.

    The ``ridge`` is for rows that are scaled to norm 1, and every ridge costs the same.
    """

    _leak = staticmethod(_one_gaussian)

    def _recipe(self, parts: Parts, records: int, features: int) -> OutputPerturbation:  # noqa: ARG002
        return OutputPerturbation(parts.recipe, solvable(self.ridge, records), records, parts.beside)
