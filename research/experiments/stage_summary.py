"""Averages of two-stage tuning over the settings, and what was demanded of it before the experiment.

``python -m research.experiments.stage_summary FOLDER`` prints both for the tables in the folder.

All values are means over settings within each repetition; the intervals are over the repetitions, which are independent.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np

from privselect._util.validation import format_value
from privselect.errors import ParameterError, PrivselectError
from research.csv_io import read_csv
from research.experiments.results import interval
from research.experiments.stage_results import LEAST

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Rows = Sequence[dict[str, str]]

LABELS = {
    "one_shot": "one shot",
    "two_stages_0": "two stages, w = 0",
    "two_stages_50": "two stages, w = 0.5",
    "two_stages_90": "two stages, w = 0.9",
    "two_stages_100": "two stages, w = 1",
    "visible_tpe": "visible, TPE",
    "visible_tpe_defaults": "visible, defaults then TPE",
    "visible_scaling": "visible, scaling rule",
    "free": "free tuning (not private)",
    "mean_default": "default, mean of three",
    "best_default": "default, luckiest of three",
}
GOAL = ("public", 1.0)  # validation and epsilon of the demands
LEAST_SHARE, MOST_BEHIND = 0.6, 0.01
_TABLE = "two_stages_repetitions.csv"


@dataclass(frozen=True, slots=True, eq=False)
class Averages:
    """``values[regime]`` has the accuracy of each setting (rows) in each repetition (columns)."""

    settings: tuple[str, ...]
    values: Mapping[str, Floats]

    def mean(self, regime: str) -> Floats:
        """Return the average over the settings in each repetition."""
        return np.asarray(self.values[regime].mean(axis=0))

    def only(self, kept: Callable[[str], bool]) -> Averages:
        """Return the averages over the settings whose name is accepted."""
        places = [place for place, name in enumerate(self.settings) if kept(name)]
        return Averages(tuple(self.settings[place] for place in places), {name: one[places] for name, one in self.values.items()})


@dataclass(frozen=True, slots=True)
class Finding:
    """One number with its interval; ``met`` is None if nothing was demanded of it."""

    text: str
    demanded: str
    mean: float
    low: float
    high: float
    unit: str
    met: bool | None


def averages(single: Rows, validation: str, epsilon: float) -> Averages | None:
    """Return the accuracies by regime over the repetitions that all settings have; None if there are fewer than two of these."""
    found: dict[str, dict[str, dict[int, float]]] = {}
    for row in single:
        if (row["validation"], float(row["epsilon"])) == (validation, epsilon):
            found.setdefault(row["regime"], {}).setdefault(row["setting"], {})[int(row["repetition"])] = float(row["accuracy"])
    settings = tuple(dict.fromkeys(name for own in found.values() for name in own))
    whole = {regime: own for regime, own in found.items() if len(own) == len(settings)}
    if not whole:
        return None
    shared = sorted(set.intersection(*(set(own[name]) for own in whole.values() for name in settings)))
    if len(shared) < LEAST:
        return None
    return Averages(settings, {regime: np.array([[own[name][at] for at in shared] for name in settings]) for regime, own in whole.items()})


def share_closed(found: Averages, regime: str, ceiling: Floats) -> tuple[float, float, float]:
    """Return which share of the distance from one shot to the ceiling a regime closes, with its 95% interval.

    The share is a ratio of averages; its interval is that of the ratio's linearization.
    """
    gained, distance = found.mean(regime) - found.mean("one_shot"), ceiling - found.mean("one_shot")
    share = float(gained.mean() / distance.mean())
    _, low, high = (end / float(distance.mean()) for end in _interval(gained - share * distance))
    return share, share + low, share + high


def better_of(found: Averages, *regimes: str) -> Floats:
    """Return the average over the settings if each has the regime with the largest mean."""
    each = np.array([found.values[regime] for regime in regimes])
    best = each.mean(axis=2).argmax(axis=0)
    return np.asarray(each[best, np.arange(len(found.settings))].mean(axis=0))


def findings(single: Rows) -> list[Finding]:
    """Return the demands with their outcomes, and two stricter readings of the first one."""
    found = averages(single, *GOAL)
    if found is None:
        return []
    half, most = "two stages with w = 0.5", "two stages with w = 0.9"
    plain = found.only(lambda name: "hard" not in name)
    shares = [
        (f"{half}: share of the distance from one shot to free tuning", "at least 60%", found, found.mean("free")),
        (f"{half}: the same share in the plain search space only", "", plain, plain.mean("free")),
        (f"{half}: the same share, to free tuning or the luckiest default", "", found, better_of(found, "free", "best_default")),
    ]
    made = []
    for text, demanded, own, ceiling in shares:
        share = share_closed(own, "two_stages_50", ceiling)
        made.append(Finding(text, demanded, *share, "share", share[0] >= LEAST_SHARE if demanded else None))
    behind = _interval(found.mean("best_default") - found.mean("two_stages_90"))
    ahead = _interval(found.mean("two_stages_90") - found.mean("mean_default"))
    made.append(Finding(f"{most}: behind the luckiest default", "at most 1 point", *behind, "points", behind[0] <= MOST_BEHIND))
    made.append(Finding(f"{most}: ahead of the mean default", "more than 0 points", *ahead, "points", ahead[0] > 0.0))
    return made


def _interval(values: Floats) -> tuple[float, float, float]:
    """Return the mean and the ends of its 95% interval."""
    mean, low, high = (cast("float", end) for end in interval("x", values).values())
    return mean, low, high


def main(arguments: list[str] | None = None) -> None:
    """Print the averages and the outcomes of the demands."""
    from research.experiments.stage_tables import averages_table, findings_table

    parser = argparse.ArgumentParser(description="Averages of two-stage tuning over the settings.")
    parser.add_argument("folder", help=f"folder with {_TABLE}")
    file = Path(parser.parse_args(arguments).folder) / _TABLE
    try:
        if not file.is_file():
            raise ParameterError(f"`folder` must hold {_TABLE}, got {format_value(str(file.parent))}")
    except PrivselectError as refusal:
        parser.error(str(refusal))
    single = read_csv(file)
    print(averages_table(single), findings_table(single), sep="\n\n")


if __name__ == "__main__":
    main()
