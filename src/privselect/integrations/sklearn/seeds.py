"""The randomness of an estimator: each trial's own, and never part of what is released, as it would tell the noise."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from privselect.errors import ParameterError
from privselect.parameters import shown
from privselect.tuning.randomness import ENOUGH_BITS

if TYPE_CHECKING:
    from privselect.tuning.randomness import Randomness

_WORD = 32  # bits of a seed that scikit-learn takes as a number
_NAME = "random_state"


def seeds_of(estimator: Any) -> dict[str, Any]:
    """Every ``random_state`` among the parameters, however deep, as the user gave it."""
    found = {name: value for name, value in sorted(estimator.get_params(deep=True).items()) if name.rpartition("__")[2] == _NAME}
    for name, value in found.items():
        if not (value is None or _is_number(value) or isinstance(value, np.random.RandomState)):
            raise ParameterError(f"`{name}` must be None, a RandomState or a whole number, got {shown(value)}")
    return found


def bits_of(estimator: Any) -> int:
    """The least bits that a seed of the estimator has: a number has 32, a generator all that it can hold."""
    return _WORD if any(_is_number(value) for value in seeds_of(estimator).values()) else ENOUGH_BITS


def seed(estimator: Any, randomness: Randomness) -> None:
    """Fresh randomness for each: a fixed number would give every trial the same noise."""
    fresh = {
        name: randomness.integer(_WORD) if _is_number(value) else randomness.random_state() for name, value in seeds_of(estimator).items()
    }
    estimator.set_params(**fresh)


def _is_number(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)
