"""The numbers of a claim that holds, each as it is proved here where the certificate says a little more."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from privselect.certificates.gdp_fit import covers, fitted

if TYPE_CHECKING:
    from privselect.certificates.certificate import Certificate
    from privselect.certificates.number_models import Leaky, Point
    from privselect.certificates.verification_result import Verdict


@dataclass(frozen=True, slots=True)
class Proved:
    """Both ends of epsilon, the curve, and one Gaussian DP above it; None where there is no such thing."""

    lower: float | None
    epsilon: float
    curve: tuple[Point, ...]
    gaussian_dp: Leaky | None

    @property
    def gap(self) -> float | None:
        """How far apart the two ends are, relative, rounded up; None where no lower end above 0 is proved."""
        return math.nextafter(self.epsilon / self.lower, math.inf) - 1.0 if self.lower else None


def proved_of(certificate: Certificate, verdict: Verdict) -> Proved:
    """Of a verdict that holds; what verify lets pass, as versions round differently, is not taken at its word."""
    ends = verdict.proved
    if ends is None:
        raise ValueError("nothing was proved of a certificate that was not computed again")
    pair = certificate.gaussian_dp
    if pair is not None and not covers(pair, verdict.curve):
        pair = fitted(verdict.curve, certificate.total.delta)
    return Proved(None if ends.lower is None else float(ends.lower), float(ends.upper), verdict.curve, pair)
