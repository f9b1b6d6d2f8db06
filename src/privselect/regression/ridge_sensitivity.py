"""How far one record can move a ridge regression, for rows no longer than 1 and targets within [-1, 1].

Throughout, ``H = X'X + ridge I`` and ``th = H^-1 X'y``. Adding a row (x, y) moves th by ``H^-1 x r/(1+h)``, with ``h = x'H^-1 x`` and
``r = y - x'th``.
"""

from __future__ import annotations

import math


def norm_limit(records: int, ridge: float) -> float:
    """The greatest norm that th can have, whatever the records.

    Claim: ``||th|| <= sqrt(n/(4 ridge))`` where ridge <= n, ``n/(n + ridge)`` elsewhere.

    Proof: with singular values s of X, ``||th|| <= max s/(s^2 + ridge) ||y||``, where ``||y|| <= sqrt(n)`` and ``s <= sqrt(n)``; the
    quotient is greatest at ``s = sqrt(ridge)``, or at the end where that lies beyond.
    """
    return math.sqrt(records / (4.0 * ridge)) if ridge <= records else records / (records + ridge)


def solution_sensitivity(records: int, ridge: float) -> float:
    """The greatest distance between th with and without a row, where the smaller set has at most ``records`` records.

    Claim: ``(1 + norm_limit)/(1 + ridge)`` where ridge >= 1, ``(1 + norm_limit)/(2 sqrt(ridge))`` elsewhere.

    Proof: ``||H^-1 x||^2 <= h/ridge`` and ``h <= 1/ridge``, so ``||H^-1 x||/(1+h) <= sqrt(h/ridge)/(1+h)``, which rises up to h = 1.
    ``|r| <= 1 + ||th||``.
    """
    pull = 1.0 / (1.0 + ridge) if ridge >= 1.0 else 0.5 / math.sqrt(ridge)
    return (1.0 + norm_limit(records, ridge)) * pull


def log_norm_sensitivity(ridge: float, smallest: float) -> float:
    """How far adding or removing one row moves ``log(1 + ||th||)``, where the least eigenvalue of X'X is at least ``smallest``.

    Claim: at most ``log(1 + 1/(ridge + max(smallest - 1, 0)))``.

    Proof: between two neighbours th moves by ``H^-1 x r'``, H being that of the smaller set and ``r' = r/(1+h)`` the residual of the row
    in the larger one, so ``|r'| <= 1 + ||th||`` for the th of either set; ``||H^-1 x|| <= 1/(ridge + l)``, l being the least eigenvalue of
    the smaller set. So whichever norm is the smaller, ``1 + ||th||`` of the other is at most ``1 + 1/(ridge + l)`` times as great; and l
    may be lower by 1 than the least eigenvalue of the data at hand. Infinite where ridge and smallest leave nothing to divide by.
    """
    below = ridge + max(smallest - 1.0, 0.0)
    return math.log1p(1.0 / below) if below > 0.0 else math.inf
