"""Limits on the work of one question. The command line and Python have no such limits."""

from __future__ import annotations

from typing import Final

ACCURACY: Final = 1e-3  # relative accuracy of every epsilon on the page
MAX_REQUEST_BYTES: Final = 64_000
MAX_TEXT_CHARS: Final = 10_000  # of one text form
MAX_NUMBER_CHARS: Final = 400
MAX_STEPS: Final = 10**7  # of one trial
MAX_TRIALS: Final = 10**6  # on average
MAX_VISIBLE: Final = 1000  # trials of a visible search
MAX_DESIGN_CAP: Final = 500  # largest K of a designed law
MIN_DELTA: Final = 1e-50

MAX_WAITING: Final = 64  # questions per job class; more are refused with status 429
RETRY_SECONDS: Final = 2

MAX_MEMORY: Final = 560_000_000  # bytes of one worker while it computes; a small fixed K needs most of it for a moment
MAX_IDLE_MEMORY: Final = 180_000_000  # bytes; a worker above this is replaced after its answer
