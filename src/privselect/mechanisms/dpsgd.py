"""DP-SGD: many noisy steps, each on a random sample of the data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from privselect.mechanisms.base import Mechanism, check_orders, check_times
from privselect.mechanisms.neighbours import ADD_REMOVE
from privselect.pairs import Bracket, DominatingPair
from privselect.pairs.pld import pair_from_pld
from privselect.parameters import POSITIVE, PROBABILITY, parameter, whole
from privselect.text import register

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

_FINEST = 1e-4  # spacing of the lattice of losses
_MOST_CELLS = 400_000


@register
@dataclass(frozen=True, slots=True)
class DPSGD(Mechanism):
    """Many Gaussian steps, each on a Poisson sample of the records; neighbours by adding or removing one record.

    ``steps`` steps with noise of ``noise_multiplier`` times the clipping norm, each record in a step with ``sampling_probability``.

    The pairs are N(0, s^2) against (1-q) N(0, s^2) + q N(1, s^2), composed on dp-accounting's pessimistic lattice: an upper
    bound only, so no lower end is claimed.
    """

    text_name = "dpsgd"
    sensitivity = "clipping norm 1"

    noise_multiplier: float = parameter(POSITIVE)
    sampling_probability: float = parameter(PROBABILITY)
    steps: int = parameter(whole(1, 10**9))

    @property
    def neighbours(self) -> str:
        """Adding or removing one record: what Poisson sampling is analysed for."""
        return ADD_REMOVE

    def _make_brackets(self) -> tuple[Bracket, ...]:
        remove = self._composed(1)
        return (Bracket(remove, (), "remove"), Bracket(remove.reverse, (), "add"))

    def repeated(self, times: int) -> tuple[DominatingPair, ...]:
        """More of the same steps."""
        pair = self._composed(times)
        return pair, pair.reverse

    def _composed(self, times: int) -> DominatingPair:
        from dp_accounting.pld import privacy_loss_distribution

        count = self.steps * check_times(times)
        step = privacy_loss_distribution.from_gaussian_mechanism(
            self.noise_multiplier,
            sampling_prob=self.sampling_probability,
            value_discretization_interval=self.lattice_spacing(times),
        )
        total = step.self_compose(count)
        remove, add = total._pmf_remove.to_dense_pmf(), total._pmf_add.to_dense_pmf()  # noqa: SLF001
        return pair_from_pld(remove, add, count)

    def lattice_spacing(self, times: int = 1) -> float:
        """Fine enough for four digits of epsilon, coarse enough that the lattice of the whole sum stays small."""
        # One step's loss has about this variance (chi-square divergence); the sum has mean half of it, ten deviations around.
        with np.errstate(over="ignore"):
            variance = self.steps * times * self.sampling_probability**2 * np.expm1(min(self.noise_multiplier**-2, 500.0))
        reach = 0.5 * variance + 10.0 * np.sqrt(variance)
        return float(np.clip(reach / _MOST_CELLS, _FINEST, 1.0))

    def renyi_at(self, alpha: ArrayLike) -> Floats:
        """By dp-accounting's analysis of the sampled Gaussian."""
        from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent
        from dp_accounting.rdp import RdpAccountant

        orders = check_orders(alpha)
        accountant = RdpAccountant(np.atleast_1d(orders).ravel())
        step = PoissonSampledDpEvent(self.sampling_probability, GaussianDpEvent(self.noise_multiplier))
        accountant.compose(SelfComposedDpEvent(step, self.steps))
        return np.asarray(accountant._rdp, dtype=np.float64).reshape(orders.shape)  # noqa: SLF001
