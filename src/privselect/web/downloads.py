"""What can be taken home: the plan file, and a certificate of the plan, which is a draft. Both are checked with full care."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from privselect._util.rounding import round_up
from privselect.certificates.certify import certify
from privselect.errors import ParameterError
from privselect.planning.plan import checked, plan
from privselect.planning.plan_file import plan_file_of, plan_text
from privselect.web.limits import ACCURACY

if TYPE_CHECKING:
    from privselect.planning.plan import Plan
    from privselect.web.parse_question import Asked, Settled

_SLACKS = (1.0, 1.001, 1.01, 1.1, 2.0)


def plan_toml(asked: Asked, settled: Settled) -> str:
    """The plan file; with the question, where a number of the two texts was open."""
    return plan_text(plan_file_of(_planned(asked, settled)))


def draft_certificate(asked: Asked, settled: Settled) -> str:
    """Nothing is declared on the page, so the certificate is a draft."""
    found: Plan | Settled
    if settled.epsilon == 0.0:  # which no plan may have
        found = replace(settled, delta=_roomier(settled)) if asked.delta is None else settled
    else:
        found = _planned(asked, settled)
    return certify(found.mechanism, found.count, delta=found.delta, epsilon=found.epsilon).to_json()


def _planned(asked: Asked, settled: Settled) -> Plan:
    """What the page found; where full care, which rounds on its own, proves less of it, as much more as that needs."""
    try:
        found = checked(settled.mechanism, settled.count, epsilon=settled.epsilon, delta=settled.delta)
    except ParameterError:
        if not _proved(asked, settled):
            raise
        return _again(asked, settled)
    return found if asked.open is None else replace(found, asked=(str(asked.mechanism), None if asked.count is None else str(asked.count)))


def _proved(asked: Asked, settled: Settled) -> bool:
    """Whether it is what the page finds, and no other number that somebody made up."""
    if asked.delta is None:
        return bool(settled.whole.delta_at(settled.epsilon).upper <= settled.delta)
    return bool(settled.whole.epsilon_about(settled.delta, accuracy=ACCURACY).upper <= settled.epsilon)


def _again(asked: Asked, settled: Settled) -> Plan:
    """The unknown once more, with full care."""
    mechanism, count, epsilon, delta = settled.mechanism, settled.count, settled.epsilon, settled.delta
    if asked.open is not None:
        return plan(asked.mechanism, asked.count, epsilon=epsilon, delta=delta)
    if asked.epsilon is None:
        return checked(mechanism, count, epsilon=round_up(float(settled.whole.epsilon_at(delta).upper)), delta=delta)
    return checked(mechanism, count, epsilon=epsilon, delta=_roomier(settled))


def _roomier(settled: Settled) -> float:
    """The delta, or as little more as lets the epsilon at it, found by itself and rounded on its own, be the one that was asked."""
    for slack in _SLACKS:
        delta = round_up(settled.delta * slack)
        if delta < 1.0 and settled.whole.epsilon_at(delta).upper <= settled.epsilon:
            return delta
    return settled.delta
