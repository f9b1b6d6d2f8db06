"""The JSON bodies of requests and responses. They validate every request and define the OpenAPI schema."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints

from privselect._util.validation import NON_NEGATIVE, OPEN_UNIT, POSITIVE, Range, check_number, format_value, integer_range, truncate
from privselect.errors import PrivselectError
from privselect.text_forms import parse_parameter
from privselect.web.limits import MAX_DESIGN_CAP, MAX_NUMBER_CHARS, MAX_TEXT_CHARS, MAX_VISIBLE, MIN_DELTA

if TYPE_CHECKING:
    from collections.abc import Mapping

UNKNOWN_MARK = "?"

# -- requests ----------------------------------------------------------------------------------------------------------------

_TextForm = StringConstraints(min_length=1, max_length=MAX_TEXT_CHARS)
# The formats have no meaning in JSON Schema. They inform tools that generate questions about the kind of text.
MechanismText = Annotated[str, _TextForm, Field(json_schema_extra={"format": "privselect-mechanism"})]
CountText = Annotated[str, _TextForm, Field(json_schema_extra={"format": "privselect-count"})]
_NumberText = Annotated[
    str, StringConstraints(min_length=1, max_length=MAX_NUMBER_CHARS), Field(json_schema_extra={"format": "privselect-number"})
]
_NumberInput: TypeAlias = float | _NumberText
StrictNumber = Annotated[float, Field(strict=True)]


def _number(name: str, allowed: Range, *, may_be_open: bool = False) -> BeforeValidator:
    """Return a validator of a number, given as such or as text. An open number (``?``) becomes None."""

    def read(given: object) -> float | None:
        if not isinstance(given, str):
            return check_number(name, given, allowed)
        if may_be_open and given.strip() == UNKNOWN_MARK:
            return None
        if len(given) > MAX_NUMBER_CHARS:
            raise ValueError(f"`{name}` must have at most {MAX_NUMBER_CHARS} characters, got {format_value(given)}")
        return parse_parameter(name, given, allowed)

    return BeforeValidator(read, json_schema_input_type=_NumberInput)


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid", str_strip_whitespace=True)


class Question(_Request):
    """A search, perhaps a final training, and a budget, with exactly one ``?``, the number to solve for.

    With ``final_noise``, the noise in ``final`` is a second ``?``, which follows from the budget.
    """

    mechanism: MechanismText = Field(description="What one trial leaks.", examples=["gaussian(sigma=?)"])
    count: CountText | None = Field(default=None, description="The law of K; null for one trial.", examples=["geometric(mean=30)"])
    visible: Annotated[int, _number("visible", integer_range(1, MAX_VISIBLE))] | None = Field(
        default=None, description="The number of trials of a visible search, instead of a law of K.", examples=[6]
    )
    subsample: StrictNumber | _NumberText | None = Field(
        default=None,
        description="The probability of a record to be in the sample of the search; null for all records.",
        examples=["1/10"],
    )
    final: MechanismText | None = Field(
        default=None, description="What the final training leaks; null if a trial is released.", examples=["gaussian(sigma=5)"]
    )
    final_noise: Annotated[float, _number("final_noise", Range(1.0, math.inf, low_open=True))] | None = Field(
        default=None, description="The noise of the final training, relative to the noise that it needs alone.", examples=[1.07]
    )
    epsilon: Annotated[float | None, _number("epsilon", NON_NEGATIVE, may_be_open=True)] = Field(
        description="A number >= 0, also as text, or ?.", examples=[2.0]
    )
    delta: Annotated[float | None, _number("delta", Range(MIN_DELTA, 1.0), may_be_open=True)] = Field(
        description="A number in (0, 1), also as text, or ?.", examples=["1e-6"]
    )


class AnswerRequest(Question):
    """A question to solve."""

    search_start: StrictNumber | None = Field(default=None, description="Where to start the search, such as a recent similar answer.")


class SolvedRequest(Question):
    """A question together with its answer."""

    value: StrictNumber = Field(description="The number to put instead of the ?.", examples=[3.6])
    final_value: StrictNumber | None = Field(
        default=None, description="The noise of the final training in the answer, if `final_noise` is given."
    )


class DesignRequest(_Request):
    """A budget, for which to find the law of K with the highest probability of a good trial."""

    mechanism: MechanismText = Field(description="What one trial leaks.", examples=["gaussian(sigma=4)"])
    epsilon: Annotated[float, _number("epsilon", POSITIVE)] = Field(examples=[2.0])
    delta: Annotated[float, _number("delta", OPEN_UNIT)] = Field(examples=["1e-6"])
    tau: Annotated[float, _number("tau", OPEN_UNIT)] = Field(default=0.01, description="The fraction of candidates that is good.")
    cap: Annotated[int, _number("cap", integer_range(1, MAX_DESIGN_CAP))] = Field(description="The largest K.", examples=[20])
    mean: Annotated[float, _number("mean", POSITIVE)] | None = Field(
        default=None, description="The largest mean of K; null for no limit other than the cap.", examples=[10]
    )


class AdviceRequest(_Request):
    """A training with an open noise, and a budget: compare the ways to tune it."""

    mechanism: MechanismText = Field(description="The training of the released model, with an open noise.", examples=["gaussian(sigma=?)"])
    epsilon: Annotated[float, _number("epsilon", POSITIVE)] = Field(examples=[1.0])
    delta: Annotated[float, _number("delta", OPEN_UNIT)] = Field(examples=["1e-5"])


# -- responses ---------------------------------------------------------------------------------------------------------------

Numbers = list[float | None]


class Bounds(BaseModel):
    """``lower <= truth <= upper``, both proved. Null means an infinite or unproved bound."""

    lower: float | None
    upper: float | None


class Trials(BaseModel):
    """The number of trials that the law of K implies, before any draw."""

    expected: float
    quantiles: dict[str, int]
    probability_of_zero: float
    success_probability: dict[str, float]


class Survival(BaseModel):
    """``P(K >= k)``. Each probability also holds for all integers between the previous k and this k."""

    k: list[int]
    probability: list[float]


class Answer(BaseModel):
    """The solved numbers, in words and in digits, and what the law of K implies."""

    sentence: str
    proof: str = Field(description="The proved interval, in words.")
    unknown: str
    value: float | None = Field(description="Null if no finite number is proved.")
    value_text: str | None = Field(description="The value in few digits, rounded to the safe side.")
    final_value: float | None = Field(description="The noise of the final training, if `final_noise` is given.")
    mechanism: str
    count: str | None
    visible: int | None
    subsample: str | None
    final: str | None
    epsilon: float | None
    delta: float | None
    cost: Bounds = Field(description="Epsilon at delta.")
    base: Bounds | None = Field(description="Epsilon of one trial alone.")
    final_alone: Bounds | None = Field(description="Epsilon of the final training alone.")
    trials: Trials
    survival: Survival | None
    python: str
    command: str


class Profile(BaseModel):
    """Epsilon along delta: of everything, of one trial alone, of the final training alone."""

    delta: Numbers
    exact: Numbers
    exact_lower: Numbers
    base: Numbers
    final: Numbers


class MeanCurves(BaseModel):
    """Epsilon by each bound, and of each part alone, along the mean of K or the number of visible trials, ``x``."""

    x: Numbers
    exact: Numbers
    exact_lower: Numbers
    paper: Numbers
    renyi: Numbers
    composition: Numbers
    base: Numbers
    search: Numbers
    final: Numbers


class Curves(BaseModel):
    """The curves along the mean of K and along delta. ``mean_note`` says why the first is missing."""

    mean: MeanCurves | None
    mean_note: str | None
    profile: Profile


class Row(BaseModel):
    """One bound: its epsilon at the answer, and the value of the unknown that it would require."""

    name: str
    label: str
    epsilon: float | None
    ratio: float | None = Field(description="Epsilon divided by the exact epsilon.")
    required: float | None
    note: str | None


class Comparison(BaseModel):
    """All bounds, the exact one first."""

    unknown: str
    rows: list[Row]


class CountResult(BaseModel):
    """A law of K, its success probability and its epsilon."""

    count: str
    success_probability: float
    epsilon: Bounds


class Design(CountResult):
    """The law of K with the highest success probability, and the best laws of parametric families."""

    expected: float
    upper_bound: float | None = Field(description="Proved upper bound over all laws of K within the budget; null if there is none.")
    fits: dict[str, CountResult | None]


class ErrorDetail(BaseModel):
    """The reason in one sentence, and the field it is about, if any."""

    field: str | None
    message: str


class ErrorResponse(BaseModel):
    """The body of every error."""

    error: ErrorDetail


class Way(BaseModel):
    """One way to tune: its noises and trials, and the question that plans it."""

    way: str
    search_noise: float | None
    released_noise: float
    extra_noise: float = Field(description="The released noise divided by the noise without tuning, minus 1.")
    trials: str | None
    good_candidate: float | None = Field(description="The probability of a trial among the best 10% of candidates.")
    question: dict[str, Any]


class Advice(BaseModel):
    """The ways to tune for one budget, and the recommended one."""

    parameter: str
    recommended: str
    reason: str
    caution: str | None = Field(description="What to check first; null if nothing.")
    ways: list[Way]


class RefusedError(PrivselectError):
    """A question that cannot be answered, with the field to blame, if any."""

    def __init__(self, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field


def error_body(message: str, field: str | None = None) -> dict[str, Any]:
    """Return the JSON body of an error."""
    return {"error": {"field": field, "message": message}}


def explain_invalid(error: Mapping[str, Any]) -> tuple[int, str, str | None]:
    """Return the status, a sentence and the field for an error that pydantic found in a body."""
    field = next((str(part) for part in error["loc"][1:]), None)
    if error["type"] == "json_invalid":
        return 400, "the body must be JSON", None
    given = format_value(error.get("input"))
    if field is None:
        return 422, f"the body must be a JSON object, got {given}", None
    name = truncate(field)
    match error["type"]:
        case "value_error":  # from the validators above
            message = str(error["ctx"]["error"])
        case "missing":
            message = f"`{name}` is missing"
        case "extra_forbidden":
            message = f"`{name}` is not a field of this question"
        case _:
            message = f"`{name}` must be {_EXPECTED.get(field, 'a number')}, got {given}"
    return 422, message, name


_EXPECTED = {
    "final": f"a text form such as gaussian(sigma=4) of at most {MAX_TEXT_CHARS} characters, or null",
    "mechanism": f"a text form such as gaussian(sigma=4) of at most {MAX_TEXT_CHARS} characters",
    "count": f"a text form such as geometric(mean=30) of at most {MAX_TEXT_CHARS} characters, or null",
}
