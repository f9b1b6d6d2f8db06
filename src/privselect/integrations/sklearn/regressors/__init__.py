"""Private linear regressions as regressors of scikit-learn's."""

from privselect.integrations.sklearn.regressors.posterior import OPSPTRRegressor, OPSRegressor
from privselect.integrations.sklearn.regressors.sums import AdaSSPRegressor, OutputPerturbationRegressor, SSPRegressor
from privselect.integrations.sklearn.regressors.warned import ClippingWarning, NoAnswerWarning

__all__ = [
    "AdaSSPRegressor",
    "ClippingWarning",
    "NoAnswerWarning",
    "OPSPTRRegressor",
    "OPSRegressor",
    "OutputPerturbationRegressor",
    "SSPRegressor",
]
