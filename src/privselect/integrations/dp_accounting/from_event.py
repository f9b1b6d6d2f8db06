"""From dp-accounting's events to mechanisms."""

from __future__ import annotations

import math
from fractions import Fraction
from numbers import Real
from typing import TYPE_CHECKING, Any

from dp_accounting import dp_event

from privselect._util.validation import NON_NEGATIVE, POSITIVE, UNIT, Range, check_fraction, check_number, check_sequence, format_value, integer_range
from privselect.counts import Geometric, Logarithmic, NegativeBinomial, Poisson
from privselect.errors import NotCoveredError, ParameterError
from privselect.integrations.outward import float_above, inverse_below, log_above
from privselect.integrations.sequential import composed, leaks_nothing, nothing, repeated
from privselect.mechanisms import DPSGD, DiscreteLaplace, Gaussian, Laplace, Mechanism, Mixture, Pure, Renyi, SampledGaussian
from privselect.mechanisms.neighbours import ADD_REMOVE, REPLACE_ONE
from privselect.selection import Selection
from privselect.text_forms import WeightedSpec

if TYPE_CHECKING:
    from collections.abc import Callable

    from privselect.counts import Count

_SHAPE = Range(0.0, 1e6, high_open=False)  # of the truncated negative binomial law; infinity is Poisson
_NAMED: dict[float, Callable[..., Count]] = {0.0: Logarithmic, 1.0: Geometric}
_DEEPEST = 40  # nested events, as in a text form
# Orders of Renyi divergences, less 1, times the root of rho: that at which rho-zCDP gives delta is the root of log(1/delta).
_ORDERS = tuple(0.3 * 1.25**step for step in range(20))

# What cannot be described here, and the way that is left.
_BY_PLD = "make its loss distribution with dp_accounting.pld.privacy_loss_distribution.{} and read that with `mechanism_from_pld`"
_BY_POINTS = "state the (epsilon, delta) guarantees that follow from it as `Points`"
_BY_POISSON = "sample by Poisson and use PoissonSampledDpEvent"
_REFUSED = {
    dp_event.NonPrivateDpEvent: "it leaks everything, so there is no privacy to account for",
    dp_event.UnsupportedDpEvent: "it says nothing about what was done",
    dp_event.SampledWithReplacementDpEvent: f"sampling with replacement is not analysed; {_BY_POISSON}",
    dp_event.SingleEpochTreeAggregationDpEvent: f"tree aggregation is not analysed; {_BY_POINTS}",
    dp_event.MixtureOfGaussiansDpEvent: _BY_PLD.format("from_mixture_gaussian_mechanism"),
    dp_event.TruncatedSubsampledGaussianDpEvent: _BY_PLD.format("from_truncated_subsampled_gaussian_mechanism"),
}


def mechanism_from_event(event: Any, neighbours: str = ADD_REMOVE) -> Mechanism:
    """The mechanism that a ``DpEvent`` of dp-accounting describes, for neighbours by "add_remove" or "replace_one".

    An event's noise is measured against the greatest norm of one record's value. Adding or removing a record moves the sum by that
    much, replacing one by up to twice as much: ``GaussianDpEvent(s)`` is gaussian(sigma=s) for add_remove and gaussian(sigma=s/2)
    for replace_one. dp-accounting's own PLDAccountant has it so; its RdpAccountant takes s for either relation.

    Concentrated privacy (``ZCDpEvent``) is read from above, all else exactly; what cannot be is refused in one sentence that names the
    event.
    """
    if not isinstance(neighbours, str) or neighbours not in {ADD_REMOVE, REPLACE_ONE}:
        raise ParameterError(f"`neighbours` must be one of {ADD_REMOVE}, {REPLACE_ONE}, got {format_value(neighbours)}")
    if not isinstance(event, dp_event.DpEvent):
        raise ParameterError(f"`event` must be a DpEvent of dp-accounting, got {format_value(event)}")
    return _Reading(neighbours).read(event)


