"""Private linear regressions as regressors of scikit-learn's."""

from privselect.integrations.sklearn.regressors.posterior import OPSPTRRegressor, OPSRegressor
from privselect.integrations.sklearn.regressors.sufficient_statistics import AdaSSPRegressor, OutputPerturbationRegressor, SSPRegressor
from privselect.integrations.sklearn.regressors.warning_types import ClippingWarning, NoAnswerWarning

__all__ = [
    "AdaSSPRegressor",
    "ClippingWarning",
    "NoAnswerWarning",
    "OPSPTRRegressor",
    "OPSRegressor",
    "OutputPerturbationRegressor",
    "SSPRegressor",
]
