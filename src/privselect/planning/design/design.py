"""**Design**: the best law of K under a privacy budget."""

from __future__ import annotations

import math
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from privselect._util.plotting import BLACK, BLUE, GREEN, VERMILION, check_plot_file, line_style, save_plot, style_axes
from privselect._util.rich_tables import rich_table
from privselect._util.rounding import format_down, format_up
from privselect._util.validation import format_value
from privselect.counts import Fixed
from privselect.errors import ParameterError
from privselect.mechanisms import Mechanism
from privselect.planning.design.cutting_planes import CuttingPlanes
from privselect.planning.design.goal import DesignGoal
from privselect.planning.design.parametric_fits import ParametricFit, best_binomial, best_geometric, best_negative_binomial
from privselect.planning.plan_result import survival_function
from privselect.text_forms import write_value

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure
    from rich.table import Table

    from privselect.counts import Finite
    from privselect.interval import Interval

_BEYOND_CAP = 1.25  # plots of laws of K without a cap stop here, relative to the cap
_STYLES: dict[str, tuple[str, dict[str, Any]]] = {
    "designed": ("designed", BLACK),
    "geometric": ("geometric", BLUE),
    "negative_binomial": ("negative binomial, capped", GREEN),
    "binomial": ("binomial", VERMILION),
}


@dataclass(frozen=True, slots=True)
class Design:
    """The best law of K found, its certified cost, and the best laws of parametric families (None if none is allowed).

    - ``success_probability``: the probability of at least one trial in the best fraction tau of candidates, rounded down.
    - ``upper_bound``: a proved bound on it for every law of K that is (epsilon, delta)-DP with K <= cap and E K <= mean. None if no lower
      bound on the mechanism is proved.
    - ``certifiable_upper_bound``: a proved bound on it for every law of K that the accountant could certify.
    - ``epsilon``: the certified epsilon at delta.
    - ``iterations``: the number of iterations of the search.
    """

    mechanism: Mechanism
    goal: DesignGoal
    count: Finite
    success_probability: float
    upper_bound: float | None
    certifiable_upper_bound: float
    epsilon: Interval
    iterations: int
    geometric: ParametricFit | None
    negative_binomial: ParametricFit | None
    binomial: ParametricFit | None

    @property
    def gap(self) -> float | None:
        """``upper_bound/success_probability - 1``: the largest possible improvement by another law of K."""
        return None if self.upper_bound is None else self.upper_bound / self.success_probability - 1.0

    @property
    def search_gap(self) -> float:
        """``certifiable_upper_bound/success_probability - 1``: the part of the gap that comes from the search."""
        return self.certifiable_upper_bound / self.success_probability - 1.0

    @property
    def fits(self) -> dict[str, ParametricFit | None]:
        """The best laws of K of parametric families; the geometric one has no cap."""
        return {"geometric": self.geometric, "negative_binomial": self.negative_binomial, "binomial": self.binomial}

    def as_dict(self) -> dict[str, object]:
        """Return JSON data."""
        return {
            "mechanism": str(self.mechanism),
            "goal": self.goal.as_dict(),
            "count": str(self.count),
            "success_probability": self.success_probability,
            "upper_bound": self.upper_bound,
            "gap": self.gap,
            "search_gap": self.search_gap,
            "expected": self.count.expected(),
            "epsilon": self.epsilon.as_dict(),
            "iterations": self.iterations,
            "fits": {name: None if fit is None else fit.as_dict() for name, fit in self.fits.items()},
        }

    def table(self) -> Table:
        """Return a rich table: the designed and the parametric laws of K with success probability, trials and epsilon."""
        goal, numbers = self.goal, ("success", "E K", "largest K", "epsilon")
        private = f"({write_value(goal.epsilon)}, {write_value(goal.delta)})-DP"
        title = f"probability of a trial in the best {goal.tau:.3g}, {private}, {goal.limits(', ')}\n{self.mechanism}"
        rows = [("designed", *_cells(ParametricFit(self.count, self.success_probability, self.epsilon)))]
        for name, fit in self.fits.items():
            rows.append((str(fit.count), *_cells(fit)) if fit else (name, "-", "-", "-", "none allowed"))
        caption = f"{self._proved()}; {self.iterations} iteration{'s' if self.iterations != 1 else ''}"
        return rich_table(("law of K", *numbers), rows, title=title, caption=caption, right=numbers, wrap=("law of K",), bold=0)

    def _proved(self) -> str:
        if self.upper_bound is None:
            return f"no lower bound on the mechanism is proved; the search gap is {max(self.search_gap, 0.0):.1e}"
        gap = max(self.gap or 0.0, 0.0) * 1.05  # two digits, rounded up
        text = f"{gap:.1e}" if gap else "0"
        return f"no law of K with {self.goal.limits(' and ')} has a probability above {format_up(self.upper_bound)} (gap {text})"

    def plot(self, path: str | Path) -> None:
        """Plot P(K >= k) of the designed and the parametric laws of K to a .png, .pdf or .svg file, atomically."""
        file = check_plot_file(path)
        save_plot(_figure(self), file)


