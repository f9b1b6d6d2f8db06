"""Which records are held out: by a keyed hash of the record's id, so that no record moves another."""

from __future__ import annotations

import hashlib
from numbers import Integral
from typing import TYPE_CHECKING

import numpy as np

from privselect._util.validation import OPEN_UNIT, check_fraction, format_value
from privselect.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from fractions import Fraction

    from numpy.typing import NDArray

_BITS = 128
_PURPOSE = b"privselect split"  # the same key used for something else gives unrelated hashes
_SHORTEST, _LONGEST = 16, 64  # bytes of a key: less than 128 bits can be searched for, and blake2b takes no more than 64


def keyed_split(ids: Iterable[str | int | bytes], fraction: float | Fraction, key: bytes) -> NDArray[np.bool_]:
    """Whether each record is held out: where the keyed hash of its id, as a number in [0, 1), is below ``fraction``.

    A record's side depends on its own id and the key alone. With one record more or less all others stay where they are, which a
    shuffle or a cut at an index does not give: there one record moves many from one part to the other, and the two parts can no
    longer be accounted for apart.

    Ids that occur twice are allowed. Both records then go to the same side, and each still goes there by its own id alone, so the
    promise to one record holds; refusing them would be an answer that depends on the records. Where several records are of one
    person, give all of them that person's id; the promise is then still to one record, unless the training bounds what a person adds.

    Holds when ids are given before the data is looked at (a person's number, not the position in the file after sorting), and the key
    is fixed before it too. The key may be public; with one that is not, nobody can choose an id for the side it falls on.
    A ``fraction`` such as 0.2 means exactly 1/5.
    """
    share = check_fraction("fraction", fraction)
    if not 0 < share < 1:
        raise ParameterError(f"`fraction` must be {OPEN_UNIT}, got {format_value(fraction)}")
    if not isinstance(key, bytes) or not _SHORTEST <= len(key) <= _LONGEST:
        given = f"{len(key)} bytes" if isinstance(key, bytes) else f"a {type(key).__name__}"
        raise ParameterError(f"`key` must be {_SHORTEST} to {_LONGEST} bytes, got {given}")  # never the key itself
    if isinstance(ids, str | bytes):
        raise ParameterError(f"`ids` must hold one id for each record, got a single {type(ids).__name__}")
    below = share * 2**_BITS
    return np.fromiter((_hashed(record, key) < below for record in ids), dtype=np.bool_)


def _hashed(record: object, key: bytes) -> int:
    digest = hashlib.blake2b(_encoded(record), key=key, digest_size=_BITS // 8, person=_PURPOSE)
    return int.from_bytes(digest.digest(), "big")


def _encoded(record: object) -> bytes:
    """Different ids as different bytes: the first one tells their type."""
    if isinstance(record, str):
        return b"s" + record.encode("utf-8", "surrogatepass")
    if isinstance(record, bytes):
        return b"b" + record
    if isinstance(record, Integral) and not isinstance(record, bool):
        number = int(record)
        return b"i" + number.to_bytes(number.bit_length() // 8 + 1, "big", signed=True)
    raise ParameterError(f"`ids` must be texts, whole numbers or bytes, got a {type(record).__name__}")
