"""Any law of K on finitely many values."""

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
_LARGEST_SUM = 10**300  # of integer weights: the text form writes them out, and their quotients must be floats


@register
@dataclass(frozen=True, slots=True)
class Finite(Count):
    """K given by a table ``{k: weight}``: ``phi'(1-u) = sum_k k P(k) (1-u)^(k-1)``.

    Integer weights are shares of their sum. Other weights are probabilities and must sum to exactly 1; a float stands for its
    shortest decimal form. Weights are stored as integers in lowest terms, by ascending k. These integers may sum to at most 1e300.
    """

    text_name: ClassVar[str] = "finite"
    pmf: Weights = dataclasses.field(metadata={"positional": True})  # type: ignore[misc]  # cap is keyword-only, which mypy cannot see

    def __init__(self, pmf: Mapping[int, float | Fraction] | Weights, *, cap: int | None = None) -> None:
        object.__setattr__(self, "pmf", _integer_weights(pmf))
        object.__setattr__(self, "cap", cap)
        Count.__post_init__(self)

    def _check(self) -> None:
        kept = self._weights_up_to_cap()
        if not kept or kept[-1][0] == 0:
            smallest = next(k for k, _ in self.pmf if k > 0)
            raise ParameterError(f"`cap` must be at least {smallest}, the smallest K >= 1 with a positive weight, got {self.cap}")

    def _argument_texts(self) -> Iterator[str]:
        yield write_value(dict(self.pmf))
        if self.cap is not None:
            yield f"cap={self.cap}"

    def _weights_up_to_cap(self) -> Weights:
        return tuple(entry for entry in self.pmf if self.cap is None or entry[0] <= self.cap)

    @property
    def largest(self) -> int:
        """Largest possible K."""
        return self._weights_up_to_cap()[-1][0]

    def log_dpgf_unchecked(self, u: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return ``log sum_k k P(k) (1-u)^(k-1)``."""
        return _table_of(self).log_dpgf(u.reshape(-1)).reshape(u.shape)

    def log_pmf(self, k: ArrayLike) -> NDArray[np.float64]:
        """Return ``log P(K = k)``, minus infinity if k is impossible."""
        return _table_of(self).log_pmf(as_float_array("k", k, "a number"))

    def expected(self) -> float:
        """Return ``E K``, of the capped distribution."""
        kept = self._weights_up_to_cap()
        return sum(k * weight for k, weight in kept) / sum(weight for _, weight in kept)

    def _quantile(self, q: float) -> int:
        kept = self._weights_up_to_cap()
        sums = list(accumulate(weight for _, weight in kept))
        # Ties are exact: q stands for its shortest decimal form.
        return kept[bisect_left(sums, check_fraction("q", q) * sums[-1])][0]

    def _draw(self, entropy: Entropy) -> int:
        return _sampler_of(self).draw(entropy)


def _integer_weights(pmf: object) -> Weights:
    table = _as_mapping(pmf)
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
        raise ParameterError(f"the weights of a pmf, as integers in lowest terms, must sum to at most 1e300, got {format_value(parts)}")
    return tuple((k, weight // divisor) for k, weight in weights.items())


def _as_mapping(pmf: object) -> Mapping[Any, Any]:
    if isinstance(pmf, tuple) and all(isinstance(entry, tuple) and len(entry) == 2 for entry in pmf):
        try:
            table = dict(pmf)  # as `dataclasses.replace` passes it
        except TypeError:
            table = {}  # an unhashable key
        if len(table) == len(pmf):
            return table
    if not isinstance(pmf, Mapping):
        raise ParameterError(f"`pmf` must be a table such as {{0: 1, 5: 9}}, got {format_value(pmf)}")
    return pmf


@lru_cache(maxsize=32)
def _table_of(count: Finite) -> PmfTable:
    kept = count._weights_up_to_cap()  # noqa: SLF001 -- the cache cannot live in a slotted object
    top = max(weight for _, weight in kept)
    logs = [math.log(weight / top) if weight / top > 1e-290 else math.log(weight) - math.log(top) for _, weight in kept]
    return PmfTable(np.array([k for k, _ in kept], dtype=np.float64), np.array(logs))


@lru_cache(maxsize=32)
def _sampler_of(count: Finite) -> Sampler:
    return Sampler.of_weights(count._weights_up_to_cap())  # noqa: SLF001
