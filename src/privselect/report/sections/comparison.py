"""What other ways of counting would have charged."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from privselect._util.plot_style import BOUND_STYLES as LOOKS
from privselect.certificates.certify import base_of, bounds_of, composition_of
from privselect.interval import Interval
from privselect.report.document import Bar, Bars, Figures, Section, Small, Table, paragraph
from privselect.report.number_format import at_most, listed, times_down
from privselect.selection.compare import MEANINGS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from privselect.certificates.certificate import Certificate
    from privselect.certificates.number_models import Bounds, Composition
    from privselect.report.document import Block
    from privselect.selection.compare import Comparison

# From what one trial costs, over the exact price, to what releasing all of them would.
_NAMES = {"base": "", "exact": "", "pointwise": "pointwise"} | {name: label for name, (label, _) in LOOKS.items()}
_KINDS = {"exact": "exact", "base": "alone", "composition": "other"}
_TOLD = {"paper": "the paper\u2019s privacy profiles", "renyi": "R\u00e9nyi divergences", "liu_talwar": "Liu and Talwar\u2019s bound"}


def the_others(certificate: Certificate, found: Comparison) -> Section | None:
    """Every bound beside the exact price of one run, as found here; None where nothing was chosen.

    What the certificate says of other bounds is only checked not to be too small, and here it would be too large that misleads.
    """
    bounds, composition = bounds_of(found), composition_of(found)
    if bounds is None or composition is None:
        return None
    prices = _prices(found, bounds, composition)
    return Section("comparison", "What others would have charged", tuple(_blocks(certificate, prices, composition.runs)))


def _prices(found: Comparison, bounds: Bounds, composition: Composition) -> dict[str, float | str]:
    exact = found.bounds["exact"]
    price = float(exact.upper) if isinstance(exact, Interval) else math.inf
    return {"base": base_of(found).upper, "exact": price, **dict(bounds), "composition": composition.epsilon}


def _blocks(certificate: Certificate, prices: dict[str, float | str], runs: int) -> Iterator[Block]:
    exact = prices["exact"]
    yield paragraph(*_sentences(certificate, prices, runs))
    bars = tuple(
        Bar(label, value, at_most(value), _KINDS.get(name, "bound"))
        for name, label in _NAMES.items()
        if name in LOOKS and isinstance(value := prices[name], float)  # not pointwise, which is nearly the exact one
    )
    said = "; ".join(f"{bar.label}: {bar.shown}" for bar in bars)
    yield Figures(((Bars("bounds", "epsilon by every bound", f"Bars of epsilon at the same delta. {said}.", bars), ()),))
    rows = tuple(
        ((label, Small(_meaning(name, runs))), (at_most(prices[name]),), (_times(prices[name], exact),)) for name, label in _NAMES.items()
    )
    yield Table("Epsilon at the same delta, by every bound", ("bound", "epsilon", "times the exact"), rows)


def _sentences(certificate: Certificate, prices: dict[str, float | str], runs: int) -> Iterator[str]:
    exact = prices["exact"]
    if certificate.run is not None and certificate.run.runs > 1:
        yield "This is about one of the runs. "
    yield f"The same selection, priced at the same delta: exactly, it costs {at_most(exact)}. "
    charged = [f"{times} times as much by {who}" for name, who in _TOLD.items() if (times := _times(prices[name], exact))]
    if charged:
        yield f"The bounds known before would have charged {listed(charged)}. "
    times = _times(prices["composition"], exact)
    if times and runs > 1:
        yield f"Releasing every one of {runs:,} trials, by plain composition, costs {times} times that, and is another thing to do. "
    yield "A smaller epsilon is the same mechanism, better understood."


def _times(value: float | str, exact: float | str) -> str:
    """Empty where a bound claims nothing, or where there is nothing to divide by."""
    return times_down(value, exact) if isinstance(value, float) and isinstance(exact, float) and exact > 0.0 else ""


def _meaning(name: str, runs: int) -> str:
    if name == "base":
        return "no selection"
    return f"{MEANINGS[name]} ({runs:,} of them)" if name == "composition" else MEANINGS[name]
