"""What verify found, as data and in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from privselect.certificates.statement import rounded_up
from privselect.interval import Interval
from privselect.text_forms import write_value

if TYPE_CHECKING:
    from privselect.certificates.certificate import Certificate
    from privselect.certificates.number_models import Point


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether the claim of a certificate holds, and what that leaves open.

    ``unprotected`` is what anyone could have changed, making all the rest anew: only a signature protects it, or, for the plan, a
    hash of the plan from elsewhere. ``curve`` is the certificate's own, each point with what is proved here where that is more: another
    version may have rounded a claim that holds a little lower.
    """

    holds: bool
    reasons: tuple[str, ...]
    signed_by: str | None
    draft: bool
    recomputed: Interval | None
    unprotected: tuple[str, ...]
    certificate: Certificate | None
    curve: tuple[Point, ...] = ()

    @property
    def proved(self) -> Interval | None:
        """Both ends of the claim, each as it is proved here where that claims less; None where nothing could be computed."""
        if self.certificate is None or self.recomputed is None:
            return None
        total, found = self.certificate.total, self.recomputed
        lower = None if total.lower is None or found.lower is None else min(total.lower, float(found.lower))
        return Interval(lower, max(total.upper, float(found.upper)))

    @property
    def line(self) -> str:
        """The verdict in one line."""
        if not self.holds or self.certificate is None or self.proved is None:
            more = f" (and {len(self.reasons) - 1} more)" if len(self.reasons) > 1 else ""
            return f"REFUSED: {self.reasons[0]}{more}"
        total, run = self.certificate.total, self.certificate.run
        marks = ["insecure"] if run is not None and run.insecure else []
        marks += ["draft"] if self.draft else []
        marks.append("unsigned" if self.signed_by is None else f"signed by {self.signed_by}")
        return f"the claim holds: ({rounded_up(float(self.proved.upper))}, {write_value(total.delta)})-DP; {'; '.join(marks)}"

    def as_dict(self) -> dict[str, object]:
        """For JSON."""
        return {
            "holds": self.holds,
            "reasons": list(self.reasons),
            "signed_by": self.signed_by,
            "draft": self.draft,
            "recomputed": None if self.recomputed is None else self.recomputed.as_dict(),
            "unprotected": list(self.unprotected),
        }
