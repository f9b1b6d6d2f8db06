"""Any log-concave noise, given by its density and its distribution function."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from privselect._util.validation import format_value
from privselect.errors import ParameterError, TextFormError
from privselect.noisy_max.accounting.density_checks import check_law, lost_in_tail
from privselect.noisy_max.index_only_noise import Noise
from privselect.text_forms import register

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy as np
    from numpy.typing import NDArray

    from privselect.text_forms import Spec

    Floats = NDArray[np.float64]
    Function = Callable[[Floats], Floats]


@register
@dataclass(frozen=True, slots=True)
class LogConcave(Noise):
    """Noise of log-concave density, in units in which one record changes a score by at most 1.

    ``log_density``, ``distribution`` (``P(noise <= x)``) and ``survival`` (``P(noise > x)``) take and give numpy arrays. Without
    ``survival``, tails above are ``1 - distribution``, and 1e-15 is charged as if it were seen in full.

    Checked, on some thousand places from the first of its 1e-13 quantiles to the last: that all values are numbers, that the logarithm of
    the density is concave, that the distribution function rises from 0 to 1 by as much as a log-concave density between those places
    allows, that distribution and survival add up to 1, and that ``survival`` falls as the density does down to 1e-100. Trusted: that it
    is so between and beyond these places, that the functions have nine digits, and that the noise that is run has this law.
    It has no text form, as functions have none, and two are the same only if their functions are the same objects.
    """

    text_name = "log_concave"

    log_density: Function
    distribution: Function
    survival: Function | None = None
    name: str = field(default="density", kw_only=True)

    def __post_init__(self) -> None:
        Noise.__post_init__(self)
        for role in ("log_density", "distribution", "survival"):
            given = getattr(self, role)
            if not callable(given) and not (role == "survival" and given is None):
                raise ParameterError(f"`{role}` must be a function of an array, got {format_value(given)}")
        if not isinstance(self.name, str) or not self.name.isidentifier():
            raise ParameterError(f"`name` must be a name such as logistic, got {format_value(self.name)}")
        check_law(self.log_density, self.distribution, self.survival)

    @classmethod
    def from_scipy(cls, frozen: Any, *, neighbours: str = "any") -> LogConcave:
        """That of a frozen continuous distribution of ``scipy.stats``, such as ``scipy.stats.logistic(scale=2)``."""
        functions: list[Any] = [getattr(frozen, method, None) for method in ("logpdf", "cdf", "sf")]
        name = getattr(getattr(frozen, "dist", None), "name", None)
        if not all(map(callable, functions)) or not isinstance(name, str):
            raise ParameterError(f"`frozen` must be a continuous distribution such as scipy.stats.logistic(scale=2), got {format_value(frozen)}")
        log_density, distribution, survival = functions
        if lost_in_tail(log_density, distribution, survival) is not None:
            survival = None  # many of its tails are 1 - cdf
        return cls(log_density, distribution, survival, name=name, neighbours=neighbours)

    @classmethod
    def from_arguments(cls, positional: list[Any], named: dict[str, Any]) -> Spec:  # noqa: ARG003 - whatever they are
        """Refused: no text holds a function."""
        raise TextFormError("`log_concave` has no text form, as its density is a function: make it in Python by LogConcave(...)")

    def _written_arguments(self) -> Iterator[str]:
        yield self.name
