"""What every law of K offers."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

from privselect.parameters import parameter, whole
from privselect.text import Described

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True, slots=True)
class Count(Described):
    """The law of K, the number of trials: public, independent of the data; a drawn K is secret for ever.

    ``cap=n`` conditions the law on K <= n; the other parameters keep naming the uncapped law.
    """

    cap: int | None = parameter(whole(1), default=None, kw_only=True)

    @abstractmethod
    def log_dpgf(self, u: ArrayLike) -> NDArray[np.float64]:
        """``log phi'(1-u)``, where ``phi(z) = E z^K``, for u in [0, 1]: the only thing the accountant asks."""
