"""Labels of one kind, so that no record changes those of the others."""

from __future__ import annotations

from numbers import Number
from typing import Any

import numpy as np

from privselect.errors import ParameterError


def check_labels(name: str, y: Any) -> None:
    """Refuse a list of numbers and texts: numpy makes texts of them all, so that one record would change every label."""
    if isinstance(y, list | tuple) and len({_kind(label) for label in y}) > 1:
        raise ParameterError(f"`{name}` must hold labels of one kind, numbers or texts, got several")


def _kind(label: Any) -> str:
    if isinstance(label, Number | np.bool_):
        return "number"
    return "text" if isinstance(label, str) else type(label).__name__
