"""The labels in docs/theorems.md of the theorems that a certificate uses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from privselect.mechanisms import DPSGD, Composed, Disjoint, Gaussian, GaussianDP, Mixture, Renyi, SampledGaussian, Subsampled
from privselect.mechanisms.factors import factors_of
from privselect.mechanisms.stated_guarantees import StatedPoints
from privselect.noisy_max import Gumbel, NoisyMax
from privselect.regression import OPS, ProposeTestRelease
from privselect.selection import Selection
from privselect.selection.selection import composable_trials

if TYPE_CHECKING:
    from collections.abc import Iterator

    from privselect.mechanisms import Mechanism

_ORDER = (
    "Exact (upper)",
    "Exact (lower)",
    "Ratio",
    "Two levels",
    "Projected",
    "Bounded range",
    "thm:max_sel",
    "Propose-test-release",
    "Posterior sample",
    "Composition (upper)",
    "Composition (lower)",
    "Product",
    "Mixture",
    "Disjoint",
    "Subsampled",
    "Points",
    "Renyi, optimal",
    "Without replacement",
)

_LABELS: tuple[tuple[type, str], ...] = (
    (Mixture, "Mixture"),
    (Disjoint, "Disjoint"),
    (Subsampled, "Subsampled"),
    (StatedPoints, "Points"),
    (Renyi, "Renyi, optimal"),
    (SampledGaussian, "Without replacement"),
    (ProposeTestRelease, "Propose-test-release"),
    (OPS, "Posterior sample"),
)
_NOISY_MAX_LABELS: dict[type, tuple[str, ...]] = {Gaussian: ("Two levels", "Projected", "thm:max_sel"), Gumbel: ("Bounded range",)}


def theorem_labels(mechanism: Mechanism, *, lower: bool) -> tuple[str, ...]:
    """Return the labels for the mechanism and all its parts; labels of lower bounds only if ``lower`` is true."""
    used = {label for part in walk_parts(mechanism) for label in _part_labels(part)}
    if isinstance(mechanism, Composed) and max(len(factors_of(case.composition_steps())) for case in mechanism.cases) > 1:
        used.add("Product")
    return tuple(label for label in _ORDER if label in used and (lower or not label.endswith("(lower)")))


def walk_parts(mechanism: Mechanism) -> Iterator[Mechanism]:
    """Yield the mechanism and, recursively, all mechanisms inside it."""
    yield mechanism
    inner: list[Mechanism] = []
    if isinstance(mechanism, Selection | Subsampled):
        inner = [mechanism.mechanism]
    elif isinstance(mechanism, Mixture):
        inner = [part for _, part in mechanism.weighted_parts]
    elif isinstance(mechanism, Composed | Disjoint):
        inner = list(mechanism.parts)
    elif isinstance(mechanism, ProposeTestRelease):
        inner = [mechanism.test, mechanism.target]
    for part in inner:
        yield from walk_parts(part)


def _part_labels(mechanism: Mechanism) -> Iterator[str]:
    yield from (label for kind, label in _LABELS if isinstance(mechanism, kind))
    if isinstance(mechanism, Selection):
        yield from ("Exact (upper)", "Exact (lower)", "Ratio")
        if (composable_trials(mechanism.count) or 1) > 1:
            yield "Composition (upper)"  # the release of all trials bounds the release of the winner
    elif isinstance(mechanism, NoisyMax):
        yield from _NOISY_MAX_LABELS.get(type(mechanism.noise), ("thm:max_sel",))
        if mechanism.rounds > 1:
            yield from ("Composition (upper)", "Composition (lower)")
    elif isinstance(mechanism, ProposeTestRelease) and _composed_steps(Composed((mechanism.test, mechanism.target))) > 1:
        yield "Composition (upper)"
    elif isinstance(mechanism, Composed | DPSGD) and _composed_steps(mechanism) > 1:
        yield from ("Composition (upper)", "Composition (lower)")


def _composed_steps(mechanism: Mechanism) -> int:
    """Return the number of steps composed numerically; all Gaussian steps together count as one."""
    steps = mechanism.composition_steps()
    if all(isinstance(step, Gaussian | GaussianDP) for step, _ in steps):
        return 1
    return sum(count for step, count in steps if not isinstance(step, Gaussian)) + any(isinstance(step, Gaussian) for step, _ in steps)
