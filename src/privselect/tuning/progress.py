"""What a run shows while it works: nothing that depends on K, except to the curator who asks for it.

The time at which the search ends depends on K, so the current stage is shown only if it cannot reveal K: if every run does the same
work, or to the curator. Otherwise one line covers both stages.
"""

from __future__ import annotations

import sys
import time
from datetime import timedelta
from typing import TYPE_CHECKING

from privselect.tuning.ledger import FINAL, SEARCH
from privselect.tuning.release_time import longest_seconds

if TYPE_CHECKING:
    from collections.abc import Callable

    from privselect.tuning.tuning_run import TuningRun

_NAMES = {SEARCH: "search", FINAL: "final training"}
_WARNING = "warning: curator view: the following lines reveal K. Do not show them to anyone who may see only the release\n"


class Progress:
    """Report the steps of a run to ``show``, a function of a line of text, and to the curator on stderr."""

    def __init__(self, run: TuningRun, show: Callable[[str], object] | None) -> None:
        self._run, self._show, self._began = run, show, time.monotonic()
        if run.curator:
            sys.stderr.write(_WARNING)
            sys.stderr.write(f"planned: {planned_work(run)}\n")

    @property
    def on_trial(self) -> Callable[[int, int], object] | None:
        """What the runner calls after each search trial; None unless the curator asked."""
        return (lambda done, total: self._tell_curator(f"trial {done} of {total}")) if self._run.curator else None

    def certifying(self) -> None:
        """Report that the certificate is computed."""
        self._tell("computing the certificate")

    def stage_begins(self, stage: str) -> None:
        """Report a stage, in a way that does not depend on K unless the curator asked."""
        if self._run.curator and self._run.spec.final is not None:
            self._tell_curator(_NAMES[stage])
        if self._run.spec.final is None:
            self._tell("searching")
        elif self._run.constant_work or self._run.curator:
            self._tell(_NAMES[stage])
        elif stage == SEARCH:
            self._tell("search, then final training")

    def _tell_curator(self, text: str) -> None:
        sys.stderr.write(f"{timedelta(seconds=int(time.monotonic() - self._began))}  {text}\n")

    def _tell(self, text: str) -> None:
        if self._show is not None:
            self._show(text)


def planned_work(run: TuningRun) -> str:
    """Return the work that is planned, from the public law of K: the worst case, and the mean."""
    count, seconds = run.spec.count, longest_seconds(run)
    most = "no largest number of search trials" if count.largest is None else f"at most {count.largest} search trials"
    final = "" if run.spec.final is None else ", then one final training"
    unlimited = "a trial has no time limit" if run.spec.final is None else "a trial or the final training has no time limit,"
    longest = f"no longest time, because {unlimited} or K has no largest value" if seconds is None else f"at most {seconds:.0f} seconds"
    return f"{most}, {count.expected():.4g} on average{final}; {longest}"
