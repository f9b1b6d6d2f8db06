"""Whether the candidates of a run's trials are independent of each other: a chi-square of their joint law."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

from privselect.audit.audited_run import OPTIONS, Job, begin, run
from privselect.audit.prediction import FALSE_ALARM
from privselect.counts import Fixed
from privselect.tuning.isolation.suppress_output import silence
from privselect.tuning.ledger import Ledger
from privselect.tuning.randomness.secret_draws import new_secret
from privselect.tuning.runner import Drawn
from privselect.tuning.trial import Work

if TYPE_CHECKING:
    from collections.abc import Callable

_TRIALS = 2


@dataclass(frozen=True)
class Candidates:
    """How often the two trials of a run had each pair of options, which should all be equally likely."""

    counts: tuple[int, ...]

    @property
    def runs(self) -> int:
        """In all."""
        return sum(self.counts)

    @property
    def value(self) -> float:
        """Pearson's statistic, ``sum (seen - expected)^2 / expected``."""
        expected = self.runs / len(self.counts)
        return sum((count - expected) ** 2 for count in self.counts) / expected

    @property
    def limit(self) -> float:
        """What it exceeds one time in a thousand: its law is chi-square with one degree less than there are pairs."""
        from scipy.stats import chi2

        return float(chi2.isf(FALSE_ALARM, len(self.counts) - 1))

    @property
    def inside(self) -> bool:
        """Whether the candidates pass."""
        return self.value <= self.limit


class _Heard:
    """An objective that remembers which candidates it was given, trial after trial."""

    def __init__(self) -> None:
        self.options: list[str] = []

    def __call__(self, candidate: dict[str, Any], data: object, randomness: object) -> tuple[float, None]:
        del data, randomness
        self.options.append(candidate["option"])
        return 0.0, None


def measure_candidates(runs: int, drawn: type[Drawn] = Drawn, draw_secret: Callable[[], bytes] = new_secret) -> Candidates:
    """So many runs of two trials through the tuner's runner."""
    pairs: Counter[tuple[str, ...]] = Counter()
    with silence():
        for _ in range(runs):
            heard, ledger = _Heard(), Ledger.in_memory()
            job = Job(Work(heard, None), Fixed(k=_TRIALS), "X")
            begun = begin(job, ledger, draw_secret())
            run(job, ledger, drawn(begun.secret, begun.trials, begun.space))
            ledger.close()
            pairs[tuple(heard.options)] += 1
    return Candidates(tuple(pairs[pair] for pair in product(OPTIONS, repeat=_TRIALS)))
