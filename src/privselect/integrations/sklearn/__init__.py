"""scikit-learn integration: a private search, a private classifier, private regressors and hold-outs."""

from __future__ import annotations

from privselect.errors import MissingExtraError

try:
    import sklearn as _sklearn  # noqa: F401 - fails here with a clear message, before the modules below import it
except ModuleNotFoundError:
    raise MissingExtraError("PrivateSearch needs scikit-learn; install it with: pip install 'privselect[sklearn]'") from None

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
]
