"""One Gaussian step on a batch drawn without replacement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from privselect._util.validation import POSITIVE, integer_range, parameter
from privselect.errors import ParameterError
from privselect.mechanisms.base import Mechanism, check_orders
from privselect.mechanisms.gaussian import CELL_WIDTH, gaussian_bracket
from privselect.mechanisms.neighbours import REPLACE_ONE
from privselect.pairs import Bracket, DominatingPair, pair_from_profile
from privselect.pairs.from_profile import distinct_indices
from privselect.text_forms import Spec, register

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

_MAX_RECORDS = 10**15
_UP = 1.0 + 1e-15
_FAR = 500.0  # e^500 is a float, and smaller terms are negligible


@register
@dataclass(frozen=True, slots=True)
class SampledGaussian(Mechanism):
    r"""One Gaussian step on ``batch_size`` of ``records`` records, drawn uniformly without replacement; neighbours replace one record.

    The noise is ``noise_multiplier`` times the clipping norm, on the sum of the clipped records. Replacing a record moves the sum by up
    to twice that norm. With (P, Q) = (N(2/noise_multiplier, 1), N(0, 1)) and r = batch_size/records

        ``delta(e) <= r H_{P||Q}(1 + (e^e - 1)/r) = H_{(1-r)Q + rP || Q}(e^e)`` for e >= 0, in both orders of the neighbours

    (Balle, Barthe and Gaboardi 2018; Zhu, Dong and Wang 2022). Holds when every batch of that size is equally likely, batches of several
    steps are independent, and the number of records is public. Label: Without replacement.

    For one step the bound is tight: real data attains the lower pair, ((1-r)Q + rP, Q) in either order. No single pair of data sets has
    both halves of the profile, so the upper bound on several steps, or on a selection, need not be tight.
    """

    text_name = "sampled_gaussian"
    sensitivity = "clipping norm 1"

    noise_multiplier: float = parameter(POSITIVE, leaks="less")
    batch_size: int = parameter(integer_range(1, _MAX_RECORDS), leaks="more")
    records: int = parameter(integer_range(1, _MAX_RECORDS), leaks="less")

    def __post_init__(self) -> None:
        Spec.__post_init__(self)
        if self.batch_size > self.records:
            raise ParameterError(f"`batch_size` must be at most `records`, got {self.batch_size} of {self.records}")

    @property
    def neighbours(self) -> str:
        """Replacing one record: a sample of fixed size needs neighbours with the same number of records."""
        return REPLACE_ONE

    def _make_brackets(self, _accuracy: float, /) -> tuple[Bracket, ...]:
        rate = self.batch_size / self.records
        base = gaussian_bracket(2.0 / self.noise_multiplier, 0.5 * CELL_WIDTH)
        # At its own losses the profile of the upper pair is that of the Gaussian.
        losses = np.append(0.0, base.upper.losses[base.upper.losses > 0.0])
        epsilon = np.log1p(rate * np.expm1(losses)) * _UP
        profile = rate * base.upper.hockey_stick(losses, side=1) * _UP
        distinct = distinct_indices(epsilon)
        upper = pair_from_profile(epsilon[distinct], profile[distinct], profile[distinct])
        (low,) = base.lowers
        # Merging outcomes commutes with mixing: the lower pair of the sample follows from that of the base.
        sampled = DominatingPair((1.0 - rate) * low.q + rate * low.p, low.q, rounding=4e-16)
        return (Bracket(upper, (sampled, sampled.reverse)),)

    def renyi_at(self, alpha: ArrayLike) -> Floats:
        """Compute ``log(1 - r + r e^((alpha-1) D))/(alpha-1)``, D that of the full batch: ``sum p^alpha q^(1-alpha)`` is jointly convex."""
        rate = self.batch_size / self.records
        orders = check_orders(alpha)
        with np.errstate(over="ignore", divide="ignore"):
            full_batch = 2.0 * orders * (orders - 1.0) / self.noise_multiplier / self.noise_multiplier
            small = np.log1p(rate * np.expm1(np.minimum(full_batch, _FAR)))
            large = np.logaddexp(np.log1p(-rate), np.log(rate) + full_batch)
            return np.asarray(np.where(full_batch < _FAR, small, large) / (orders - 1.0) * (1.0 + 1e-12))
