"""The cases of the audit, and the trial of each case that attains the lower bound of **Exact**."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from privselect.audit.prediction import BITS, Prediction, count_probabilities, release_probabilities
from privselect.errors import ParameterError
from privselect.selection.exact.engine import ExactLower
from privselect.text_forms import parse
from privselect.tuning.plan_ids import plan_id

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from privselect.counts import Count
    from privselect.mechanisms import Mechanism
    from privselect.tuning.randomness import Randomness

    Floats = NDArray[np.float64]

DATA_SETS = ("X", "X'")  # neighbours; a trial has distribution P on X and P' on X'


@dataclass(frozen=True)
class AuditCase:
    """A mechanism, a law of K and an epsilon. Text forms keep it cheap to send to another process."""

    mechanism: str
    count: str
    epsilon: float

    def __str__(self) -> str:
        return f"{self.mechanism} by {self.count} at epsilon {self.epsilon:g}"

    def parse_mechanism(self) -> Mechanism:
        """Return the mechanism of one trial."""
        return cast("Mechanism", parse(self.mechanism))

    def parse_count(self) -> Count:
        """Return the law of K."""
        return cast("Count", parse(self.count))


# Their deltas (0.20, 0.08 and 0.27) show within a few thousand selections. K may be 0 in the last two.
CASES = (
    AuditCase("gaussian(sigma=1)", "geometric(mean=3)", 1.5),
    AuditCase("points((0.5, 0.05), (1, 0.01))", "poisson(mean=3)", 1.0),
    AuditCase("pure(epsilon=1)", "binomial(n=6, p=0.5)", 1.0),
)

# K is often large here, so missing trials have the largest effect.
LARGE_K_CASE = AuditCase("gaussian(sigma=1)", "geometric(mean=10)", 2.5)


@plan_id("audit_worst_case")
@dataclass(frozen=True, repr=False)
class WorstCase:
    """An objective for the tuner that draws one piece of the worst-case score order. Earlier pieces score higher.

    ``cumulative_masses[X]`` holds the total mass from the best score down to each piece, on the data set X, in units of 2^-64.
    A trial compares these sums with 64 uniform bits, so its distribution is exactly the stated one. Each sum equals the pair's to
    within 2^-65: the masses are floats, added exactly and rounded once. The last piece has the worst score and the remaining mass.
    """

    case: AuditCase
    cumulative_masses: dict[str, tuple[int, ...]]
    counted_pieces: frozenset[int]  # the set S: pieces more than e^epsilon times as likely on X as on X'
    lower_bound: float  # proved delta of this order

    def __call__(self, candidate: dict[str, Any], data: str, randomness: Randomness) -> tuple[float, int]:
        """Draw a piece and return its score and its number. The candidate is ignored."""
        del candidate
        piece = bisect_right(self.cumulative_masses[data], randomness.stream().getrandbits(BITS))
        return -float(piece), piece

    def is_counted(self, piece: int | None) -> bool:
        """Return whether a selection released a piece in the counted set; the fallback (None) is equally likely on both data sets."""
        return piece in self.counted_pieces

    def predict(self, transform: Callable[[Floats, str], Floats] | None = None) -> Prediction:
        """Predict the outcome of selections with this law of K.

        ``transform`` changes the probabilities of K separately for each data set. It describes a broken runner.
        """
        count = count_probabilities(self.case.parse_count())
        counts = [count if transform is None else transform(count, data) for data in DATA_SETS]
        counted = sorted(self.counted_pieces)
        on_x, on_neighbour = (
            float(release_probabilities(self.cumulative_masses[data], one)[counted].sum())
            for data, one in zip(DATA_SETS, counts, strict=True)
        )
        return Prediction(on_x, on_neighbour, self.case.epsilon)


@lru_cache(maxsize=16)
def worst_case(case: AuditCase) -> WorstCase:
    """Return the score order that leaks most in this case, over both orders of the neighbours.

    The set of counted pieces is fixed here, before any run.
    """
    count = case.parse_count()
    orders = [ExactLower(pair, count) for bracket in case.parse_mechanism().brackets for pair in bracket.lowers]
    lower = max(orders, key=lambda order: order.delta(case.epsilon), default=None)
    staircase = None if lower is None else lower.score_order(case.epsilon)
    if lower is None or staircase is None:
        raise ParameterError(f"`case` must have a lower bound on delta above 0 at its epsilon, got {case}")
    *masses, counted = staircase.pieces()
    sums = {data: cumulative_masses(part) for data, part in zip(DATA_SETS, masses, strict=True)}
    probabilities = count_probabilities(count)
    on_x, on_neighbour = (release_probabilities(sums[data], probabilities) for data in DATA_SETS)
    gains = counted & (on_x > np.exp(case.epsilon) * on_neighbour)
    return WorstCase(case, sums, frozenset(np.flatnonzero(gains).tolist()), staircase.delta(case.epsilon, lower.mesh.weight))


def cumulative_masses(masses: Floats) -> tuple[int, ...]:
    """Return the cumulative masses in units of 2^-64, added exactly and rounded once; the last one is 1."""
    unit = 1 << BITS
    sums = accumulate(Fraction(mass) for mass in masses[:-1].tolist())
    return (*(min(round(unit * total), unit) for total in sums), unit)
