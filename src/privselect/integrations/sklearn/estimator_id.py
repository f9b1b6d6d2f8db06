"""An estimator in public words, so that a plan knows which one was run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from privselect.tuning.plan_ids import name_in_plan


def plan_name(estimator: Any, **parts: Any) -> str:
    """A name for the plan: the estimator's class, and a hash of all its parameters and of the other parts of a trial."""
    said = json.dumps(plain({"estimator": estimator, **parts}), sort_keys=True)
    return f"{type(estimator).__name__} {sha256(said.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"


def plain(value: Any) -> Any:
    """As JSON has it; arrays by their hash, functions and other objects by their name."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, BaseEstimator) and not isinstance(value, type):
        return {"class": name_in_plan(type(value)), "parameters": plain(value.get_params(deep=False))}
    if isinstance(value, Mapping):
        return {str(name): plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    return _plain_array(value) if isinstance(value, np.ndarray | np.generic) else name_in_plan(value)


def _plain_array(value: Any) -> Any:
    if value.ndim == 0 or value.dtype.hasobject:
        return plain(value.tolist())
    return {"array": str(value.dtype), "shape": list(value.shape), "sha256": sha256(np.ascontiguousarray(value).tobytes()).hexdigest()}
