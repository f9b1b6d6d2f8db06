"""A proved interval: ``lower <= truth <= upper``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Interval:
    """Both ends proved and rounded outward; arrays where the question was an array, ``lower`` None where none is proved."""

    lower: float | NDArray[np.float64] | None
    upper: float | NDArray[np.float64]

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
