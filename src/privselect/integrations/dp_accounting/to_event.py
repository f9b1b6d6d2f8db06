"""From mechanisms to dp-accounting's events."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from dp_accounting import dp_event

from privselect._util.validation import truncate, format_value
from privselect.counts import Geometric, Logarithmic, NegativeBinomial, Poisson
from privselect.errors import NotCoveredError, ParameterError
from privselect.integrations.outward import inverse_above
from privselect.integrations.sequential import leaks_nothing
from privselect.mechanisms import DPSGD, Composed, DiscreteLaplace, Gaussian, Laplace, Mechanism, SampledGaussian
from privselect.mechanisms.neighbours import REPLACE_ONE
from privselect.selection import Selection

if TYPE_CHECKING:
    from collections.abc import Callable

    from privselect.counts import Count

_FAMILY = (Geometric, Logarithmic, NegativeBinomial)


def event_from_mechanism(mechanism: Mechanism) -> dp_event.DpEvent:
    """The ``DpEvent`` of dp-accounting that says the same: what ``mechanism_from_event`` turns back into the mechanism.

    An event does not say which data sets are neighbours. It is written for those of the mechanism, by adding or removing a record
    where that is left to the caller, and must be read for the same ones. What has no event is refused; ``pld_from_mechanism``
    takes every mechanism.
    """
    if not isinstance(mechanism, Mechanism):
        raise ParameterError(f"`mechanism` must be a mechanism such as gaussian(sigma=4), got {format_value(mechanism)}")
    return _Writing(mechanism.neighbours).write(mechanism)


class _Writing:
    """One mechanism with all its parts, for the neighbouring relation that they agree on."""

    def __init__(self, neighbours: str) -> None:
        self.replacing = neighbours == REPLACE_ONE

    def write(self, mechanism: Mechanism) -> dp_event.DpEvent:
        if leaks_nothing(mechanism):
            return dp_event.NoOpDpEvent()
        # By the very class: what a subclass changes is not known.
        if type(mechanism) not in _WRITERS:
            raise _refused(mechanism, "there is none for it")
        return _WRITERS[type(mechanism)](self, mechanism)

    def gaussian(self, mechanism: Gaussian) -> dp_event.DpEvent:
        return dp_event.GaussianDpEvent(self.against_one_record(mechanism, mechanism.sigma))

    def laplace(self, mechanism: Laplace) -> dp_event.DpEvent:
        return dp_event.LaplaceDpEvent(self.against_one_record(mechanism, mechanism.scale))

    def against_one_record(self, mechanism: Mechanism, noise: float) -> float:
        """An event measures noise against one record's value, and replacing a record moves the sum by twice that."""
        found = 2.0 * noise if self.replacing else noise
        if math.isinf(found):
            raise _refused(mechanism, "its noise is beyond the largest float")
        return found

    def discrete_laplace(self, mechanism: DiscreteLaplace) -> dp_event.DpEvent:
        if self.replacing:
            raise _refused(mechanism, "for replaced records an event's sensitivity is even, and this one is 1")
        return dp_event.DiscreteLaplaceDpEvent(inverse_above(mechanism.scale), 1)

    def dpsgd(self, mechanism: DPSGD) -> dp_event.DpEvent:
        step = dp_event.PoissonSampledDpEvent(mechanism.sampling_probability, dp_event.GaussianDpEvent(mechanism.noise_multiplier))
        return step if mechanism.steps == 1 else dp_event.SelfComposedDpEvent(step, mechanism.steps)

    def sampled_gaussian(self, mechanism: SampledGaussian) -> dp_event.DpEvent:
        step = dp_event.GaussianDpEvent(mechanism.noise_multiplier)
        return dp_event.SampledWithoutReplacementDpEvent(mechanism.records, mechanism.batch_size, step)

    def composed(self, mechanism: Composed) -> dp_event.DpEvent:
        events = [self.write(part) for part in mechanism.parts]
        once = events[0] if len(events) == 1 else dp_event.ComposedDpEvent(events)
        return once if mechanism.times == 1 else dp_event.SelfComposedDpEvent(once, mechanism.times)

    def selection(self, mechanism: Selection) -> dp_event.DpEvent:
        mean, shape = _mean_and_shape(mechanism.count, mechanism)
        return dp_event.RepeatAndSelectDpEvent(self.write(mechanism.mechanism), mean, shape)


_WRITERS: dict[type[Mechanism], Callable[[_Writing, Any], dp_event.DpEvent]] = {
    Gaussian: _Writing.gaussian,
    Laplace: _Writing.laplace,
    DiscreteLaplace: _Writing.discrete_laplace,
    DPSGD: _Writing.dpsgd,
    SampledGaussian: _Writing.sampled_gaussian,
    Composed: _Writing.composed,
    Selection: _Writing.selection,
}


def _mean_and_shape(count: Count, selection: Selection) -> tuple[float, float]:
    if count.cap is not None:
        raise _refused(selection, "an event knows no cap on K")
    if isinstance(count, Poisson):
        return count.mean, math.inf
    if not isinstance(count, _FAMILY):
        raise _refused(selection, "an event knows Poisson and truncated negative binomial laws of K only")
    if count.eta < 0.0:
        raise _refused(selection, "an event's shape is never negative")
    # An event goes by the mean: found from gamma it is rounded up, towards more trials.
    return (math.nextafter(count.expected(), math.inf) if count.mean is None else count.mean), count.eta


def _refused(mechanism: Mechanism, reason: str) -> NotCoveredError:
    return NotCoveredError(f"{truncate(str(mechanism))} has no event of dp-accounting: {reason}; use `pld_from_mechanism`")
