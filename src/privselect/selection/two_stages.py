"""Search, then train: the mechanism of a search for hyperparameters followed by one final training on the same records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from privselect.errors import ParameterError
from privselect.mechanisms import Composed
from privselect.mechanisms.subsampled import Subsampled
from privselect.selection.selection import selection_of

if TYPE_CHECKING:
    from fractions import Fraction

    from privselect.counts.base import Count
    from privselect.mechanisms.base import Mechanism


def search_then_train(
    mechanism: Mechanism,
    count: Count | None = None,
    final: Mechanism | None = None,
    *,
    visible: int | None = None,
    subsample: Fraction | None = None,
) -> Mechanism:
    """Return everything that is released about the records, as one mechanism.

    - ``mechanism``: one search trial.
    - ``count``: the law of K of a secret search, which releases only the best trial.
    - ``visible``: the number of trials of a visible search, which releases all of them. Each candidate may depend on earlier results.
    - ``subsample``: the probability of each record to be in the one sample that all search trials share.
    - ``final``: the final training, on all records. Its candidate is a function of what the search released.

    Search and final training see the same records, so they compose.
    """
    if count is not None and visible is not None:
        raise ParameterError(f"a search is either secret, with a law of K, or visible, got {count} and {visible} visible trials")
    search = selection_of(mechanism, count) if visible is None else Composed((mechanism,), times=visible)
    if subsample is not None:
        search = Subsampled(search, subsample)
    return search if final is None else Composed((search, final))
