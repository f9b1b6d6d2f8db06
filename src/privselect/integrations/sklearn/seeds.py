"""The randomness of an estimator: each trial's own, and never part of what is released, as it would tell the noise."""

from __future__ import annotations

import copyreg
import io
import pickle
import random
import sys
from functools import reduce
from numbers import Integral
from types import FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.ensemble import BaseEnsemble
from sklearn.pipeline import Pipeline

from privselect._util.validation import format_value
from privselect.errors import ParameterError
from privselect.tuning.randomness import SECURE_SEED_BITS

if TYPE_CHECKING:
    from privselect.tuning.randomness import Randomness


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
    return _WORD if short or any(isinstance(part, BaseEnsemble) for part in parts) else SECURE_SEED_BITS


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


_GENERATORS = (np.random.RandomState, np.random.Generator, np.random.BitGenerator, random.Random)
_SEEDS = {"random_state", "insecure_seed", "_seeds"}  # the last is where ensembles keep those of the estimators they are made of
_MAIN = "__main__"


def to_bytes(estimator: Any) -> bytes:
    """The estimator; every generator in it is replaced by None, and so is every seed, also of the estimators it is made of."""
    buffer = io.BytesIO()
    try:
        _Pickler(buffer, protocol=5).dump(estimator)
    except (pickle.PicklingError, AttributeError, TypeError):
        raise ParameterError(
            "an estimator must be made of what can be pickled, and of classes and functions with a name in a module, not of a lambda or "
            f"one that is defined in a function, got a {type(estimator).__name__} that is not"
        ) from None
    return buffer.getvalue()


def from_bytes(content: bytes) -> Any:
    """The estimator back; only of bytes that this process or its workers have made."""
    return pickle.loads(content)  # noqa: S301


class _Pickler(pickle.Pickler):
    def reducer_override(self, obj: Any) -> Any:
        if is_generator(obj):
            return nothing, ()
        if isinstance(obj, type | FunctionType) and obj.__module__ == _MAIN and "<" not in obj.__qualname__:
            return of_main, (obj.__qualname__,)  # which a worker's own main module does not have
        if isinstance(obj, BaseEstimator) and (seeds := _SEEDS & vars(obj).keys()):
            return copyreg.__newobj__, (type(obj),), {**obj.__getstate__(), **dict.fromkeys(seeds)}  # type: ignore[attr-defined]
        return NotImplemented


def nothing() -> None:
    """What a pickle holds instead of a generator."""


def of_main(name: str) -> Any:
    """A class or function of the program that is running."""
    return reduce(getattr, name.split("."), sys.modules[_MAIN])


def is_generator(value: Any) -> bool:
    """Whether it is a generator of random numbers, of whichever library."""
    of_torch = type(value).__name__ == "Generator" and type(value).__module__.partition(".")[0] == "torch"
    return isinstance(value, _GENERATORS) or of_torch
