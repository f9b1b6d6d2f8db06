"""Private linear regressors with scikit-learn's interface."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from privselect._util.validation import Range, check_number
from privselect.integrations.sklearn.budget_split import MuBudget
from privselect.integrations.sklearn.regressor_base import NO_LEAK, PrivateRegressor, check_settings
from privselect.regression.methods import SSP, AdaSSP, ExactPosteriorSample, GDPPosteriorSample, OutputPerturbation, balanced_ridge
from privselect.regression.ptr.ops_ptr import OPSPTR
from privselect.tuning.plan_ids import plan_id

if TYPE_CHECKING:
    from privselect.mechanisms import Mechanism
    from privselect.regression.methods import RegressionMethod

BALANCED = "balanced"
RIDGES = Range(0.0, 1e9, high_open=False)
_SMALLEST_RIDGE = 1e-6
_SMALLEST_PER_RECORD = 1e-9
_TARGET_DELTA, _FAILURE = 0.1, 0.1  # shares of delta: for the target that bounds a sample, and for wrong bounds


def check_solvable_ridge(ridge: Any, records: int) -> float:
    """Return a ridge at which floats can solve the equations for all data; a failure that depends on the data would leak.

    The largest eigenvalue of X'X is at most the number of records, so the condition number is at most 1e9.
    """
    return check_number("ridge", ridge, Range(max(_SMALLEST_RIDGE, _SMALLEST_PER_RECORD * records), RIDGES.high, high_open=False))


@dataclass(kw_only=True, eq=False, repr=False)
class RidgeRegressor(PrivateRegressor):
    """Private regression with a ridge."""

    ridge: Any = 100.0

    def _checked_ridge(self, records: int, features: int) -> float:  # noqa: ARG002 - part of the interface
        return check_number("ridge", self.ridge, RIDGES)


@plan_id("AdaSSPRegressor")
class AdaSSPRegressor(PrivateRegressor):
    """AdaSSP: X'X, X'y and the smallest eigenvalue of X'X with Gaussian noise, and a ridge fitted to the noise. No parameter to tune."""

    @staticmethod
    def _make_method(budget: MuBudget, delta: float, ridge: float, records: int) -> AdaSSP:  # noqa: ARG004 - part of the interface
        return AdaSSP(budget.method, extra_mu=budget.extra)

    def _checked_ridge(self, records: int, features: int) -> float:  # noqa: ARG002 - part of the interface
        return 0.0  # unused: the method chooses the ridge


@plan_id("SSPRegressor")
class SSPRegressor(RidgeRegressor):
    """Sufficient statistics perturbation: X'X and X'y with Gaussian noise, solved with a ``ridge``, which may be 0.

    The ridge is for rows that are scaled to norm 1. The privacy cost does not depend on it.
    """

    @staticmethod
    def _make_method(budget: MuBudget, delta: float, ridge: float, records: int) -> SSP:  # noqa: ARG004 - part of the interface
        return SSP(budget.method, ridge, extra_mu=budget.extra)


@plan_id("OutputPerturbationRegressor")
class OutputPerturbationRegressor(RidgeRegressor):
    """The ridge solution with Gaussian noise, scaled to the largest effect of one record over all data.

    The ``ridge`` is for rows that are scaled to norm 1. The privacy cost does not depend on it.
    """

    @staticmethod
    def _make_method(budget: MuBudget, delta: float, ridge: float, records: int) -> OutputPerturbation:  # noqa: ARG004 - as above
        return OutputPerturbation(budget.method, ridge, records, extra_mu=budget.extra)

    def _checked_ridge(self, records: int, features: int) -> float:  # noqa: ARG002 - part of the interface
        return check_solvable_ridge(self.ridge, records)


class _PosteriorRegressor(RidgeRegressor):
    """Regressor that releases one posterior sample."""

    def _no_answer_reason(self) -> str:
        settings = check_settings(self)
        return (
            f"no posterior sample has enough noise for epsilon={settings.epsilon:g}, delta={settings.delta:g} at this ridge; "
            "try a larger ridge or epsilon"
        )


@lru_cache(maxsize=1024)
def _exact_mechanism(epsilon: float, delta: float, ridge: float) -> Mechanism:
    return ExactPosteriorSample(epsilon, delta, ridge, records=1).mechanism  # only the precision depends on the number of records


@plan_id("OPSRegressor")
@dataclass(kw_only=True, eq=False, repr=False)
class OPSRegressor(_PosteriorRegressor):
    """One posterior sample (OPS) whose precision depends only on public numbers.

    The ``ridge`` is for rows that are scaled to norm 1. "balanced" is that of OPS-balanced, computed from the number of records, the number
    of columns and the budget.

    If the ridge is a number and nothing else is released (``beyond="refuse"``, no private centre), the sample is calibrated by its own
    exact profile. ``mechanism`` then depends on the ridge. Otherwise the sample is calibrated to one target profile for every ridge.
    """

    ridge: Any = BALANCED

    @property
    def mechanism(self) -> Mechanism:
        """What one fit leaks; it depends on the parameters alone."""
        if not self._is_exact():
            return super().mechanism
        settings = check_settings(self)
        return _exact_mechanism(settings.epsilon, settings.delta, check_solvable_ridge(self.ridge, 1))

    @staticmethod
    def _make_method(budget: MuBudget, delta: float, ridge: float, records: int) -> GDPPosteriorSample:
        return GDPPosteriorSample(budget.method, _TARGET_DELTA * delta, ridge, records, budget.extra)

    def _is_exact(self) -> bool:
        settings = check_settings(self)
        return not (self._is_balanced() or settings.counts_clipped or settings.private_centre)

    def _is_balanced(self) -> bool:
        return isinstance(self.ridge, str) and self.ridge == BALANCED

    def _budget(self) -> MuBudget | None:
        if not self._is_exact():
            return super()._budget()
        return None if self.mechanism == NO_LEAK else MuBudget(0.0)  # only the sample is released

    def _checked_ridge(self, records: int, features: int) -> float:
        settings = check_settings(self)
        if not self._is_balanced():
            return check_solvable_ridge(self.ridge, records)
        return check_solvable_ridge(min(balanced_ridge(records, features, settings.epsilon, settings.delta), RIDGES.high), records)

    def _method(self, budget: MuBudget, records: int, features: int) -> RegressionMethod:
        if not self._is_exact():
            return super()._method(budget, records, features)
        settings = check_settings(self)
        return ExactPosteriorSample(settings.epsilon, settings.delta, self._checked_ridge(records, features), records)


@plan_id("OPSPTRRegressor")
class OPSPTRRegressor(_PosteriorRegressor):
    """OPS-PTR: noisy bounds on the data, then one posterior sample with the largest precision that they allow.

    The ``ridge`` is for rows that are scaled to norm 1. The privacy cost does not depend on it, so it may be tuned. With a small ridge and
    a small budget the result may be "no answer".
    """

    @staticmethod
    def _make_method(budget: MuBudget, delta: float, ridge: float, records: int) -> OPSPTR:
        return OPSPTR(budget.method, _TARGET_DELTA * delta, _FAILURE * delta, ridge, records, extra_mu=budget.extra)
