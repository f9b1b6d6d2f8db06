"""The parts of a certificate: the plan, the user's declarations, the numbers, and the run."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from privselect._util.validation import ACCURACY_RANGE, format_value
from privselect.certificates.canonical import digest
from privselect.certificates.strict_model import Line, Lines, StrictModel
from privselect.counts import Count
from privselect.mechanisms import Composed, DiscreteGaussian, Mechanism
from privselect.mechanisms.neighbours import ADD_REMOVE
from privselect.open_spec import OpenSpec
from privselect.selection.selection import Selection, selection_of
from privselect.selection.two_stages import Stages
from privselect.text_forms import parse, parse_number, read_spec

if TYPE_CHECKING:
    from collections.abc import Callable

EpsilonBound = float | Literal["infinite"]  # JSON has no infinity
BoundValue = float | Literal["infinite", "not covered"]

SYSTEM_ENTROPY = "the operating system's entropy"
ROUNDING = "upper bounds are proved and rounded up, lower bounds are proved and rounded down"
PUBLIC_SCORE, COVERED_SCORE = "public", "covered"
SCORE_KINDS = {
    PUBLIC_SCORE: "computed from the private output of the trial and from public data",
    COVERED_SCORE: "covered by the mechanism of a trial, as declared by the user",
}
_REQUIRED = {"unit": "the unit of privacy", "trust_model": "the trust model", "records_public": "whether the number of records is public"}


class Declared(StrictModel):
    """Declarations of the user that no program can check; without the first three a certificate is a draft."""

    unit: Line | None = Field(default=None, description='The unit of privacy, such as "one person".')
    trust_model: Line | None = Field(default=None, description='Who sees which data, such as "central: the curator sees the data".')
    records_public: bool | None = Field(default=None, description="Whether the number of records is public.")
    score: Line | None = Field(default=None, description="How the score is private.")
    not_covered: Lines = Field(default=(), description="Accesses to the data that the claim does not cover.")

    @property
    def missing(self) -> tuple[str, ...]:
        """Descriptions of the required declarations that are missing."""
        return tuple(description for name, description in _REQUIRED.items() if getattr(self, name) is None)


_parse: Callable[[str], Any] = lru_cache(maxsize=64)(parse)  # issuing a certificate and verifying it need the objects many times


def _canonical_text(kind: type, requirement: str, text: str) -> str:
    spec: object = read_spec(_parse(text), kind, requirement)
    if isinstance(spec, OpenSpec):
        raise ValueError(f"{requirement}, got the open parameter in {format_value(spec)}")  # noqa: TRY004 - pydantic catches ValueError
    return str(spec)


_MechanismText = Annotated[
    str, AfterValidator(partial(_canonical_text, Mechanism, "`mechanism` must be a mechanism such as gaussian(sigma=4)"))
]
_FinalText = Annotated[str, AfterValidator(partial(_canonical_text, Mechanism, "`final` must be a mechanism such as gaussian(sigma=4)"))]
_CountText = Annotated[str, AfterValidator(partial(_canonical_text, Count, "`count` must be a law of K such as geometric(mean=30)"))]


def _exact_probability(text: str) -> str:
    exact = parse_number(text)
    if exact is None or not 0 < exact <= 1:
        raise ValueError(f"must be a probability in (0, 1] such as 1/10, got {format_value(text)}")
    return str(exact)


_FractionText = Annotated[str, AfterValidator(_exact_probability)]


class PlanTerms(StrictModel):
    """The plan that a certificate is about: search, final training, budget and declarations. A plan file has the same fields."""

    mechanism: _MechanismText = Field(description="The mechanism of one trial as a text form, such as gaussian(sigma=4).")
    count: _CountText | None = Field(
        default=None,
        description="The law of K, the number of trials of a secret search, such as geometric(mean=30); null otherwise.",
    )
    visible: int | None = Field(
        default=None, ge=1, le=10**6, description="The number of trials of a visible search, which releases all of them; null otherwise."
    )
    subsample: _FractionText | None = Field(
        default=None,
        description="The probability of each record to be in the sample that all search trials share; null for all records.",
    )
    final: _FinalText | None = Field(
        default=None, description="The mechanism of the final training as a text form; null without a final training."
    )
    epsilon: float = Field(ge=0.0, description="The budget; a certificate never exceeds it.")
    delta: float = Field(gt=0.0, lt=1.0)
    declared: Declared = Declared()

    @model_validator(mode="after")
    def _check_search(self) -> Self:
        if self.count is not None and self.visible is not None:
            raise ValueError(f"a search is either secret, with `count`, or visible, got {self.count} and {self.visible} visible trials")
        if self.final is not None and self.count is None and self.visible is None:
            raise ValueError(f"`final` needs a search before it: `count` or `visible` is required, got {format_value(self.final)} alone")
        return self

    @property
    def selection(self) -> Selection | None:
        """The secret search, without its sample; None for a visible search and for one trial."""
        stages = self.stages
        secret = None if self.visible is not None else selection_of(stages.mechanism, stages.count)
        return secret if isinstance(secret, Selection) else None

    @property
    def trial(self) -> Mechanism:
        """One trial alone, on the sample if there is one; of a mechanism that is a selection, one of its trials."""
        selection = self.selection
        return self.stages.one_trial if selection is None else replace(self.stages, mechanism=selection.mechanism).one_trial

    @property
    def search(self) -> Mechanism:
        """Everything that the search releases; one trial alone without a search."""
        return self.stages.search

    @property
    def final_training(self) -> Mechanism | None:
        """The mechanism of the final training."""
        return self.stages.final

    @property
    def whole(self) -> Mechanism:
        """Everything that is released: the search, and the final training if there is one."""
        return self.stages.whole

    @property
    def stages(self) -> Stages:
        """The search and the final training."""
        count, final = (None if text is None else _parse(text) for text in (self.count, self.final))
        subsample = None if self.subsample is None else Fraction(self.subsample)
        return Stages(_parse(self.mechanism), count, final, self.visible, subsample)

    def digest(self) -> str:
        """Return the hash of the plan."""
        return digest(self.as_dict())


class RunMetadata(StrictModel):
    """Facts about the run that may be public: randomness, number of runs, notes.

    A certificate is public, so it never contains K, results of losing trials, or timings.
    """

    randomness: Line = Field(default=SYSTEM_ENTROPY, description="The source of all randomness.")
    insecure: bool = Field(default=False, description="Whether others may know the randomness, for example because of a seed.")
    spec_hash: Annotated[str, StringConstraints(pattern=r"^sha256:[0-9a-f]{64}$")] | None = Field(
        default=None,
        description="The hash of the run specification: objective, space, mechanism, law of K, score, export, fallback.",
    )
    mechanism_claimed: bool = Field(
        default=False, description="Whether the mechanisms are the user's claim: the trainer does not state what it leaks."
    )
    runs: int = Field(default=1, ge=1, le=10**6, description="The number of runs of the plan on the same data, composed.")
    notes: Lines = ()

    @model_validator(mode="after")
    def _check_insecure(self) -> RunMetadata:
        if self.randomness != SYSTEM_ENTROPY and not self.insecure:
            raise ValueError(f"`insecure` must be true if the randomness is not {SYSTEM_ENTROPY}, got false")
        return self


class EpsilonInterval(StrictModel):
    """Bounds on epsilon: ``lower <= truth <= upper``."""

    lower: float | None = Field(ge=0.0, description="Null if no lower bound is proved.")
    upper: EpsilonBound

    @model_validator(mode="after")
    def _check_order(self) -> Self:
        if self.lower is not None and not isinstance(self.upper, str) and self.lower > self.upper:
            raise ValueError(f"an interval needs lower <= upper, got {self.lower} and {self.upper}")
        return self


class TotalEpsilon(EpsilonInterval):
    """The certified claim: (upper, delta)-DP. The worst mechanism with this description needs at least ``lower``."""

    upper: float = Field(ge=0.0)
    delta: float = Field(gt=0.0, lt=1.0)


class ProfilePoint(StrictModel):
    """A proved point (epsilon, delta) of the privacy profile."""

    epsilon: float = Field(ge=0.0, le=700.0)
    delta: float = Field(ge=0.0, le=1.0)


class ApproximateGDP(StrictModel):
    """(mu, delta)-approximate Gaussian DP: delta(e) <= delta + (1 - delta) G_mu(e) at every e >= 0."""

    mu: float = Field(gt=0.0)
    delta: float = Field(ge=0.0, lt=1.0)


class OtherBounds(StrictModel):
    """Epsilon of one run by the other bounds, at the same delta."""

    pointwise: BoundValue
    ratio: BoundValue
    paper: BoundValue
    renyi: BoundValue
    liu_talwar: BoundValue


class Composition(StrictModel):
    """Epsilon of releasing all outputs of a fixed number of trials: another mechanism, not a bound on this one."""

    runs: int = Field(ge=1)
    epsilon: BoundValue


class Accuracy(StrictModel):
    """The relative gap between the bounds of the total, and how numbers are rounded."""

    requested: float | None = Field(ge=ACCURACY_RANGE.low, le=ACCURACY_RANGE.high)
    gap: float | None = Field(ge=0.0, description="upper/lower - 1; null if no lower bound above 0 is proved.")
    rounding: Line


class Versions(StrictModel):
    """Versions of the software that computed the numbers."""

    privselect: Line
    python: Line
    numpy: Line
    scipy: Line
    dp_accounting: Line


class Signature(StrictModel):
    """An Ed25519 signature of the canonical JSON of all fields except the hash and the signature."""

    algorithm: Literal["ed25519"] = "ed25519"
    public_key: str = Field(pattern=r"^[0-9a-f]{64}$", description="The public key, in hexadecimal.")
    value: str = Field(pattern=r"^[0-9a-f]{128}$")


def compose_runs(mechanism: Mechanism, run: RunMetadata | None) -> Mechanism:
    """Return all runs that a certificate covers as one mechanism."""
    return mechanism if run is None or run.runs == 1 else Composed((mechanism,), times=run.runs)


def noise_of_count(sigma: float) -> DiscreteGaussian:
    """Return the mechanism of a noisy count of correct predictions: one record changes the count by at most 1."""
    return DiscreteGaussian(sigma=sigma, neighbours=ADD_REMOVE)


def describe_noisy_count(noise: Mechanism) -> str:
    """Return the description of a noisy count in a certificate."""
    return f"a count of correct predictions on private records that the trial was not trained on, plus noise: {noise}"


def with_score_declaration(declared: Declared, description: str) -> Declared:
    """Return the declarations with a description of the score, unless the user has given one."""
    return declared if declared.score is not None else Declared(**{**declared.model_dump(), "score": description})
