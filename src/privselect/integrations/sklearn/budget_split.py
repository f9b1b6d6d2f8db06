"""Divide the privacy budget of one fit among its releases."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from privselect.regression.methods import RegressionMethod
from privselect.regression.ops.calibration import largest_mu

if TYPE_CHECKING:
    from privselect.mechanisms import Mechanism

_COUNT_SHARE, _CENTRE_SHARE = 0.01, 0.1  # of mu^2
_UP = 1.0 + 1e-12


@dataclass(frozen=True, slots=True)
class MuBudget:
    """The mu of the regression method, of the count of clipped records and of the centre; 0 if one is not released."""

    method: float
    count: float = 0.0
    centre: float = 0.0

    @property
    def extra(self) -> float:
        """The mu of the count and the centre together, rounded up."""
        return math.hypot(self.count, self.centre) * _UP


MethodFactory = Callable[[MuBudget, float, float, int], RegressionMethod]  # from mu budget, delta, ridge and number of records


def mechanism_within(make_method: MethodFactory, budget: MuBudget, delta: float) -> Mechanism:
    """Return what a method with this mu budget leaks; it does not depend on the ridge and the number of records."""
    return make_method(budget, delta, 1.0, 1).mechanism


@lru_cache(maxsize=1024)
def split_budget(make_method: MethodFactory, budget: tuple[float, float], *, counted: bool, centred: bool) -> MuBudget | None:
    """Return the largest mu budget whose mechanism is (epsilon, delta)-DP by its own accountant; None if there is none.

    The result is cached because scikit-learn often requests a mechanism. It depends on public numbers alone.
    """
    epsilon, delta = budget

    def split(mu: float) -> MuBudget:
        count, centre = _COUNT_SHARE if counted else 0.0, _CENTRE_SHARE if centred else 0.0
        return MuBudget(mu * math.sqrt(1.0 - count - centre), mu * math.sqrt(count), mu * math.sqrt(centre))

    mu = largest_mu(lambda mu: mechanism_within(make_method, split(mu), delta), epsilon, delta)
    return split(mu) if mu > 0.0 else None
