"""What a ridge may be, for rows that are scaled to norm 1."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from privselect._util.validation import Range, check_number
from privselect.integrations.sklearn.budget_split import Parts
from privselect.integrations.sklearn.regressor_base import NOTHING, PrivateRegressor, settings_of
from privselect.regression.methods import SSP, AdaSSP, ExactPosteriorSample, OutputPerturbation, GDPPosteriorSample, balanced_ridge
from privselect.regression.ptr.ops_ptr import OPSPTR
from privselect.tuning.plan_ids import plan_id
from privselect.integrations.sklearn.budget_split import Parts

if TYPE_CHECKING:
    from privselect.mechanisms import Mechanism
    from privselect.regression.methods import RegressionMethod


ANY = Range(0.0, 1e9, high_open=False)
_LEAST = 1e-6
_OF_RECORDS = 1e-9


def solvable(ridge: Any, records: int) -> float:
    """One for which the equations are solved by floats, whatever the records: an error that depends on them would tell of them.

    The greatest eigenvalue of X'X is at most the number of records, so the condition is at most 1e9.
    """
    return check_number("ridge", ridge, Range(max(_LEAST, _OF_RECORDS * records), ANY.high, high_open=False))


class RidgeRegressor(PrivateRegressor):
    """One with a ridge."""

    def __init__(  # noqa: PLR0913 - parameters of an estimator
        self,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        ridge: Any = 100.0,
        row_bound: float = 1.0,
        target_bound: float = 1.0,
        beyond: str = "count",
        records: int | None = None,
        fit_intercept: bool = False,
        centre: Any = None,
        insecure_seed: Any = None,
    ) -> None:
        super().__init__(
            epsilon=epsilon,
            delta=delta,
            row_bound=row_bound,
            target_bound=target_bound,
            beyond=beyond,
            records=records,
            fit_intercept=fit_intercept,
            centre=centre,
            insecure_seed=insecure_seed,
        )
        self.ridge = ridge


def _one_gaussian(parts: Parts, delta: float) -> Mechanism:  # noqa: ARG001 - a Gaussian needs no delta
    """The same for all of them, whatever the ridge."""
    return AdaSSP(parts.recipe, extra_mu=parts.beside).mechanism


@plan_id("AdaSSPRegressor")
class AdaSSPRegressor(PrivateRegressor):
    """AdaSSP: X'X, X'y and the least eigenvalue of X'X with Gaussian noise, and a ridge that is fitted to it. There is nothing to tune."""

    _leak = staticmethod(_one_gaussian)

    def _recipe(self, parts: Parts, records: int, features: int) -> AdaSSP:  # noqa: ARG002 - what others need
        return AdaSSP(parts.recipe, extra_mu=parts.beside)


@plan_id("SSPRegressor")
class SSPRegressor(RidgeRegressor):
    """Sufficient statistics with noise: X'X and X'y with Gaussian noise, solved with a ``ridge``, which may be 0.

    The ridge is for rows that are scaled to norm 1, and every ridge costs the same.
    """

    _leak = staticmethod(_one_gaussian)

    def _recipe(self, parts: Parts, records: int, features: int) -> SSP:  # noqa: ARG002 - what others need
        return SSP(parts.recipe, check_number("ridge", self.ridge, ANY), extra_mu=parts.beside)


@plan_id("OutputPerturbationRegressor")
class OutputPerturbationRegressor(RidgeRegressor):
    """The ridge solution with Gaussian noise, as much as hides how far one record can move it, whatever the data.

    The ``ridge`` is for rows that are scaled to norm 1, and every ridge costs the same.
    """

    _leak = staticmethod(_one_gaussian)

    def _recipe(self, parts: Parts, records: int, features: int) -> OutputPerturbation:  # noqa: ARG002
        return OutputPerturbation(parts.recipe, solvable(self.ridge, records), records, extra_mu=parts.beside)


BALANCED = "balanced"
_LEAK, _FAILURE = 0.1, 0.1  # of delta: for the target curve of a sample, and for bounds that are wrong
_ANY = (1.0, 1)  # a ridge and a number of records: what a sample leaks under a target does not depend on them


def _sample(parts: Parts, delta: float, ridge: float, records: int) -> GDPPosteriorSample:
    return GDPPosteriorSample(parts.recipe, _LEAK * delta, ridge, records, parts.beside)


