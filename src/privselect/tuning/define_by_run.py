"""What a trial that draws its own candidate hands back: the candidate and its laws, before the bytes of the artifact."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from privselect.tuning.randomness.key_derivation import Stream
from privselect.tuning.release import written
from privselect.tuning.space import Suggest

if TYPE_CHECKING:
    from privselect.tuning.space import Candidate

_LENGTH = 8  # bytes of the number that comes first


class Told(NamedTuple):
    """Secret, unless its trial wins."""

    candidate: Candidate
    laws: dict[str, Any]
    content: bytes

    def __repr__(self) -> str:
        return "Told(...)"


def suggest_from(candidate: Candidate) -> Suggest:
    """What the objective asks: the same stream from which a space would have drawn."""
    return Suggest(Stream(bytes.fromhex(candidate["stream"])), any_name=True)


def packed(suggest: Suggest, content: bytes) -> bytes:
    """One piece, as a ledger keeps it."""
    head = written({"candidate": suggest.drawn, "laws": {name: law.plain() for name, law in suggest.laws.items()}})
    return len(head).to_bytes(_LENGTH, "big") + head + content


def unpacked(piece: bytes) -> Told:
    """The parts of it."""
    end = _LENGTH + int.from_bytes(piece[:_LENGTH], "big")
    head = json.loads(piece[_LENGTH:end])
    return Told(head["candidate"], head["laws"], piece[end:])
