"""How a score is private, and the split of the data into training records and hold-out.

A raw score on private records is not private. It is refused unless the user declares that the mechanism covers it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from privselect._util.validation import OPEN_UNIT, check_fraction, format_value
from privselect.certificates.model import SCORE_KINDS, describe_noisy_count, noise_of_count
from privselect.errors import ParameterError
from privselect.tuning.plan_ids import name_in_plan

if TYPE_CHECKING:
    from collections.abc import Iterable
    from fractions import Fraction

    from numpy.typing import NDArray

    from privselect._util.random_bits import Entropy
    from privselect.mechanisms import DiscreteGaussian

_HASH_BITS = 128
_HASH_PURPOSE = b"privselect split"  # the same key used for something else gives unrelated hashes
_MIN_KEY_BYTES, _MAX_KEY_BYTES = 16, 64  # fewer than 128 bits can be found by search, and blake2b takes at most 64 bytes


@dataclass(frozen=True, repr=False)
class HoldoutScorer:
    """The noisy count on the hold-out that a worker computes as the score."""

    correct: Callable[[Any, Any], Any]
    holdout: Any
    noise: DiscreteGaussian

    def score(self, artifact: Any, entropy: Entropy) -> int:
        """Return the number of correctly answered hold-out records plus noise; never a rate, because the size is private."""
        records = record_count(self.holdout)
        if records == 0:
            # Many predictors raise on no records. A failed trial would reveal, without noise, that the hold-out is empty.
            return self.noise.sample(entropy)
        answers = np.asarray(self.correct(artifact, self.holdout))
        if answers.dtype != np.bool_ or answers.shape != (records,):
            raise ParameterError(
                f"`correct` must return one true or false for each record of the hold-out, got type {answers.dtype}, shape {answers.shape}"
            )
        return int(np.count_nonzero(answers)) + self.noise.sample(entropy)


@dataclass(frozen=True, repr=False)
class LazyHoldout:
    """A hold-out that is loaded together with the data, not earlier."""

    load: Callable[[], Any]


@dataclass(frozen=True)
class NoisyCount:
    """A score: the number of correct answers on private hold-out records, plus discrete Gaussian noise.

    ``correct(artifact, holdout)`` returns a boolean for each record, which must depend on that record and the artifact only.
    It must not raise, whatever a record contains, because a failed trial is visible without the noise.
    Pass the hold-out as ``holdout``, or split it off by a keyed hash of each record's stable id: ``fraction`` of the records, with
    their ids from ``ids``, a function of the data or the name of a column. In a split by index, one record could move all others.
    If ``sigma`` is None, ``tune`` solves for it from the budget.
    """

    correct: Callable[[Any, Any], Any]
    sigma: float | None = None
    holdout: Any = None
    fraction: Any = None
    ids: Callable[[Any], Any] | str | None = None

    def __post_init__(self) -> None:
        if not callable(self.correct):
            raise ParameterError(f"`correct` must be a function of the artifact and the hold-out, got {format_value(self.correct)}")
        if self.sigma is not None:
            object.__setattr__(self, "sigma", self.noise.sigma)
        if (self.holdout is None) == (self.fraction is None):
            raise ParameterError("a noisy count needs either `holdout`, or `fraction` and `ids` to split one off, but not both")
        if self.fraction is not None:
            exact = check_fraction("fraction", self.fraction)
            if not 0 < exact < 1:
                raise ParameterError(f"`fraction` must be in (0, 1), got {format_value(self.fraction)}")
            object.__setattr__(self, "fraction", exact)
            if self.ids is None:
                raise ParameterError(
                    "`ids` must be a column name or a function that returns a stable id per record, to split off a hold-out, got none"
                )

    def __repr__(self) -> str:
        return f"NoisyCount(correct={name_in_plan(self.correct)}, sigma={self.sigma})"  # never the hold-out

    @property
    def noise(self) -> DiscreteGaussian:
        """The mechanism of the score: one record changes the count by at most 1."""
        if self.sigma is None:
            raise ParameterError("`sigma` of the noisy count must be stated or solved for first, got None")
        return noise_of_count(self.sigma)

    def with_sigma(self, sigma: float) -> NoisyCount:
        """Return the score with this noise."""
        return replace(self, sigma=sigma)

    def as_dict(self) -> dict[str, Any]:
        """Return the score for JSON."""
        split = {"fraction": str(self.fraction), "ids": self.ids if isinstance(self.ids, str) else name_in_plan(self.ids)}
        holdout = "given apart" if self.fraction is None else split
        return {"noisy_count": {"correct": name_in_plan(self.correct), "sigma": self.sigma, "holdout": holdout}}

    def split(self, data: Any, key: bytes) -> tuple[Any, Any]:
        """Return the data to train on, and the hold-out."""
        if self.fraction is None:
            return data, self.holdout
        records = record_count(data)
        if records * min(self.fraction, 1 - self.fraction) < 1:
            raise ParameterError(f"`data` must have enough records for a hold-out of {self.fraction} of them, got too few")
        ids = data[self.ids] if isinstance(self.ids, str) else self.ids(data)  # type: ignore[misc]
        held = keyed_split(ids, self.fraction, key)
        if len(held) != records:
            raise ParameterError("`ids` must give one id for each record, got another number of ids")
        return pick_records(data, ~held), pick_records(data, held)

    def scorer(self, holdout: Any) -> HoldoutScorer:
        """Return the scorer on this hold-out."""
        return HoldoutScorer(self.correct, holdout, self.noise)


Score = str | NoisyCount


def read_score(given: Any) -> Score:
    """Return a declared kind of score. There is no default, because no program can know the right one."""
    if isinstance(given, NoisyCount) or (isinstance(given, str) and given in SCORE_KINDS):
        return given
    got = "none" if given is None else format_value(given)
    raise ParameterError(
        "`score` must state how the score is private: 'public' (from the trial's private output and public data), NoisyCount(...) (on "
        f"private records, with noise), or 'covered' (you declare that the mechanism covers it), got {got}"
    )


def score_statement(score: Score) -> str:
    """Return how the score is private, for the certificate."""
    return describe_noisy_count(score.noise) if isinstance(score, NoisyCount) else SCORE_KINDS[score]


# -- records and the hold-out split --------------------------------------------------------------------------------------------


def record_count(data: Any) -> int:
    """Return the number of records: rows of an array or a table, entries of a list; a tuple or dict holds columns."""
    if isinstance(data, tuple | Mapping):
        lengths = {_length(column) for column in (data.values() if isinstance(data, Mapping) else data)}
        if len(lengths) != 1:
            raise ParameterError("`data` must have columns of the same length to be split, got different lengths")
        return lengths.pop()
    return _length(data)


def _length(column: Any) -> int:
    shape = getattr(column, "shape", None)  # a sparse matrix has no length
    return int(shape[0]) if shape else len(column)


def select_records(data: Any, mask: Any) -> Any:
    """Return the records marked by the mask, in the form of the data."""
    if isinstance(data, tuple):
        return tuple(_select(column, mask) for column in data)
    if isinstance(data, Mapping):
        return {name: _select(column, mask) for name, column in data.items()}
    return _select(data, mask)


def pick_records(data: Any, mask: NDArray[np.bool_]) -> Any:
    """Return the records marked by the mask; refuse data that reads a mask in another way."""
    try:
        picked = select_records(data, mask)
        selected = record_count(picked) == np.count_nonzero(mask)
    except Exception:  # noqa: BLE001 - from the user's data; its text may contain a record
        selected = False
    if not selected:
        raise ParameterError(
            f"`data` must support selecting records by a boolean mask, as arrays and tables do, got a {type(data).__name__}. "
            "Pass arrays, or pass the hold-out as `holdout`"
        )
    return picked


def _select(column: Any, mask: Any) -> Any:
    if isinstance(column, list | tuple):
        return type(column)(record for record, keep in zip(column, mask, strict=True) if keep)
    return column[mask]


def keyed_split(ids: Iterable[str | int | bytes], fraction: float | Fraction, key: bytes) -> NDArray[np.bool_]:
    """Return whether each record is held out: if the keyed hash of its id, as a number in [0, 1), is below ``fraction``.

    A record's side depends only on its id and the key. Adding or removing a record moves no other record. A shuffle, or a cut at an
    index, does not have this property: one record moves many others, and the two parts can no longer be accounted for separately.

    Repeated ids are allowed. Both records go to the same side, each by its own id, so the guarantee for one record holds. Refusing
    them would be an answer that depends on the records. If several records belong to one person, give all of them that person's id.
    The guarantee is then still for one record, unless training bounds the contribution of a person.

    Holds when ids are assigned and the key is fixed before the data is examined. An id may be a person's number, but not the position
    in a sorted file. The key may be public; with a secret key, no one can choose an id for the side it falls on.
    A ``fraction`` such as 0.2 means exactly 1/5.
    """
    share = check_fraction("fraction", fraction)
    if not 0 < share < 1:
        raise ParameterError(f"`fraction` must be {OPEN_UNIT}, got {format_value(fraction)}")
    if not isinstance(key, bytes) or not _MIN_KEY_BYTES <= len(key) <= _MAX_KEY_BYTES:
        given = f"{len(key)} bytes" if isinstance(key, bytes) else f"a {type(key).__name__}"
        raise ParameterError(f"`key` must be {_MIN_KEY_BYTES} to {_MAX_KEY_BYTES} bytes, got {given}")  # never the key itself
    if isinstance(ids, str | bytes):
        raise ParameterError(f"`ids` must contain one id for each record, got a single {type(ids).__name__}")
    below = share * 2**_HASH_BITS
    return np.fromiter((_hash_id(record, key) < below for record in ids), dtype=np.bool_)


def _hash_id(record: object, key: bytes) -> int:
    digest = hashlib.blake2b(_encode_id(record), key=key, digest_size=_HASH_BITS // 8, person=_HASH_PURPOSE)
    return int.from_bytes(digest.digest(), "big")


def _encode_id(record: object) -> bytes:
    """Encode different ids as different bytes; the first byte is their type."""
    if isinstance(record, str):
        return b"s" + record.encode("utf-8", "surrogatepass")
    if isinstance(record, bytes):
        return b"b" + record
    if isinstance(record, Integral) and not isinstance(record, bool):
        number = int(record)
        return b"i" + number.to_bytes(number.bit_length() // 8 + 1, "big", signed=True)
    raise ParameterError(f"`ids` must be texts, integers or bytes, got a {type(record).__name__}")
