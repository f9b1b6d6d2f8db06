"""One measured line: what, the number, its limit, and whether it is met."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


@dataclass(frozen=True)
class Line:
    what: str
    value: float | None  # None where the contender is not installed
    unit: str = ""
    limit: float | None = None

    @property
    def missed(self) -> bool:
        return self.value is not None and self.limit is not None and not self.value <= self.limit

    def cells(self) -> tuple[str, str, str, str]:
        if self.value is None:
            return self.what, "not installed", "", ""
        limit = "" if self.limit is None else f"{self.limit:g} {self.unit}".strip()
        verdict = "" if self.limit is None else "MISSED" if self.missed else "met"
        return self.what, f"{self.value:.4g} {self.unit}".strip(), limit, verdict

    def as_dict(self) -> dict[str, object]:
        return {"what": self.what, "value": self.value, "unit": self.unit, "limit": self.limit, "missed": self.missed}


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def side_by_side(rounds: Iterable[tuple[Callable[[], object], ...]]) -> list[list[float]]:
    """The times of each contender; every round runs all of them in turn, so that a busy machine slows all alike."""
    return [list(column) for column in zip(*([seconds(work) for work in contenders] for contenders in rounds), strict=True)]
