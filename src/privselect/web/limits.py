"""How much work one question may be. What is beyond is refused in a sentence; the command line and Python have no such limits."""

from __future__ import annotations

from typing import Final

ACCURACY: Final = 1e-3  # relative, of epsilon: what a page can show
MOST_BYTES: Final = 64_000  # of one request
MOST_TEXT: Final = 10_000  # characters of a text form
MOST_NUMBER: Final = 400  # characters of a number
MOST_STEPS: Final = 10**7  # of one trial
MOST_TRIALS: Final = 10**6  # on average
MOST_DESIGNED: Final = 500  # trials, at the most, of a law that is designed
LEAST_DELTA: Final = 1e-50

MOST_WAITING: Final = 64  # questions; further ones are asked to come again
COME_AGAIN: Final = 2  # seconds

MEMORY: Final = 560_000_000  # bytes that a process may ask for while it computes: few fixed trials take most of it, for a moment
KEPT_MEMORY: Final = 180_000_000  # bytes above which a process is replaced by a fresh one after its answer
