"""Search, then train: the mechanism of a search for hyperparameters followed by one final training on the same records."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

from privselect.errors import ParameterError
from privselect.mechanisms import Composed, Disjoint, Subsampled
from privselect.selection.selection import Selection, selection_of

if TYPE_CHECKING:
    from fractions import Fraction

    from privselect.counts.base import Count
    from privselect.mechanisms.base import Mechanism


@dataclass(frozen=True, slots=True)
class Stages:
    """A search and the final training after it; the parameters of :func:`search_then_train`."""

    mechanism: Mechanism
    count: Count | None = None
    final: Mechanism | None = None
    visible: int | None = None
    subsample: Fraction | None = None

    @property
    def is_selection(self) -> bool:
        """Whether the best of K trials is released and nothing else, or one trial."""
        return self.final is None and self.visible is None and self.subsample is None

    @property
    def one_trial(self) -> Mechanism:
        """One trial alone, on the sample if there is one."""
        return search_then_train(self.mechanism, subsample=self.subsample)

    @property
    def search(self) -> Mechanism:
        """Everything that the search releases, as one mechanism."""
        return search_then_train(self.mechanism, self.count, visible=self.visible, subsample=self.subsample)

    @property
    def whole(self) -> Mechanism:
        """Everything that both stages release, as one mechanism."""
        return search_then_train(self.mechanism, self.count, self.final, visible=self.visible, subsample=self.subsample)


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
    search = selection_of(mechanism, count) if visible is None else _all_trials(mechanism, visible)
    if subsample is not None:
        search = Subsampled(search, subsample)
    return search if final is None else Composed((search, final))


def stages_of(mechanism: Mechanism) -> Stages:
    """Return the stages of a mechanism that :func:`search_then_train` may have made; any other mechanism is one trial.

    A repeated mechanism is a visible search only if a final training follows.
    """
    if isinstance(mechanism, Composed) and mechanism.times == 1 and len(mechanism.parts) == 2 and _is_search(mechanism.parts[0]):
        search, final = mechanism.parts
        return dataclasses.replace(_stages_of_search(search), final=final)
    return _stages_of_search(mechanism) if isinstance(mechanism, Selection | Subsampled) else Stages(mechanism)


def _stages_of_search(search: Mechanism) -> Stages:
    if isinstance(search, Subsampled):
        return dataclasses.replace(_stages_of_search(search.mechanism), subsample=search.probability)
    if isinstance(search, Selection):
        return Stages(search.mechanism, search.count)
    visible = _visible_trials(search)
    return Stages(search) if visible is None else Stages(visible[0], visible=visible[1])


def _all_trials(mechanism: Mechanism, times: int) -> Mechanism:
    """Return all trials of a visible search; they split the records in the same way, so each part of a split composes by itself."""
    if isinstance(mechanism, Disjoint):
        return Disjoint(tuple(_all_trials(part, times) for part in mechanism.parts))
    return Composed((mechanism,), times=times)


def _is_search(mechanism: Mechanism) -> bool:
    return isinstance(mechanism, Selection | Subsampled) or _visible_trials(mechanism) is not None


def _visible_trials(mechanism: Mechanism) -> tuple[Mechanism, int] | None:
    """Return one trial and the number of trials of a visible search, or None for any other mechanism."""
    if isinstance(mechanism, Composed) and len(mechanism.parts) == 1:
        return mechanism.parts[0], mechanism.times
    if isinstance(mechanism, Disjoint):
        parts = [_visible_trials(part) for part in mechanism.parts]
        found = [part for part in parts if part is not None]
        if len(found) == len(parts) and len({times for _, times in found}) == 1:
            return Disjoint(tuple(trial for trial, _ in found)), found[0][1]
    return None
