"""Conversion between mechanisms and the events of dp-accounting."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from numbers import Real
from typing import TYPE_CHECKING, Any

from dp_accounting import dp_event

from privselect._util.rounding import float_up, inverse_down, inverse_up, log_up
from privselect._util.validation import (
    NON_NEGATIVE,
    POSITIVE,
    UNIT,
    Range,
    check_fraction,
    check_number,
    check_sequence,
    format_value,
    integer_range,
    truncate,
)
from privselect.counts import Geometric, Logarithmic, NegativeBinomial, Poisson
from privselect.errors import NotCoveredError, ParameterError
from privselect.mechanisms import (
    DPSGD,
    Composed,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    Mechanism,
    Mixture,
    Pure,
    Renyi,
    SampledGaussian,
)
from privselect.mechanisms.neighbours import ADD_REMOVE, REPLACE_ONE
from privselect.selection import Selection
from privselect.text_forms import WeightedSpec

if TYPE_CHECKING:
    from collections.abc import Callable

    from privselect.counts import Count

_SHAPE = Range(0.0, 1e6, high_open=False)  # of the truncated negative binomial distribution; infinity means Poisson
_NAMED: dict[float, Callable[..., Count]] = {0.0: Logarithmic, 1.0: Geometric}
_NEGATIVE_BINOMIALS = (Geometric, Logarithmic, NegativeBinomial)
_MAX_DEPTH = 40  # nested events, as in a text form
_MAX_SIZE = 10**15
# Renyi orders less 1, times sqrt(rho): the best order for rho-zCDP at delta is 1 + sqrt(log(1/delta)/rho).
_ORDERS = tuple(0.3 * 1.25**step for step in range(20))

# Events without a mechanism here: the reason, and an alternative if there is one.
_BY_PLD = "make its loss distribution with dp_accounting.pld.privacy_loss_distribution.{} and read that with `mechanism_from_pld`"
_REFUSED = {
    dp_event.NonPrivateDpEvent: "it has no privacy guarantee",
    dp_event.UnsupportedDpEvent: "it does not state what was done",
    dp_event.SampledWithReplacementDpEvent: (
        "sampling with replacement is not analysed; use Poisson sampling and PoissonSampledDpEvent instead"
    ),
    dp_event.SingleEpochTreeAggregationDpEvent: (
        "tree aggregation is not analysed; state its (epsilon, delta) guarantees as `Points` instead"
    ),
    dp_event.MixtureOfGaussiansDpEvent: _BY_PLD.format("from_mixture_gaussian_mechanism"),
    dp_event.TruncatedSubsampledGaussianDpEvent: _BY_PLD.format("from_truncated_subsampled_gaussian_mechanism"),
}


# -- from events -----------------------------------------------------------------------------------------------------------


def mechanism_from_event(event: Any, neighbours: str = ADD_REMOVE) -> Mechanism:
    """Return the mechanism that a ``DpEvent`` of dp-accounting describes, for neighbours by "add_remove" or "replace_one".

    An event measures noise against the maximum norm of one record's value. Adding or removing a record moves the sum by that
    norm, replacing one by up to twice the norm. So ``GaussianDpEvent(s)`` is gaussian(sigma=s) for add_remove and gaussian(sigma=s/2)
    for replace_one. dp-accounting's PLDAccountant agrees; its RdpAccountant uses s for both relations.

    Concentrated privacy (``ZCDpEvent``) is converted to an upper bound, all other events exactly. An event that cannot be converted
    raises NotCoveredError.
    """
    if not isinstance(neighbours, str) or neighbours not in {ADD_REMOVE, REPLACE_ONE}:
        raise ParameterError(f"`neighbours` must be one of {ADD_REMOVE}, {REPLACE_ONE}, got {format_value(neighbours)}")
    if not isinstance(event, dp_event.DpEvent):
        raise ParameterError(f"`event` must be a DpEvent of dp-accounting, got {format_value(event)}")
    return _EventParser(neighbours).parse(event)


class _EventParser:
    """Convert one event, with all events inside it, for one neighbouring relation."""

    def __init__(self, neighbours: str) -> None:
        self.neighbours, self.norm_multiple = neighbours, 2.0 if neighbours == REPLACE_ONE else 1.0
        self.path: list[str] = []  # the names of the enclosing events and of the current one
        self.parsers: dict[type, Callable[[Any], Mechanism]] = {
            dp_event.NoOpDpEvent: lambda _: self.no_leak(),
            dp_event.GaussianDpEvent: self.gaussian,
            dp_event.LaplaceDpEvent: self.laplace,
            dp_event.DiscreteLaplaceDpEvent: self.discrete_laplace,
            dp_event.RandomizedResponseDpEvent: self.randomised_response,
            dp_event.ZCDpEvent: self.concentrated,
            dp_event.PoissonSampledDpEvent: self.poisson_sampled,
            dp_event.SampledWithoutReplacementDpEvent: self.fixed_sample,
            dp_event.SelfComposedDpEvent: self.self_composed,
            dp_event.ComposedDpEvent: self.composed,
            dp_event.RepeatAndSelectDpEvent: self.selection,
        }

    def parse(self, event: Any) -> Mechanism:
        if not isinstance(event, dp_event.DpEvent):
            raise ParameterError(f"the inner event must be a DpEvent of dp-accounting, got {format_value(event)}")
        name = type(event).__name__
        self.path.append(name)
        if len(self.path) > _MAX_DEPTH:
            raise NotCoveredError(f"events must be nested at most {_MAX_DEPTH} deep")
        # Look up the exact class: a subclass may change the meaning.
        parse = self.parsers.get(type(event))
        if parse is None:
            raise self.refusal(_REFUSED.get(type(event), "privselect does not know this event"))
        try:
            mechanism = parse(event)
        except ParameterError as error:
            message = str(error)
            raise ParameterError(message if "DpEvent: " in message else f"{name}: {message}") from None
        self.path.pop()
        return mechanism

    def refusal(self, reason: str) -> NotCoveredError:
        *outer, name = self.path
        return NotCoveredError(f"{name}{f' inside {outer[-1]}' if outer else ''} cannot be converted to a mechanism: {reason}")

    def no_leak(self) -> Mechanism:
        return Pure(epsilon=0.0, neighbours=self.neighbours)

    def gaussian(self, event: Any) -> Mechanism:
        noise = check_number("noise_multiplier", event.noise_multiplier, POSITIVE)
        return Gaussian(sigma=noise / self.norm_multiple, neighbours=self.neighbours)

    def laplace(self, event: Any) -> Mechanism:
        noise = check_number("noise_multiplier", event.noise_multiplier, POSITIVE)
        return Laplace(scale=noise / self.norm_multiple, neighbours=self.neighbours)

    def discrete_laplace(self, event: Any) -> Mechanism:
        rate = check_number("noise_parameter", event.noise_parameter, POSITIVE)
        sensitivity = check_number("sensitivity", event.sensitivity, integer_range(1, _MAX_SIZE)) * self.norm_multiple
        if sensitivity != 1:
            reason = f"discrete Laplace noise is supported for a sensitivity of 1 only, not {sensitivity:g}; "
            raise self.refusal(reason + _BY_PLD.format("from_discrete_laplace_mechanism"))
        return DiscreteLaplace(scale=inverse_down(rate), neighbours=self.neighbours)

    def randomised_response(self, event: Any) -> Mechanism:
        """Convert a response in k buckets: the true one with probability 1 - p + p/k, each other one with probability p/k.

        Two inputs differ in two buckets only. In the other k - 2 buckets, of total probability (k-2) p/k, the loss is 0. So the
        response is exactly a mixture: no leak with that probability, pure randomised response otherwise.
        """
        stated = check_number("noise_parameter", event.noise_parameter, UNIT)
        # The decimal number as written and the float differ: use the one with less noise.
        noise = min(check_fraction("noise_parameter", stated), Fraction(stated))
        buckets = int(check_number("num_buckets", event.num_buckets, integer_range(1, _MAX_SIZE)))
        if self.neighbours != REPLACE_ONE:
            raise self.refusal("every record gives an answer, so it needs neighbours='replace_one'")
        if buckets == 1 or noise == 1:
            return self.no_leak()
        if noise == 0:
            raise self.refusal("without noise it has no privacy guarantee")
        odds = (1 - noise) * buckets / noise + 1
        pure = Pure(epsilon=log_up(odds), neighbours=self.neighbours)
        elsewhere = noise * (buckets - 2) / buckets
        return pure if elsewhere == 0 else Mixture((WeightedSpec(elsewhere, self.no_leak()), WeightedSpec(1 - elsewhere, pure)))

    def concentrated(self, event: Any) -> Mechanism:
        """Convert zCDP: the Renyi divergence of order a is at most xi + rho a; this is stated at some orders, rounded up."""
        rho = check_number("rho", event.rho, NON_NEGATIVE)
        xi = check_number("xi", event.xi, NON_NEGATIVE)
        if rho == 0.0:
            return Pure(epsilon=xi, neighbours=self.neighbours)
        orders = [float(f"{1.0 + part / math.sqrt(rho):.6g}") for part in _ORDERS]
        bounds = [(order, float_up(Fraction(xi) + Fraction(rho) * Fraction(order))) for order in orders if order > 1.0]
        return Renyi(tuple(dict(bounds).items()), neighbours=self.neighbours)

    def fixed_sample(self, event: Any) -> Mechanism:
        """Convert one step on a batch without replacement; the noise is relative to one record's norm in both formats."""
        records = int(check_number("source_dataset_size", event.source_dataset_size, integer_range(1, _MAX_SIZE)))
        batch = int(check_number("sample_size", event.sample_size, integer_range(1, records)))
        inner = self.parse(event.event)
        if self.neighbours != REPLACE_ONE:
            raise self.refusal("a sample of fixed size needs neighbours='replace_one'")
        if _leaks_nothing(inner):
            return self.no_leak()
        if not isinstance(inner, Gaussian):
            raise self.refusal(f"only Gaussian noise is supported on a sample, not {type(event.event).__name__}")
        return SampledGaussian(noise_multiplier=inner.sigma * self.norm_multiple, batch_size=batch, records=records)

    def poisson_sampled(self, event: Any) -> Mechanism:
        rate = check_number("sampling_probability", event.sampling_probability, UNIT)
        inner = self.parse(event.event)
        if rate == 0.0 or _leaks_nothing(inner):
            return self.no_leak()
        if rate == 1.0 and not (isinstance(inner, Gaussian) and self.neighbours == ADD_REMOVE):
            return inner
        if self.neighbours != ADD_REMOVE:
            raise self.refusal("Poisson sampling needs neighbours='add_remove'")
        if not isinstance(inner, Gaussian):
            reason = f"only Gaussian noise is supported on a sample, not {type(event.event).__name__}"
            if isinstance(inner, Laplace):
                reason += "; " + _BY_PLD.format("from_laplace_mechanism")
            raise self.refusal(reason)
        return DPSGD(noise_multiplier=inner.sigma, sampling_probability=rate, steps=1)

    def self_composed(self, event: Any) -> Mechanism:
        times = int(check_number("count", event.count, integer_range(0, 10**9)))
        mechanism = self.parse(event.event)
        if times == 0 or _leaks_nothing(mechanism):
            return self.no_leak()
        if times == 1:
            return mechanism
        if isinstance(mechanism, DPSGD):
            return replace(mechanism, steps=mechanism.steps * times)
        if isinstance(mechanism, Composed):
            return replace(mechanism, times=mechanism.times * times)
        return Composed((mechanism,), times=times)

    def composed(self, event: Any) -> Mechanism:
        events = check_sequence("events", event.events, "a list of DpEvents of dp-accounting")
        parts = tuple(part for part in map(self.parse, events) if not _leaks_nothing(part))
        if not parts:
            return self.no_leak()
        return parts[0] if len(parts) == 1 else Composed(parts)

    def selection(self, event: Any) -> Mechanism:
        return Selection(self.parse(event.event), self.count(event))

    def count(self, event: Any) -> Count:
        mean, shape = event.mean, event.shape
        if isinstance(shape, Real) and shape == math.inf:
            return Poisson(mean=mean)
        try:
            eta = check_number("shape", shape, _SHAPE)
        except ParameterError:
            raise ParameterError(f"`shape` must be {_SHAPE} or inf, got {format_value(shape)}") from None
        return _NAMED[eta](mean=mean) if eta in _NAMED else NegativeBinomial(eta=eta, mean=mean)


