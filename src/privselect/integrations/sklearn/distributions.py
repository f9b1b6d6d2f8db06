"""``param_distributions`` as laws of privselect: every trial draws from them anew, with replacement."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats

from privselect._util.validation import format_value
from privselect.errors import ParameterError
from privselect.integrations.sklearn.seeds import NAMES
from privselect.tuning.plan_ids import name_in_plan
from privselect.tuning.space import Choice, Distribution, Integer, LogUniform, Space, Uniform

if TYPE_CHECKING:
    from privselect._util.random_bits import Entropy

_SEED_BITS = 256


@dataclass(frozen=True)
class ScipyDistribution(Distribution):
    """A frozen distribution of scipy.stats, drawn by a generator of 256 bits."""

    law: Any

    def draw(self, entropy: Entropy) -> Any:
        """One number, as Python has it."""
        seed = np.random.SeedSequence(entropy.getrandbits(_SEED_BITS), pool_size=8)
        value = self.law.rvs(random_state=np.random.Generator(np.random.PCG64DXSM(seed)))
        if np.ndim(value) != 0:
            raise ParameterError(f"a distribution must draw one number at a time, got an array from {self.law.dist.name}")
        return np.asarray(value).item()

    def as_dict(self) -> dict[str, Any]:
        """The distribution's class and name, and every argument."""
        arguments = [_number(argument) for argument in self.law.args]
        named_ones = {name: _number(argument) for name, argument in self.law.kwds.items()}
        said = {"scipy": name_in_plan(type(self.law.dist)), "name": self.law.dist.name, "arguments": arguments, "named": named_ones}
        if hasattr(self.law.dist, "xk"):  # a law that is a table of values
            said["values"] = [np.asarray(self.law.dist.xk).tolist(), np.asarray(self.law.dist.pk).tolist()]
        return {"frozen": said}


def read_space(given: Any, estimator: Any) -> Space:
    """The space of a search over the parameters of ``estimator``; a name that is none of them is refused before anything is drawn."""
    if isinstance(given, list | tuple):
        raise ParameterError(
            f"`param_distributions` must be one dict of names and distributions, got a {type(given).__name__}: of several spaces the "
            "law of a candidate is not known; give one, or run one search for each"
        )
    if not isinstance(given, Mapping) or not given:
        raise ParameterError(f"`param_distributions` must be a dict of names and distributions, got {format_value(given)}")
    known = estimator.get_params(deep=True)
    for name in given:
        if name not in known:
            raise ParameterError(
                f"`param_distributions` must name parameters of {type(estimator).__name__}, which are {', '.join(sorted(known))}; "
                f"got {format_value(name)}"
            )
        if str(name).rpartition("__")[2] in NAMES:
            raise ParameterError(f"`param_distributions` must not hold {name}: the randomness of each trial is its own, and stays secret")
    return Space({name: read_law(name, law) for name, law in given.items()})


def read_law(name: str, given: Any) -> Distribution:
    """Lists are equally likely options; uniform, loguniform and randint are privselect's own, to the last bit of what they draw."""
    try:
        if isinstance(given, Distribution):
            return given
        if isinstance(given, np.ndarray | list | tuple | range):
            return Choice(list(given) if isinstance(given, range) else np.asarray(given).tolist() if _is_array(given) else list(given))
        if isinstance(given, stats.distributions.rv_frozen):
            return _read_frozen(given)
    except ParameterError as error:
        raise ParameterError(f"`{name}` of `param_distributions`: {error}") from None
    raise ParameterError(
        f"`{name}` of `param_distributions` must be a list of options or a frozen distribution of scipy.stats such as loguniform(1e-3, 1), "
        f"got {format_value(given)}"
    )


def _read_frozen(law: Any) -> Distribution:
    family = type(law.dist)
    shapes, loc, scale = law.dist._parse_args(*law.args, **law.kwds)  # noqa: SLF001 - as scipy's own methods read them
    if any(np.ndim(argument) != 0 for argument in (*shapes, loc, scale)):
        raise ParameterError("a distribution must have numbers for its arguments, got an array")
    if family is type(stats.uniform):
        return Uniform(float(loc), float(loc + scale))
    if family is type(stats.loguniform) and loc == 0:
        return LogUniform(float(shapes[0] * scale), float(shapes[1] * scale))
    if family is type(stats.randint):
        return Integer(int(shapes[0] + loc), int(shapes[1] + loc) - 1)
    return ScipyDistribution(law)


def _is_array(given: Any) -> bool:
    return isinstance(given, np.ndarray)


def _number(argument: Any) -> Any:
    return np.asarray(argument).item()
