"""``thm:rdp_poisson`` if only the Renyi curve of a trial is known, as in the figures of the paper."""

from __future__ import annotations

from typing import TYPE_CHECKING

from privselect.mechanisms.renyi import lem_rdp_to_dp, lem_rdp_to_dp_epsilon
from privselect.selection.bounds.renyi_bounds import renyi_curve_of, thm_rdp_poisson

if TYPE_CHECKING:
    from privselect.counts.base import Count
    from privselect.mechanisms import Mechanism


def renyi_alone(mechanism: Mechanism, count: Count, delta: float) -> float:
    """Return epsilon by ``thm:rdp_poisson`` with its ``delta_hat`` from ``lem:rdp_to_dp`` instead of the exact profile."""
    rdp = renyi_curve_of(mechanism)
    return lem_rdp_to_dp_epsilon(lambda alpha: thm_rdp_poisson(rdp, lambda e: lem_rdp_to_dp(rdp, e), count, alpha), delta)
