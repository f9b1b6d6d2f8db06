"""Figure 5: private linear regression, tuned."""

from __future__ import annotations

from typing import TYPE_CHECKING

from research.csv_io import read_csv
from research.figures.linear_regression import REPETITIONS, RESULTS, STORED, measure
from research.figures.regression_figure import RegressionPicture

if TYPE_CHECKING:
    from pathlib import Path

_PROCESSES = 2


def picture(data: Path | None = None) -> RegressionPicture:
    """Measure on the data in a folder, in minutes; without a folder, read the stored results."""
    if data is None:
        return RegressionPicture([dict(row) for row in read_csv(STORED / RESULTS)])
    return RegressionPicture(measure(str(data), REPETITIONS, _PROCESSES)[1])
