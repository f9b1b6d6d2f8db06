"""What is audited: mechanisms, laws of K and epsilons, fixed before anything is run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from privselect.text import parse

if TYPE_CHECKING:
    from privselect.counts import Count
    from privselect.mechanisms import Mechanism

DATA_SETS = ("X", "X'")  # the neighbours; a trial has the law P on X and P' on X'


@dataclass(frozen=True)
class Setting:
    """One case, by its text forms: small enough to hand to another process."""

    mechanism: str
    count: str
    epsilon: float

    def trial(self) -> Mechanism:
        """What one trial leaks."""
        return cast("Mechanism", parse(self.mechanism))

    def law(self) -> Count:
        """The law of K."""
        return cast("Count", parse(self.count))


# Deltas of 0.20, 0.08 and 0.16: large enough to be seen in a few thousand selections. K may be 0 in the last two.
SETTINGS = (
    Setting("gaussian(sigma=1)", "geometric(mean=3)", 1.5),
    Setting("points((0.5, 0.05), (1, 0.01))", "poisson(mean=3)", 1.0),
    Setting("pure(epsilon=1)", "finite({0: 1, 1: 2, 4: 3, 8: 1})", 1.0),
)

# Where faults are easiest to see: K is often large, so that trials that are missing or too many matter.
FAULTY = Setting("gaussian(sigma=1)", "geometric(mean=10)", 2.5)
