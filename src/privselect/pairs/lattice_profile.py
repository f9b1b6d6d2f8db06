"""The hockey stick of a dense law on a lattice."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from privselect.pairs.tilted_fft import Dense

    Floats = NDArray[np.float64]

_UNIT_ROUNDOFF = 2.0**-53
_HEAVY = 1e-4  # of the curve's height: a mass that counts


class Profile:
    """``sum (p - e^epsilon q)_+`` at the multiples 0, 1, 2, ... of the spacing, each rounded up."""

    def __init__(self, p: Floats, q: Floats, first: int, spacing: float) -> None:
        # Masses on the multiples from the first that is not below 0 on; those below 0 never count.
        skipped, self._first = max(-first, 0), max(first, 0)
        self._p, q = (np.concatenate([masses[skipped:], np.zeros(1)]) for masses in (p, q))
        self._spacing = spacing
        # Between two multiples the curve falls by the mass beyond times their distance in e^epsilon: sums of positive terms only.
        beyond = np.concatenate([np.cumsum(q[:0:-1])[::-1], [0.0]])
        falls = beyond * np.exp((self._first + np.arange(len(q))) * spacing) * math.expm1(spacing)
        rounding = 1.0 + 8.0 * len(q) * _UNIT_ROUNDOFF
        self._heights = np.cumsum(falls[::-1])[::-1] * rounding
        self._all = (float(beyond[0]) + float(q[0])) * rounding

    @classmethod
    def of(cls, dense: Dense) -> Profile:
        """The first law against the second."""
        return cls(dense.p, dense.q, dense.first, dense.spacing)

    @classmethod
    def reversed(cls, dense: Dense) -> Profile:
        """The second law against the first."""
        return cls(dense.q[::-1], dense.p[::-1], -dense.last, dense.spacing)

    def at(self, epsilon: Floats) -> Floats:
        """The values at some epsilons >= 0: between two multiples the curve is linear in e^epsilon."""
        start = self._first * self._spacing
        multiple = np.floor(epsilon / self._spacing * (1.0 + 1e-15)) - self._first
        place = np.clip(multiple, 0.0, len(self._heights) - 1.0).astype(np.int64)
        beside = np.maximum(epsilon - (self._first + place) * self._spacing, 0.0)
        share = np.minimum(np.expm1(beside) / math.expm1(self._spacing), 1.0)
        after = np.append(self._heights, 0.0)
        # Before the first outcome all of them count.
        before = np.exp(np.minimum(epsilon, start)) * np.expm1(np.maximum(start - epsilon, 0.0))
        return np.asarray(after[place] + share * (after[place + 1] - after[place]) + self._all * before)

    def knots(self, fine: float) -> Floats:
        """Epsilons, multiples from 0 to the last, so many that the chord between two of them is hardly above the curve.

        It may add ``fine`` to delta for each unit of its log: that much of epsilon, or less.
        A cell of width w in epsilon around losses of first-law density f has a chord at most ``f w^2 / 4`` above its tangents.
        """
        height = np.maximum(self._heights, 1e-300)
        allowed = 4.0 * fine * height * np.maximum(1.0, -2.0 * np.log(np.minimum(height, 1.0)))
        needed = np.minimum(np.sqrt(self._spacing * self._p / allowed), 1.0)
        chosen = np.flatnonzero(np.diff(np.floor(np.cumsum(needed)), prepend=-1.0) > 0.0)
        # An outcome that stands alone has no density: without a knot of its own the chord would pass over its kink.
        beside = np.pad(self._p, 2)
        alone = np.flatnonzero((self._p > _HEAVY * height) & (self._p > 4.0 * np.minimum(beside[:-4], beside[4:])))
        return np.unique(np.concatenate([[0], self._first + np.concatenate([[0], chosen, alone, [len(height) - 1]])])) * self._spacing
