"""The randomness of an estimator: each trial's own, and never part of what is released, as it would tell the noise."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.ensemble import BaseEnsemble
from sklearn.pipeline import Pipeline

from privselect._util.validation import format_value
from privselect.errors import ParameterError
from privselect.integrations.sklearn.pickling import is_generator
from privselect.tuning.randomness.trial_randomness import ENOUGH_BITS

if TYPE_CHECKING:
    from privselect.tuning.randomness.trial_randomness import Randomness

_WORD = 32  # bits of a seed that scikit-learn takes as a number
_NAME = "random_state"
_WIDE = "insecure_seed"  # of estimators that take a RandomState for what it is, and a number for a test
NAMES = frozenset({_NAME, _WIDE})
_OTHER_NAMES = {"seed", "random_seed"}


def seeds_of(estimator: Any) -> dict[str, Any]:
    """Every ``random_state`` and ``insecure_seed`` among the parameters, however deep, as the user gave it.

    Refused where randomness has another name.
    """
    parameters = sorted(estimator.get_params(deep=True).items())
    for name, value in parameters:
        last = name.rpartition("__")[2]
        if last in NAMES and not (value is None or _is_number(value) or isinstance(value, np.random.RandomState)):
            raise ParameterError(f"`{name}` must be None, a RandomState or a whole number, got {format_value(value)}")
        if last not in NAMES and (is_generator(value) or (last in _OTHER_NAMES and value is not None)):
            raise ParameterError(
                f"`{name}` must not hold randomness, as every trial would have the same noise; an estimator takes it by `{_NAME}`, got some"
            )
    return {name: value for name, value in parameters if name.rpartition("__")[2] in NAMES}


def bits_of(estimator: Any) -> int:
    """The least bits that a seed of the estimator has: a number has 32, and so has what one estimator hands to another."""
    parts = (estimator, *estimator.get_params(deep=True).values())
    seeds = seeds_of(estimator)
    own = own_names(estimator)
    short = any(_is_number(seeds[name]) and not _is_wide(name) for name in own) or any(name not in own for name in seeds)
    return _WORD if short or any(isinstance(part, BaseEnsemble) for part in parts) else ENOUGH_BITS


def seed(estimator: Any, randomness: Randomness) -> None:
    """Fresh randomness for each: a fixed number would give every trial the same noise.

    An estimator that another one clones before fitting keeps none: every clone would begin with the same state, and their noise would
    be the same. Without one it draws from the generators of the process, which are the trial's own, or from the operating system.
    """
    own = own_names(estimator)
    fresh = {name: _fresh(name, value, randomness) if name in own else None for name, value in seeds_of(estimator).items()}
    estimator.set_params(**fresh)


def own_names(estimator: Any, prefix: str = "") -> frozenset[str]:
    """The names of those seeds that one fit uses once: the estimator's own, and of a pipeline those of its steps."""
    own = {prefix + name for name in NAMES & estimator.get_params(deep=False).keys()}
    for name, step in estimator.steps if isinstance(estimator, Pipeline) else ():
        own |= own_names(step, f"{prefix}{name}__") if hasattr(step, "get_params") else set()
    return frozenset(own)


def _fresh(name: str, value: Any, randomness: Randomness) -> Any:
    return randomness.integer(_WORD) if _is_number(value) and not _is_wide(name) else randomness.random_state()


def _is_wide(name: str) -> bool:
    """Whether a number is replaced by a generator with its whole state drawn, and not by another number."""
    return name.rpartition("__")[2] == _WIDE


def _is_number(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)
