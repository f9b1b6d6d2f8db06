"""What can be taken home: the plan file, and a certificate of the plan, which is a draft."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from privselect.certificates.certify import certify
from privselect.planning.plan import checked
from privselect.planning.plan_file import plan_file_of, plan_text

if TYPE_CHECKING:
    from privselect.web.asked import Asked, Settled


def plan_toml(asked: Asked, settled: Settled) -> str:
    """The plan file, checked once more with full care; with the question, where a number of the two texts was open."""
    found = checked(settled.mechanism, settled.count, epsilon=settled.epsilon, delta=settled.delta)
    if asked.open is not None:
        found = replace(found, asked=(str(asked.mechanism), None if asked.count is None else str(asked.count)))
    return plan_text(plan_file_of(found))


def draft_certificate(settled: Settled) -> str:
    """Nothing is declared on the page, so the certificate is a draft."""
    return certify(settled.mechanism, settled.count, delta=settled.delta, epsilon=settled.epsilon).to_json()