class _Reading:
    """One event with all that is inside it, for one neighbouring relation."""

    def __init__(self, neighbours: str) -> None:
        self.neighbours, self.reach = neighbours, 2.0 if neighbours == REPLACE_ONE else 1.0
        self.path: list[str] = []  # the events around the one being read
        self.known: dict[type, Callable[[Any], Mechanism]] = {
            dp_event.NoOpDpEvent: lambda _: nothing(neighbours),
            dp_event.GaussianDpEvent: self.gaussian,
            dp_event.LaplaceDpEvent: self.laplace,
            dp_event.DiscreteLaplaceDpEvent: self.discrete_laplace,
            dp_event.RandomizedResponseDpEvent: self.randomised_response,
            dp_event.ZCDpEvent: self.concentrated,
            dp_event.PoissonSampledDpEvent: self.poisson_sampled,
            dp_event.SampledWithoutReplacementDpEvent: self.fixed_sample,
            dp_event.SelfComposedDpEvent: self.self_composed,
            dp_event.ComposedDpEvent: self.composed,
            dp_event.RepeatAndSelectDpEvent: self.selected,
        }

    def read(self, event: Any) -> Mechanism:
        name = type(event).__name__
        self.path.append(name)
        if len(self.path) > _DEEPEST:
            raise NotCoveredError(f"events may nest at most {_DEEPEST} deep")
        # By the very class: what a subclass changes is not known.
        read = self.known.get(type(event))
        if read is None:
            raise self.refusal(_REFUSED.get(type(event), "privselect does not know this event"))
        try:
            mechanism = read(event)
        except ParameterError as error:
            said = str(error)
            raise ParameterError(said if "DpEvent: " in said else f"{name}: {said}") from None
        self.path.pop()
        return mechanism

    def refusal(self, reason: str) -> NotCoveredError:
        *outer, name = self.path
        return NotCoveredError(f"{name}{f' inside {outer[-1]}' if outer else ''} has no mechanism here: {reason}")

    def inner(self, event: Any) -> Mechanism:
        if not isinstance(event, dp_event.DpEvent):
            raise ParameterError(f"an event inside must be a DpEvent of dp-accounting, got {format_value(event)}")
        return self.read(event)

    def gaussian(self, event: Any) -> Mechanism:
        return Gaussian(sigma=check_number("noise_multiplier", event.noise_multiplier, POSITIVE) / self.reach, neighbours=self.neighbours)

    def laplace(self, event: Any) -> Mechanism:
        return Laplace(scale=check_number("noise_multiplier", event.noise_multiplier, POSITIVE) / self.reach, neighbours=self.neighbours)

    def discrete_laplace(self, event: Any) -> Mechanism:
        rate = check_number("noise_parameter", event.noise_parameter, POSITIVE)
        most = check_number("sensitivity", event.sensitivity, integer_range(1, 10**15))
        if most * self.reach != 1:
            reason = f"discrete Laplace noise is described for a sensitivity of 1, not {most * self.reach:g}; "
            raise self.refusal(reason + _BY_PLD.format("from_discrete_laplace_mechanism"))
        return DiscreteLaplace(scale=inverse_below(rate), neighbours=self.neighbours)

    def randomised_response(self, event: Any) -> Mechanism:
        """Of k buckets, the true one with 1 - p + p/k, each other with p/k.

        Two inputs differ in two buckets only; in the other k - 2, of chance (k-2) p/k together, the loss is 0. So it is, exactly,
        nothing with that chance and pure randomised response otherwise.
        """
        stated = check_number("noise_parameter", event.noise_parameter, UNIT)
        # The number as written, or what the float holds: near 1 they tell another story, and less noise is the safer one.
        noise = min(check_fraction("noise_parameter", stated), Fraction(stated))
        buckets = int(check_number("num_buckets", event.num_buckets, integer_range(1, 10**15)))
        if self.neighbours != REPLACE_ONE:
            raise self.refusal("every record gives an answer, so it must be read with neighbours='replace_one'")
        if buckets == 1 or noise == 1:
            return nothing(self.neighbours)
        if noise == 0:
            raise self.refusal("without noise it leaks everything")
        odds = (1 - noise) * buckets / noise + 1
        pure = Pure(epsilon=log_above(odds), neighbours=self.neighbours)
        elsewhere = noise * (buckets - 2) / buckets
        return pure if elsewhere == 0 else Mixture((WeightedSpec(elsewhere, nothing(self.neighbours)), WeightedSpec(1 - elsewhere, pure)))

    def concentrated(self, event: Any) -> Mechanism:
        """Every Renyi divergence of order a is at most xi + rho a, for the neighbours that are asked for: some of these, from above."""
        rho = check_number("rho", event.rho, NON_NEGATIVE)
        xi = check_number("xi", event.xi, NON_NEGATIVE)
        if rho == 0.0:
            return Pure(epsilon=xi, neighbours=self.neighbours)
        orders = [float(f"{1.0 + part / math.sqrt(rho):.6g}") for part in _ORDERS]
        bounds = [(order, float_above(Fraction(xi) + Fraction(rho) * Fraction(order))) for order in orders if order > 1.0]
        return Renyi(tuple(dict(bounds).items()), neighbours=self.neighbours)

    def fixed_sample(self, event: Any) -> Mechanism:
        """One step on a batch without replacement. Both measure the noise against one record's norm; a replaced one moves twice that."""
        records = int(check_number("source_dataset_size", event.source_dataset_size, integer_range(1, 10**15)))
        batch = int(check_number("sample_size", event.sample_size, integer_range(1, records)))
        inner = self.inner(event.event)
        if self.neighbours != REPLACE_ONE:
            raise self.refusal("a sample of fixed size is analysed for neighbours='replace_one'")
        if leaks_nothing(inner):
            return nothing(self.neighbours)
        if not isinstance(inner, Gaussian):
            raise self.refusal(f"only Gaussian noise is analysed on a sample, not {type(event.event).__name__}")
        return SampledGaussian(noise_multiplier=inner.sigma * self.reach, batch_size=batch, records=records)

    def poisson_sampled(self, event: Any) -> Mechanism:
        rate = check_number("sampling_probability", event.sampling_probability, UNIT)
        inner = self.inner(event.event)
        if rate == 0.0 or leaks_nothing(inner):
            return nothing(self.neighbours)
        if rate == 1.0 and not (isinstance(inner, Gaussian) and self.neighbours == ADD_REMOVE):
            return inner
        if self.neighbours != ADD_REMOVE:
            raise self.refusal("Poisson sampling is analysed for neighbours='add_remove'")
        if not isinstance(inner, Gaussian):
            reason = f"only Gaussian noise is analysed on a sample, not {type(event.event).__name__}"
            if isinstance(inner, Laplace):
                reason += "; " + _BY_PLD.format("from_laplace_mechanism")
            raise self.refusal(reason)
        return DPSGD(noise_multiplier=inner.sigma, sampling_probability=rate, steps=1)

    def self_composed(self, event: Any) -> Mechanism:
        count = int(check_number("count", event.count, integer_range(0, 10**9)))
        return repeated(self.inner(event.event), count, self.neighbours)

    def composed(self, event: Any) -> Mechanism:
        events = check_sequence("events", event.events, "a list of DpEvents of dp-accounting")
        return composed([self.inner(one) for one in events], self.neighbours)

    def selected(self, event: Any) -> Mechanism:
        return Selection(self.inner(event.event), self.count(event))

    def count(self, event: Any) -> Count:
        mean, shape = event.mean, event.shape
        if isinstance(shape, Real) and shape == math.inf:
            return Poisson(mean=mean)
        try:
            eta = check_number("shape", shape, _SHAPE)
        except ParameterError:
            raise ParameterError(f"`shape` must be {_SHAPE} or inf, got {format_value(shape)}") from None
        return _NAMED[eta](mean=mean) if eta in _NAMED else NegativeBinomial(eta=eta, mean=mean)