def design(  # noqa: PLR0913 -- the parts of a goal
    mechanism: Mechanism, *, epsilon: float, delta: float, tau: float, cap: int, mean: float | None = None
) -> Design:
    r"""Find the law of K on {0, ..., cap} with the largest success probability whose selection is (epsilon, delta)-DP.

    Success means that at least one trial is in the best fraction tau of candidates.

    Claim: for a fixed score order and a fixed set S of counted outcomes, ``A(S) - e^epsilon A'(S) = sum_k P(k) c_k`` is linear in the law
    of K, and so is the success probability ``1 - phi(1-tau) = sum_k P(k) (1 - (1-tau)^k)``. So delta is convex in the law of K.
    With multipliers ``y_i, z >= 0``, every law of K with E K <= mean that is (epsilon, delta)-DP has

        success probability <= delta sum_i y_i + z mean + max_k [1 - (1-tau)^k - sum_i y_i c_ik - z k].

    Holds when each cut c_i is an order of a pair that the mechanism dominates, as in ``upper_bound``. The ordinary accountant certifies
    the returned law of K, independently of the search. ``mean`` is the budget for E K; without it, only the cap limits the trials.
    Label: **Design**.
    """
    if not isinstance(mechanism, Mechanism):
        raise ParameterError(f"`mechanism` must be a mechanism such as gaussian(sigma=4), got {format_value(mechanism)}")
    goal = DesignGoal.validated(epsilon=epsilon, delta=delta, tau=tau, cap=cap, mean=mean)
    search = CuttingPlanes(mechanism, goal)
    search.run()
    iterations, (count, certified) = search.iterations, search.best()
    geometric, negative_binomial, binomial = best_geometric(search), best_negative_binomial(search), best_binomial(search)
    for known in (Fixed(k=1), *(fit.count for fit in (negative_binomial, binomial) if fit is not None)):
        # A parametric law of K may be optimal or nearly so; the search then only comes close to it.
        better = goal.success_probability(known) > goal.success_probability(count)
        if goal.meets_mean(known) and better and (other := search.as_certified_table(known)) is not None:
            count, certified = max((count, certified), other, key=lambda law: goal.success_probability(law[0]))
    return Design(
        mechanism=mechanism,
        goal=goal,
        count=count,
        success_probability=goal.success_probability(count),
        upper_bound=search.upper_bound(),
        certifiable_upper_bound=search.certifiable_upper_bound(),
        epsilon=certified,
        iterations=iterations,
        geometric=geometric,
        negative_binomial=negative_binomial,
        binomial=binomial,
    )


def survival_curves(design: Design) -> dict[str, list[float]]:
    """Return ``P(K >= k)`` of the designed and of the parametric laws of K, and ``k`` itself: lists of equal length."""
    last = math.ceil(_BEYOND_CAP * design.goal.cap)
    laws = {"designed": design.count, **{name: fit.count for name, fit in design.fits.items() if fit is not None}}
    return {"k": [float(k) for k in range(last + 1)], **{name: survival_function(law, last) for name, law in laws.items()}}


def _cells(fit: ParametricFit) -> tuple[str, str, str, str]:
    """Return the success probability rounded down, and the other numbers rounded up."""
    largest = fit.count.largest
    return (
        format_down(fit.success_probability),
        format_up(fit.count.expected() * (1.0 - 1e-12), 3),  # ignores the rounding error of a quotient
        "none" if largest is None else str(largest),
        format_up(float(fit.epsilon.upper)),
    )


def _figure(design: Design) -> Figure:
    """Return a figure with one panel; pyplot's global state is not used."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.4, 4.6), dpi=200, layout="constrained")
    axes = figure.add_subplot()
    curves = survival_curves(design)
    probabilities = {name: fit.success_probability for name, fit in design.fits.items() if fit is not None}
    probabilities["designed"] = design.success_probability
    for name, (label, style) in _STYLES.items():
        if name in curves:
            text = f"{label}: {math.floor(probabilities[name] * 1e4) / 1e4:.4f}"
            axes.step(curves["k"], curves[name], where="pre", label=text, **line_style(style))
    axes.set_xlabel("number of trials, k")
    axes.set_ylabel("P(K ≥ k)")
    axes.set_xlim(0.0, curves["k"][-1])
    axes.set_ylim(0.0, 1.02)
    style_axes(axes)
    goal = design.goal
    mechanism = textwrap.wrap(str(design.mechanism), width=100, max_lines=3)
    limits = goal.limits(", ").replace("<=", "≤")
    figure.suptitle("\n".join([*mechanism, f"({goal.epsilon:g}, {goal.delta:g})-DP, {limits}"]), fontsize=9, x=0.01, ha="left")
    heading = f"probability of a trial\nin the best {goal.tau:.3g}"
    figure.legend(loc="outside right center", frameon=False, fontsize=9, handlelength=3.2, title=heading, title_fontsize=9)
    return figure