def _after_test(parts: Parts, delta: float, ridge: float, records: int) -> OPSPTR:
    return OPSPTR(parts.recipe, _LEAK * delta, _FAILURE * delta, ridge, records, extra_mu=parts.beside)


def _sample_leak(parts: Parts, delta: float) -> Mechanism:
    return _sample(parts, delta, *_ANY).mechanism


def _after_test_leak(parts: Parts, delta: float) -> Mechanism:
    return _after_test(parts, delta, *_ANY).mechanism


@lru_cache(maxsize=1024)
def _exact_mechanism(epsilon: float, delta: float, ridge: float) -> Mechanism:
    return ExactPosteriorSample(epsilon, delta, ridge, records=1).mechanism  # the number of records is in the precision alone


@plan_id("OPSRegressor")
class OPSRegressor(RidgeRegressor):
    """One posterior sample (OPS), whose precision depends on public numbers alone.

    The ``ridge`` is for rows that are scaled to norm 1; "balanced" is that of OPS-balanced, from the number of records, of columns, and the
    budget. Where nothing else is released (``beyond="refuse"``, no private centre) and the ridge is a number, the sample is calibrated by
    its own exact profile, and ``mechanism`` depends on the ridge; elsewhere under a curve that is the same for every ridge.
    """

    def __init__(  # noqa: PLR0913 - parameters of an estimator
        self,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        ridge: Any = BALANCED,
        row_bound: float = 1.0,
        target_bound: float = 1.0,
        beyond: str = "count",
        records: int | None = None,
        fit_intercept: bool = False,
        centre: Any = None,
        insecure_seed: Any = None,
    ) -> None:
        super().__init__(
            epsilon=epsilon,
            delta=delta,
            ridge=ridge,
            row_bound=row_bound,
            target_bound=target_bound,
            beyond=beyond,
            records=records,
            fit_intercept=fit_intercept,
            centre=centre,
            insecure_seed=insecure_seed,
        )

    _leak = staticmethod(_sample_leak)

    @property
    def mechanism(self) -> Mechanism:
        """What one fit leaks; it depends on the parameters alone."""
        if not self._is_exact():
            return super().mechanism
        settings = settings_of(self)
        return _exact_mechanism(settings.epsilon, settings.delta, solvable(self.ridge, 1))

    def _is_exact(self) -> bool:
        settings = settings_of(self)
        return not (self._is_balanced() or settings.counted or settings.private)

    def _is_balanced(self) -> bool:
        return isinstance(self.ridge, str) and self.ridge == BALANCED

    def _parts(self) -> Parts | None:
        if not self._is_exact():
            return super()._parts()
        return None if self.mechanism == NOTHING else Parts(0.0)  # nothing is beside the sample

    def _recipe(self, parts: Parts, records: int, features: int) -> RegressionMethod:
        settings = settings_of(self)
        if self._is_balanced():
            ridge = solvable(min(balanced_ridge(records, features, settings.epsilon, settings.delta), ANY.high), records)
            return _sample(parts, settings.delta, ridge, records)
        ridge = solvable(self.ridge, records)
        if self._is_exact():
            return ExactPosteriorSample(settings.epsilon, settings.delta, ridge, records)
        return _sample(parts, settings.delta, ridge, records)

    def _no_answer(self) -> str:
        return _too_telling(self)


@plan_id("OPSPTRRegressor")
class OPSPTRRegressor(RidgeRegressor):
    """OPS-PTR: bounds on the data are released first, with noise, and then one posterior sample as precise as they allow.

    The ``ridge`` is for rows that are scaled to norm 1, and every ridge costs the same, so it may be tuned. With little ridge and a small
    budget there may be "no answer".
    """

    _leak = staticmethod(_after_test_leak)

    def _recipe(self, parts: Parts, records: int, features: int) -> OPSPTR:  # noqa: ARG002 - what others need
        return _after_test(parts, settings_of(self).delta, check_number("ridge", self.ridge, ANY), records)

    def _no_answer(self) -> str:
        return _too_telling(self)


def _too_telling(regressor: Any) -> str:
    return (
        f"no posterior sample is vague enough for epsilon={float(regressor.epsilon):g}, delta={float(regressor.delta):g} at this ridge; a "
        "greater ridge or epsilon may give one"
    )
