"""A case of the audit with both stages: a search, then a final training on the same data set."""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from privselect.audit.prediction import BITS, Prediction, count_probabilities, release_probabilities
from privselect.audit.worst_case import DATA_SETS, AuditCase, WorstCase, cumulative_masses, worst_case
from privselect.errors import ParameterError
from privselect.text_forms import parse
from privselect.tuning.plan_ids import plan_id

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from privselect.mechanisms import Mechanism
    from privselect.tuning.randomness import Randomness

    Floats = NDArray[np.float64]

_UNIT = 2.0**BITS


@dataclass(frozen=True)
class TwoStageCase:
    """A search, the mechanism of the final training, and the epsilon of both together.

    The epsilon of ``search`` chooses its score order: the worst one of the search alone at that epsilon.
    """

    search: AuditCase
    final: str
    epsilon: float

    def __str__(self) -> str:
        return f"{self.search.mechanism} by {self.search.count}, then {self.final}, at epsilon {self.epsilon:g}"

    @property
    def count(self) -> str:
        """The law of K of the search."""
        return self.search.count

    def parse_final(self) -> Mechanism:
        """Return the mechanism of the final training."""
        return cast("Mechanism", parse(self.final))


# Their deltas (0.20 and 0.10) show within a few thousand runs. K may be 0 in the first one.
TWO_STAGE_CASES = (
    TwoStageCase(AuditCase("pure(epsilon=1)", "binomial(n=6, p=0.5)", 1.6), "pure(epsilon=0.5)", 1.5),
    TwoStageCase(AuditCase("gaussian(sigma=1.5)", "geometric(mean=3)", 0.8), "gaussian(sigma=1.5)", 1.5),
)


@plan_id("audit_two_stage_worst_case")
@dataclass(frozen=True, repr=False, eq=False)
class TwoStageWorstCase:
    """An objective for both stages. It draws a piece of the worst score order in the search, and an outcome in the final training.

    A distinguisher sees the winner's piece, which is its score, and the outcome of the final training. ``counted[i, j]`` states
    whether piece i followed by outcome j is in the counted set: it is more than e^epsilon times as likely on X as on X'.
    """

    case: TwoStageCase
    search: WorstCase
    final_masses: dict[str, tuple[int, ...]]  # cumulative, in units of 2^-64
    counted: NDArray[np.bool_]

    def __call__(self, candidate: dict[str, Any], data: str, randomness: Randomness, *, stage: str) -> tuple[float, int]:
        """Draw the piece of a search trial, or the outcome of the final training."""
        if stage == "search":
            return self.search(candidate, data, randomness)
        return 0.0, bisect_right(self.final_masses[data], randomness.stream().getrandbits(BITS))

    def is_counted(self, released: tuple[int, int] | None) -> bool:
        """Return whether a run released a piece and an outcome in the counted set; the fallback (None) is equally likely on both."""
        return released is not None and bool(self.counted[released])

    def predict(self, transform: Callable[[Floats, str], Floats] | None = None) -> Prediction:
        """Predict the outcome of runs with this law of K; ``transform`` changes the probabilities of K, as in a broken runner."""
        joint = [np.outer(*self._marginals(data, transform)) for data in DATA_SETS]
        return self._prediction(joint)

    def predict_reused_noise(self) -> Prediction:
        """Predict the outcome if the final training reuses the randomness of the winning trial."""
        return self._prediction(self._joint_with_reused_noise())

    def leak_of_reused_noise(self) -> float:
        """Return the delta of the same fault for a distinguisher that knows of it and counts its own worst set."""
        on_x, on_neighbour = self._joint_with_reused_noise()
        return float(np.maximum(on_x - math.exp(self.case.epsilon) * on_neighbour, 0.0).sum())

    def _joint_with_reused_noise(self) -> list[Floats]:
        """Return the joint probabilities on both data sets.

        Both stages compare the same 64 bits with their own cumulative masses. Given the winner's piece, the bits are uniform on it.
        """
        joint = []
        for data in DATA_SETS:
            pieces, _ = self._marginals(data, None)
            edges = [0, *self.search.cumulative_masses[data]]
            shares = [_overlaps(start, end, self.final_masses[data]) for start, end in pairwise(edges)]
            joint.append(pieces[:, None] * np.array(shares))
        return joint

    def _marginals(self, data: str, transform: Callable[[Floats, str], Floats] | None) -> tuple[Floats, Floats]:
        """Return the probabilities of the winner's piece and of the final outcome; they are independent."""
        count = count_probabilities(self.search.case.parse_count())
        pieces = release_probabilities(self.search.cumulative_masses[data], count if transform is None else transform(count, data))
        return pieces, np.diff([0, *self.final_masses[data]]).astype(np.float64) / _UNIT

    def _prediction(self, joint: list[Floats]) -> Prediction:
        on_x, on_neighbour = (float(one[self.counted].sum()) for one in joint)
        return Prediction(on_x, on_neighbour, self.case.epsilon)


@lru_cache(maxsize=8)
def two_stage_worst_case(case: TwoStageCase) -> TwoStageWorstCase:
    """Return the case with the pair of the final training, among its lower pairs, that leaks most. The counted set is fixed here."""
    search, factor = worst_case(case.search), math.exp(case.epsilon)
    found: list[tuple[float, TwoStageWorstCase]] = []
    for bracket in case.parse_final().brackets:
        for pair in bracket.lowers:
            # Outcomes that are possible on one data set only come last; the remaining mass belongs to the last outcome.
            parts = (np.append(pair.p, [pair.p_only, 0.0]), np.append(pair.q, [0.0, pair.q_only]))
            masses = {data: cumulative_masses(part) for data, part in zip(DATA_SETS, parts, strict=True)}
            worst = TwoStageWorstCase(case, search, masses, np.zeros((0, 0), dtype=bool))
            on_x, on_neighbour = (np.outer(*worst._marginals(data, None)) for data in DATA_SETS)  # noqa: SLF001
            worst = TwoStageWorstCase(case, search, masses, on_x > factor * on_neighbour)
            found.append((worst.predict().delta, worst))
    delta, worst = max(found, key=lambda one: one[0], default=(0.0, TwoStageWorstCase(case, search, {}, np.zeros((0, 0), dtype=bool))))
    if delta <= 0.0:
        raise ParameterError(f"`case` must have a lower bound on delta above 0 at its epsilon, got {case}")
    return worst


def _overlaps(start: int, end: int, cumulative: tuple[int, ...]) -> list[float]:
    """Return the share of the integers from ``start`` to ``end`` that belongs to each outcome; no integer counts for the first outcome."""
    if end == start:
        return [1.0, *([0.0] * (len(cumulative) - 1))]
    parts = (max(min(end, high) - max(start, low), 0) for low, high in pairwise([0, *cumulative]))
    return [part / (end - start) for part in parts]
