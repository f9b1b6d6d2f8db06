"""Laws of K, the random number of trials: one file per family."""

from privselect.counts.base import Count
from privselect.counts.binomial import Binomial
from privselect.counts.finite import Finite
from privselect.counts.fixed import Fixed
from privselect.counts.negative_binomial import Geometric, Logarithmic, NegativeBinomial
from privselect.counts.poisson import Poisson

__all__ = ["Binomial", "Count", "Finite", "Fixed", "Geometric", "Logarithmic", "NegativeBinomial", "Poisson"]
