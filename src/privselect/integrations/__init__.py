"""Integrations with other libraries: one subpackage or module per library, imported on first use."""

from importlib import import_module
from typing import TYPE_CHECKING

_MODULES = {
    "mechanism_from_event": "dp_accounting",
    "event_from_mechanism": "dp_accounting",
    "mechanism_from_pld": "dp_accounting",
    "pld_from_mechanism": "dp_accounting",
    "SelectionPLDAccountant": "dp_accounting",
    "mechanism_from_estimator": "diffprivlib",
    "diffprivlib_mechanism": "diffprivlib",
    "mechanism_from_history": "opacus",
    "OpacusTrial": "opacus",
    "PrivateStudy": "optuna",
    "PrivateSearch": "sklearn",
    "HoldOut": "sklearn",
    "PrivateSoftmax": "sklearn",
    "OPSRegressor": "sklearn",
    "OPSPTRRegressor": "sklearn",
    "AdaSSPRegressor": "sklearn",
    "SSPRegressor": "sklearn",
    "OutputPerturbationRegressor": "sklearn",
    "ClippingWarning": "sklearn",
    "NoAnswerWarning": "sklearn",
}

__all__ = [*_MODULES]  # noqa: PLE0604

if TYPE_CHECKING:
    from privselect.integrations.diffprivlib import diffprivlib_mechanism as diffprivlib_mechanism
    from privselect.integrations.diffprivlib import mechanism_from_estimator as mechanism_from_estimator
    from privselect.integrations.dp_accounting import SelectionPLDAccountant as SelectionPLDAccountant
    from privselect.integrations.dp_accounting import event_from_mechanism as event_from_mechanism
    from privselect.integrations.dp_accounting import mechanism_from_event as mechanism_from_event
    from privselect.integrations.dp_accounting import mechanism_from_pld as mechanism_from_pld
    from privselect.integrations.dp_accounting import pld_from_mechanism as pld_from_mechanism
    from privselect.integrations.opacus import OpacusTrial as OpacusTrial
    from privselect.integrations.opacus import mechanism_from_history as mechanism_from_history
    from privselect.integrations.optuna import PrivateStudy as PrivateStudy
    from privselect.integrations.sklearn import AdaSSPRegressor as AdaSSPRegressor
    from privselect.integrations.sklearn import ClippingWarning as ClippingWarning
    from privselect.integrations.sklearn import HoldOut as HoldOut
    from privselect.integrations.sklearn import NoAnswerWarning as NoAnswerWarning
    from privselect.integrations.sklearn import OPSPTRRegressor as OPSPTRRegressor
    from privselect.integrations.sklearn import OPSRegressor as OPSRegressor
    from privselect.integrations.sklearn import OutputPerturbationRegressor as OutputPerturbationRegressor
    from privselect.integrations.sklearn import PrivateSearch as PrivateSearch
    from privselect.integrations.sklearn import PrivateSoftmax as PrivateSoftmax
    from privselect.integrations.sklearn import SSPRegressor as SSPRegressor


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module 'privselect.integrations' has no attribute {name!r}")
    value: object = getattr(import_module(f"privselect.integrations.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
