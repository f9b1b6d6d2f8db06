"""The mechanism and the score order that attain the lower bound of **Exact**, as a trial that can be run."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np

from privselect.audit.cases import DATA_SETS
from privselect.audit.prediction import BITS, Prediction, chances, probabilities
from privselect.errors import ParameterError
from privselect.selection.exact.engine import ExactLower
from privselect.tuning.plan_ids import plan_id

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from privselect.audit.cases import Setting
    from privselect.tuning.randomness.trial_randomness import Randomness

    Floats = NDArray[np.float64]


@plan_id("audit_worst_case")
@dataclass(frozen=True, repr=False)
class WorstCase:
    """An objective for the tuner: it draws a piece of the order, whose score says how far up it stands.

    ``ends[X]`` are the masses from the best score down to the end of each piece, on the data set X, in units of 2^-64. A trial
    compares them with 64 uniform bits, so that its law is exactly this. It is the pair's to within 2^-65 for each end: the masses
    are floats, their sums are taken exactly and rounded once. The last piece has the worst score and takes what is left.
    """

    setting: Setting
    ends: dict[str, tuple[int, ...]]
    counted: frozenset[int]  # the set S: its pieces are likelier on X than e^epsilon times on X', as the order intends
    bound: float  # what the accountant says that this very order leaks, rounded down

    def __call__(self, candidate: dict[str, Any], data: str, randomness: Randomness) -> tuple[float, int]:
        """The trial; it does not look at its candidate."""
        del candidate
        piece = bisect_right(self.ends[data], randomness.stream().getrandbits(BITS))
        return -float(piece), piece

    def prediction(self, law: Callable[[Floats, str], Floats] | None = None) -> Prediction:
        """What selections by this law of K should give; ``law`` changes the probabilities of K, for each data set on its own."""
        table = probabilities(self.setting.law())
        laws = [table if law is None else law(table, data) for data in DATA_SETS]
        counted = sorted(self.counted)
        first, second = (float(chances(self.ends[data], one)[counted].sum()) for data, one in zip(DATA_SETS, laws, strict=True))
        return Prediction(first, second, self.setting.epsilon)


@lru_cache(maxsize=16)
def worst_case(setting: Setting) -> WorstCase:
    """The order for this setting that leaks most, over both orders of the neighbours. The counted set is fixed here, before any run."""
    law = setting.law()
    orders = [ExactLower(pair, law) for bracket in setting.trial().brackets for pair in bracket.lowers]
    lower = max(orders, key=lambda order: order.delta(setting.epsilon), default=None)
    staircase = None if lower is None else lower.staircase(setting.epsilon)
    if lower is None or staircase is None:
        raise ParameterError(f"`setting` must be one that leaks at its epsilon, by a proved lower bound, got {setting}")
    *masses, counted = staircase.order()
    ends = {data: _ends(part) for data, part in zip(DATA_SETS, masses, strict=True)}
    table = probabilities(law)
    first, second = (chances(ends[data], table) for data in DATA_SETS)
    gains = counted & (first > np.exp(setting.epsilon) * second)
    return WorstCase(setting, ends, frozenset(np.flatnonzero(gains).tolist()), staircase.delta(setting.epsilon, lower.field.weight))


def _ends(masses: Floats) -> tuple[int, ...]:
    unit = 1 << BITS
    sums = accumulate(Fraction(mass) for mass in masses[:-1].tolist())
    return (*(min(round(unit * total), unit) for total in sums), unit)
