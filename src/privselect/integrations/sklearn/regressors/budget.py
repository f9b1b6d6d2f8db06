"""How one fit spends its epsilon and delta: as one mu, shared out by its square."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from privselect.mechanisms import Mechanism
from privselect.regression.ops.calibration import largest_mu

_COUNT, _CENTRE = 0.01, 0.1  # of mu^2
_UP = 1.0 + 1e-12


@dataclass(frozen=True, slots=True)
class Parts:
    """The mu of the recipe, of the count of records beyond the bounds and of the centre; 0 for what is not released."""

    recipe: float
    count: float = 0.0
    centre: float = 0.0

    @property
    def beside(self) -> float:
        """Of all Gaussian releases but the recipe's, rounded up."""
        return math.hypot(self.count, self.centre) * _UP


Leak = Callable[[Parts, float], Mechanism]


@lru_cache(maxsize=1024)
def parts_for(leak: Leak, budget: tuple[float, float], *, counted: bool, centred: bool) -> Parts | None:
    """The largest parts for which what they ``leak`` is (epsilon, delta)-DP by its own accountant; None where none are.

    Remembered, as scikit-learn asks for a mechanism often: of public numbers alone.
    """
    epsilon, delta = budget

    def shared(mu: float) -> Parts:
        count, centre = _COUNT if counted else 0.0, _CENTRE if centred else 0.0
        return Parts(mu * math.sqrt(1.0 - count - centre), mu * math.sqrt(count), mu * math.sqrt(centre))

    mu = largest_mu(lambda mu: leak(shared(mu), delta), epsilon, delta)
    return shared(mu) if mu > 0.0 else None
