"""scikit-learn: a search that is private, a private classifier, private regressors, and what a search may be validated on."""

from __future__ import annotations

from privselect.errors import MissingExtraError

try:
    import sklearn as _sklearn  # noqa: F401 - asked for before the parts below need it
except ModuleNotFoundError:
    raise MissingExtraError("PrivateSearch needs scikit-learn; install it with: pip install 'privselect[sklearn]'") from None

from privselect.integrations.sklearn.budget_split import sized_for_search
from privselect.integrations.sklearn.regressor_base import ClippingWarning, NoAnswerWarning
from privselect.integrations.sklearn.regressors import (
    AdaSSPRegressor,
    OPSPTRRegressor,
    OPSRegressor,
    OutputPerturbationRegressor,
    SSPRegressor,
)
from privselect.integrations.sklearn.search import PrivateSearch
from privselect.integrations.sklearn.softmax import PrivateSoftmax
from privselect.integrations.sklearn.validation import HoldOut

__all__ = [
    "AdaSSPRegressor",
    "ClippingWarning",
    "HoldOut",
    "NoAnswerWarning",
    "OPSPTRRegressor",
    "OPSRegressor",
    "OutputPerturbationRegressor",
    "PrivateSearch",
    "PrivateSoftmax",
    "SSPRegressor",
    "sized_for_search",
]
