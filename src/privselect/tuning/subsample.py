"""The secret Poisson sample of the records that all trials of a search share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from privselect._util.random_bits import bernoulli
from privselect.errors import ParameterError
from privselect.tuning.randomness import Stream, derive_key
from privselect.tuning.scores import pick_records, record_count

if TYPE_CHECKING:
    from fractions import Fraction

TRAINING, HOLDOUT = 0, 1  # the records that a sample is drawn from; each has its own key


def draw_sample(data: Any, probability: Fraction, secret: bytes, part: int) -> Any:
    """Return the sample that the secret of a run determines: each record independently, with exactly this probability.

    A hold-out is sampled too: its records are among those that the cost of the search is computed for. Sampling it after it was split
    off is the same as sampling all records before, because each record is drawn by itself.
    """
    try:
        records = record_count(data)
    except (TypeError, AttributeError, IndexError):
        raise ParameterError(f"`data` must be arrays, a table or a list for a subsampled search, got a {type(data).__name__}") from None
    entropy = Stream(derive_key(secret, "subsample", part))
    mask = np.fromiter((bernoulli(probability, entropy) for _ in range(records)), dtype=np.bool_, count=records)
    return pick_records(data, mask)
