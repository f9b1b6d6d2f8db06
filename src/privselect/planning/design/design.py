"""The best law of K under a privacy budget: **Design**."""

from __future__ import annotations

import math
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from privselect._util.plotting import BLACK, BLUE, GREEN, VERMILION, check_plot_file, line_style, save_plot, style_axes
from privselect._util.rounding import format_down, format_up
from privselect._util.validation import format_value
from privselect.counts import Fixed
from privselect.errors import MissingExtraError, ParameterError
from privselect.mechanisms import Mechanism
from privselect.planning.design.cutting_planes import CuttingPlanes
from privselect.planning.design.goal import DesignGoal
from privselect.planning.design.parametric_fits import ParametricFit, best_binomial, best_geometric, best_negative_binomial
from privselect.planning.plan_result import survival_function
from privselect.text_forms import write_value

if TYPE_CHECKING:
    from fractions import Fraction
    from pathlib import Path

    from matplotlib.figure import Figure
    from rich.table import Table

    from privselect.counts import Finite
    from privselect.interval import Interval

    Curves = dict[str, list[float]]


@dataclass(frozen=True, slots=True)
class Design:
    """A law of K, what it gives and what it costs, beside the best laws with a name (None where none is allowed).

    ``chance`` is that of at least one trial in the best tau of candidates, rounded down. No law of K that keeps (epsilon, delta), K <= cap
    and E K <= mean has more than ``at_most``; None where no lower bound on the mechanism is proved. No law that could be certified here has
    more than ``certifiable``.
    """

    mechanism: Mechanism
    goal: DesignGoal
    count: Finite
    chance: float
    at_most: float | None
    certifiable: float
    epsilon: Interval
    rounds: int
    geometric: ParametricFit | None
    negative_binomial: ParametricFit | None
    binomial: ParametricFit | None

    @property
    def gap(self) -> float | None:
        """``at_most/chance - 1``: how much better some other law might be, at most."""
        return None if self.at_most is None else self.at_most / self.chance - 1.0

    @property
    def search_gap(self) -> float:
        """The same with the mechanism's pair from above as if it were the mechanism: what the search alone leaves open."""
        return self.certifiable / self.chance - 1.0

    @property
    def named(self) -> dict[str, ParametricFit | None]:
        """The best laws with a name; the geometric one has no cap."""
        return {"geometric": self.geometric, "negative_binomial": self.negative_binomial, "binomial": self.binomial}

    def as_dict(self) -> dict[str, object]:
        """For JSON."""
        goal = self.goal
        asked = {"epsilon": goal.epsilon, "delta": goal.delta, "tau": goal.tau, "cap": goal.cap, "mean": _plain(goal.mean)}
        return {
            "mechanism": str(self.mechanism),
            "asked": asked,
            "count": str(self.count),
            "chance": self.chance,
            "at_most": self.at_most,
            "gap": self.gap,
            "search_gap": self.search_gap,
            "expected": self.count.expected(),
            "epsilon": self.epsilon.as_dict(),
            "rounds": self.rounds,
            "named": {name: None if law is None else law.as_dict() for name, law in self.named.items()},
        }

    def table(self) -> Table:
        """A rich table: the designed law and the named ones, each with its chance, its trials and its epsilon."""
        try:
            from rich.box import SIMPLE_HEAD
            from rich.table import Table
        except ModuleNotFoundError:
            raise MissingExtraError("the table needs rich; install it with: pip install 'privselect[cli]'") from None
        goal = self.goal
        budget = "" if goal.mean is None else f", E K <= {float(goal.mean):g}"
        private = f"({write_value(goal.epsilon)}, {write_value(goal.delta)})-DP"
        title = f"chance of a trial in the best {goal.tau:.3g}, {private}, K <= {goal.cap}{budget}"
        table = Table(title=f"{title}\n{self.mechanism}", title_justify="left", caption_justify="left", box=SIMPLE_HEAD)
        table.add_column("law of K")
        for heading in ("chance", "E K", "largest K", "epsilon"):
            table.add_column(heading, justify="right", no_wrap=True)
        table.add_row("designed", *_cells(ParametricFit(self.count, self.chance, self.epsilon)), style="bold")
        for name, law in self.named.items():
            table.add_row(*((str(law.count), *_cells(law)) if law else (name, "-", "-", "-", "none allowed")))
        table.caption = f"{self._proved()}; {self.rounds} round{'s' if self.rounds != 1 else ''}"
        return table

    def _proved(self) -> str:
        if self.at_most is None:
            return f"no lower bound on the mechanism is proved; what could be certified is within {max(self.search_gap, 0.0):.1e}"
        limits = f"K <= {self.goal.cap}" + ("" if self.goal.mean is None else f" and E K <= {float(self.goal.mean):g}")
        return f"no law with {limits} has a chance above {format_up(self.at_most)} (gap {_gap_up(max(self.gap or 0.0, 0.0))})"

    def plot(self, path: str | Path) -> None:
        """Draw P(K >= k) of the designed law and the named ones into a .png, .pdf or .svg file."""
        from privselect.planning.design.design import draw

        draw(self, path)


