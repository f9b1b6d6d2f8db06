"""One noisy step on a batch drawn without replacement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from privselect._util.validation import POSITIVE, parameter, integer_range
from privselect.errors import ParameterError
from privselect.mechanisms.base import Mechanism, check_orders
from privselect.mechanisms.gaussian import CELL_WIDTH, gaussian_bracket
from privselect.mechanisms.neighbours import REPLACE_ONE
from privselect.pairs.from_profile import distinct_indices
from privselect.pairs import Bracket, DominatingPair, pair_from_profile
from privselect.text_forms import Spec, register

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

_MOST = 10**15
_UP = 1.0 + 1e-15
_FAR = 500.0  # e^500 is a float, and next to nothing else counts


@register
@dataclass(frozen=True, slots=True)
class SampledGaussian(Mechanism):
    r"""One Gaussian step on ``batch_size`` of ``records`` records, drawn uniformly without replacement; neighbours replace one record.

    The noise is ``noise_multiplier`` times the clipping norm, on the sum of the clipped records; replacing a record moves the sum by up
    to twice that norm, so with (P, Q) = (N(2/noise_multiplier, 1), N(0, 1)) and r = batch_size/records

        ``delta(e) <= r H_{P||Q}(1 + (e^e - 1)/r) = H_{(1-r)Q + rP || Q}(e^e)`` for e >= 0, in both orders of the neighbours

    (Balle, Barthe and Gaboardi 2018; Zhu, Dong and Wang 2022). Holds when every batch of that size is equally likely, batches of several
    steps are independent, and the number of records is public. Label: Without replacement.

    For one step this is tight: the lower pair, ((1-r)Q + rP, Q) in either order, is that of real data. No single pair of data sets has
    both halves of the curve, so the upper end of several steps together, or of a selection, need not be tight.
    """

    text_name = "sampled_gaussian"
    sensitivity = "clipping norm 1"

    noise_multiplier: float = parameter(POSITIVE, leaks="less")
    batch_size: int = parameter(integer_range(1, _MOST), leaks="more")
    records: int = parameter(integer_range(1, _MOST), leaks="less")

    def __post_init__(self) -> None:
        Spec.__post_init__(self)
        if self.batch_size > self.records:
            raise ParameterError(f"`batch_size` must be at most `records`, got {self.batch_size} of {self.records}")

    @property
    def neighbours(self) -> str:
        """Replacing one record: a sample of fixed size needs a number of records that all neighbours share."""
        return REPLACE_ONE

    def _make_brackets(self, _accuracy: float, /) -> tuple[Bracket, ...]:
        rate = self.batch_size / self.records
        base = gaussian_bracket(2.0 / self.noise_multiplier, 0.5 * CELL_WIDTH)
        # At its own losses the curve of the upper pair is the Gaussian's.
        losses = np.append(0.0, base.upper.losses[base.upper.losses > 0.0])
        epsilon = np.log1p(rate * np.expm1(losses)) * _UP
        curve = rate * base.upper.hockey_stick(losses, side=1) * _UP
        apart = distinct_indices(epsilon)
        upper = pair_from_profile(epsilon[apart], curve[apart], curve[apart])
        (low,) = base.lowers
        # What is done to both laws alike is done to their mixture: the lower pair of the sample comes from that of the base.
        sampled = DominatingPair((1.0 - rate) * low.q + rate * low.p, low.q, rounding=4e-16)
        return (Bracket(upper, (sampled, sampled.reverse)),)

    def renyi_at(self, alpha: ArrayLike) -> Floats:
        """``log(1 - r + r e^((alpha-1) D))/(alpha-1)``, D that of the whole batch: ``sum p^alpha q^(1-alpha)`` is jointly convex."""
        rate = self.batch_size / self.records
        orders = check_orders(alpha)
        with np.errstate(over="ignore", divide="ignore"):
            whole_batch = 2.0 * orders * (orders - 1.0) / self.noise_multiplier / self.noise_multiplier
            small = np.log1p(rate * np.expm1(np.minimum(whole_batch, _FAR)))
            large = np.logaddexp(np.log1p(-rate), np.log(rate) + whole_batch)
            return np.asarray(np.where(whole_batch < _FAR, small, large) / (orders - 1.0) * (1.0 + 1e-12))
