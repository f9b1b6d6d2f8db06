"""The pair of a mechanism that runs on a Poisson sample of the records, drawn once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from privselect.pairs.subnormal_masses import merge_subnormal, product_up, split_subnormal

if TYPE_CHECKING:
    from fractions import Fraction

    from numpy.typing import NDArray

    from privselect.pairs.dominating_pair import DominatingPair

    Floats = NDArray[np.float64]

_ROUNDING = 4e-16  # relative, of r p + (1-r) q: that of r, of 1-r, of the products and of the sum


def sampled_upper(pair: DominatingPair, rate: Fraction) -> DominatingPair:
    """Return a pair that dominates ``(r P + (1-r) P', P')``, for ``pair`` = (P, P') and the probability ``rate`` = r below 1.

    An outcome of loss l has the loss ``log(1 - r + r e^l)`` then. An infinite loss stays infinite, with r times its mass. An outcome that
    only P' has gets the loss ``log(1-r)``.
    """
    return split_subnormal(*_masses(pair, rate), (product_up(float(rate), pair.p_only), 0.0), rounding=pair.rounding + _ROUNDING)


def sampled_lower(pair: DominatingPair, rate: Fraction) -> DominatingPair:
    """Return a pair that ``(r P + (1-r) P', P')`` dominates, for ``pair`` = (P, P') and the probability ``rate`` = r below 1."""
    return merge_subnormal(*_masses(pair, rate), (float(rate) * pair.p_only, 0.0), rounding=pair.rounding + _ROUNDING)


def _masses(pair: DominatingPair, rate: Fraction) -> tuple[Floats, Floats]:
    q = np.append(pair.q, pair.q_only) if pair.q_only > 0.0 else pair.q
    p = np.append(pair.p, 0.0) if pair.q_only > 0.0 else pair.p
    with np.errstate(under="ignore"):
        return float(rate) * p + float(1 - rate) * q, q
