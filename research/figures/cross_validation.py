"""Ten-fold cross-validation from sums over the folds, so each record is read once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from privselect.regression.sufficient_statistics import SufficientStatistics

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from research.figures.data_sets import Records

    Floats = NDArray[np.float64]

FOLDS = 10


class Sums:
    """X'X, X'y, y'y and the number of records: everything that ridge regression and its squared error need."""

    def __init__(self, rows: Floats, targets: Floats) -> None:
        self.statistics = SufficientStatistics.from_records(rows, targets)
        self.square = float(targets @ targets)

    def mean_squared_error(self, coefficients: Floats) -> float:
        """Return the mean squared error of the linear predictions ``x'coefficients``."""
        gram, moment = self.statistics.gram, self.statistics.moment
        total = self.square - 2.0 * float(moment @ coefficients) + float(coefficients @ gram @ coefficients)
        return max(total, 0.0) / self.statistics.records


def fold_errors(records: Records, fit: Callable[[SufficientStatistics], Floats], generator: np.random.Generator) -> Floats:
    """Return the mean squared error on each of ten random folds, fitted on the other nine."""
    order = generator.permutation(len(records.targets))
    folds = [Sums(records.rows[part], records.targets[part]) for part in np.array_split(order, FOLDS)]
    errors = []
    for left_out in folds:
        others = [fold.statistics for fold in folds if fold is not left_out]
        training = SufficientStatistics(
            np.sum([one.gram for one in others], axis=0),
            np.sum([one.moment for one in others], axis=0),
            sum(one.records for one in others),
        )
        errors.append(left_out.mean_squared_error(fit(training)))
    return np.array(errors)