# -- to events -------------------------------------------------------------------------------------------------------------


def event_from_mechanism(mechanism: Mechanism) -> dp_event.DpEvent:
    """Return the ``DpEvent`` of dp-accounting that ``mechanism_from_event`` converts back to the mechanism.

    An event does not state the neighbouring relation. It is written for the relation of the mechanism, or for adding and removing
    a record if the mechanism leaves the relation to the caller; read it for the same relation. A mechanism without an event raises
    NotCoveredError; ``pld_from_mechanism`` converts every mechanism.
    """
    if not isinstance(mechanism, Mechanism):
        raise ParameterError(f"`mechanism` must be a mechanism such as gaussian(sigma=4), got {format_value(mechanism)}")
    return _EventWriter(mechanism.neighbours).write(mechanism)


class _EventWriter:
    """Convert one mechanism, with all its parts, for the neighbouring relation of the parts."""

    def __init__(self, neighbours: str) -> None:
        self.replacing = neighbours == REPLACE_ONE

    def write(self, mechanism: Mechanism) -> dp_event.DpEvent:
        if _leaks_nothing(mechanism):
            return dp_event.NoOpDpEvent()
        # Look up the exact class: a subclass may change the meaning.
        if type(mechanism) not in _WRITERS:
            raise _no_event(mechanism, "dp-accounting has none for it")
        return _WRITERS[type(mechanism)](self, mechanism)

    def gaussian(self, mechanism: Gaussian) -> dp_event.DpEvent:
        return dp_event.GaussianDpEvent(self.noise_per_norm(mechanism, mechanism.sigma))

    def laplace(self, mechanism: Laplace) -> dp_event.DpEvent:
        return dp_event.LaplaceDpEvent(self.noise_per_norm(mechanism, mechanism.scale))

    def noise_per_norm(self, mechanism: Mechanism, noise: float) -> float:
        """Return the noise relative to one record's norm; replacing a record moves the sum by twice the norm."""
        relative = 2.0 * noise if self.replacing else noise
        if math.isinf(relative):
            raise _no_event(mechanism, "its noise exceeds the largest float")
        return relative

    def discrete_laplace(self, mechanism: DiscreteLaplace) -> dp_event.DpEvent:
        if self.replacing:
            raise _no_event(mechanism, "for replaced records an event's sensitivity is even, and the mechanism's is 1")
        return dp_event.DiscreteLaplaceDpEvent(inverse_up(mechanism.scale), 1)

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


