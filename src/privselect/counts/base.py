"""What every law of K offers."""

from __future__ import annotations

import math
import random
from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

from privselect._util.validation import PROBABILITY, UNIT, check_array, check_number, integer_range, parameter
from privselect.errors import ParameterError
from privselect.text_forms import Spec

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    from privselect._util.random_bits import Entropy

LARGEST_COUNT = 10**15  # whole numbers up to here are floats too, with digits to spare for their halves and products
_SYSTEM = random.SystemRandom()


@dataclass(frozen=True, slots=True)
class Count(Spec):
    """The law of K, the number of trials: public, independent of the data; a drawn K is secret for ever.

    ``cap=n`` conditions the law on K <= n; the other parameters keep naming the uncapped law.
    """

    cap: int | None = parameter(integer_range(1, LARGEST_COUNT), default=None, kw_only=True)

    def __post_init__(self) -> None:
        Spec.__post_init__(self)  # by name: super() does not know the class that slots=True makes anew
        self._check()

    def _check(self) -> None:
        """Refuse what the ranges of single parameters let through."""

    @property
    @abstractmethod
    def largest(self) -> int | None:
        """The greatest possible K, or None where there is none."""

    def log_dpgf(self, u: ArrayLike) -> NDArray[np.float64]:
        """``log phi'(1-u)``, where ``phi(z) = E z^K``, for u in [0, 1]: the only thing the accountant asks.

        phi' is right to 1e-12 relative; where its log is beyond a thousand, to 16 units in the last place of the log.
        """
        return self.log_dpgf_unchecked(check_array("u", u, UNIT))

    @abstractmethod
    def log_dpgf_unchecked(self, u: NDArray[np.float64]) -> NDArray[np.float64]:
        """The same for an array that is known to lie in [0, 1]: the accountant asks thousands of times."""

    @abstractmethod
    def log_pmf(self, k: ArrayLike) -> NDArray[np.float64]:
        """``log P(K = k)``, minus infinity where k cannot be drawn."""

    @abstractmethod
    def expected(self) -> float:
        """``E K = phi'(1)``, after the cap."""

    def probability_of_zero(self) -> float:
        """``P(K = 0)``, the chance that no trial is run."""
        return math.exp(float(self.log_pmf(0)))

    def quantile(self, q: float) -> int:
        """The smallest k with ``P(K <= k) >= q``, for q in (0, 1]; a tie to within 1e-13 counts as equal.

        Beyond 2^53 it has the digits of a float.
        """
        q = check_number("q", q, PROBABILITY)
        if q == 1.0:
            if self.largest is None:
                raise ParameterError(f"`q` must be in (0, 1) as {self} has no greatest K, got 1")
            return self.largest
        return self._quantile(q)

    @abstractmethod
    def _quantile(self, q: float) -> int:
        """The quantile for q in (0, 1)."""

    @property
    def sampling_error(self) -> float:
        """The total variation distance between what :meth:`sample` draws and this law: none, the sampler is exact."""
        return 0.0

    def sample(self, entropy: Entropy | None = None) -> int:
        """Draw K exactly from this law; ``entropy`` is anything with ``getrandbits``, the operating system's by default.

        The number returned is secret for ever.
        """
        return self._draw(_SYSTEM if entropy is None else entropy)

    @abstractmethod
    def _draw(self, entropy: Entropy) -> int:
        """Draw K, exactly."""
