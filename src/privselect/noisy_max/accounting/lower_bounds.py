"""Real scores and moves of them, each a choice between "one of these wins" and "another": what noisy max leaks at least."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from privselect.noisy_max.accounting.binary_pair import two_outcomes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from privselect.pairs import DominatingPair

    Floats = NDArray[np.float64]

_CHANCES = (0.5, 0.3, 0.15, 0.06, 0.02, 5e-3, 1e-3, 2e-4, 4e-5, 8e-6, 1e-6, 1e-9)  # of the set where it is not moved
_ORDERS = (2.0, 8.0, 32.0)  # what many rounds leak goes by the Renyi divergence of some order


@dataclass(frozen=True, slots=True, eq=False)
class Instances:
    """For each instance the chance of its set, moved up (from below) and not (from above)."""

    moved: Floats
    still: Floats

    def delta(self, epsilon: Floats) -> Floats:
        """The greatest hockey stick at each epsilon >= 0."""
        flat = np.ravel(epsilon)
        values = np.array([(self.moved - np.exp(e) * self.still).max(initial=0.0) for e in np.minimum(flat, 700.0)])
        return values.reshape(np.shape(epsilon))

    def epsilon(self, delta: Floats) -> Floats:
        """The greatest epsilon >= 0 at which an instance is still above each delta."""
        flat = np.ravel(delta)
        with np.errstate(divide="ignore"):
            values = np.array([(np.log(np.maximum(self.moved - d, 0.0)) - np.log(self.still)).max(initial=0.0) for d in flat])
        return (values * (1.0 - 1e-14)).reshape(np.shape(delta))

    def chosen(self) -> tuple[DominatingPair, ...]:
        """A few of them as pairs: at some chances of the set the one that gains most by its move, and those good for many rounds."""
        p, q = self.moved, self.still
        usable = (p > q) & (q > 0.0) & (p < 1.0)
        p, q = p[usable], q[usable]
        if not len(p):
            return ()
        with np.errstate(divide="ignore", over="ignore"):
            best = [int(np.argmax(np.where(q <= chance, p, 0.0))) for chance in _CHANCES]
            for a in _ORDERS:
                moments = np.logaddexp(a * np.log(p) + (1.0 - a) * np.log(q), a * np.log1p(-p) + (1.0 - a) * np.log1p(-q))
                best.append(int(np.argmax(moments)))
        return tuple(two_outcomes(float(p[i]), float(q[i])) for i in dict.fromkeys(best))
