"""Conversion between mechanisms and the privacy loss distributions (PLDs) of dp-accounting, and its accountant with selections.

A PLD holds masses of losses on a lattice, for removing and for adding a record. It is written by public constructors. Reading needs
private fields, which only :func:`_lattices` accesses.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from dp_accounting import NeighboringRelation, dp_event
from dp_accounting.pld import PLDAccountant
from dp_accounting.pld.pld_privacy_accountant import CompositionErrorDetails
from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

from privselect._util.validation import POSITIVE, check_number, format_value, integer_range
from privselect.errors import NotCoveredError, ParameterError, PrivselectError
from privselect.integrations.dp_accounting.events import mechanism_from_event
from privselect.mechanisms import Curve, Mechanism
from privselect.mechanisms.neighbours import ADD_REMOVE, ANY, REPLACE_ONE
from privselect.pairs.discretize import LARGEST_LOSS
from privselect.pairs.from_pld import pair_from_pld
from privselect.pairs.subnormal_masses import split_subnormal

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from privselect.pairs import DominatingPair

    Floats = NDArray[np.float64]

_MAX_KNOTS = 2500  # of a curve: its chords are then within about 1e-4 of delta, and its text form stays readable
_FAINT = 1e-30  # a curve needs no accuracy below this delta
_LOSS_ROUNDING = 1e-12  # twice the rounding error of a loss up to 700
_TAIL = 1e-22  # mass cut off at either end of a lattice, as in dp-accounting; the upper tail counts as infinite loss
_MAX_CELLS = 10**7

_RELATIONS = {NeighboringRelation.ADD_OR_REMOVE_ONE: ADD_REMOVE, NeighboringRelation.REPLACE_ONE: REPLACE_ONE}
# dp-accounting 0.6.0 composes randomised response too, but counts one repetition only.
_OWN_EVENTS = (dp_event.RepeatAndSelectDpEvent, dp_event.RandomizedResponseDpEvent)


class SelectionPLDAccountant(PLDAccountant):  # type: ignore[misc]
    """A ``PLDAccountant`` that also accepts ``RepeatAndSelectDpEvent``, by the exact loss distribution of the selection.

    dp-accounting's own PLDAccountant does not support that event; its RdpAccountant has a bound. dp-accounting composes all other
    events, except ``RandomizedResponseDpEvent``, for which it would count one repetition only.
    """

    _pld: Any

    def __init__(
        self,
        neighboring_relation: NeighboringRelation = NeighboringRelation.ADD_OR_REMOVE_ONE,
        value_discretization_interval: float = 1e-4,
    ) -> None:
        if neighboring_relation not in _RELATIONS:
            names = ", ".join(relation.name for relation in _RELATIONS)
            raise ParameterError(f"`neighboring_relation` must be one of {names}, got {format_value(neighboring_relation)}")
        spacing = check_number("value_discretization_interval", value_discretization_interval, POSITIVE)
        super().__init__(neighboring_relation, spacing)

    def _maybe_compose(self, event: Any, count: int, do_compose: bool) -> CompositionErrorDetails | None:  # noqa: FBT001 - as in the base
        if not isinstance(event, _OWN_EVENTS):
            # The base class calls this method again for each part of a composition.
            details: CompositionErrorDetails | None = super()._maybe_compose(event, count, do_compose)
            return details
        try:
            mechanism = mechanism_from_event(event, _RELATIONS[self.neighboring_relation])
        except PrivselectError as error:
            return CompositionErrorDetails(invalid_event=event, error_message=str(error))
        if do_compose:
            self._pld = self._pld.compose(pld_from_mechanism(mechanism, self._value_discretization_interval).self_compose(count))
        return None


def mechanism_from_pld(pld: Any, *, compositions: int = 1, neighbours: str = ANY) -> Mechanism:
    """Return a mechanism, stated as a curve, whose privacy profile is an upper bound for a pessimistic ``PrivacyLossDistribution``.

    ``compositions`` is the number of steps that were convolved to make the distribution, for example by ``self_compose``.
    dp-accounting convolves with Fourier transforms, and the result allows for their rounding. With 1 the masses are used as they are.
    Losses above 700 count as infinite.
    """
    if not isinstance(pld, PrivacyLossDistribution):
        raise ParameterError(f"`pld` must be a PrivacyLossDistribution of dp-accounting, got {format_value(pld)}")
    times = int(check_number("compositions", compositions, integer_range(1, 10**9)))
    remove, add = _lattices(pld)
    if not (remove.pessimistic and add.pessimistic):
        raise NotCoveredError("an optimistic loss distribution is not an upper bound: make it with pessimistic_estimate=True")
    if times > 1:
        pair = pair_from_pld(remove.pmf, add.pmf, times)
        removing, adding = pair, pair.reverse
    else:
        removing = _positive_losses(remove)
        adding = removing if add is remove else _positive_losses(add)
    knots = _curve_knots(removing, adding)
    deltas = [np.minimum(pair.hockey_stick(knots, side=1), 1.0) for pair in (removing, adding)]
    if add is remove:
        deltas = [np.maximum(*deltas)] * 2
    return Curve(tuple(zip(knots.tolist(), *(values.tolist() for values in deltas), strict=True)), neighbours=neighbours)


def pld_from_mechanism(mechanism: Mechanism, value_discretization_interval: float = 1e-4) -> Any:
    """Return a pessimistic ``PrivacyLossDistribution`` of dp-accounting that dominates the mechanism, for composition with others.

    Each outcome of the upper pair is split over the two lattice points around its loss, which keeps the mass of both distributions
    ("connect the dots"). A tail of mass 1e-22 counts as infinite loss.
    """
    if not isinstance(mechanism, Mechanism):
        raise ParameterError(f"`mechanism` must be a mechanism such as gaussian(sigma=4), got {format_value(mechanism)}")
    spacing = check_number("value_discretization_interval", value_discretization_interval, POSITIVE)
    by_order = {direction: bracket.upper for direction, bracket in mechanism.brackets_by_order.items()}
    first = by_order.get("both") or by_order["remove"]
    rounded, infinite = _round_to_lattice(first, spacing)
    if "both" in by_order:
        return PrivacyLossDistribution.create_from_rounded_probability(rounded, infinite, spacing)
    rounded_add, infinite_add = _round_to_lattice(by_order["add"], spacing)
    return PrivacyLossDistribution.create_from_rounded_probability(
        rounded,
        infinite,
        spacing,
        rounded_probability_mass_function_add=rounded_add,
        infinity_mass_add=infinite_add,
        symmetric=False,
    )


@dataclass(frozen=True, slots=True)
class _Lattice:
    """Masses of losses that are multiples of a spacing."""

    pmf: Any
    lowest: int
    spacing: float
    probs: Floats
    infinite: float
    pessimistic: bool


def _lattices(pld: Any) -> tuple[_Lattice, _Lattice]:
    """Return the lattices for removing and for adding, the same object if they are equal; dp-accounting has no public access."""
    # ruff: noqa: SLF001
    first = _lattice(pld._pmf_remove.to_dense_pmf())
    return first, (first if pld._symmetric else _lattice(pld._pmf_add.to_dense_pmf()))


def _lattice(pmf: Any) -> _Lattice:
    probs = np.asarray(pmf._probs, dtype=np.float64)
    infinite = float(pmf._infinity_mass)
    if not (np.all(np.isfinite(probs)) and 0.0 <= infinite <= 1.0 + _LOSS_ROUNDING):
        raise ParameterError(f"`pld` must hold masses in [0, 1], got an infinite loss of {infinite} and a sum of {probs.sum()}")
    return _Lattice(pmf, int(pmf._lower_loss), float(pmf._discretization), probs, min(infinite, 1.0), bool(pmf._pessimistic_estimate))


def _positive_losses(lattice: _Lattice) -> DominatingPair:
    """Return the pair of the outcomes that count for epsilon >= 0 in one order of the neighbours, with the infinite loss."""
    probs = lattice.probs
    if np.any(probs < 0.0):
        smallest = float(probs.min())
        raise ParameterError(
            f"`pld` has a mass of {smallest:.3g}, a rounding error of its composition: state its number of steps as `compositions`"
        )
    losses = (lattice.lowest + np.arange(len(probs))) * lattice.spacing
    missing = max(1.0 - float(probs.sum()) - lattice.infinite - 1e-15 * len(probs), 0.0)
    counted = (losses > 0.0) & (probs > 0.0)
    within = counted & (losses <= LARGEST_LOSS)
    beyond = float(probs[counted & ~within].sum())
    # A loss has an error of one unit in its last place, so e^-loss has one of up to 700 units: increase the loss by more.
    ratios = np.exp(-losses[within]) * (1.0 - _LOSS_ROUNDING)
    p = probs[within]
    return split_subnormal(p, p * ratios, (min(lattice.infinite + missing + beyond, 1.0), 0.0))


def _curve_knots(removing: DominatingPair, adding: DominatingPair) -> Floats:
    """Return the epsilons of a curve: every kink of the hockey sticks, or, if there are many, a selection along the fall of both."""
    kinks = np.concatenate([removing.losses, adding.losses])
    kinks = np.unique(np.minimum(kinks[kinks > 0.0] + _LOSS_ROUNDING, LARGEST_LOSS))
    knots = np.concatenate([[0.0], kinks])
    if len(knots) <= _MAX_KNOTS:
        return knots
    falls = [-np.log(np.maximum(pair.hockey_stick(knots), _FAINT)) for pair in (removing, adding)]
    progress = np.maximum.accumulate(falls[0] + falls[1] + knots)
    chosen = np.searchsorted(progress, np.linspace(progress[0], progress[-1], _MAX_KNOTS))
    return np.asarray(knots[np.unique(np.concatenate([[0], np.minimum(chosen, len(knots) - 1), [len(knots) - 1]]))])


def _round_to_lattice(pair: DominatingPair, spacing: float) -> tuple[dict[int, float], float]:
    """Return the masses on the lattice and the mass of infinite loss, in dp-accounting's format."""
    above, below = np.cumsum(pair.p[::-1])[::-1], np.cumsum(pair.p)
    kept = (above > _TAIL) & (below > _TAIL)
    if not kept.any():
        return {0: 0.0}, 1.0
    cut = float(pair.p[above <= _TAIL].sum())
    p, losses = pair.p[kept], pair.losses[kept] + _LOSS_ROUNDING
    span = max(losses[-1], 0.0) - min(losses[0], 0.0)
    if span > _MAX_CELLS * spacing:
        smallest = span / _MAX_CELLS
        raise ParameterError(
            f"`value_discretization_interval` must be at least {smallest:.3g} for losses that span {span:.3g}, got {spacing:g}"
        )
    cells = np.floor(losses / spacing).astype(np.int64)
    # Between lattice points a_0 and a_1, the second distribution keeps its mass if this share of the first goes to a_1.
    share = np.clip(np.expm1(cells * spacing - losses) / np.expm1(-spacing), 0.0, 1.0)
    masses = np.zeros(int(cells[-1] - cells[0]) + 2)
    np.add.at(masses, cells - cells[0], p * (1.0 - share))
    np.add.at(masses, cells - cells[0] + 1, p * share)
    # The lower tail counts as the lowest loss that is kept.
    masses[0] += float(pair.p[below <= _TAIL].sum())
    filled = np.flatnonzero(masses)
    rounding = 1.0 + pair.relative_rounding
    infinite = min((pair.p_only + cut) * rounding, 1.0)
    return {int(cells[0] + i): float(masses[i] * rounding) for i in filled}, infinite
