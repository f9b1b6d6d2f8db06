"""The numbers of a certificate, each with its direction."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from privselect._util.validation import ACCURACY_RANGE
from privselect.certificates.strict_model import Frozen, Line

Epsilon = float | Literal["infinite"]  # an upper end; JSON has no infinity
Bound = float | Literal["infinite", "not covered"]

DIRECTION = "upper ends are proved and rounded up, lower ends are proved and rounded down"


class Ends(Frozen):
    """An interval of epsilon: ``lower <= truth <= upper``."""

    lower: float | None = Field(ge=0.0, description="Null where no lower end is proved.")
    upper: Epsilon

    @model_validator(mode="after")
    def _in_order(self) -> Ends:
        if self.upper != "infinite":
            _check_order(self.lower, self.upper)
        return self


class Total(Frozen):
    """The claim itself: (upper, delta)-DP; no mechanism under the description leaks less than lower in the worst case."""

    lower: float | None = Field(ge=0.0, description="Null where no lower end is proved.")
    upper: float = Field(ge=0.0)
    delta: float = Field(gt=0.0, lt=1.0)

    @model_validator(mode="after")
    def _in_order(self) -> Total:
        _check_order(self.lower, self.upper)
        return self


class Point(Frozen):
    """(epsilon, delta)-DP holds."""

    epsilon: float = Field(ge=0.0, le=700.0)
    delta: float = Field(ge=0.0, le=1.0)


class Leaky(Frozen):
    """(mu, delta)-approximate Gaussian DP: delta(e) <= delta + (1 - delta) G_mu(e) at every e >= 0."""

    mu: float = Field(gt=0.0)
    delta: float = Field(ge=0.0, lt=1.0)


class Bounds(Frozen):
    """Epsilon at the same delta by the other bounds, for one run."""

    pointwise: Bound
    ratio: Bound
    paper: Bound
    renyi: Bound
    liu_talwar: Bound


class Composition(Frozen):
    """Another mechanism, not a bound on this one: a fixed number of trials, every output released."""

    runs: int = Field(ge=1)
    epsilon: Bound


class Accuracy(Frozen):
    """How far apart the two ends of the total are, relative, and which way they are rounded."""

    asked: float | None = Field(ge=ACCURACY_RANGE.low, le=ACCURACY_RANGE.high)
    gap: float | None = Field(ge=0.0, description="upper/lower - 1; null where no lower end above 0 is proved.")
    direction: Line


class Versions(Frozen):
    """What computed the numbers."""

    privselect: Line
    python: Line
    numpy: Line
    scipy: Line
    dp_accounting: Line


class Signature(Frozen):
    """Ed25519 over the canonical JSON of all fields but the hash and the signature."""

    algorithm: Literal["ed25519"] = "ed25519"
    key: str = Field(pattern=r"^[0-9a-f]{64}$", description="The public key, in hexadecimal.")
    value: str = Field(pattern=r"^[0-9a-f]{128}$")


def _check_order(lower: float | None, upper: float) -> None:
    if lower is not None and lower > upper:
        raise ValueError(f"an interval needs lower <= upper, got {lower} and {upper}")
