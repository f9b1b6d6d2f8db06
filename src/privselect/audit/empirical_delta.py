"""Many selections on both data sets, and whether what they leak is what was predicted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from privselect.audit.audited_run import correct, job, released
from privselect.audit.cases import DATA_SETS
from privselect.audit.worst_case import worst_case
from privselect.tuning.isolation.suppress_output import silence
from privselect.tuning.randomness.secret_draws import new_secret

if TYPE_CHECKING:
    from collections.abc import Callable

    from privselect.audit.audited_run import Coordinator
    from privselect.audit.cases import Setting
    from privselect.audit.prediction import Prediction


@dataclass(frozen=True)
class Measured:
    """How often the counted set was hit, on each data set, in so many selections on each."""

    setting: Setting
    selections: int
    hits: tuple[int, int]

    def __add__(self, other: Measured) -> Measured:
        hits = (self.hits[0] + other.hits[0], self.hits[1] + other.hits[1])
        return replace(self, selections=self.selections + other.selections, hits=hits)

    @property
    def prediction(self) -> Prediction:
        """Of a correct coordinator."""
        return worst_case(self.setting).prediction()

    @property
    def value(self) -> float:
        """``P(S) - e^epsilon P'(S)`` as measured."""
        return self.prediction.measured(self.hits, self.selections)

    @property
    def interval(self) -> tuple[float, float]:
        """Where it should lie, but for one time in a thousand."""
        return self.prediction.interval(self.selections)

    @property
    def inside(self) -> bool:
        """Whether it does."""
        low, high = self.interval
        return low <= self.value <= high


def measure(
    setting: Setting, selections: int, coordinator: Coordinator = correct, draw_secret: Callable[[], bytes] = new_secret
) -> Measured:
    """So many selections on each data set, every one with a secret of its own."""
    case = worst_case(setting)
    hits = []
    with silence():  # once for all of them: each trial asks for it again, which then costs nothing
        for data in DATA_SETS:
            here = job(case, data)
            hits.append(sum(released(here, coordinator, draw_secret()) in case.counted for _ in range(selections)))
    return Measured(setting, selections, (hits[0], hits[1]))
