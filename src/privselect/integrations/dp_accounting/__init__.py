"""dp-accounting: its events and its privacy loss distributions, both ways."""

from privselect.integrations.dp_accounting.accountant import SelectionPLDAccountant
from privselect.integrations.dp_accounting.from_event import mechanism_from_event
from privselect.integrations.dp_accounting.pld import mechanism_from_pld, pld_from_mechanism
from privselect.integrations.dp_accounting.to_event import event_from_mechanism

__all__ = ["SelectionPLDAccountant", "event_from_mechanism", "mechanism_from_event", "mechanism_from_pld", "pld_from_mechanism"]
