"""Base class of all laws of K."""

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

LARGEST_COUNT = 10**15  # integers up to here are exact floats, with room for halves
_SYSTEM = random.SystemRandom()


@dataclass(frozen=True, slots=True)
class Count(Spec):
    """Law of K: the distribution of the number of trials. It is public and independent of the data; a drawn K must stay secret.

    ``cap=n`` conditions the distribution on K <= n; the other parameters describe the uncapped distribution.
    """

    cap: int | None = parameter(integer_range(1, LARGEST_COUNT), default=None, kw_only=True)

    def __post_init__(self) -> None:
        Spec.__post_init__(self)  # by name: super() fails in the class that slots=True creates
        self._check()

    def _check(self) -> None:
        """Check the parameters against each other; their ranges are already checked."""

    @property
    @abstractmethod
    def largest(self) -> int | None:
        """Largest possible K, or None if K is unbounded."""

    def log_dpgf(self, u: ArrayLike) -> NDArray[np.float64]:
        """Return ``log phi'(1-u)`` for u in [0, 1], where ``phi(z) = E z^K``. The accountant needs nothing else.

        The relative error of phi' is at most 1e-12. If its log exceeds 1000, the error is 16 units in the last place of the log.
        """
        return self.log_dpgf_unchecked(check_array("u", u, UNIT))

    @abstractmethod
    def log_dpgf_unchecked(self, u: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return ``log_dpgf(u)`` without the range check, for an array in [0, 1]: the accountant calls it thousands of times."""

    @abstractmethod
    def log_pmf(self, k: ArrayLike) -> NDArray[np.float64]:
        """Return ``log P(K = k)``, minus infinity if k is impossible."""

    @abstractmethod
    def expected(self) -> float:
        """Return ``E K = phi'(1)``, of the capped distribution."""

    def probability_of_zero(self) -> float:
        """Return ``P(K = 0)``, the probability that no trial is run."""
        return math.exp(float(self.log_pmf(0)))

    def quantile(self, q: float) -> int:
        """Return the smallest k with ``P(K <= k) >= q``, for q in (0, 1]; a tie to within 1e-13 counts as equal.

        Above 2^53 the result has the precision of a float.
        """
        q = check_number("q", q, PROBABILITY)
        if q == 1.0:
            if self.largest is None:
                raise ParameterError(f"`q` must be in (0, 1) because {self} has no largest K, got 1")
            return self.largest
        return self._quantile(q)

    @abstractmethod
    def _quantile(self, q: float) -> int:
        """Return the quantile for q in (0, 1)."""

    @property
    def sampling_error(self) -> float:
        """Total variation distance between :meth:`sample` and this distribution: 0, because the sampler is exact."""
        return 0.0

    def sample(self, entropy: Entropy | None = None) -> int:
        """Draw K exactly; ``entropy`` is any object with ``getrandbits``, by default the operating system's random source.

        Keep the result secret, also after the release.
        """
        return self._draw(_SYSTEM if entropy is None else entropy)

    @abstractmethod
    def _draw(self, entropy: Entropy) -> int:
        """Draw K exactly."""
