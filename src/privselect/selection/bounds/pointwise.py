"""**Pointwise**: every outcome is bounded at its own worst place in the score order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from privselect.selection.exact.mesh import Mesh
from privselect.selection.exact.weight_bounds import MAX_LOG_C

if TYPE_CHECKING:
    from privselect.counts.base import Count
    from privselect.pairs import DominatingPair

_KNOTS = 256


def pointwise_delta(pair: DominatingPair, count: Count, epsilon: float) -> float:
    """Return an upper bound on the selection's delta at one epsilon >= 0.

    Claim: ``delta(e) <= E_{L ~ P} [ max_u (phi'(1-u) - e^(e-L) phi'(1-g(u)))_+ ]``, clipped at 1; an infinite loss adds its
    mass times m. Holds for every law of K when the pair dominates the base mechanism. Label: **Pointwise**.

    The maximum over u is an upper envelope of lines in ``c = e^(e-L)``, hence convex in c. It is computed at a few
    hundred values of c; between two of them its chord lies above it.
    """
    mesh = Mesh(pair, count)
    mesh.refine_for(epsilon)
    log_c = epsilon - pair.losses
    counted = log_c < mesh.max_log_c
    total = pair.p_only
    if counted.any():
        c = np.exp(np.minimum(log_c[counted], MAX_LOG_C))
        knots = np.unique(np.concatenate([np.geomspace(c.min(), c.max(), _KNOTS), c[[0, -1]]])) if len(c) > _KNOTS else np.unique(c)
        zero = np.zeros(1)
        lines = mesh.nodes.gains(zero) - knots[:, None] * mesh.nodes.tangents(zero, zero)[0]
        total += float(pair.p[counted] @ np.interp(c, knots, np.maximum(lines.max(axis=1), 0.0)))
    return float(min(mesh.weight.scale * total * (1.0 + 4.0 * pair.relative_rounding), 1.0))
