"""The complete audit: every case and the independence test, spread over the cores."""

from __future__ import annotations

import os
import signal
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import reduce
from multiprocessing import get_context
from operator import add
from typing import TYPE_CHECKING, Any

from privselect._util.rich_tables import rich_table
from privselect._util.validation import check_number, format_value, integer_range
from privselect.audit.audited_run import Measurement, measure, run_correctly
from privselect.audit.broken_runners import FAULTS, REUSED_NOISE, WITHOUT_REPLACEMENT, DrawnWithoutReplacement, run_reusing_noise
from privselect.audit.independence_test import IndependenceTest, count_option_pairs
from privselect.audit.prediction import FALSE_ALARM
from privselect.audit.two_stage_case import TWO_STAGE_CASES, TwoStageCase
from privselect.audit.worst_case import CASES, AuditCase
from privselect.errors import ParameterError
from privselect.tuning.runner import RunDraws

if TYPE_CHECKING:
    from rich.table import Table

FAULT_NAMES = (*FAULTS, REUSED_NOISE, WITHOUT_REPLACEMENT)
ALL_CASES: tuple[AuditCase | TwoStageCase, ...] = (*CASES, *TWO_STAGE_CASES)
MIN_SELECTIONS = 10_000  # with fewer, the normal approximation is too coarse
_CANDIDATE_RUNS = 2000
_BATCH = 500  # selections on each data set per task


@dataclass(frozen=True)
class AuditReport:
    """The results of an audit."""

    measurements: tuple[Measurement, ...]
    candidates: IndependenceTest
    fault: str | None = None

    @property
    def passed(self) -> bool:
        """Whether every test passed."""
        return self.candidates.passed and all(one.passed for one in self.measurements)

    @property
    def lines(self) -> tuple[str, ...]:
        """The deliberate fault, the independence test, and the verdict with its false-alarm probability."""
        fault = () if self.fault is None else (f"deliberate fault: {_describe(self.fault)}",)
        found = self.candidates
        chi_square = f"chi-square {found.statistic:.1f}, at most {found.limit:.1f}: {_verdict(passed=found.passed)}"
        verdict = "all tests passed" if self.passed else "not all tests passed"
        return (
            *fault,
            f"independent candidates in the trials of a run: {chi_square}",
            f"{verdict}; each of these {len(self.measurements) + 1} tests rejects a correct runner with probability {FALSE_ALARM:.1%}",
        )

    def table(self) -> Table:
        """Return a table for the terminal, one case per row."""
        rows = []
        for one in self.measurements:
            low, high = one.interval
            numbers = f"{one.prediction.delta:.4f}", f"{one.delta:.4f}", f"{low:.3f} to {high:.3f}"
            rows.append((_stages(one.case), f"{one.case.epsilon:g}", *numbers, _verdict(passed=one.passed)))
        return rich_table(("case", "epsilon", "expected", "measured", "99.9% interval", ""), rows, wrap=("case",))

    def as_dict(self) -> dict[str, Any]:
        """Return the results for JSON output. The ``false_alarm`` of each case is exact."""
        return {
            "passed": self.passed,
            "fault": self.fault,
            "cases": [_as_dict(one) for one in self.measurements],
            "candidates": {
                "runs": self.candidates.runs,
                "chi_square": self.candidates.statistic,
                "limit": self.candidates.limit,
                "passed": self.candidates.passed,
                "false_alarm": FALSE_ALARM,
            },
        }


def audit(selections: int, *, fault: str | None = None, workers: int | None = None) -> AuditReport:
    """Audit the tuner, or a runner with a deliberate fault.

    Args:
        selections: How many selections to make in total, over both data sets of every case.
        fault: One of ``FAULT_NAMES``. Only the case that shows the fault best is then run.
        workers: How many processes to use. One per core by default.
    """
    total = int(check_number("selections", selections, integer_range(MIN_SELECTIONS, 10**12)))
    if fault is not None and fault not in FAULT_NAMES:
        raise ParameterError(f"`fault` must be one of {', '.join(FAULT_NAMES)}, got {format_value(fault)}")
    cases = _cases(fault)
    each = -(-total // (2 * len(cases)))
    pool = ProcessPoolExecutor(workers or os.cpu_count(), get_context("spawn"), _ignore_interrupts)
    try:
        candidates = pool.submit(_count_option_pairs, fault)
        batches = [min(_BATCH, each - done) for done in range(0, each, _BATCH)]
        futures = [[pool.submit(_measure, case, batch, fault) for batch in batches] for case in cases]
        measurements = tuple(reduce(add, (future.result() for future in row)) for row in futures)
        return AuditReport(measurements, candidates.result(), fault)
    finally:
        pool.shutdown(cancel_futures=True)


def _ignore_interrupts() -> None:
    """Leave Ctrl-C to the parent process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _cases(fault: str | None) -> tuple[AuditCase | TwoStageCase, ...]:
    """Return the cases to run: the one that shows a fault best, or all."""
    if fault == REUSED_NOISE:
        return TWO_STAGE_CASES[-1:]
    return (FAULTS[fault].case,) if fault in FAULTS else ALL_CASES


def _measure(case: AuditCase | TwoStageCase, selections: int, fault: str | None) -> Measurement:
    if fault == REUSED_NOISE:
        return measure(case, selections, run_reusing_noise)
    return measure(case, selections, FAULTS[fault].coordinator if fault in FAULTS else run_correctly)


def _count_option_pairs(fault: str | None) -> IndependenceTest:
    return count_option_pairs(_CANDIDATE_RUNS, DrawnWithoutReplacement if fault == WITHOUT_REPLACEMENT else RunDraws)


def _describe(fault: str) -> str:
    others = {REUSED_NOISE: "reuse the randomness of the winning trial in the final training"}
    return FAULTS[fault].description if fault in FAULTS else others.get(fault, "draw candidates without replacement")


def _as_dict(measured: Measurement) -> dict[str, Any]:
    case, prediction = measured.case, measured.prediction
    return {
        "mechanism": case.search.mechanism if isinstance(case, TwoStageCase) else case.mechanism,
        "final": case.final if isinstance(case, TwoStageCase) else None,
        "count": case.count,
        "epsilon": case.epsilon,
        "selections": measured.selections,
        "hits": list(measured.hits),
        "predicted": prediction.delta,
        "measured": measured.delta,
        "standard_error": prediction.standard_error(measured.selections),
        "interval": list(measured.interval),
        "passed": measured.passed,
        "false_alarm": prediction.false_alarm(measured.selections),
    }


def _stages(case: AuditCase | TwoStageCase) -> str:
    return f"{case.count}, then {case.final}" if isinstance(case, TwoStageCase) else case.count


def _verdict(*, passed: bool) -> str:
    return "pass" if passed else "FAIL"
