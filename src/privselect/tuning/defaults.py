"""Defaults of a search space: candidates known to be good, from which a draw starts with a stated probability."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from privselect._util.random_bits import bernoulli, uniform_below
from privselect._util.validation import check_fraction, format_value
from privselect.errors import ParameterError, TextFormError
from privselect.text_forms import parse_number
from privselect.tuning.distributions import check_option

if TYPE_CHECKING:
    from privselect._util.random_bits import Entropy

DEFAULT_WEIGHT = Fraction(1, 2)
_MAX_DEFAULTS = 1000


@dataclass(frozen=True)
class Defaults:
    """With probability ``weight`` a candidate starts from one of the defaults, all equally likely; a default may fix only some names."""

    candidates: tuple[dict[str, Any], ...]
    weight: Fraction

    def choose(self, entropy: Entropy) -> dict[str, Any]:
        """Draw what is fixed in the next candidate: one of the defaults, or nothing."""
        if not bernoulli(self.weight, entropy):
            return {}
        return self.candidates[uniform_below(len(self.candidates), entropy)]

    def listed(self) -> list[tuple[Fraction, dict[str, Any]]]:
        """Return everything that may be fixed, with its exact probability; the last entry fixes nothing."""
        return [*((self.weight / len(self.candidates), candidate) for candidate in self.candidates), (1 - self.weight, {})]

    def as_dict(self, space: Any) -> dict[str, Any]:
        """Return a space with these defaults for JSON. A space without defaults has no list among its values."""
        return {"space": space, "defaults": [dict(candidate) for candidate in self.candidates], "weight": str(self.weight)}

    @property
    def note(self) -> str:
        """A sentence for the certificate."""
        number = len(self.candidates)
        start = "the default" if number == 1 else f"one of {number} defaults, all equally likely,"
        return (
            f"each candidate starts from {start} with probability {self.weight}, and is drawn from the space without defaults otherwise; "
            "names that a default leaves out are drawn"
        )


def read_defaults(given: Any, weight: Any) -> Defaults | None:
    """Return the defaults of a space and their weight; None without defaults."""
    if given is None or (isinstance(given, list | tuple) and not given):
        if weight is not None:
            raise ParameterError(f"`weight` is the probability of the defaults and needs `defaults`, got {format_value(weight)} and none")
        return None
    if not isinstance(given, Sequence) or isinstance(given, str) or not all(isinstance(one, Mapping) for one in given):
        raise ParameterError(f"`defaults` must be a list of dicts of hyperparameters and values, got {format_value(given)}")
    if len(given) > _MAX_DEFAULTS:
        raise ParameterError(f"`defaults` must have at most {_MAX_DEFAULTS} entries, got {len(given)}")
    return Defaults(tuple(_read_default(number, one) for number, one in enumerate(given, 1)), _read_weight(weight))


def _read_default(number: int, given: Mapping[Any, Any]) -> dict[str, Any]:
    if not given:
        raise ParameterError(f"a default must fix at least one hyperparameter, got none in default {number}")
    for name in given:
        if not isinstance(name, str) or not name:
            raise ParameterError(f"a default must name its hyperparameters by text, got {format_value(name)} in default {number}")
    try:
        return {name: check_option(value) for name, value in given.items()}
    except ParameterError as error:
        raise ParameterError(f"default {number} of the space: {error}") from None


def _read_weight(given: Any) -> Fraction:
    weight = None
    with contextlib.suppress(ParameterError, TextFormError):
        number: Any = parse_number(given) if isinstance(given, str) else DEFAULT_WEIGHT if given is None else given
        weight = check_fraction("weight", number)
    if weight is None or not 0 <= weight <= 1:
        raise ParameterError(f"`weight` of the defaults must be a probability in [0, 1], such as 1/2, got {format_value(given)}")
    return weight
