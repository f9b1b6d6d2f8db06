"""dp-accounting: conversion of its events and privacy loss distributions, and its accountant with selections."""

from privselect.integrations.dp_accounting.events import event_from_mechanism, mechanism_from_event
from privselect.integrations.dp_accounting.pld import SelectionPLDAccountant, mechanism_from_pld, pld_from_mechanism

__all__ = ["SelectionPLDAccountant", "event_from_mechanism", "mechanism_from_event", "mechanism_from_pld", "pld_from_mechanism"]
