"""What is audited: mechanisms, laws of K and epsilons, fixed before anything is run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from privselect.text_forms import parse

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

    def __str__(self) -> str:
        return f"{self.mechanism} by {self.count} at epsilon {self.epsilon:g}"

    def trial(self) -> Mechanism:
        """What one trial leaks."""
        return cast("Mechanism", parse(self.mechanism))

    def law(self) -> Count:
        """The law of K."""
        return cast("Count", parse(self.count))


# Deltas of 0.20, 0.08 and 0.27: large enough to be seen in a few thousand selections. K may be 0 in the last two.
SETTINGS = (
    Setting("gaussian(sigma=1)", "geometric(mean=3)", 1.5),
    Setting("points((0.5, 0.05), (1, 0.01))", "poisson(mean=3)", 1.0),
    Setting("pure(epsilon=1)", "binomial(n=6, p=0.5)", 1.0),
)

# Where trials that are missing show best: K is often large.
LARGE = Setting("gaussian(sigma=1)", "geometric(mean=10)", 2.5)
