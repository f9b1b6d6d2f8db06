"""How many steps each candidate may take, by ``cor:adjust`` and as a **Mixture**, and what the second saves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from privselect._util.rounding import format_up
from privselect.errors import MissingExtraError
from privselect.selection import Selection
from privselect.text_forms import write_value

if TYPE_CHECKING:
    from fractions import Fraction

    from rich.table import Table

    from privselect.counts.base import Count
    from privselect.interval import Interval
    from privselect.mechanisms import Mixture
    from privselect.planning.adjust.thresholds import Thresholds


@dataclass(frozen=True, slots=True)
class Allowance:
    """The steps of one candidate; ``paper_steps`` is None where ``cor:adjust`` does not apply."""

    noise_multiplier: float
    probability: Fraction
    share: Fraction
    paper_steps: int | None
    steps: int

    @property
    def saving(self) -> float | None:
        """How many more steps the mixture allows, relative: 0.5 is half as many again."""
        return None if self.paper_steps is None else self.steps / self.paper_steps - 1.0

    def as_dict(self) -> dict[str, object]:
        """For JSON; probability and share as exact fractions."""
        return {
            "noise_multiplier": self.noise_multiplier,
            "probability": str(self.probability),
            "share": str(self.share),
            "paper_steps": self.paper_steps,
            "steps": self.steps,
            "saving": self.saving,
        }


@dataclass(frozen=True, slots=True)
class Adjustment:
    """Steps for a budget: ``epsilon`` is that of the whole selection at ``delta``, and ``spent`` what ``mechanism`` costs of it.

    ``thresholds`` are those of ``cor:adjust`` and ``paper_spent`` is what its numbers of steps cost in truth; both are None where it
    does not apply, and ``note`` says why.
    """

    count: Count
    delta: float
    epsilon: float
    mechanism: Mixture
    candidates: tuple[Allowance, ...]
    spent: Interval
    thresholds: Thresholds | None
    paper_spent: Interval | None
    note: str | None

    @property
    def selection(self) -> Selection:
        """What is released: the best of K trials, each of the mixture."""
        return Selection(self.mechanism, self.count)

    def as_dict(self) -> dict[str, object]:
        """For JSON."""
        bound = self.thresholds
        return {
            "delta": self.delta,
            "epsilon": self.epsilon,
            "count": str(self.count),
            "mechanism": str(self.mechanism),
            "spent_epsilon": self.spent.as_dict(),
            "candidates": [candidate.as_dict() for candidate in self.candidates],
            "cor_adjust": None
            if bound is None or self.paper_spent is None
            else {
                "epsilon_base": bound.epsilon_base,
                "thresholds": [{"epsilon": epsilon, "delta": delta} for epsilon, delta in bound.points],
                "epsilon": bound.epsilon,
                "spent_epsilon": self.paper_spent.as_dict(),
            },
            "note": self.note,
        }

    def table(self) -> Table:
        """A rich table: a row for each candidate, and below it what either way costs."""
        try:
            from rich.box import SIMPLE_HEAD
            from rich.table import Table
        except ModuleNotFoundError:
            raise MissingExtraError("the table needs rich; install it with: pip install 'privselect[cli]'") from None
        table = Table(
            title=f"steps at epsilon = {format_up(self.epsilon)}, delta = {write_value(self.delta)}, {self.count}",
            title_justify="left",
            caption="\n".join(self._said()),
            caption_justify="left",
            box=SIMPLE_HEAD,
        )
        for heading in ("noise", "probability", "share of delta", "cor:adjust", "mixture", "more"):
            table.add_column(heading, justify="right", no_wrap=True)
        for row in self.candidates:
            table.add_row(
                f"{row.noise_multiplier:g}",
                _fraction(row.probability),
                _fraction(row.share),
                "-" if row.paper_steps is None else str(row.paper_steps),
                str(row.steps),
                "-" if row.saving is None else f"{row.saving:+.1%}",
            )
        return table

    def _said(self) -> list[str]:
        said = [f"mixture: its steps cost {format_up(float(self.spent.upper))}"]
        if self.thresholds is None or self.paper_spent is None:
            return [*said, str(self.note)]
        points = " and ".join(f"({epsilon:.4f}, {delta:.3e})" for epsilon, delta in self.thresholds.points)
        return [
            *said,
            f"cor:adjust: {format_up(self.thresholds.epsilon)} by its bound; its steps cost {format_up(float(self.paper_spent.upper))}",
            f"its thresholds: {points}",
            f"on the profile of a ({self.thresholds.epsilon_base:.4f}, {write_value(self.delta)})-DP Gaussian",
        ]


def _fraction(value: Fraction) -> str:
    return str(value) if value.denominator < 10_000 else f"{float(value):.4g}"
