"""What leaves a trial: the fitted estimator by pickle, without any generator or seed.

Classes and functions are in it by their names alone. By value, as cloudpickle has those of a notebook, their globals would come along,
and with them whatever trials that lost have left there.
"""

from __future__ import annotations

import copyreg
import io
import pickle
import random
import sys
from functools import reduce
from types import FunctionType
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from privselect.errors import ParameterError

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
