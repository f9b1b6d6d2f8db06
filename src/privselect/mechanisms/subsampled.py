"""**Subsampled**: a mechanism that sees only a secret Poisson sample of the records, drawn once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import gammaln

from privselect._util.validation import check_fraction, format_value
from privselect.errors import NeighbourError, ParameterError
from privselect.mechanisms.base import Mechanism, check_orders
from privselect.mechanisms.neighbours import ADD_REMOVE, REPLACE_ONE
from privselect.pairs.dominating_pair import Bracket
from privselect.pairs.envelope import remove_order
from privselect.pairs.sampled_pair import sampled_lower, sampled_upper
from privselect.text_forms import register

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from privselect.interval import Interval

    Floats = NDArray[np.float64]

_LARGEST_DENOMINATOR = 10**300  # of the probability: the text form writes it in full
_EXPANDED_ORDERS = np.arange(2.0, 65.0)  # integer orders of the binomial expansion
_LARGEST_EXPONENT = 600.0  # e^600 is a float
_UP = 1.0 + 1e-12


@register
@dataclass(frozen=True, slots=True)
class Subsampled(Mechanism):
    r"""Put each record into one sample with ``probability``, independently, and run ``mechanism`` on the sample alone.

    Claim: if (P, P') dominates the mechanism for "with the record" against "without it", then ``(r P + (1-r) P', P')`` dominates the
    subsampled mechanism for the same order, and its reverse dominates the other order. So, with ``r`` the probability and
    ``a = 1 + (e^e - 1)/r``, the order "remove" has ``delta(e) = r H_{P||P'}(a)`` for a > 0. Label: **Subsampled**.

    Holds when neighbours differ by adding or removing one record, the sample is drawn once for the whole mechanism, independently of the
    data, and it is never revealed. For a selection or a visible search: all trials use the same sample. Noise stated for any relation must
    be for a query of sensitivity 1 under adding or removing one record.
    """

    text_name = "subsampled"
    is_factor = True

    mechanism: Mechanism = field(metadata={"positional": True})
    probability: Any

    def __post_init__(self) -> None:
        if not isinstance(self.mechanism, Mechanism):
            raise ParameterError(f"`mechanism` must be a mechanism such as gaussian(sigma=4), got {format_value(self.mechanism)}")
        if self.mechanism.neighbours == REPLACE_ONE:
            raise NeighbourError(
                f"`subsampled` needs a mechanism stated for {ADD_REMOVE}, because one replaced record may change the size of the sample, "
                f"got {self.mechanism}"
            )
        exact = check_fraction("probability", self.probability)
        if not 0 < exact <= 1:
            raise ParameterError(f"`probability` must be in (0, 1], got {format_value(self.probability)}")
        if exact.denominator > _LARGEST_DENOMINATOR:
            raise ParameterError(f"`probability` must have a denominator of at most 1e300, got {format_value(self.probability)}")
        object.__setattr__(self, "probability", exact)

    @property
    def neighbours(self) -> str:
        """Adding or removing one record: it is in the sample or not, and the sample of all other records is the same."""
        return ADD_REMOVE

    @property
    def cases(self) -> tuple[Mechanism, ...]:
        """The subsampled cases of the mechanism: a record belongs to the same part whether it is in the sample or not."""
        inner = self.mechanism.cases
        if self.probability == 1:
            return inner
        return (self,) if inner == (self.mechanism,) else tuple(Subsampled(case, self.probability) for case in inner)

    def composition_steps(self) -> tuple[tuple[Mechanism, int], ...]:
        """Return this mechanism as one step, because all its parts share one sample; without sampling, the steps of the mechanism."""
        return self.mechanism.composition_steps() if self.probability == 1 else ((self, 1),)

    def _make_brackets(self, accuracy: float, /) -> tuple[Bracket, ...]:
        if self.probability == 1:
            return self.mechanism.brackets_within(accuracy)
        if self.cases != (self,):
            return tuple(bracket for case in self.cases for bracket in case.brackets_within(accuracy))
        remove = remove_order(self.mechanism.brackets_within(accuracy))
        lowers = tuple(sampled_lower(low, self.probability) for low in remove.lowers)
        sampled = Bracket(sampled_upper(remove.upper, self.probability), lowers, "remove")
        return sampled, sampled.reverse

    def delta_at(self, epsilon: ArrayLike) -> Interval:
        """Compute delta of (epsilon, delta)-DP for one or many real epsilons; that of the mechanism if every record is drawn."""
        return self.mechanism.delta_at(epsilon) if self.probability == 1 else Mechanism.delta_at(self, epsilon)

    def _epsilon_within(self, delta: Floats, accuracy: float) -> Interval:
        if self.probability == 1:
            return self.mechanism._epsilon_within(delta, accuracy)  # noqa: SLF001 - the mechanism itself
        return Mechanism._epsilon_within(self, delta, accuracy)  # noqa: SLF001

    def renyi_at(self, alpha: ArrayLike) -> Floats:
        r"""Compute an upper bound on the Renyi divergences, from the divergences D of the mechanism.

        With ``h = dP/dP' - 1``, the moments of the orders "remove" and "add" are ``E (1 + r h)^alpha`` and ``E (1 + r h)^(1-alpha)`` under
        P'. Both powers are convex, so both moments are at most ``1 - r + r e^((alpha-1) D_alpha)``. At an integer order the first moment is
        a binomial sum of ``e^((k-1) D_k)``, and its logarithm is convex in the order. By Taylor's theorem, the second moment is at most
        ``1 + alpha (alpha-1)/2 r^2 (1-r)^(-alpha-1) (e^(D_2) - 1)``.
        """
        if self.probability == 1:
            return self.mechanism.renyi_at(alpha)
        orders, rate = check_orders(alpha), float(self.probability)
        flat = orders.reshape(-1)
        moments = (flat - 1.0) * self.mechanism.renyi_at(flat)
        convex = _log_mixture(moments, rate)
        powers = (_EXPANDED_ORDERS - 1.0) * self.mechanism.renyi_at(_EXPANDED_ORDERS)
        spread = np.exp(min(float(powers[0]), _LARGEST_EXPONENT)) - 1.0 if np.isfinite(powers[0]) else np.inf
        with np.errstate(over="ignore"):
            added = np.log1p(0.5 * flat * (flat - 1.0) * rate * rate * (1.0 - rate) ** (-flat - 1.0) * spread)
        removed = np.interp(flat, np.append(1.0, _EXPANDED_ORDERS), np.append(0.0, _binomial_moments(powers, rate)), right=np.inf)
        both = np.maximum(added, removed)
        worst = np.fmin(both, convex)  # no number: a moment is infinite
        return np.asarray(worst / (flat - 1.0) * _UP).reshape(orders.shape)


def _log_mixture(log_moments: Floats, rate: float) -> Floats:
    """Return ``log(1 - r + r e^m)``."""
    with np.errstate(over="ignore"):
        small = np.log1p(rate * np.expm1(np.minimum(log_moments, _LARGEST_EXPONENT)))
    return np.asarray(np.where(log_moments < _LARGEST_EXPONENT, small, np.logaddexp(np.log1p(-rate), np.log(rate) + log_moments)))


def _binomial_moments(powers: Floats, rate: float) -> Floats:
    """Return ``log sum_k C(n, k) (1-r)^(n-k) r^k e^((k-1) D_k)`` for each n of the expanded orders, given ``(k-1) D_k`` for k >= 2."""
    k = np.arange(0.0, _EXPANDED_ORDERS[-1] + 1.0)
    log_power = np.concatenate([[0.0, 0.0], powers])
    found = []
    for n in _EXPANDED_ORDERS.astype(int).tolist():
        log_choices = gammaln(n + 1.0) - gammaln(k[: n + 1] + 1.0) - gammaln(n - k[: n + 1] + 1.0)
        log_terms = log_choices + (n - k[: n + 1]) * np.log1p(-rate) + k[: n + 1] * np.log(rate)
        found.append(np.logaddexp.reduce(log_terms + log_power[: n + 1]))
    return np.asarray(found)
