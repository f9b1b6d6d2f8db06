"""Any law on finitely many values."""

from __future__ import annotations

import dataclasses
import math
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from privselect._util.validation import (
    as_float_array,
    check_fraction,
    check_number,
    format_sum_near_one,
    format_value,
    integer_range,
    truncate,
)
from privselect.counts.base import LARGEST_COUNT, Count
from privselect.counts.pmf_table import PmfTable
from privselect.counts.sampling.sampler import Sampler
from privselect.errors import ParameterError
from privselect.text_forms import register, write_value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import ArrayLike, NDArray

    from privselect._util.random_bits import Entropy

Weights = tuple[tuple[int, int], ...]
_LARGEST_SUM = 10**300  # of whole weights: the text form writes them out, and their quotients are floats


@register
@dataclass(frozen=True, slots=True)
class Finite(Count):
    """K by a table ``{k: weight}``: ``phi'(1-u) = sum_k k P(k) (1-u)^(k-1)``.

    Whole weights are shares of their sum. Weights that are not all whole are probabilities and must sum to exactly 1, a float
    standing for the decimal it is written as. They are kept as whole numbers in lowest terms, in ascending order of k, and as such
    may sum to at most 1e300.
    """

    text_name: ClassVar[str] = "finite"
    pmf: Weights = dataclasses.field(metadata={"positional": True})  # type: ignore[misc]  # cap is keyword-only, which mypy cannot see

    def __init__(self, pmf: Mapping[int, float | Fraction] | Weights, *, cap: int | None = None) -> None:
        object.__setattr__(self, "pmf", _whole_weights(pmf))
        object.__setattr__(self, "cap", cap)
        Count.__post_init__(self)

    def _check(self) -> None:
        kept = self._kept()
        if not kept or kept[-1][0] == 0:
            least = next(k for k, _ in self.pmf if k > 0)
            raise ParameterError(f"`cap` must be at least {least}, the least K >= 1 that this law can draw, got {self.cap}")

    def _argument_texts(self) -> Iterator[str]:
        yield write_value(dict(self.pmf))
        if self.cap is not None:
            yield f"cap={self.cap}"

    def _kept(self) -> Weights:
        return tuple(entry for entry in self.pmf if self.cap is None or entry[0] <= self.cap)

    @property
    def largest(self) -> int:
        """The greatest possible K."""
        return self._kept()[-1][0]

    def log_dpgf_unchecked(self, u: NDArray[np.float64]) -> NDArray[np.float64]:
        """``log sum_k k P(k) (1-u)^(k-1)``."""
        return _table_of(self).log_dpgf(u.reshape(-1)).reshape(u.shape)

    def log_pmf(self, k: ArrayLike) -> NDArray[np.float64]:
        """``log P(K = k)``, minus infinity where k cannot be drawn."""
        return _table_of(self).log_pmf(as_float_array("k", k, "a number"))

    def expected(self) -> float:
        """``E K``, after the cap."""
        kept = self._kept()
        return sum(k * weight for k, weight in kept) / sum(weight for _, weight in kept)

    def _quantile(self, q: float) -> int:
        kept = self._kept()
        sums = list(accumulate(weight for _, weight in kept))
        # Here ties are decided exactly, q standing for the decimal it is written as.
        return kept[bisect_left(sums, check_fraction("q", q) * sums[-1])][0]

    def _draw(self, entropy: Entropy) -> int:
        return _sampler_of(self).draw(entropy)


def _whole_weights(pmf: object) -> Weights:
    table = _as_table(pmf)
    exact: dict[int, Fraction] = {}
    for k, weight in table.items():
        value = check_fraction("weight", weight)
        if value < 0:
            raise ParameterError(f"each weight of a pmf must be >= 0, got {format_value(weight)}")
        if value > _LARGEST_SUM:
            raise ParameterError(f"each weight of a pmf must be at most 1e300, got {format_value(weight)}")
        exact[int(check_number("k", k, integer_range(0, LARGEST_COUNT)))] = value
    if not any(weight and k for k, weight in exact.items()):
        raise ParameterError(f"a pmf must give some k >= 1 a positive weight, got {truncate(write_value(dict(table)), 60)}")
    total = sum(exact.values(), Fraction(0))
    if total != 1 and any(weight.denominator > 1 for weight in exact.values()):
        raise ParameterError(f"a pmf must sum to 1, got {format_sum_near_one(total)}")
    shared = math.lcm(*(weight.denominator for weight in exact.values()))
    weights = {k: int(weight * shared) for k, weight in sorted(exact.items()) if weight}
    divisor = math.gcd(*weights.values())
    parts = sum(weights.values()) // divisor
    if parts > _LARGEST_SUM:
        raise ParameterError(f"the weights of a pmf, as whole numbers in lowest terms, must sum to at most 1e300, got {format_value(parts)}")
    return tuple((k, weight // divisor) for k, weight in weights.items())


def _as_table(pmf: object) -> Mapping[Any, Any]:
    if isinstance(pmf, tuple) and all(isinstance(entry, tuple) and len(entry) == 2 for entry in pmf):
        try:
            table = dict(pmf)  # as a copy of a law passes it
        except TypeError:
            table = {}  # a key that is no number
        if len(table) == len(pmf):
            return table
    if not isinstance(pmf, Mapping):
        raise ParameterError(f"`pmf` must be a table such as {{0: 1, 5: 9}}, got {format_value(pmf)}")
    return pmf


@lru_cache(maxsize=32)
def _table_of(law: Finite) -> PmfTable:
    kept = law._kept()  # noqa: SLF001 -- the cache cannot live in a slotted object
    top = max(weight for _, weight in kept)
    logs = [math.log(weight / top) if weight / top > 1e-290 else math.log(weight) - math.log(top) for _, weight in kept]
    return PmfTable(np.array([k for k, _ in kept], dtype=np.float64), np.array(logs))


@lru_cache(maxsize=32)
def _sampler_of(law: Finite) -> Sampler:
    return Sampler.of_weights(law._kept())  # noqa: SLF001
