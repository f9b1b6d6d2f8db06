"""Sensitivity of ridge regression to one record, for rows of norm at most 1 and targets in [-1, 1].

Throughout, ``H = X'X + ridge I`` and ``th = H^-1 X'y``. Adding a row (x, y) moves th by ``H^-1 x r/(1+h)``, with ``h = x'H^-1 x`` and
``r = y - x'th``.
"""

from __future__ import annotations

import math


def solution_norm_bound(records: int, ridge: float) -> float:
    """Return an upper bound on the norm of th that holds for all data.

    Claim: ``||th|| <= sqrt(n/(4 ridge))`` if ridge <= n, and ``||th|| <= n/(n + ridge)`` otherwise.

    Proof: with singular values s of X, ``||th|| <= max s/(s^2 + ridge) ||y||``, with ``||y|| <= sqrt(n)`` and ``s <= sqrt(n)``. The
    quotient is greatest at ``s = sqrt(ridge)``, or at ``s = sqrt(n)`` if that is smaller.
    """
    return math.sqrt(records / (4.0 * ridge)) if ridge <= records else records / (records + ridge)


def solution_sensitivity(records: int, ridge: float) -> float:
    """Return an upper bound on how far one row moves th, if the smaller data set has at most ``records`` records.

    Claim: ``(1 + solution_norm_bound)/(1 + ridge)`` if ridge >= 1, and ``(1 + solution_norm_bound)/(2 sqrt(ridge))`` otherwise.

    Proof: ``||H^-1 x||^2 <= h/ridge`` and ``h <= 1/ridge``. So ``||H^-1 x||/(1+h) <= sqrt(h/ridge)/(1+h)``, which increases up to h = 1.
    ``|r| <= 1 + ||th||``.
    """
    pull = 1.0 / (1.0 + ridge) if ridge >= 1.0 else 0.5 / math.sqrt(ridge)
    return (1.0 + solution_norm_bound(records, ridge)) * pull


def log_norm_sensitivity(ridge: float, smallest: float) -> float:
    """Return how far one row moves ``log(1 + ||th||)`` if the smallest eigenvalue of X'X is at least ``smallest``.

    Claim: at most ``log(1 + 1/(ridge + max(smallest - 1, 0)))``, which is infinite if the denominator is 0.

    Proof: between two neighbours th moves by ``H^-1 x r'``, with H that of the smaller set and ``r' = r/(1+h)`` the residual of the row
    in the larger one. So ``|r'| <= 1 + ||th||`` for the th of either set. Let l be the smallest eigenvalue of the smaller set. Then
    ``||H^-1 x|| <= 1/(ridge + l)``. So whichever norm is the smaller, ``1 + ||th||`` of the other set is at most ``1 + 1/(ridge + l)``
    times as large. The smaller set may have one record less than the given data, and then l may be lower by 1 than ``smallest``.
    """
    below = ridge + max(smallest - 1.0, 0.0)
    return math.log1p(1.0 / below) if below > 0.0 else math.inf
