"""dp-accounting's privacy loss distributions, read as a curve and written from pairs.

What is read are masses of losses on a lattice, for removing and for adding a record; what is written is the same by the public
constructors. Only :func:`_lattices` looks inside one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

from privselect._util.validation import POSITIVE, check_number, format_value, integer_range
from privselect.errors import NotCoveredError, ParameterError
from privselect.mechanisms import Curve, Mechanism
from privselect.mechanisms.neighbours import ANY
from privselect.pairs.discretize import LARGEST_LOSS
from privselect.pairs.from_pld import pair_from_pld
from privselect.pairs.subnormal_masses import split_subnormal

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from privselect.pairs import DominatingPair

    Floats = NDArray[np.float64]

_MOST_KNOTS = 2500  # of a curve: chords then miss delta by about 1e-4 of itself, and the text form can still be read
_FAINT = 1e-30  # a delta below which a curve needs no digits
_BEYOND_ROUNDING = 1e-12  # of a loss up to 700, twice over
_TAIL = 1e-22  # mass cut off at either end of a lattice, as dp-accounting does: above it counts as infinite loss
_MOST_CELLS = 10**7


def mechanism_from_pld(pld: Any, *, compositions: int = 1, neighbours: str = ANY) -> Mechanism:
    """What a pessimistic ``PrivacyLossDistribution`` of dp-accounting says, as a mechanism: a curve from above.

    ``compositions`` is how many steps were convolved to make it, as by ``self_compose``: dp-accounting does that by Fourier transforms,
    whose rounding is then allowed for. At 1 the masses are taken as they stand. Losses beyond 700 count as infinite.
    """
    if not isinstance(pld, PrivacyLossDistribution):
        raise ParameterError(f"`pld` must be a PrivacyLossDistribution of dp-accounting, got {format_value(pld)}")
    times = int(check_number("compositions", compositions, integer_range(1, 10**9)))
    remove, add = _lattices(pld)
    if not (remove.pessimistic and add.pessimistic):
        raise NotCoveredError("an optimistic loss distribution is below the truth: make it with pessimistic_estimate=True")
    if times > 1:
        pair = pair_from_pld(remove.pmf, add.pmf, times)
        removing, adding = pair, pair.reverse
    else:
        removing = _positive_losses(remove)
        adding = removing if add is remove else _positive_losses(add)
    knots = _knots(removing, adding)
    deltas = [np.minimum(pair.hockey_stick(knots, side=1), 1.0) for pair in (removing, adding)]
    if add is remove:
        deltas = [np.maximum(*deltas)] * 2
    return Curve(tuple(zip(knots.tolist(), *(values.tolist() for values in deltas), strict=True)), neighbours=neighbours)


def pld_from_mechanism(mechanism: Mechanism, value_discretization_interval: float = 1e-4) -> Any:
    """A pessimistic ``PrivacyLossDistribution`` of dp-accounting that dominates the mechanism, to compose with others there.

    Each outcome of the upper pair goes to the two lattice points around its loss, so that both laws keep their mass: connecting the
    dots. A tail of 1e-22 counts as infinite loss.
    """
    if not isinstance(mechanism, Mechanism):
        raise ParameterError(f"`mechanism` must be a mechanism such as gaussian(sigma=4), got {format_value(mechanism)}")
    spacing = check_number("value_discretization_interval", value_discretization_interval, POSITIVE)
    by_order = {direction: bracket.upper for direction, bracket in mechanism.brackets_by_order.items()}
    first = by_order.get("both") or by_order["remove"]
    rounded, infinite = _rounded(first, spacing)
    if "both" in by_order:
        return PrivacyLossDistribution.create_from_rounded_probability(rounded, infinite, spacing)
    rounded_add, infinite_add = _rounded(by_order["add"], spacing)
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
    """For removing and for adding; one and the same where they are equal. dp-accounting shows these nowhere in public."""
    # ruff: noqa: SLF001
    first = _lattice(pld._pmf_remove.to_dense_pmf())
    return first, (first if pld._symmetric else _lattice(pld._pmf_add.to_dense_pmf()))


def _lattice(pmf: Any) -> _Lattice:
    probs = np.asarray(pmf._probs, dtype=np.float64)
    infinite = float(pmf._infinity_mass)
    if not (np.all(np.isfinite(probs)) and 0.0 <= infinite <= 1.0 + _BEYOND_ROUNDING):
        raise ParameterError(f"`pld` must hold masses in [0, 1], got an infinite loss of {infinite} and a sum of {probs.sum()}")
    return _Lattice(pmf, int(pmf._lower_loss), float(pmf._discretization), probs, min(infinite, 1.0), bool(pmf._pessimistic_estimate))


def _positive_losses(lattice: _Lattice) -> DominatingPair:
    """The outcomes that count for epsilon >= 0, with the infinite loss: all that is asked of one order of the neighbours."""
    probs = lattice.probs
    if np.any(probs < 0.0):
        least = float(probs.min())
        raise ParameterError(f"`pld` has a mass of {least:.3g}, a rounding of its composition: say of how many steps with `compositions`")
    losses = (lattice.lowest + np.arange(len(probs))) * lattice.spacing
    missing = max(1.0 - float(probs.sum()) - lattice.infinite - 1e-15 * len(probs), 0.0)
    counted = (losses > 0.0) & (probs > 0.0)
    within = counted & (losses <= LARGEST_LOSS)
    beyond = float(probs[counted & ~within].sum())
    # A loss on the lattice is right to a unit in its last place, and so is e^-loss to 700 of them: move it up by more than that.
    ratios = np.exp(-losses[within]) * (1.0 - _BEYOND_ROUNDING)
    p = probs[within]
    return split_subnormal(p, p * ratios, (min(lattice.infinite + missing + beyond, 1.0), 0.0))


def _knots(removing: DominatingPair, adding: DominatingPair) -> Floats:
    """Epsilons for a curve: every kink of the hockey sticks, or, where these are many, spread evenly over the fall of both."""
    kinks = np.concatenate([removing.losses, adding.losses])
    kinks = np.unique(np.minimum(kinks[kinks > 0.0] + _BEYOND_ROUNDING, LARGEST_LOSS))
    knots = np.concatenate([[0.0], kinks])
    if len(knots) <= _MOST_KNOTS:
        return knots
    falls = [-np.log(np.maximum(pair.hockey_stick(knots), _FAINT)) for pair in (removing, adding)]
    way = np.maximum.accumulate(falls[0] + falls[1] + knots)
    chosen = np.searchsorted(way, np.linspace(way[0], way[-1], _MOST_KNOTS))
    return np.asarray(knots[np.unique(np.concatenate([[0], np.minimum(chosen, len(knots) - 1), [len(knots) - 1]]))])


def _rounded(pair: DominatingPair, spacing: float) -> tuple[dict[int, float], float]:
    """Masses on the lattice and the infinite loss, as dp-accounting takes them."""
    above, below = np.cumsum(pair.p[::-1])[::-1], np.cumsum(pair.p)
    kept = (above > _TAIL) & (below > _TAIL)
    if not kept.any():
        return {0: 0.0}, 1.0
    cut = float(pair.p[above <= _TAIL].sum())
    p, losses = pair.p[kept], pair.losses[kept] + _BEYOND_ROUNDING
    span = max(losses[-1], 0.0) - min(losses[0], 0.0)
    if span > _MOST_CELLS * spacing:
        least = span / _MOST_CELLS
        raise ParameterError(f"`value_discretization_interval` must be at least {least:.3g} for losses this far apart, got {spacing:g}")
    cells = np.floor(losses / spacing).astype(np.int64)
    # Between the lattice points a_0 and a_1 the second law's mass stays the same if this share of the first goes to a_1.
    share = np.clip(np.expm1(cells * spacing - losses) / np.expm1(-spacing), 0.0, 1.0)
    masses = np.zeros(int(cells[-1] - cells[0]) + 2)
    np.add.at(masses, cells - cells[0], p * (1.0 - share))
    np.add.at(masses, cells - cells[0] + 1, p * share)
    # The lowest losses that were cut off count as the lowest that is left.
    masses[0] += float(pair.p[below <= _TAIL].sum())
    filled = np.flatnonzero(masses)
    rounding = 1.0 + pair.relative_rounding
    infinite = min((pair.p_only + cut) * rounding, 1.0)
    return {int(cells[0] + i): float(masses[i] * rounding) for i in filled}, infinite
