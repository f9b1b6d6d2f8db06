"""dp-accounting's PLD accountant, for private selection as well."""

from __future__ import annotations

from typing import Any

from dp_accounting import NeighboringRelation, dp_event
from dp_accounting.pld import PLDAccountant
from dp_accounting.pld.pld_privacy_accountant import CompositionErrorDetails

from privselect._util.validation import POSITIVE, check_number, format_value
from privselect.errors import ParameterError, PrivselectError
from privselect.integrations.dp_accounting.from_event import mechanism_from_event
from privselect.integrations.dp_accounting.pld import pld_from_mechanism
from privselect.mechanisms.neighbours import ADD_REMOVE, REPLACE_ONE

_RELATIONS = {NeighboringRelation.ADD_OR_REMOVE_ONE: ADD_REMOVE, NeighboringRelation.REPLACE_ONE: REPLACE_ONE}
# The second is known to the accountant, which forgets how often it is repeated (0.6.0).
_OURS = (dp_event.RepeatAndSelectDpEvent, dp_event.RandomizedResponseDpEvent)


class SelectionPLDAccountant(PLDAccountant):  # type: ignore[misc]
    """A ``PLDAccountant`` that also takes ``RepeatAndSelectDpEvent``, by the exact loss distribution of the selection.

    dp-accounting's own PLDAccountant refuses that event; its RdpAccountant has a bound. All other events are dp-accounting's own
    computation, but for ``RandomizedResponseDpEvent``, of which it would count one repetition only.
    """

    _pld: Any

    def __init__(
        self,
        neighboring_relation: NeighboringRelation = NeighboringRelation.ADD_OR_REMOVE_ONE,
        value_discretization_interval: float = 1e-4,
    ) -> None:
        if neighboring_relation not in _RELATIONS:
            names = ", ".join(relation.name for relation in _RELATIONS)
            raise ParameterError(f"`neighboring_relation` must be one of {names}, got {format_value(neighboring_relation)}")
        spacing = check_number("value_discretization_interval", value_discretization_interval, POSITIVE)
        super().__init__(neighboring_relation, spacing)

    def _maybe_compose(self, event: Any, count: int, do_compose: bool) -> CompositionErrorDetails | None:  # noqa: FBT001 - as in the base
        if not isinstance(event, _OURS):
            # Compositions come back here, one part at a time.
            refused: CompositionErrorDetails | None = super()._maybe_compose(event, count, do_compose)
            return refused
        try:
            mechanism = mechanism_from_event(event, _RELATIONS[self.neighboring_relation])
        except PrivselectError as error:
            return CompositionErrorDetails(invalid_event=event, error_message=str(error))
        if do_compose:
            self._pld = self._pld.compose(pld_from_mechanism(mechanism, self._value_discretization_interval).self_compose(count))
        return None
