"""A proved interval: ``lower <= truth <= upper``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from privselect.errors import ParameterError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class Interval:
    """Both ends proved and rounded outward; arrays where the question was an array, ``lower`` None where none is proved."""

    lower: float | NDArray[np.float64] | None
    upper: float | NDArray[np.float64]

    def __post_init__(self) -> None:
        import numpy as np

        for end in (self.lower, self.upper):
            if isinstance(end, np.ndarray):
                end.setflags(write=False)
        # An end that is no number, or a lower one above the upper, must never leave as a result.
        if np.isnan(self.upper).any() or (self.lower is not None and not np.all(self.lower <= self.upper)):
            raise ParameterError(f"an interval needs two numbers, lower <= upper, got {self.lower} and {self.upper}")

    def __eq__(self, other: object) -> bool:
        import numpy as np

        if not isinstance(other, Interval):
            return NotImplemented
        if self.lower is None or other.lower is None:
            return self.lower is other.lower and np.array_equal(self.upper, other.upper)
        return np.array_equal(self.lower, other.lower) and np.array_equal(self.upper, other.upper)

    __hash__ = None  # type: ignore[assignment] # arrays have none

    def __str__(self) -> str:
        if self.lower is None:
            return f"at most {self.upper}"
        return f"between {self.lower} and {self.upper}"

    def as_dict(self) -> dict[str, object]:
        """For JSON: plain floats and lists; an infinite end, which JSON cannot hold, is None."""
        return {"lower": None if self.lower is None else jsonable(self.lower), "upper": jsonable(self.upper)}


def jsonable(value: float | NDArray[np.float64]) -> object:
    """A float or a (nested) list of floats, with None in place of what is not finite."""
    import numpy as np

    array = np.asarray(value, dtype=np.float64)
    plain = array.astype(object)
    plain[~np.isfinite(array)] = None
    return plain.tolist() if array.ndim else (float(array) if np.isfinite(array) else None)
