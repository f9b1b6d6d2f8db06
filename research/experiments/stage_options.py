"""The ways to divide a budget between a search and a final training, and the noise that each requires.

The final training has ``split`` times the noise that it would need alone with the whole budget; the search gets the rest. A ``secret``
search releases the best of K trials. A ``visible`` search releases a fixed number of trials. ``scaling`` is a visible search with two
lengths of trials, for the linear scaling rule.

With a private hold-out, a training record is seen by the search trainings and the final training, and a held-out record by the noisy
counts and the final training. Each of the two has the whole budget.
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from privselect._util.atomic_files import atomic_write
from privselect.counts import Fixed, Geometric, NegativeBinomial
from privselect.mechanisms import DPSGD, Gaussian
from privselect.open_spec import UNKNOWN
from privselect.planning.plan import plan
from privselect.planning.search_range import FastOptions
from privselect.text_forms import parse
from research.csv_io import as_csv, read_csv
from research.experiments.banks import tell
from research.experiments.settings import DELTA, EPSILONS, SAMPLING, training, untuned_noise
from research.experiments.stage_bank import SEARCH_STEPS, SPLITS

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from privselect.counts import Count
    from research.csv_io import Row

MEANS = (10, 30, 100)  # of K: at most 11 full trainings of compute, since a search training is a tenth of one
VISIBLE = (4, 6, 10)
SHORT_STEPS = 20  # of the shorter half of the trials for the linear scaling rule


@dataclass(frozen=True, slots=True)
class StageOption:
    """One search and one split at one epsilon; ``trials`` is the law of K, fixed for a visible search."""

    epsilon: float
    search: str
    trials: Count
    split: float
    search_noise: float
    score_noise: float

    @property
    def final_noise(self) -> float:
        """The noise multiplier of the final training."""
        return self.split * untuned_noise(self.epsilon)

    @property
    def number(self) -> int:
        """The number of trials of a visible search."""
        return round(self.trials.expected())

    def as_row(self) -> Row:
        """Return the option as a table row."""
        return {
            "epsilon": self.epsilon,
            "search": self.search,
            "trials": str(self.trials),
            "split": self.split,
            "search_noise": self.search_noise,
            "final_noise": self.final_noise,
            "score_noise": self.score_noise,
        }

    @classmethod
    def from_row(cls, row: dict[str, str]) -> StageOption:
        """Read the option from a table row."""
        trials: Count = parse(row["trials"])
        numbers = (float(row[name]) for name in ("split", "search_noise", "score_noise"))
        return cls(float(row["epsilon"]), row["search"], trials, *numbers)


def stage_laws() -> tuple[Count, ...]:
    """Return the laws of K that a secret search may use."""
    return (*(Geometric(mean=mean) for mean in MEANS), *(NegativeBinomial(eta=5, mean=mean) for mean in MEANS))


def questions() -> list[tuple[float, str, Count, float]]:
    """Return every combination of epsilon, search, trials and split."""
    searches: list[tuple[str, Count]] = [("secret", law) for law in stage_laws()]
    searches += [(search, Fixed(k=trials)) for search in ("visible", "scaling") for trials in VISIBLE]
    return [(epsilon, search, trials, split) for epsilon in EPSILONS for search, trials in searches for split in SPLITS]


def stage_option(epsilon: float, search: str, trials: Count, split: float) -> StageOption:
    """Return the noise of search trials and of their scores so that both stages meet the budget together."""
    final = training(split * untuned_noise(epsilon))
    asked: dict[str, Any] = {"final": final, "epsilon": epsilon, "delta": DELTA, "fast": FastOptions()}
    if search == "secret":
        ways: tuple[dict[str, Any], dict[str, Any]] = ({"count": trials}, {"count": trials})
        steps = SEARCH_STEPS
    else:
        number = round(trials.expected())
        short = number // 2 if search == "scaling" else 0
        steps = short * SHORT_STEPS + (number - short) * SEARCH_STEPS  # all trials have the same noise, so their steps add up
        ways = ({"visible": 1}, {"visible": number})
    trained = plan(DPSGD(UNKNOWN, SAMPLING, steps), **ways[0], **asked)
    counted = plan(Gaussian(sigma=UNKNOWN), **ways[1], **asked)
    return StageOption(epsilon, search, trials, split, cast("float", trained.value), cast("float", counted.value))


def kept_stage_options(file: Path, jobs: int) -> list[StageOption]:
    """Return the noise of every search and split; recompute the stored table if it is for other searches."""
    kept = _read(file)
    if [(one.epsilon, one.search, one.trials, one.split) for one in kept] != questions():
        tell("finding the noise of every search and split")
        with ProcessPoolExecutor(jobs) as pool:
            found = list(pool.map(stage_option, *zip(*questions(), strict=True)))
        atomic_write(file, as_csv([option.as_row() for option in found]))
        kept = _read(file)
    return kept


def _read(file: Path) -> list[StageOption]:
    """Read the stored table of options; return an empty list if it is missing or damaged."""
    try:
        return [StageOption.from_row(row) for row in read_csv(file)]
    except (OSError, KeyError, TypeError, ValueError):
        return []
