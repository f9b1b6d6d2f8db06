"""Proved interval: ``lower <= truth <= upper``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from privselect._util.rounding import finite_or_none
from privselect.errors import ParameterError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class Interval:
    """Proved lower and upper bound, rounded outward.

    The bounds are arrays if the argument was an array. ``lower`` is None if no lower bound is proved.
    """

    lower: float | NDArray[np.float64] | None
    upper: float | NDArray[np.float64]

    def __post_init__(self) -> None:
        import numpy as np

        for bound in (self.lower, self.upper):
            if isinstance(bound, np.ndarray):
                bound.setflags(write=False)
        # NaN, or a lower bound above the upper one, must never leave as a result.
        if np.isnan(self.upper).any() or (self.lower is not None and not np.all(self.lower <= self.upper)):
            raise ParameterError(f"an interval needs two numbers, lower <= upper, got {self.lower} and {self.upper}")

    def __eq__(self, other: object) -> bool:
        import numpy as np

        if not isinstance(other, Interval):
            return NotImplemented
        if self.lower is None or other.lower is None:
            return self.lower is other.lower and np.array_equal(self.upper, other.upper)
        return np.array_equal(self.lower, other.lower) and np.array_equal(self.upper, other.upper)

    __hash__ = None  # type: ignore[assignment] # arrays are not hashable

    def __str__(self) -> str:
        if self.lower is None:
            return f"at most {self.upper}"
        return f"between {self.lower} and {self.upper}"

    def as_dict(self) -> dict[str, object]:
        """Return the bounds for JSON: floats and lists, with None for an infinite or unproved bound."""
        return {"lower": None if self.lower is None else _jsonable(self.lower), "upper": _jsonable(self.upper)}


def _jsonable(value: float | NDArray[np.float64]) -> object:
    import numpy as np

    return finite_or_none(np.asarray(value, dtype=np.float64))
