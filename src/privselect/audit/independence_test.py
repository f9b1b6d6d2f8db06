"""A chi-square test that the candidates of a run's trials are independent of each other."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

from privselect.audit.audited_run import OPTIONS, Job, begin, run_trials
from privselect.audit.prediction import FALSE_ALARM
from privselect.counts import Fixed
from privselect.tuning.isolation import suppress_output
from privselect.tuning.ledger import Ledger
from privselect.tuning.randomness import new_secret
from privselect.tuning.runner import RunDraws
from privselect.tuning.trial import TrialSetup

if TYPE_CHECKING:
    from collections.abc import Callable

_TRIALS = 2


@dataclass(frozen=True)
class IndependenceTest:
    """How often the two trials of a run had each pair of options. All pairs should be equally likely."""

    counts: tuple[int, ...]

    @property
    def runs(self) -> int:
        """The number of runs."""
        return sum(self.counts)

    @property
    def statistic(self) -> float:
        """Pearson's statistic, ``sum (observed - expected)^2 / expected``."""
        expected = self.runs / len(self.counts)
        return sum((count - expected) ** 2 for count in self.counts) / expected

    @property
    def limit(self) -> float:
        """The 99.9% quantile of the statistic: chi-square with one degree of freedom fewer than there are pairs."""
        from scipy.stats import chi2

        return float(chi2.isf(FALSE_ALARM, len(self.counts) - 1))

    @property
    def passed(self) -> bool:
        """Whether the statistic is within the limit."""
        return self.statistic <= self.limit


class _RecordingObjective:
    """An objective that records its candidates, trial by trial."""

    def __init__(self) -> None:
        self.options: list[str] = []

    def __call__(self, candidate: dict[str, Any], data: object, randomness: object) -> tuple[float, None]:
        del data, randomness
        self.options.append(candidate["option"])
        return 0.0, None


def count_option_pairs(runs: int, drawn: type[RunDraws] = RunDraws, draw_secret: Callable[[], bytes] = new_secret) -> IndependenceTest:
    """Make ``runs`` runs of two trials through the tuner's runner and count their pairs of options."""
    pairs: Counter[tuple[str, ...]] = Counter()
    with suppress_output():
        for _ in range(runs):
            objective, ledger = _RecordingObjective(), Ledger.in_memory()
            job = Job(TrialSetup(objective, None), Fixed(k=_TRIALS), "X")
            begun = begin(job, ledger, draw_secret())
            run_trials(job, ledger, drawn(begun.secret, begun.trials, begun.space))
            ledger.close()
            pairs[tuple(objective.options)] += 1
    return IndependenceTest(tuple(pairs[pair] for pair in product(OPTIONS, repeat=_TRIALS)))
