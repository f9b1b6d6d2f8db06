"""How a score is private. A raw score on private records is not: it is refused unless declared to be covered by the mechanism."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from privselect._util.validation import check_fraction, format_value
from privselect.certificates.score_privacy import KINDS, count_noise, counted
from privselect.errors import ParameterError
from privselect.tuning.holdout_split import keyed_split
from privselect.tuning.plan_ids import name_in_plan

if TYPE_CHECKING:
    from privselect._util.random_bits import Entropy
    from privselect.mechanisms import DiscreteGaussian


@dataclass(frozen=True, repr=False)
class Measured:
    """A noisy count on the hold-out, as a worker takes it."""

    correct: Callable[[Any, Any], Any]
    holdout: Any
    noise: DiscreteGaussian

    def score(self, artifact: Any, entropy: Entropy) -> int:
        """How many records of the hold-out the artifact gets right, plus the noise: a whole number, never a rate, as sizes are private."""
        answers = np.asarray(self.correct(artifact, self.holdout))
        records = record_count(self.holdout)
        if answers.dtype != np.bool_ or answers.shape != (records,):
            raise ParameterError(
                f"`correct` must return one true or false for each record of the hold-out, got type {answers.dtype}, shape {answers.shape}"
            )
        return int(np.count_nonzero(answers)) + self.noise.sample(entropy)


@dataclass(frozen=True, repr=False)
class Later:
    """A hold-out that is loaded when the data is, not before."""

    load: Callable[[], Any]


@dataclass(frozen=True)
class NoisyCount:
    """The score is the number of right answers on private records that no trial is trained on, plus discrete Gaussian noise.

    ``correct(artifact, holdout)`` returns a boolean for each record, which must depend on that record and the artifact alone;
    it must not raise, whatever a record holds, as a failed trial is seen without the noise.
    The hold-out is given apart (``holdout``), or split off by a keyed hash of each record's stable id: a ``fraction`` of the records,
    their ids by ``ids``, a function of the data or the name of a column. A split by index would let one record move all others.
    """

    correct: Callable[[Any, Any], Any]
    sigma: float
    holdout: Any = None
    fraction: Any = None
    ids: Callable[[Any], Any] | str | None = None

    def __post_init__(self) -> None:
        if not callable(self.correct):
            raise ParameterError(f"`correct` must be a function of the artifact and the hold-out, got {format_value(self.correct)}")
        object.__setattr__(self, "sigma", self.noise.sigma)
        if (self.holdout is None) == (self.fraction is None):
            raise ParameterError("a noisy count needs `holdout`, or `fraction` and `ids` to split one off, and not both")
        if self.fraction is not None:
            exact = check_fraction("fraction", self.fraction)
            if not 0 < exact < 1:
                raise ParameterError(f"`fraction` must be in (0, 1), got {format_value(self.fraction)}")
            object.__setattr__(self, "fraction", exact)
            if self.ids is None:
                raise ParameterError("`ids` must say how to find each record's stable id where the hold-out is split off, got none")

    def __repr__(self) -> str:
        return f"NoisyCount(correct={name_in_plan(self.correct)}, sigma={self.sigma})"  # never the hold-out

    @property
    def noise(self) -> DiscreteGaussian:
        """What the score costs: one record changes the count by at most 1."""
        return count_noise(self.sigma)

    def plain(self) -> dict[str, Any]:
        """As JSON has it."""
        apart = {"fraction": str(self.fraction), "ids": self.ids if isinstance(self.ids, str) else name_in_plan(self.ids)}
        how = "given apart" if self.fraction is None else apart
        return {"noisy_count": {"correct": name_in_plan(self.correct), "sigma": self.sigma, "holdout": how}}

    def loaded(self) -> NoisyCount:
        """With the hold-out itself where it was to be loaded."""
        return replace(self, holdout=self.holdout.load()) if isinstance(self.holdout, Later) else self

    def parts(self, data: Any, key: bytes) -> tuple[Any, Measured]:
        """The data to train on, and the count on the rest."""
        if self.fraction is None:
            return data, Measured(self.correct, self.holdout, self.noise)
        records = record_count(data)
        if records * min(self.fraction, 1 - self.fraction) < 1:
            raise ParameterError(f"`data` must have enough records for a hold-out of {self.fraction} of them, got too few")
        ids = data[self.ids] if isinstance(self.ids, str) else self.ids(data)  # type: ignore[misc]
        held = keyed_split(ids, self.fraction, key)
        if len(held) != records:
            raise ParameterError("`ids` must give one id for each record, got another number of them")
        trained, counted = rows(data, ~held), rows(data, held)
        if record_count(trained) != np.count_nonzero(~held) or record_count(counted) != np.count_nonzero(held):
            raise ParameterError(
                f"`data` must give the records that a mask of booleans marks, as arrays and tables do; a {type(data).__name__} does not: "
                "give it as arrays, or the hold-out apart"
            )
        return trained, Measured(self.correct, counted, self.noise)


Score = str | NoisyCount


def read_score(given: Any) -> Score:
    """A declared kind of score; there is no default, as no program can know."""
    if isinstance(given, NoisyCount) or (isinstance(given, str) and given in KINDS):
        return given
    got = "none" if given is None else format_value(given)
    raise ParameterError(
        "`score` must say how the score is private: 'public' (from the trial's private output and public data), NoisyCount(...) (on "
        f"private records, with noise), or 'covered' (you declare that the mechanism covers it), got {got}"
    )


def described_score(score: Score) -> str:
    """For the certificate."""
    if isinstance(score, NoisyCount):
        return counted(score.noise)
    return KINDS[score]


def record_count(data: Any) -> int:
    """The number of records: rows of an array or a table, entries of a list; a tuple or dict holds columns of one length."""
    if isinstance(data, tuple | Mapping):
        columns = list(data.values()) if isinstance(data, Mapping) else list(data)
        lengths = {_length(column) for column in columns}
        if len(lengths) != 1:
            raise ParameterError("`data` must have columns of one length to be split, got columns of different lengths")
        return lengths.pop()
    return _length(data)


def _length(column: Any) -> int:
    shape = getattr(column, "shape", None)  # a sparse matrix has no length
    return int(shape[0]) if shape else len(column)


def rows(data: Any, kept: Any) -> Any:
    """The records that are kept, in the form that the data has."""
    if isinstance(data, tuple):
        return tuple(_marked(column, kept) for column in data)
    if isinstance(data, Mapping):
        return {name: _marked(column, kept) for name, column in data.items()}
    return _marked(data, kept)


def _marked(column: Any, kept: Any) -> Any:
    if isinstance(column, list | tuple):
        return type(column)(record for record, keep in zip(column, kept, strict=True) if keep)
    return column[kept]