def design(  # noqa: PLR0913 -- each is a word of the question
    mechanism: Mechanism, *, epsilon: float, delta: float, tau: float, cap: int, mean: float | None = None
) -> Design:
    r"""The law of K on {0, ..., cap} with the most chance of a trial in the best tau, such that the selection is (epsilon, delta)-DP.

    Claim: for a fixed score order and a fixed set S of counted outcomes, ``A(S) - e^epsilon A'(S) = sum_k P(k) c_k`` is linear in the law
    of K, and so is the chance ``1 - phi(1-tau) = sum_k P(k) (1 - (1-tau)^k)``. So delta is convex in the law, and with multipliers
    ``y_i, z >= 0`` every law with E K <= mean that is (epsilon, delta)-DP has

        chance <= delta sum_i y_i + z mean + max_k [1 - (1-tau)^k - sum_i y_i c_ik - z k].

    Holds when each cut c_i is an order of a pair that the mechanism dominates, as in ``at_most``. The law returned is certified by the
    accountant like any other, whatever the search did. ``mean`` is the budget for E K; without it, the cap alone limits the trials.
    Label: **Design**.
    """
    if not isinstance(mechanism, Mechanism):
        raise ParameterError(f"`mechanism` must be a mechanism such as gaussian(sigma=4), got {format_value(mechanism)}")
    goal = DesignGoal.checked(epsilon=epsilon, delta=delta, tau=tau, cap=cap, mean=mean)
    search = CuttingPlanes(mechanism, goal)
    search.run()
    rounds, (count, certified) = search.rounds, search.best()
    geometric, negative_binomial, binomial = best_geometric(search), best_negative_binomial(search), best_binomial(search)
    for known in (Fixed(k=1), *(named.count for named in (negative_binomial, binomial) if named is not None)):
        # A law with a name may be the best one, or as good: then the search has only come near it.
        if goal.affords_mean(known) and goal.chance(known) > goal.chance(count) and (other := search.law_of(known)) is not None:
            count, certified = max((count, certified), other, key=lambda law: goal.chance(law[0]))
    return Design(
        mechanism=mechanism,
        goal=goal,
        count=count,
        chance=goal.chance(count),
        at_most=search.at_most(),
        certifiable=search.certifiable(),
        epsilon=certified,
        rounds=rounds,
        geometric=geometric,
        negative_binomial=negative_binomial,
        binomial=binomial,
    )


def _plain(mean: Fraction | None) -> float | None:
    return None if mean is None else float(mean)


def _gap_up(gap: float) -> str:
    return f"{gap * 1.05:.1e}" if gap else "0"  # two digits, rounded up


def _cells(law: ParametricFit) -> tuple[str, str, str, str]:
    """Chance rounded down; the others rounded up."""
    largest = law.count.largest
    return (
        format_down(law.chance),
        format_up(law.count.expected() * (1.0 - 1e-12), 3),  # but for the rounding of a quotient
        "none" if largest is None else str(largest),
        format_up(float(law.epsilon.upper)),
    )


_BEYOND = 1.25  # a law without a cap is followed this far past the cap

_STYLES: dict[str, tuple[str, dict[str, Any]]] = {
    "designed": ("designed", BLACK),
    "geometric": ("geometric", BLUE),
    "negative_binomial": ("negative binomial, capped", GREEN),
    "binomial": ("binomial", VERMILION),
}


def survival_curves(design: Design) -> Curves:
    """``P(K >= k)`` of the designed law and of those named ones that there are: lists of one length, with ``k`` itself."""
    last = math.ceil(_BEYOND * design.goal.cap)
    laws = {"designed": design.count, **{name: law.count for name, law in design.named.items() if law is not None}}
    return {"k": [float(k) for k in range(last + 1)], **{name: survival_function(law, last) for name, law in laws.items()}}


def draw(design: Design, path: str | Path) -> None:
    """Draw :func:`survival_curves` into a .png, .pdf or .svg file, which appears whole or not at all."""
    file = check_plot_file(path)
    save_plot(_figure(design, survival_curves(design)), file)


def _figure(design: Design, curves: Curves) -> Figure:
    """One panel, the legend beside it. A Figure of its own: no global state of pyplot is touched."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.4, 4.6), dpi=200, layout="constrained")
    axes = figure.add_subplot()
    chances = {"designed": design.chance, **{name: law.chance for name, law in design.named.items() if law is not None}}
    for name, (label, style) in _STYLES.items():
        if name in curves:
            shown = f"{label}: {math.floor(chances[name] * 1e4) / 1e4:.4f}"
            axes.step(curves["k"], curves[name], where="pre", label=shown, **line_style(style))
    axes.set_xlabel("number of trials, k")
    axes.set_ylabel("P(K ≥ k)")
    axes.set_xlim(0.0, curves["k"][-1])
    axes.set_ylim(0.0, 1.02)
    style_axes(axes)
    figure.suptitle(_title(design), fontsize=9, x=0.01, ha="left")
    heading = f"chance of a trial\nin the best {design.goal.tau:.3g}"
    figure.legend(loc="outside right center", frameon=False, fontsize=9, handlelength=3.2, title=heading, title_fontsize=9)
    return figure


def _title(design: Design) -> str:
    goal = design.goal
    budget = "" if goal.mean is None else f", E K ≤ {float(goal.mean):g}"
    lines = textwrap.wrap(str(design.mechanism), width=100, max_lines=3)
    return "\n".join([*lines, f"({goal.epsilon:g}, {goal.delta:g})-DP, K ≤ {goal.cap}{budget}"])
