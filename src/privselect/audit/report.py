"""The whole audit: every setting and the candidates, shared among the cores, with one verdict for each."""

from __future__ import annotations

import os
import signal
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import reduce
from multiprocessing import get_context
from operator import add
from typing import TYPE_CHECKING, Any

from privselect._util.validation import check_number, format_value, integer_range
from privselect.audit.audited_run import correct
from privselect.audit.broken_runners import FAULTS, WITHOUT_REPLACEMENT, Shuffled
from privselect.audit.cases import SETTINGS, Setting
from privselect.audit.empirical_delta import Measured, measure
from privselect.audit.independence_test import Candidates, measure_candidates
from privselect.audit.prediction import FALSE_ALARM
from privselect.errors import ParameterError
from privselect.tuning.runner import Drawn

if TYPE_CHECKING:
    from rich.table import Table

NAMES = (*FAULTS, WITHOUT_REPLACEMENT)
LEAST = 6000  # below this a normal law no longer stands for the counts
_CANDIDATE_RUNS = 2000
_SHARE = 500  # selections on each data set that a process makes at a time


@dataclass(frozen=True)
class Report:
    """What was measured."""

    settings: tuple[Measured, ...]
    candidates: Candidates
    fault: str | None = None

    @property
    def passed(self) -> bool:
        """Whether everything lies where it should."""
        return self.candidates.inside and all(measured.inside for measured in self.settings)

    @property
    def lines(self) -> tuple[str, ...]:
        """What was wrong on purpose, the candidates, and the verdict with how often it is wrong."""
        fault = () if self.fault is None else (f"wrong on purpose: {_said(self.fault)}",)
        chosen = self.candidates
        square = f"chi-square {chosen.value:.1f}, at most {chosen.limit:.1f}: {_verdict(inside=chosen.inside)}"
        verdict = "all inside" if self.passed else "not all inside"
        return (
            *fault,
            f"candidates of two trials of a run, independent: {square}",
            f"{verdict}; each of these {len(self.settings) + 1} tests rejects a correct runner with probability {FALSE_ALARM:.1%}",
        )

    def table(self) -> Table:
        """For a terminal: the settings, one a row."""
        from rich.table import Table

        table = Table("law of K", "epsilon", "predicted", "measured", "99.9% interval", "verdict", box=None, pad_edge=False)
        for one in self.settings:
            low, high = one.interval
            numbers = f"{one.prediction.value:.4f}", f"{one.value:.4f}", f"{low:.4f} to {high:.4f}"
            table.add_row(one.setting.count, f"{one.setting.epsilon:g}", *numbers, _verdict(inside=one.inside))
        return table

    def as_dict(self) -> dict[str, Any]:
        """For JSON. ``false_alarm`` is exact for the settings."""
        return {
            "passed": self.passed,
            "fault": self.fault,
            "settings": [_plain(measured) for measured in self.settings],
            "candidates": {
                "runs": self.candidates.runs,
                "chi_square": self.candidates.value,
                "limit": self.candidates.limit,
                "inside": self.candidates.inside,
                "false_alarm": FALSE_ALARM,
            },
        }


def audit(selections: int, *, fault: str | None = None, workers: int | None = None) -> Report:
    """Make so many selections in all, on both data sets of every setting; with a fault, in the one setting where it shows."""
    total = int(check_number("selections", selections, integer_range(LEAST, 10**12)))
    if fault is not None and fault not in NAMES:
        raise ParameterError(f"`fault` must be one of {', '.join(NAMES)}, got {format_value(fault)}")
    settings = (FAULTS[fault].setting,) if fault in FAULTS else SETTINGS
    each = -(-total // (2 * len(settings)))
    pool = ProcessPoolExecutor(workers or os.cpu_count(), get_context("spawn"), _leave_interrupts_to_the_parent)
    try:
        chosen = pool.submit(_candidates, fault)
        shares = [min(_SHARE, each - done) for done in range(0, each, _SHARE)]
        parts = [[pool.submit(_share, setting, share, fault) for share in shares] for setting in settings]
        measured = tuple(reduce(add, (part.result() for part in row)) for row in parts)
        return Report(measured, chosen.result(), fault)
    finally:
        pool.shutdown(cancel_futures=True)


def _leave_interrupts_to_the_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _share(setting: Setting, selections: int, fault: str | None) -> Measured:
    return measure(setting, selections, FAULTS[fault].coordinator if fault in FAULTS else correct)


def _candidates(fault: str | None) -> Candidates:
    return measure_candidates(_CANDIDATE_RUNS, Shuffled if fault == WITHOUT_REPLACEMENT else Drawn)


def _said(fault: str) -> str:
    return FAULTS[fault].said if fault in FAULTS else "candidates drawn without replacement"


def _plain(measured: Measured) -> dict[str, Any]:
    setting, prediction = measured.setting, measured.prediction
    return {
        "mechanism": setting.mechanism,
        "count": setting.count,
        "epsilon": setting.epsilon,
        "selections": measured.selections,
        "hits": list(measured.hits),
        "predicted": prediction.value,
        "measured": measured.value,
        "standard_error": prediction.error(measured.selections),
        "interval": list(measured.interval),
        "inside": measured.inside,
        "false_alarm": prediction.false_alarm(measured.selections),
    }


def _verdict(*, inside: bool) -> str:
    return "inside" if inside else "OUTSIDE"
