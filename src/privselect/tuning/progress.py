"""What a run shows while it works: nothing that depends on K, except to the curator who asks for it.

The time at which the search ends depends on K, so the current stage is shown only if it cannot reveal K: if every run does the same
work, or to the curator. Otherwise one line covers both stages.
"""

from __future__ import annotations

import sys
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
        self._run, self._show = run, show
        if run.curator:
            sys.stderr.write(_WARNING)
            sys.stderr.write(f"planned: {planned_work(run)}\n")

    @property
    def on_trial(self) -> Callable[[int, int], object] | None:
        """What the runner calls after each search trial; None unless the curator asked."""
        return (lambda done, total: sys.stderr.write(f"trial {done} of {total}\n")) if self._run.curator else None

    def certifying(self) -> None:
        """Report that the certificate is computed."""
        self._tell("computing the certificate")

    def stage_begins(self, stage: str) -> None:
        """Report a stage, in a way that does not depend on K unless the curator asked."""
        if self._run.curator and self._run.spec.final is not None:
            sys.stderr.write(f"{_NAMES[stage]}\n")
        if self._run.spec.final is None:
            self._tell("searching")
        elif self._run.constant_work or self._run.curator:
            self._tell(_NAMES[stage])
        elif stage == SEARCH:
            self._tell("search, then final training")

    def _tell(self, text: str) -> None:
        if self._show is not None:
            self._show(text)


def planned_work(run: TuningRun) -> str:
    """Return the work that is planned, from the public law of K: the worst case, and the mean."""
    count, seconds = run.spec.count, longest_seconds(run)
    most = "no largest number of search trials" if count.largest is None else f"at most {count.largest} search trials"
    final = "" if run.spec.final is None else ", then one final training"
    time = "; no longest time, because a trial has no time limit or K has no largest value"
    if seconds is not None:
        time = f"; at most {seconds:.0f} seconds"
    return f"{most}, {count.expected():.4g} on average{final}{time}"
