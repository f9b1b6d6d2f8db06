"""Give each trial its own randomness, and keep seeds and generators out of released estimators.

A released estimator is pickled with its classes and functions by name only. Pickling them by value, as cloudpickle does for notebooks,
would include their globals, and with them whatever losing trials have stored there.
"""

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
from privselect.tuning.plan_ids import plan_id
from privselect.tuning.randomness import SECURE_SEED_BITS

if TYPE_CHECKING:
    from privselect.tuning.randomness import Randomness

_INTEGER_SEED_BITS = 32  # scikit-learn's integer seeds
_RANDOM_STATE = "random_state"
_INSECURE_SEED = "insecure_seed"  # an integer is for tests only: trials always get a generator
SEED_PARAMETERS = frozenset({_RANDOM_STATE, _INSECURE_SEED})
_UNSUPPORTED_SEED_NAMES = {"seed", "random_seed"}
_SEED_ATTRIBUTES = {_RANDOM_STATE, _INSECURE_SEED, "_seeds"}  # ensembles keep the seeds of their members in `_seeds`
_GENERATORS = (np.random.RandomState, np.random.Generator, np.random.BitGenerator, random.Random)
_MAIN = "__main__"


def get_seeds(estimator: Any) -> dict[str, Any]:
    """Return every ``random_state`` and ``insecure_seed`` among the nested parameters, as the user set them.

    Raise ``ParameterError`` if a parameter with another name holds a seed or generator.
    """
    parameters = sorted(estimator.get_params(deep=True).items())
    for name, value in parameters:
        last = name.rpartition("__")[2]
        if last in SEED_PARAMETERS and not (value is None or _is_integer(value) or isinstance(value, np.random.RandomState)):
            raise ParameterError(f"`{name}` must be None, a RandomState or an integer, got {format_value(value)}")
        if last not in SEED_PARAMETERS and (_is_generator(value) or (last in _UNSUPPORTED_SEED_NAMES and value is not None)):
            raise ParameterError(
                f"`{name}` must not hold a seed or generator: every trial would have the same noise. Name the parameter `{_RANDOM_STATE}`"
            )
    return {name: value for name, value in parameters if name.rpartition("__")[2] in SEED_PARAMETERS}


def smallest_seed_bits(estimator: Any) -> int:
    """Return the number of bits of the estimator's shortest seed.

    An integer seed has 32 bits, and so have the seeds that one estimator passes to another.
    """
    parts = (estimator, *estimator.get_params(deep=True).values())
    seeds = get_seeds(estimator)
    own = own_seed_names(estimator)
    short = any(_takes_integer(name, seeds[name]) for name in own) or any(name not in own for name in seeds)
    return _INTEGER_SEED_BITS if short or any(isinstance(part, BaseEnsemble) for part in parts) else SECURE_SEED_BITS


def set_fresh_seeds(estimator: Any, randomness: Randomness) -> None:
    """Replace each seed by fresh randomness: a fixed number would give every trial the same noise.

    Inner estimators that a meta-estimator clones before fitting get no seed. All clones would start in the same state and share their
    noise. Without a seed they use the generators of the process, which belong to the trial, or the operating system.
    """
    own = own_seed_names(estimator)
    fresh: dict[str, Any] = dict.fromkeys(get_seeds(estimator))
    for name, value in get_seeds(estimator).items():
        if name in own:
            fresh[name] = randomness.integer(_INTEGER_SEED_BITS) if _takes_integer(name, value) else randomness.random_state()
    estimator.set_params(**fresh)


def own_seed_names(estimator: Any, prefix: str = "") -> frozenset[str]:
    """Return the names of the seeds that one fit uses once: the estimator's own, and for a pipeline those of its steps."""
    own = {prefix + name for name in SEED_PARAMETERS & estimator.get_params(deep=False).keys()}
    for name, step in estimator.steps if isinstance(estimator, Pipeline) else ():
        own |= own_seed_names(step, f"{prefix}{name}__") if hasattr(step, "get_params") else set()
    return frozenset(own)


@plan_id("sklearn_pickle")
def dump_estimator(estimator: Any) -> bytes:
    """Pickle the estimator with every generator and seed in it replaced by None, including those of its inner estimators."""
    buffer = io.BytesIO()
    try:
        _Pickler(buffer, protocol=5).dump(estimator)
    except (pickle.PicklingError, AttributeError, TypeError):
        raise ParameterError(
            f"cannot pickle this {type(estimator).__name__}: use classes and functions of a module, not lambdas or local functions"
        ) from None
    return buffer.getvalue()


def load_estimator(content: bytes) -> Any:
    """Unpickle an estimator; only for bytes that this process or its workers wrote."""
    return pickle.loads(content)  # noqa: S301


class _Pickler(pickle.Pickler):
    def reducer_override(self, obj: Any) -> Any:
        if _is_generator(obj):
            return no_generator, ()
        if isinstance(obj, type | FunctionType) and obj.__module__ == _MAIN and "<" not in obj.__qualname__:
            return find_in_main, (obj.__qualname__,)  # the main module of a worker is another one
        if isinstance(obj, BaseEstimator) and (seeds := _SEED_ATTRIBUTES & vars(obj).keys()):
            return copyreg.__newobj__, (type(obj),), {**obj.__getstate__(), **dict.fromkeys(seeds)}  # type: ignore[attr-defined]
        return NotImplemented


def no_generator() -> None:
    """Return None, which a pickle holds instead of a generator."""


def find_in_main(name: str) -> Any:
    """Return a class or function of the running program by its qualified name."""
    return reduce(getattr, name.split("."), sys.modules[_MAIN])


def _is_generator(value: Any) -> bool:
    is_torch = type(value).__name__ == "Generator" and type(value).__module__.partition(".")[0] == "torch"
    return isinstance(value, _GENERATORS) or is_torch


def _takes_integer(name: str, seed: Any) -> bool:
    """Return whether a trial replaces this seed by an integer, and not by a generator with a random full state."""
    return _is_integer(seed) and name.rpartition("__")[2] != _INSECURE_SEED


def _is_integer(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)
