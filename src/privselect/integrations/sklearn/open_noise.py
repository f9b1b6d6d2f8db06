"""Open noise: an estimator whose noise follows from the budget of a search, as a mechanism with one open number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from sklearn.base import clone

from privselect._util.validation import Range, format_value
from privselect.errors import ParameterError
from privselect.integrations.sklearn.pipeline import final_estimator, final_prefix
from privselect.integrations.sklearn.trial_mechanism import is_from_diffprivlib
from privselect.mechanisms import Mechanism
from privselect.open_spec import OpenParameter, OpenSpec

if TYPE_CHECKING:
    from collections.abc import Callable

    MechanismOfParameter = Callable[[float], Mechanism]

EPSILON = "epsilon"  # the noise parameter of an estimator that states its own guarantee
SCALE = "scale"  # the noise of such an estimator as a planner knows it: 1/epsilon
_SCALES = Range(0.01, 1e4, high_open=False)  # epsilons from 1e-4 to 100


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class OpenFit(OpenSpec):
    """What fits of an estimator leak, with the parameter that sets their noise left open.

    A planner solves for a noise, also if no text form of the mechanism contains the parameter. The noise of an estimator with an
    ``epsilon`` is the scale 1/epsilon.
    """

    mechanism_at: MechanismOfParameter
    unknown: UnknownNoise

    def fill(self, value: float) -> Mechanism:
        """Return what the fits leak with this noise."""
        return self.mechanism_at(self.parameter_at(value))

    def parameter_at(self, noise: float) -> float:
        """Return the estimator's parameter for this noise."""
        return 1.0 / noise if self.unknown.name == SCALE else noise

    @property
    def open_parameters(self) -> tuple[OpenParameter, ...]:
        """The one open parameter."""
        return (OpenParameter(self, self.unknown.name, self.unknown.allowed, self.unknown.leaks),)


class UnknownNoise(NamedTuple):
    """The name and the range of a noise to solve for."""

    name: str
    allowed: Range | None
    leaks: str | None


def open_fit(estimator: Any, noise: str, mechanism_of: Callable[[Any], Mechanism]) -> OpenFit:
    """Return what fits of the estimator leak, as a function of its parameter ``noise``, which may be nested.

    ``mechanism_of`` returns what fits of an estimator leak whose noise is set.
    """

    def mechanism_at(value: float) -> Mechanism:
        return mechanism_of(clone(estimator).set_params(**{noise: value}))

    final = final_estimator(estimator)
    if noise.rpartition("__")[2] == EPSILON:
        return OpenFit(Mechanism, (), f"{type(final).__name__}({EPSILON}=1/?)", mechanism_at, UnknownNoise(SCALE, _SCALES, "less"))
    own = getattr(final, "mechanism", None)
    if not isinstance(own, OpenSpec) or len(own.open_parameters) != 1:
        raise ParameterError(
            f"`mechanism` of {type(final).__name__} must have one open number if {noise} is None, got {format_value(str(own))}"
        )
    unknown = own.open_parameters[0]
    return OpenFit(Mechanism, (), own.text, mechanism_at, UnknownNoise(unknown.parameter, unknown.allowed, unknown.leaks))


def noise_parameter(estimator: Any, given: str | None) -> str | None:
    """Return the name of the parameter that sets the noise of a fit: ``given``, or what the estimator states in ``noise_parameter``."""
    final = final_estimator(estimator)
    own = EPSILON if is_from_diffprivlib(final) else getattr(final, "noise_parameter", None)
    name = given if given is not None or own is None else final_prefix(estimator) + own
    known = estimator.get_params(deep=True)
    if name is not None and name not in known:
        raise ParameterError(
            f"`noise_parameter` must name a parameter of {type(estimator).__name__}, got {format_value(name)}. "
            f"Its parameters are {', '.join(sorted(known))}"
        )
    return name
