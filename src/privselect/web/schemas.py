"""The bodies of requests and answers, as the OpenAPI schema shows them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from privselect.web.limits import MOST_DESIGNED, MOST_NUMBER, MOST_TEXT

Form = StringConstraints(min_length=1, max_length=MOST_TEXT)
# A format is a name for those who read the schema, and for those who make up questions by it.
MechanismForm = Annotated[str, Form, Field(json_schema_extra={"format": "privselect-mechanism"})]
CountForm = Annotated[str, Form, Field(json_schema_extra={"format": "privselect-count"})]
TypedNumber = Annotated[
    str, StringConstraints(min_length=1, max_length=MOST_NUMBER), Field(json_schema_extra={"format": "privselect-number"})
]
Typed = Annotated[float, Field(strict=True)] | TypedNumber
Numbers = list[float | None]


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", str_strip_whitespace=True)


class Question(_Body):
    """Four fields, and exactly one ``?`` among them: what is to be solved for."""

    mechanism: MechanismForm = Field(description="What one trial leaks.", examples=["gaussian(sigma=?)"])
    count: CountForm | None = Field(default=None, description="The law of K; null for one trial.", examples=["geometric(mean=30)"])
    epsilon: Typed = Field(description="A number >= 0, as such or as text, or ?.", examples=[2.0])
    delta: Typed = Field(description="A number in (0, 1), as such or as text, or ?.", examples=["1e-6"])


class Nearby(Question):
    """A question much like one that has its answer."""

    near: Annotated[float, Field(strict=True)] | None = Field(default=None, description="Where to look first, to be quicker.")


class Settled(Question):
    """A question with its answer."""

    value: Annotated[float, Field(strict=True)] = Field(description="What is put in place of the ?.", examples=[3.6])


class DesignQuestion(_Body):
    """The law of K with the most chance of a good trial within a budget is asked for."""

    mechanism: MechanismForm = Field(description="What one trial leaks.", examples=["gaussian(sigma=4)"])
    epsilon: Typed = Field(examples=[2.0])
    delta: Typed = Field(examples=["1e-6"])
    tau: Typed = Field(default=0.01, description="The share of candidates that count as good, in (0, 1).")
    cap: Typed = Field(description=f"The most trials, up to {MOST_DESIGNED}.", examples=[20])
    mean: Typed | None = Field(default=None, description="The most trials on average; null for the cap alone.", examples=[10])


class Ends(BaseModel):
    """``lower <= truth <= upper``, both proved; null where an end is infinite, or a lower one is not proved."""

    lower: float | None
    upper: float | None


class Trials(BaseModel):
    """What the law of K says beforehand."""

    expected: float
    quantiles: dict[str, int]
    probability_of_zero: float
    chance_of_best: dict[str, float]


class Law(BaseModel):
    """``P(K >= k)``."""

    k: list[int]
    at_least: list[float]


class Answer(BaseModel):
    """The solved number, in words and in digits, and what the law of K says."""

    sentence: str
    proved: str
    unknown: str
    value: float | None = Field(description="Null where nothing finite is proved.")
    shown: str | None
    mechanism: str
    count: str | None
    epsilon: float | None
    delta: float | None
    cost: Ends = Field(description="Epsilon at delta.")
    base: Ends | None = Field(description="Epsilon of one trial alone.")
    trials: Trials
    law: Law | None
    python: str
    command: str


class AlongMean(BaseModel):
    """Epsilon by each bound along E K."""

    x: Numbers
    exact: Numbers
    exact_lower: Numbers
    paper: Numbers
    renyi: Numbers
    composition: Numbers
    base: Numbers


class Profile(BaseModel):
    """Epsilon along delta."""

    delta: Numbers
    exact: Numbers
    exact_lower: Numbers
    base: Numbers


class Curves(BaseModel):
    """Both curves; ``mean_note`` says why there is none along the mean."""

    mean: AlongMean | None
    mean_note: str | None
    profile: Profile


class Row(BaseModel):
    """One bound: what it charges for the answer, and what it would have forced instead."""

    name: str
    label: str
    epsilon: float | None
    ratio: float | None
    instead: float | None
    note: str | None


class Rows(BaseModel):
    """Every bound, the exact one first."""

    unknown: str
    rows: list[Row]


class DesignedLaw(BaseModel):
    """A law of K and what it gives."""

    count: str
    chance: float
    epsilon: Ends


class Designed(DesignedLaw):
    """The law with the most chance, beside the best ones with a name."""

    expected: float
    at_most: float | None = Field(description="No law with this budget has more chance; null where that is not proved.")
    named: dict[str, DesignedLaw | None]


class Complaint(BaseModel):
    """What is wrong, in one sentence, and the field that is to blame, where it is one."""

    field: str | None
    message: str


class Refusal(BaseModel):
    """Every answer that is none."""

    error: Complaint


def complaint(message: str, field: str | None = None) -> dict[str, Any]:
    """The body of a refusal."""
    return {"error": {"field": field, "message": message}}
