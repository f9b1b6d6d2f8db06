"""A promise: this mechanism, this law of K, within this budget. A plan file holds exactly these fields."""

from __future__ import annotations

from typing import cast

from pydantic import Field, field_validator

from privselect._util.validation import format_value
from privselect.certificates.canonical import digest
from privselect.certificates.declarations import Declared
from privselect.certificates.strict_model import Frozen
from privselect.counts import Count
from privselect.mechanisms import Mechanism
from privselect.selection import Selection
from privselect.text_forms import parse


class Promise(Frozen):
    """What is to be run, and the (epsilon, delta) that it must not exceed."""

    mechanism: str = Field(description="What one trial leaks, as a text form such as gaussian(sigma=4).")
    count: str | None = Field(
        default=None, description="The law of K, the number of trials, such as geometric(mean=30); null for one trial."
    )
    epsilon: float = Field(ge=0.0, description="The budget: no certificate is issued above it.")
    delta: float = Field(gt=0.0, lt=1.0)
    declared: Declared = Declared()

    @field_validator("mechanism")
    @classmethod
    def _read_mechanism(cls, text: str) -> str:
        described = parse(text)
        if not isinstance(described, Mechanism):
            raise ValueError(f"`mechanism` must be what one trial leaks, such as gaussian(sigma=4), got {format_value(described)}")  # noqa: TRY004 - pydantic catches ValueError
        return str(described)

    @field_validator("count")
    @classmethod
    def _read_count(cls, text: str | None) -> str | None:
        described = None if text is None else parse(text)
        if described is not None and not isinstance(described, Count):
            raise ValueError(f"`count` must be a law of K, such as geometric(mean=300), got {format_value(described)}")
        return None if described is None else str(described)

    def digest(self) -> str:
        """The hash of the plan."""
        return digest(self.plain())

    def described(self) -> Mechanism:
        """The mechanism that the promise is about: the selection, or one trial where there is no law of K."""
        mechanism = cast("Mechanism", parse(self.mechanism))
        return mechanism if self.count is None else Selection(mechanism, parse(self.count))
