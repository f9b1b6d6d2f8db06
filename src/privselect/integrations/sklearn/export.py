"""What leaves a trial: the fitted estimator by pickle, without any generator or seed."""

from __future__ import annotations

import copyreg
import io
import pickle
import random
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from privselect.errors import ParameterError

_GENERATORS = (np.random.RandomState, np.random.Generator, np.random.BitGenerator, random.Random)


def to_bytes(estimator: Any) -> bytes:
    """The estimator; every generator in it is replaced by None, and so is every ``random_state``, also of the estimators it is made of."""
    try:
        return _dumped(_Pickler, estimator)
    except (pickle.PicklingError, AttributeError, TypeError):
        return _dumped(_cloud_pickler(), estimator)  # a lambda, or a class of a notebook


def from_bytes(content: bytes) -> Any:
    """The estimator back; only of bytes that this process or its workers have made."""
    return pickle.loads(content)  # noqa: S301


def _dumped(pickler: Any, estimator: Any) -> bytes:
    buffer = io.BytesIO()
    pickler(buffer, protocol=5).dump(estimator)
    return buffer.getvalue()


def nothing() -> None:
    """What a pickle holds instead of a generator."""


class _Pickler(pickle.Pickler):
    def reducer_override(self, obj: Any) -> Any:
        return _without_seeds(obj)


def _cloud_pickler() -> Any:
    try:
        import cloudpickle
    except ModuleNotFoundError:
        raise ParameterError("an estimator that pickle does not take needs cloudpickle: pip install 'privselect[tune]'") from None

    class _CloudPickler(cloudpickle.Pickler):  # type: ignore[misc,unused-ignore]
        def reducer_override(self, obj: Any) -> Any:
            reduced = _without_seeds(obj)
            return super().reducer_override(obj) if reduced is NotImplemented else reduced

    return _CloudPickler


def _without_seeds(value: Any) -> Any:
    if isinstance(value, _GENERATORS) or _is_torch_generator(value):
        return nothing, ()
    if isinstance(value, BaseEstimator) and "random_state" in vars(value):
        return copyreg.__newobj__, (type(value),), {**value.__getstate__(), "random_state": None}  # type: ignore[attr-defined]
    return NotImplemented


def _is_torch_generator(value: Any) -> bool:
    return type(value).__name__ == "Generator" and type(value).__module__.partition(".")[0] == "torch"
