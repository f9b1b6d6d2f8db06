"""Exact privacy cost of hyperparameter tuning that releases only the best of K private trials.

Describe the mechanism of one trial and the distribution of the number of trials (the law of K):

    >>> import privselect as ps
    >>> chosen = ps.Selection(ps.Gaussian(sigma=4), ps.Geometric(mean=300))
    >>> chosen.epsilon_at(delta=1e-6)  # doctest: +SKIP
    Interval(lower=2.247..., upper=2.247...)

`Selection` is itself a mechanism. `plan` solves for a noise level or a law of K, `tune` runs the trials and releases the winner,
and `certify` and `verify` write and check certificates. Each public name is imported on first use, so ``import privselect`` is fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from privselect import errors

# Module of each public name. The TYPE_CHECKING block below repeats it for type checkers.
_MODULES = {
    "Interval": "interval",
    "parse": "text_forms",
    "UNKNOWN": "open_spec",
    "DominatingPair": "pairs",
    "Count": "counts",
    "NegativeBinomial": "counts",
    "Geometric": "counts",
    "Logarithmic": "counts",
    "Poisson": "counts",
    "Binomial": "counts",
    "Fixed": "counts",
    "Finite": "counts",
    "Mechanism": "mechanisms",
    "Gaussian": "mechanisms",
    "Laplace": "mechanisms",
    "DiscreteGaussian": "mechanisms",
    "DiscreteLaplace": "mechanisms",
    "Pure": "mechanisms",
    "Approximate": "mechanisms",
    "Points": "mechanisms",
    "Curve": "mechanisms",
    "Renyi": "mechanisms",
    "DPSGD": "mechanisms",
    "SampledGaussian": "mechanisms",
    "GaussianDP": "mechanisms",
    "Mixture": "mechanisms",
    "Composed": "mechanisms",
    "Disjoint": "mechanisms",
    "Subsampled": "mechanisms",
    "NoisyMax": "noisy_max",
    "Gumbel": "noisy_max",
    "Exponential": "noisy_max",
    "LogConcave": "noisy_max",
    "report_noisy_max": "noisy_max.run",
    "NoisyWinner": "noisy_max.run",
    "NoisyVotes": "noisy_max.votes",
    "ProposeTestRelease": "regression",
    "OPS": "regression",
    "private_median": "regression.ptr.median",
    "Selection": "selection",
    "search_then_train": "selection.two_stages",
    "compare": "selection.compare",
    "plan": "planning.plan",
    "advise": "planning.advice",
    "Advice": "planning.advice",
    "default_count": "planning.default_law",
    "Plan": "planning.plan_result",
    "adjust": "planning.adjust.adjust",
    "certify": "certificates.certify",
    "verify": "certificates.verify",
    "Certificate": "certificates.certificate",
    "Declared": "certificates.model",
    "design": "planning.design.design",
    "tune": "tuning.tune",
    "Release": "tuning.release",
    "Space": "tuning.space",
    "Uniform": "tuning.distributions",
    "LogUniform": "tuning.distributions",
    "Integer": "tuning.distributions",
    "Choice": "tuning.distributions",
    "NoisyCount": "tuning.scores",
    "VisibleSearch": "tuning.visible_search",
}

__all__ = ["errors", *_MODULES]  # noqa: PLE0604

if TYPE_CHECKING:
    from privselect.certificates.certificate import Certificate as Certificate
    from privselect.certificates.certify import certify as certify
    from privselect.certificates.model import Declared as Declared
    from privselect.certificates.verify import verify as verify
    from privselect.counts import Binomial as Binomial
    from privselect.counts import Count as Count
    from privselect.counts import Finite as Finite
    from privselect.counts import Fixed as Fixed
    from privselect.counts import Geometric as Geometric
    from privselect.counts import Logarithmic as Logarithmic
    from privselect.counts import NegativeBinomial as NegativeBinomial
    from privselect.counts import Poisson as Poisson
    from privselect.interval import Interval as Interval
    from privselect.mechanisms import DPSGD as DPSGD
    from privselect.mechanisms import Approximate as Approximate
    from privselect.mechanisms import Composed as Composed
    from privselect.mechanisms import Curve as Curve
    from privselect.mechanisms import DiscreteGaussian as DiscreteGaussian
    from privselect.mechanisms import DiscreteLaplace as DiscreteLaplace
    from privselect.mechanisms import Disjoint as Disjoint
    from privselect.mechanisms import Gaussian as Gaussian
    from privselect.mechanisms import GaussianDP as GaussianDP
    from privselect.mechanisms import Laplace as Laplace
    from privselect.mechanisms import Mechanism as Mechanism
    from privselect.mechanisms import Mixture as Mixture
    from privselect.mechanisms import Points as Points
    from privselect.mechanisms import Pure as Pure
    from privselect.mechanisms import Renyi as Renyi
    from privselect.mechanisms import SampledGaussian as SampledGaussian
    from privselect.mechanisms import Subsampled as Subsampled
    from privselect.noisy_max import Exponential as Exponential
    from privselect.noisy_max import Gumbel as Gumbel
    from privselect.noisy_max import LogConcave as LogConcave
    from privselect.noisy_max import NoisyMax as NoisyMax
    from privselect.noisy_max.run import NoisyWinner as NoisyWinner
    from privselect.noisy_max.run import report_noisy_max as report_noisy_max
    from privselect.noisy_max.votes import NoisyVotes as NoisyVotes
    from privselect.open_spec import UNKNOWN as UNKNOWN
    from privselect.pairs import DominatingPair as DominatingPair
    from privselect.planning.adjust.adjust import adjust as adjust
    from privselect.planning.advice import Advice as Advice
    from privselect.planning.advice import advise as advise
    from privselect.planning.default_law import default_count as default_count
    from privselect.planning.design.design import design as design
    from privselect.planning.plan import plan as plan
    from privselect.planning.plan_result import Plan as Plan
    from privselect.regression import OPS as OPS
    from privselect.regression import ProposeTestRelease as ProposeTestRelease
    from privselect.regression.ptr.median import private_median as private_median
    from privselect.selection import Selection as Selection
    from privselect.selection.compare import compare as compare
    from privselect.selection.two_stages import search_then_train as search_then_train
    from privselect.text_forms import parse as parse
    from privselect.tuning.distributions import Choice as Choice
    from privselect.tuning.distributions import Integer as Integer
    from privselect.tuning.distributions import LogUniform as LogUniform
    from privselect.tuning.distributions import Uniform as Uniform
    from privselect.tuning.release import Release as Release
    from privselect.tuning.scores import NoisyCount as NoisyCount
    from privselect.tuning.space import Space as Space
    from privselect.tuning.tune import tune as tune
    from privselect.tuning.visible_search import VisibleSearch as VisibleSearch

    __version__: str


def __getattr__(name: str) -> object:
    value: object
    if name == "__version__":
        from importlib.metadata import version

        value = version("privselect")
    elif name in _MODULES:
        value = getattr(import_module(f"privselect.{_MODULES[name]}"), name)
    else:
        raise AttributeError(f"module 'privselect' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})
