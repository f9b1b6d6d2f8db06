"""What a law of K is worth to those who search: the chance that some trial falls among the best candidates."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from privselect._util.validation import OPEN_UNIT, check_number

if TYPE_CHECKING:
    from privselect.counts.base import Count

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(12)
_SMALLEST = 1e-20  # below it phi' is constant for every law with a mean up to 1e15
_PANELS = 160


def at_least(count: Count, last: int) -> list[float]:
    """``P(K >= k)`` for k from 0 to ``last``."""
    below = np.concatenate([[0.0], np.cumsum(np.exp(count.log_pmf(np.arange(last))))])
    return [float(one) for one in np.clip(1.0 - below, 0.0, 1.0)]


def chance_of_best(count: Count | None, tau: float) -> float:
    """The chance that at least one of K trials is in the best share ``tau`` of the search space; None is one trial.

    It is ``1 - phi(1-tau)``, the integral of ``phi'(1-u)`` over [0, tau]; the integrand is smooth in log u.
    """
    share = check_number("tau", tau, OPEN_UNIT)
    if count is None:
        return share
    edges = np.concatenate([[0.0], np.geomspace(_SMALLEST * share, share, _PANELS)])
    half, middle = 0.5 * np.diff(edges), 0.5 * (edges[1:] + edges[:-1])
    values = np.exp(count.log_dpgf(middle[:, None] + half[:, None] * _NODES))
    return min(float((values @ _WEIGHTS) @ half), 1.0)
