"""The comparison of the exact epsilon with other bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from privselect._util.plotting import BOUND_STYLES
from privselect.certificates.certify import final_alone, full_composition, other_bounds, trial_alone
from privselect.interval import Interval
from privselect.report.charts import Bar, BarChart
from privselect.report.number_format import format_upper, join_words, ratio_down
from privselect.selection.compare import MEANINGS

if TYPE_CHECKING:
    from privselect.certificates.model import BoundValue, PlanTerms
    from privselect.selection.compare import Comparison

# In the order of the page: from one trial alone to the release of all trials.
_LABELS = {"base": "", "final": "final training alone", "exact": "", "pointwise": "pointwise"}
_LABELS |= {name: label for name, (label, _) in BOUND_STYLES.items()}
_BAR_KINDS = {"exact": "exact", "base": "alone", "final": "alone", "composition": "other"}
_SOURCES = {"paper": "the paper\u2019s privacy profiles", "renyi": "R\u00e9nyi divergences", "liu_talwar": "Liu and Talwar\u2019s bound"}


def comparison_values(plan: PlanTerms, comparison: Comparison) -> dict[str, Any] | None:
    """Return the values of the section that compares bounds, for one run, or None if there is no law of K.

    The numbers are those of ``comparison``. Verification only checks that the bounds in a certificate are not too small.
    """
    bounds, composition, exact = other_bounds(comparison), full_composition(comparison), comparison.bounds["exact"]
    if bounds is None or composition is None or not isinstance(exact, Interval):
        return None
    epsilon, final = float(exact.upper), final_alone(plan)
    values: dict[str, BoundValue] = {"base": trial_alone(plan).upper, "exact": epsilon, **dict(bounds), "composition": composition.epsilon}
    if final is not None:
        values["final"] = final.upper
    labels = {name: label for name, label in _LABELS.items() if name in values}
    ratios = {name: _ratio(value, epsilon) for name, value in values.items()}
    bars = tuple(
        Bar(label, value, format_upper(value), _BAR_KINDS.get(name, "bound"))
        for name, label in labels.items()
        if name != "pointwise" and isinstance(value := values[name], float)  # pointwise is too close to exact to be seen
    )
    meanings = {**MEANINGS, "base": "no selection", "final": "no search"}
    meanings["composition"] = f"{MEANINGS['composition']} ({composition.runs:,} of them{'' if final is None else ', and the training'})"
    earlier = [f"{ratios[name]} by {source}" for name, source in _SOURCES.items() if ratios[name]]
    return {
        "exact": epsilon,
        "ratios": join_words(earlier) if earlier else "",
        "composition_runs": composition.runs,
        "composition_ratio": ratios["composition"] if composition.runs > 1 else "",
        "chart": BarChart(
            "bounds",
            "epsilon by every bound",
            f"Bars of epsilon at the same delta. {'; '.join(f'{bar.label}: {bar.value_label}' for bar in bars)}.",
            bars,
        ),
        "rows": [
            {"label": label, "meaning": meanings[name], "epsilon": values[name], "ratio": ratios[name]} for name, label in labels.items()
        ],
    }


def _ratio(value: float | str, exact: float) -> str:
    """Format the ratio to the exact epsilon; empty if the bound does not apply or the exact epsilon is 0."""
    return ratio_down(value, exact) if isinstance(value, float) and exact > 0.0 else ""
