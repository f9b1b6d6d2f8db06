"""How tight: the gap between upper and lower, and how far the other bounds are above."""

from __future__ import annotations

import math
from dataclasses import dataclass

import privselect as ps
from privselect.errors import NotCoveredError
from privselect.selection.compare import paper_bound, renyi_bound

BASES = (
    "gaussian(sigma=4)",
    "laplace(scale=4)",
    "pure(epsilon=0.7)",
    "approximate(epsilon=0.4, delta=1e-12)",
    "points((0.1, 1e-3), (1, 1e-12))",
    "gdp(mu=0.25, delta=1e-12)",
    "mixture(0.5*gaussian(sigma=4), 0.5*gaussian(sigma=8))",
    "dpsgd(noise_multiplier=1.1, sampling_probability=256/60000, steps=14063)",
)
LAWS = (
    "geometric(mean=30)",
    "negative_binomial(eta=-0.5, mean=30)",
    "logarithmic(mean=30)",
    "negative_binomial(eta=5, mean=30)",
    "poisson(mean=10)",
    "binomial(n=20, p=0.5)",
)
DELTAS = (1e-5, 1e-8)
HARD = (  # small losses under very many trials, and laws that never draw K = 1
    ("pure(epsilon=0.05)", "negative_binomial(eta=-0.5, mean=1e6)", 1e-5),
    ("laplace(scale=20)", "negative_binomial(eta=0.5, mean=1e6)", 1e-8),
    ("gaussian(sigma=100)", "negative_binomial(eta=-0.5, mean=1e6)", 1e-5),
    ("gaussian(sigma=4)", "fixed(k=2)", 1e-6),
    ("gaussian(sigma=4)", "fixed(k=8)", 1e-6),
    ("gaussian(sigma=4)", "finite({0: 1, 5: 9})", 1e-6),
)
LARGE = 1e-2
LIMIT = 1e-3


@dataclass(frozen=True)
class Case:
    mechanism: str
    count: str
    delta: float
    upper: float
    gap: float  # upper/lower - 1; of the selection step alone where no lower end is proved
    selection_only: bool
    renyi_bound: float | None  # over upper
    paper_bound: float | None  # over upper

    @property
    def missed(self) -> bool:
        """The limit holds for delta <= 1e-5, bases with a whole profile, and laws of unbounded K."""
        profile = self.mechanism.startswith(("gaussian", "laplace", "pure", "approximate", "dpsgd"))
        bounded = self.count.startswith(("binomial", "fixed", "finite"))
        return profile and not bounded and self.delta <= 1e-5 and not self.gap < LIMIT

    def cells(self) -> tuple[str, ...]:
        gap = f"{self.gap:.1e}{' *' if self.selection_only else ''}"
        name = self.mechanism.split("(")[0]
        verdict = "MISSED" if self.missed else ""
        return name, self.count, f"{self.delta:g}", f"{self.upper:.5g}", gap, _shown(self.renyi), _shown(self.paper), verdict


def cases() -> list[Case]:
    grid = [(base, law, delta) for base in BASES for law in LAWS for delta in DELTAS]
    grid += [(base, "geometric(mean=30)", LARGE) for base in BASES]
    return [_case(*question) for question in (*grid, *HARD)]


def _case(mechanism: str, count: str, delta: float) -> Case:
    selection = ps.Selection(ps.parse(mechanism), ps.parse(count))
    answer = selection.epsilon_at(delta=delta)
    upper, lower = float(answer.upper), answer.lower
    gap = selection.selection_gap(delta) if lower is None else _gap(upper, float(lower))
    others = [_over(bound, selection, delta, upper) for bound in (renyi_bound, paper_bound)]
    return Case(mechanism, count, delta, upper, gap, lower is None, *others)


def _gap(upper: float, lower: float) -> float:
    return upper / lower - 1.0 if lower > 0.0 else 0.0 if upper == 0.0 else math.inf


def _over(bound, selection: ps.Selection, delta: float, upper: float) -> float | None:  # noqa: ANN001 -- one of compare's
    try:
        value = bound(selection.mechanism, selection.count, delta)
    except NotCoveredError:
        return None
    return value / upper if 0.0 < upper < math.inf else None


def _shown(quotient: float | None) -> str:
    return "-" if quotient is None else "infinite" if math.isinf(quotient) else f"{quotient:.3f}"
