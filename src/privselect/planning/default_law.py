"""The default law of K: a public rule for plans that name none. docs/plan.md has the numbers behind it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from privselect._util.validation import check_number
from privselect.counts import Geometric, NegativeBinomial
from privselect.counts.negative_binomial import MEAN_RANGE

if TYPE_CHECKING:
    from privselect.counts import Count

DEFAULT_MEAN = 20.0  # with a tenth of the steps per trial, the search takes twice the time of the final training
MOST_SINGLE_TRIALS = 0.02  # largest accepted probability of K = 1: such a run has drawn one candidate and tuned nothing
_ETAS = (2.0, 5.0)


def default_count(mean: float = DEFAULT_MEAN) -> Count:
    """Return the default law of K with this mean.

    It is the first of geometric, negative binomial with eta = 2 and with eta = 5 for which K = 1 has a probability of at most 2%. For
    means below 9 it is the last one, whose probability is larger. The order is from the least noise at a given mean to the smallest
    probability of K = 1.
    """
    expected = check_number("mean", mean, MEAN_RANGE)
    laws = [Geometric(mean=expected), *(NegativeBinomial(eta=eta, mean=expected) for eta in _ETAS)]
    return next((law for law in laws if math.exp(float(law.log_pmf(1))) <= MOST_SINGLE_TRIALS), laws[-1])
