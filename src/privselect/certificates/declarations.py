"""What the user says and no program can know."""

from __future__ import annotations

from pydantic import Field

from privselect.certificates.strict_model import Frozen, Line, Lines

_NEEDED = {"unit": "the unit of privacy", "trust_model": "the trust model", "records_public": "whether the number of records is public"}


class Declared(Frozen):
    """The setting of a promise, in the user's own words; without the first three a certificate is a draft."""

    unit: Line | None = Field(default=None, description='Whose data is protected, such as "one person".')
    trust_model: Line | None = Field(default=None, description='Who sees what, such as "central: the curator sees the data".')
    records_public: bool | None = Field(default=None, description="Whether the number of records is public.")
    score: Line | None = Field(default=None, description="How the score is private.")
    not_covered: Lines = Field(default=(), description="Accesses to the data that the claim does not cover.")

    @property
    def missing(self) -> tuple[str, ...]:
        """What a certificate needs that is not declared, in words."""
        return tuple(words for name, words in _NEEDED.items() if getattr(self, name) is None)
