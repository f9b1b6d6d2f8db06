"""**Mixture**: each trial draws its candidate from a fixed distribution, and candidates may differ in what they leak."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, cast

from privselect._util.validation import check_fraction, check_sequence, format_sum_near_one, format_value
from privselect.errors import ParameterError
from privselect.mechanisms.base import Mechanism
from privselect.mechanisms.neighbours import common_relation
from privselect.pairs import Bracket
from privselect.pairs.subnormal_masses import union_lower, union_upper
from privselect.text_forms import WeightedSpec, register

_LARGEST_DENOMINATOR = 10**300  # of a weight: the text form writes it in full


@register
@dataclass(frozen=True, slots=True)
class Mixture(Mechanism):
    """Draw candidate j with probability ``weight_j``, run it, and release j with its output: ``delta = sum weight_j delta_j``.

    Holds when the distribution of the candidate is fixed before the data is touched and is the sampler's true distribution: weights are
    exact rationals with denominators up to 1e300. Not valid if the choice of candidate may depend on the data. Label: **Mixture**.

    Parts may measure sensitivity in different norms, such as L2 for gaussian and L1 for laplace. Each is scaled to sensitivity 1 in its
    norm, and its pair accounts for that. Only the neighbouring relation must be the same for all parts.
    """

    text_name = "mixture"

    parts: tuple[WeightedSpec, ...] = field(metadata={"variadic": True})

    def __post_init__(self) -> None:
        parts = tuple(_part(entry) for entry in check_sequence("parts", self.parts, "pairs (weight, mechanism)"))
        if not parts:
            raise ParameterError("`mixture` needs at least one part such as 1*gaussian(sigma=4), got none")
        total = sum((part.weight for part in parts), Fraction(0))
        if total != 1:
            raise ParameterError(f"`mixture` needs weights that sum to 1, got {format_sum_near_one(total)}")
        object.__setattr__(self, "parts", parts)
        common_relation((mechanism.neighbours, mechanism) for _, mechanism in self.weighted_parts)  # raises if the parts disagree

    @property
    def neighbours(self) -> str:
        """The common relation of all parts."""
        return common_relation((mechanism.neighbours, mechanism) for _, mechanism in self.weighted_parts)

    @property
    def weighted_parts(self) -> list[tuple[Fraction, Mechanism]]:
        """The parts as (weight, mechanism)."""
        return [(part.weight, cast("Mechanism", part.spec)) for part in self.parts]

    def _make_brackets(self, _accuracy: float, /) -> tuple[Bracket, ...]:
        by_part = [(float(weight), part.brackets_by_order) for weight, part in self.weighted_parts]
        symmetric = all("both" in brackets for _, brackets in by_part)
        return tuple(
            _mix([(weight, brackets.get("both") or brackets[direction]) for weight, brackets in by_part], direction)
            for direction in (("both",) if symmetric else ("remove", "add"))
        )


def _mix(parts: list[tuple[float, Bracket]], direction: str) -> Bracket:
    upper = union_upper([(weight, bracket.upper) for weight, bracket in parts])
    proved = all(bracket.lowers for _, bracket in parts)
    lowers = (union_lower([(weight, bracket.lowers[0]) for weight, bracket in parts]),) if proved else ()
    return Bracket(upper, lowers, direction)


def _part(entry: Any) -> WeightedSpec:
    if isinstance(entry, WeightedSpec):
        weight, mechanism = entry.weight, entry.spec
    else:
        try:
            weight, mechanism = entry
        except (TypeError, ValueError):
            raise ParameterError(f"`mixture` needs parts of the form weight * mechanism, got {format_value(entry)}") from None
    exact = check_fraction("weight", weight)
    if not 0 < exact <= 1:
        raise ParameterError(f"`mixture` needs weights in (0, 1], got {format_value(weight)}")
    if exact.denominator > _LARGEST_DENOMINATOR:
        raise ParameterError(f"`mixture` needs weights with a denominator of at most 1e300, got {format_value(weight)}")
    if not isinstance(mechanism, Mechanism):
        raise ParameterError(f"`mixture` needs parts that are mechanisms, got {format_value(mechanism)}")
    return WeightedSpec(exact, mechanism)
