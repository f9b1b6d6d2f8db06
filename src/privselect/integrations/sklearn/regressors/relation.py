"""Which data sets a regression takes for neighbours: its sensitivities are those of a record more or less, and of no other change."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from privselect.mechanisms.base import StatedMechanism
from privselect.mechanisms.neighbours import ADD_REMOVE
from privselect.regression.propose_test_release import ProposeTestRelease

if TYPE_CHECKING:
    from privselect.mechanisms import Mechanism


def one_record(mechanism: Mechanism) -> Mechanism:
    """The same, stated for a record more or less: a certificate must not pass for one of replaced records, which may move it twice."""
    if isinstance(mechanism, ProposeTestRelease):
        return replace(mechanism, test=one_record(mechanism.test), target=one_record(mechanism.target))
    return replace(mechanism, neighbours=ADD_REMOVE) if isinstance(mechanism, StatedMechanism) else mechanism