_WRITERS: dict[type[Mechanism], Callable[[_EventWriter, Any], dp_event.DpEvent]] = {
    Gaussian: _EventWriter.gaussian,
    Laplace: _EventWriter.laplace,
    DiscreteLaplace: _EventWriter.discrete_laplace,
    DPSGD: _EventWriter.dpsgd,
    SampledGaussian: _EventWriter.sampled_gaussian,
    Composed: _EventWriter.composed,
    Selection: _EventWriter.selection,
}


def _mean_and_shape(count: Count, selection: Selection) -> tuple[float, float]:
    if count.cap is not None:
        raise _no_event(selection, "an event cannot state a cap on K")
    if isinstance(count, Poisson):
        return count.mean, math.inf
    if not isinstance(count, _NEGATIVE_BINOMIALS):
        raise _no_event(selection, "an event can state Poisson and truncated negative binomial K only")
    if count.eta < 0.0:
        raise _no_event(selection, "an event's shape is never negative")
    # An event states the mean. If it is computed from gamma, it is rounded up, towards more trials.
    return (math.nextafter(count.expected(), math.inf) if count.mean is None else count.mean), count.eta


def _leaks_nothing(mechanism: Mechanism) -> bool:
    return isinstance(mechanism, Pure) and mechanism.epsilon == 0.0


def _no_event(mechanism: Mechanism, reason: str) -> NotCoveredError:
    return NotCoveredError(f"{truncate(str(mechanism))} has no event of dp-accounting: {reason}; use `pld_from_mechanism`")
