"""A data set split into training, validation and test parts, in coordinates in which X'X of the training part is diagonal."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from privselect.errors import ParameterError
from privselect.regression.sufficient_statistics import SufficientStatistics
from research.figures.cross_validation import Sums

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from research.figures.data_sets import Records

    Floats = NDArray[np.float64]

TRAINING, VALIDATION = 0.6, 0.1  # shares; the rest is the test part
CLIP = 0.25  # maximum squared error of a record in a private score
_SPREAD = 6.0


@dataclass(frozen=True, slots=True, repr=False)
class Problem:
    """The parts of a split data set. Coefficients refer to the eigenvectors of the training part's X'X, one row for each trial.

    ``training`` holds the sums in the original columns, ``values`` the eigenvalues, ``moment`` X'y in the eigenvectors.
    """

    training: SufficientStatistics
    vectors: Floats
    values: Floats
    moment: Floats
    validation: tuple[Floats, Floats]
    test: Sums

    def validation_errors(self, coefficients: Floats) -> Floats:
        """Return mean squared errors on the validation records: as published, not private."""
        rows, targets = self.validation
        return np.asarray(np.mean((coefficients @ rows.T - targets) ** 2, axis=1))

    def clipped_sums(self, coefficients: Floats) -> Floats:
        """Return sums of squared validation errors, each clipped at ``CLIP``: one record moves a sum by at most ``CLIP``."""
        rows, targets = self.validation
        return np.asarray(np.minimum((coefficients @ rows.T - targets) ** 2, CLIP).sum(axis=1))

    def test_error(self, coefficients: Floats) -> float:
        """Return the mean squared test error of one trial's coefficients."""
        return self.test.mean_squared_error(coefficients)

    def solutions(self, ridges: Floats) -> Floats:
        """Return the ridge regression solutions."""
        return np.asarray(self.moment / (self.values + ridges[:, None]))


def split_problem(records: Records, generator: np.random.Generator) -> Problem:
    """Split by an independent draw for each record, as with a keyed hash of its id: an additional record moves no other record.

    The size of the training part is therefore random. The public number of records exceeds it except with probability 1e-9; a larger
    training part raises an error.
    """
    places = generator.random(len(records.targets))
    train, check = places < TRAINING, (places >= TRAINING) & (places < TRAINING + VALIDATION)
    test = ~(train | check)
    public = public_records(len(places))
    if train.sum() > public:
        raise ParameterError(f"`records` must be at least the {int(train.sum())} records of the training part, got {public}")
    training = SufficientStatistics.from_records(records.rows[train], records.targets[train], public)
    values, vectors = np.linalg.eigh(training.gram)
    return Problem(
        training,
        vectors,
        np.maximum(values, 0.0),
        vectors.T @ training.moment,
        (records.rows[check] @ vectors, records.targets[check]),
        Sums(records.rows[test] @ vectors, records.targets[test]),
    )


def public_records(total: int) -> int:
    """Return a public number of training records: six deviations above the mean."""
    return math.ceil(TRAINING * total + _SPREAD * math.sqrt(TRAINING * (1.0 - TRAINING) * total))
