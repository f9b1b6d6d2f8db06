"""Which theorems a total rests on, by their labels in docs/theorems.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from privselect.mechanisms import DPSGD, Composed, Disjoint, Gaussian, GaussianDP, Mixture, Renyi, SampledGaussian
from privselect.mechanisms.stated_guarantees import StatedPoints
from privselect.noisy_max import Gumbel, NoisyMax
from privselect.regression import OPS, ProposeTestRelease
from privselect.selection import Selection
from privselect.selection.selection import composed_trials

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
    "Mixture",
    "Disjoint",
    "Points",
    "Renyi, optimal",
    "Without replacement",
)


_ALONE: tuple[tuple[type, str], ...] = (
    (Mixture, "Mixture"),
    (Disjoint, "Disjoint"),
    (StatedPoints, "Points"),
    (Renyi, "Renyi, optimal"),
    (SampledGaussian, "Without replacement"),
    (ProposeTestRelease, "Propose-test-release"),
    (OPS, "Posterior sample"),
)
_NOISY_MAX: dict[type, tuple[str, ...]] = {Gaussian: ("Two levels", "Projected", "thm:max_sel"), Gumbel: ("Bounded range",)}


def theorem_labels(mechanism: Mechanism, *, lower: bool) -> tuple[str, ...]:
    """The labels for this mechanism and all it is made of; those of lower ends only where one is claimed."""
    used = {label for part in parts_of(mechanism) for label in _own_labels(part)}
    return tuple(label for label in _ORDER if label in used and (lower or not label.endswith("(lower)")))


def parts_of(mechanism: Mechanism) -> Iterator[Mechanism]:
    """The mechanism and, inside it, every other."""
    yield mechanism
    inner: list[Mechanism] = []
    if isinstance(mechanism, Selection):
        inner = [mechanism.mechanism]
    elif isinstance(mechanism, Mixture):
        inner = [part for _, part in mechanism.weighted]
    elif isinstance(mechanism, Composed | Disjoint):
        inner = list(mechanism.parts)
    elif isinstance(mechanism, ProposeTestRelease):
        inner = [mechanism.test, mechanism.target]
    for part in inner:
        yield from parts_of(part)


def _own_labels(mechanism: Mechanism) -> Iterator[str]:
    yield from (label for kind, label in _ALONE if isinstance(mechanism, kind))
    if isinstance(mechanism, Selection):
        yield from ("Exact (upper)", "Exact (lower)", "Ratio")
        if (composed_trials(mechanism.count) or 1) > 1:
            yield "Composition (upper)"  # of every trial, which bounds the winner too
    elif isinstance(mechanism, NoisyMax):
        yield from _NOISY_MAX.get(type(mechanism.noise), ("thm:max_sel",))
        if mechanism.rounds > 1:
            yield from ("Composition (upper)", "Composition (lower)")
    elif isinstance(mechanism, ProposeTestRelease) and _steps(Composed((mechanism.test, mechanism.target))) > 1:
        yield "Composition (upper)"
    elif isinstance(mechanism, Composed | DPSGD) and _steps(mechanism) > 1:
        yield from ("Composition (upper)", "Composition (lower)")


def _steps(mechanism: Mechanism) -> int:
    """How many steps are composed on a lattice; Gaussians are one Gaussian first, and so are those with a leak where there is no other."""
    steps = mechanism.as_parts()
    if all(isinstance(step, Gaussian | GaussianDP) for step, _ in steps):
        return 1
    return sum(count for step, count in steps if not isinstance(step, Gaussian)) + any(isinstance(step, Gaussian) for step, _ in steps)
