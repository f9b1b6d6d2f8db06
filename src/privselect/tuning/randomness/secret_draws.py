"""The two draws that begin a run: the secret, and K from it. One place for them, so that what is audited is what is run."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from privselect.tuning.randomness.key_derivation import SECRET_BYTES, Stream, derived

if TYPE_CHECKING:
    from privselect.counts import Count


def new_secret() -> bytes:
    """From the operating system, once for each run."""
    return secrets.token_bytes(SECRET_BYTES)


def draw_trials(count: Count, secret: bytes) -> int:
    """K, exactly from its law."""
    return count.sample(Stream(derived(secret, "count")))
