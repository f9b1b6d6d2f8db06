"""Convert ``param_distributions`` to distributions of privselect; every trial draws from them with replacement."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats

from privselect._util.validation import REAL, format_value
from privselect.errors import ParameterError
from privselect.integrations.sklearn.seeds import SEED_PARAMETERS
from privselect.tuning.distributions import Choice, Distribution, Integer, LogUniform, Uniform, is_in_range
from privselect.tuning.plan_ids import name_in_plan
from privselect.tuning.space import Space

if TYPE_CHECKING:
    from privselect._util.random_bits import Entropy

_SEED_BITS = 256


@dataclass(frozen=True)
class ScipyDistribution(Distribution):
    """A frozen distribution of scipy.stats, sampled with a 256-bit seed."""

    frozen: Any

    def draw(self, entropy: Entropy) -> Any:
        """Draw one number as a Python scalar."""
        seed = np.random.SeedSequence(entropy.getrandbits(_SEED_BITS), pool_size=8)
        value = self.frozen.rvs(random_state=np.random.Generator(np.random.PCG64DXSM(seed)))
        if np.ndim(value) != 0:
            raise ParameterError(f"a distribution must draw one number at a time, got an array from {self.frozen.dist.name}")
        return _as_scalar(value)

    def as_dict(self) -> dict[str, Any]:
        """Return the distribution's class, its name and all arguments."""
        family = self.frozen.dist
        described = {
            "scipy": name_in_plan(type(family)),
            "name": family.name,
            "arguments": [_as_scalar(argument) for argument in self.frozen.args],
            "named": {name: _as_scalar(argument) for name, argument in self.frozen.kwds.items()},
        }
        if hasattr(family, "xk"):  # a discrete distribution given by a table of values
            described["values"] = [np.asarray(family.xk).tolist(), np.asarray(family.pk).tolist()]
        return {"frozen": described}

    def contains(self, value: Any) -> bool:
        """Return whether the value is a number in the support; for a discrete distribution, one with a positive probability."""
        if not is_in_range(value, REAL):
            return False
        if hasattr(self.frozen, "pmf"):
            return bool(self.frozen.pmf(value) > 0)
        low, high = self.frozen.support()
        return bool(low <= value <= high)

    def normalize(self, value: Any) -> Any:
        """Return the number in the type in which it would be drawn."""
        table = getattr(self.frozen.dist, "xk", None)  # of a discrete distribution given by its values
        integers = hasattr(self.frozen, "pmf") and (table is None or np.asarray(table).dtype.kind in "iu")
        return int(value) if integers else float(value)

    @property
    def allowed(self) -> str:
        """The support of the distribution."""
        low, high = self.frozen.support()
        return f"in [{low:g}, {high:g}], the support of {self.frozen.dist.name}"


def read_space(given: Any, estimator: Any, defaults: Any = None, weight: Any = None) -> Space:
    """Return the search space over parameters of ``estimator``; unknown names raise ``ParameterError``.

    With probability ``weight`` a candidate starts from one of ``defaults``.
    """
    if isinstance(given, list | tuple):
        raise ParameterError(
            f"`param_distributions` must be one dict of names and distributions, got a {type(given).__name__}. Run one search for each dict"
        )
    if not isinstance(given, Mapping) or not given:
        raise ParameterError(f"`param_distributions` must be a dict of names and distributions, got {format_value(given)}")
    known = estimator.get_params(deep=True)
    for name in given:
        if name not in known:
            raise ParameterError(
                f"`param_distributions` must name parameters of {type(estimator).__name__}, got {format_value(name)}. "
                f"Its parameters are {', '.join(sorted(known))}"
            )
        if str(name).rpartition("__")[2] in SEED_PARAMETERS:
            raise ParameterError(f"`param_distributions` must not hold {name}: each trial gets its own secret seed")
    return Space({name: read_distribution(name, distribution) for name, distribution in given.items()}, defaults, weight)


def read_distribution(name: str, given: Any) -> Distribution:
    """Convert one entry of ``param_distributions``.

    A list is a choice of equally likely options. uniform, loguniform and randint of scipy become privselect's own distributions, which
    are sampled exactly. Other frozen distributions are sampled by scipy.
    """
    try:
        if isinstance(given, Distribution):
            return given
        if isinstance(given, np.ndarray):
            return Choice(given.tolist())
        if isinstance(given, list | tuple | range):
            return Choice(list(given))
        if isinstance(given, stats.distributions.rv_frozen):
            return _from_scipy(given)
    except ParameterError as error:
        raise ParameterError(f"`{name}` of `param_distributions`: {error}") from None
    raise ParameterError(
        f"`{name}` of `param_distributions` must be a list of options or a frozen distribution of scipy.stats such as loguniform(1e-3, 1), "
        f"got {format_value(given)}"
    )


def _from_scipy(frozen: Any) -> Distribution:
    family = type(frozen.dist)
    shapes, loc, scale = frozen.dist._parse_args(*frozen.args, **frozen.kwds)  # noqa: SLF001 - scipy has no public parser
    if any(np.ndim(argument) != 0 for argument in (*shapes, loc, scale)):
        raise ParameterError("a distribution must have numbers for its arguments, got an array")
    if family is type(stats.uniform):
        return Uniform(float(loc), float(loc + scale))
    if family is type(stats.loguniform) and loc == 0:
        return LogUniform(float(shapes[0] * scale), float(shapes[1] * scale))
    if family is type(stats.randint):
        return Integer(int(shapes[0] + loc), int(shapes[1] + loc) - 1)
    return ScipyDistribution(frozen)


def _as_scalar(value: Any) -> Any:
    return np.asarray(value).item()
