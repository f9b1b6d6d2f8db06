"""Log-concave noise given by Python functions, and the checks of these functions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from privselect._util.validation import format_value
from privselect.errors import ParameterError, TextFormError
from privselect.noisy_max.index_only_noise import Noise
from privselect.text_forms import register

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from privselect.text_forms import Spec

    Floats = NDArray[np.float64]
    Function = Callable[[Floats], Floats]

_OUTER = 1e-13  # mass beyond the checked points
_POINTS = 4000
_STRIDES = (1, 7, 50, 400)  # of second differences: a slight curvature is visible over a longer distance
_CONCAVE_TOLERANCE = 1e-9  # of a logarithm, in addition to rounding of large values
_MASS_TOLERANCE = 1e-6  # relative, of a mass against the integral of the density
_MASS_ROOM = 1e-10  # absolute
_TAIL_START = 1.0 - 1e-6
_TAIL_POINTS = 400
_TAIL_TOLERANCE, _TAIL_ROOM = 1e-3, 1e-290
_TAIL_END = 1e-100


@register
@dataclass(frozen=True, slots=True)
class LogConcave(Noise):
    """Noise with log-concave density, in units in which one record changes a score by at most 1.

    ``log_density``, ``distribution`` (``P(noise <= x)``) and ``survival`` (``P(noise > x)``) map a numpy array to a numpy array. Without
    ``survival``, upper tails are ``1 - distribution``, and a probability of 1e-15 is charged as a certain leak.

    Checked at some thousand points between the 1e-13 quantiles:

    - all values are numbers;
    - the logarithm of the density is concave;
    - the distribution function increases from 0 to 1, by as much as a log-concave density between the points allows;
    - distribution and survival add up to 1, and ``survival`` decreases as the density does down to 1e-100.

    Assumed: the same holds between and beyond these points, the functions have nine correct digits, and the noise that is run has this
    distribution. The noise has no text form, because functions have none. Two of them are equal only if they hold the same functions.
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
        check_functions(self.log_density, self.distribution, self.survival)

    @classmethod
    def from_scipy(cls, frozen: Any, *, neighbours: str = "any") -> LogConcave:
        """Create the noise from a frozen continuous distribution of ``scipy.stats``, such as ``scipy.stats.logistic(scale=2)``."""
        functions: list[Any] = [getattr(frozen, method, None) for method in ("logpdf", "cdf", "sf")]
        name = getattr(getattr(frozen, "dist", None), "name", None)
        if not all(map(callable, functions)) or not isinstance(name, str):
            raise ParameterError(
                f"`frozen` must be a continuous distribution such as scipy.stats.logistic(scale=2), got {format_value(frozen)}"
            )
        log_density, distribution, survival = functions
        if first_wrong_tail_point(log_density, distribution, survival) is not None:
            survival = None  # many scipy tails are computed as 1 - cdf
        return cls(log_density, distribution, survival, name=name, neighbours=neighbours)

    @classmethod
    def from_arguments(cls, positional: list[Any], named: dict[str, Any]) -> Spec:  # noqa: ARG003 - always an error
        """Raise: a text cannot hold a function."""
        raise TextFormError("`log_concave` has no text form, because its density is a function. Use LogConcave(...) in Python.")

    def _argument_texts(self) -> Iterator[str]:
        yield self.name


def check_functions(log_density: Function, distribution: Function, survival: Function | None) -> None:
    """Check that the functions describe one log-concave distribution; raise ParameterError otherwise."""
    low, high = quantile(distribution, _OUTER), quantile(distribution, 1.0 - _OUTER)
    if not low < high:
        raise ParameterError(f"`distribution` must rise from 0 to 1 without a jump, got a jump at {low:g}")
    x = np.linspace(low, high, _POINTS + 1)
    below = evaluate("distribution", distribution, x)
    if not (np.all(below >= 0.0) and np.all(below <= 1.0) and np.all(np.diff(below) >= -1e-15)):
        point = x[np.argmax((below < 0.0) | (below > 1.0) | (np.diff(below, prepend=0.0) < -1e-15))]
        raise ParameterError(f"`distribution` must rise from 0 to 1, got {float(distribution(np.array([point]))[0]):g} at {point:g}")
    logs = evaluate("log_density", log_density, x)
    _check_concave(x, logs)
    _check_masses(x, logs, np.diff(below))
    if survival is not None:
        above = evaluate("survival", survival, x)
        difference = np.abs(below + above - 1.0)
        if not np.all(difference <= 1e-9):
            worst = int(np.argmax(difference))
            raise ParameterError(
                f"`survival` must be 1 - distribution, got {above[worst]:g} with a distribution of {below[worst]:g} at {x[worst]:g}"
            )
        wrong = first_wrong_tail_point(log_density, distribution, survival)
        if wrong is not None:
            raise ParameterError(
                f"`survival` must keep its digits in the tail, got a function that loses them at {wrong:g}. "
                "Leave it out to use 1 - distribution."
            )


def evaluate(name: str, function: Function, x: Floats) -> Floats:
    """Return one float for each point; raise if the function gives another shape, NaN or +inf."""
    with np.errstate(all="ignore"):
        values = np.asarray(function(x))
    if values.shape != x.shape or values.dtype.kind not in "fiu":
        raise ParameterError(f"`{name}` must give one float for each of the {len(x)} places in an array, got shape {values.shape}")
    values = values.astype(np.float64)
    bad = ~(values < np.inf)
    if bad.any():
        raise ParameterError(f"`{name}` must give numbers, got {values[bad][0]} at {x[bad][0]:g}")
    return values


def quantile(distribution: Function, probability: float) -> float:
    """Return approximately where the distribution function passes ``probability``."""

    def is_past(x: float) -> bool:
        return float(evaluate("distribution", distribution, np.array([x]))[0]) >= probability

    reach = 1.0
    while not (is_past(reach) and not is_past(-reach)):
        reach *= 2.0
        if reach > 1e15:
            raise ParameterError(
                f"`distribution` must rise from 0 to 1, got a function that does not pass {probability} between -1e15 and 1e15"
            )
    low, high = -reach, reach
    while high - low > 1e-12 * reach:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if is_past(middle) else (middle, high)
    return high


def _check_concave(x: Floats, logs: Floats) -> None:
    inside = np.flatnonzero(logs > -np.inf)
    if len(inside) < 3:
        raise ParameterError(f"`log_density` must be finite where the noise lies, got -inf from {x[0]:g} to {x[-1]:g}")
    if inside[-1] - inside[0] + 1 != len(inside):
        gap = inside[np.argmax(np.diff(inside) > 1)] + 1
        raise ParameterError(f"`log_density` must be concave, got -inf at {x[gap]:g} between places where it is finite")
    points, finite = x[inside], logs[inside]
    for stride in _STRIDES:
        left, middle, right = finite[: -2 * stride], finite[stride:-stride], finite[2 * stride :]
        excess = 0.5 * (left + right) - middle
        bad = excess > _CONCAVE_TOLERANCE + 4e-15 * (np.abs(left) + np.abs(middle) + np.abs(right))
        if bad.any():
            worst = int(np.argmax(np.where(bad, excess, -np.inf)))
            point = points[worst + stride]
            raise ParameterError(f"`log_density` must be concave, got a chord that lies {excess[worst]:.2g} above it at {point:g}")


def _check_masses(x: Floats, logs: Floats, masses: Floats) -> None:
    smallest, largest = _mass_bounds(x, logs)
    bad = (masses < smallest * (1.0 - _MASS_TOLERANCE) - _MASS_ROOM) | (masses > largest * (1.0 + _MASS_TOLERANCE) + _MASS_ROOM)
    if bad.any():
        cell = int(np.argmax(bad))
        raise ParameterError(
            f"`distribution` must be the integral of the density, got a rise of {masses[cell]:.3g} from {x[cell]:g} to {x[cell + 1]:g} "
            f"where the density has {smallest[cell]:.3g}"
        )


def first_wrong_tail_point(log_density: Function, distribution: Function, survival: Function) -> float | None:
    """Return the first point where the upper tail does not decrease as the density does; None if there is none.

    A tail computed as a difference from 1 has no digits beyond 1e-16, and would look like a tail without mass.
    """
    start = quantile(distribution, _TAIL_START)
    x = start + tail_length(lambda x: evaluate("survival", survival, start + x)) * np.linspace(0.0, 1.0, _TAIL_POINTS + 1)
    smallest, largest = _mass_bounds(x, evaluate("log_density", log_density, x))
    masses = -np.diff(evaluate("survival", survival, x))
    bad = (masses < smallest * (1.0 - _TAIL_TOLERANCE) - _TAIL_ROOM) | (masses > largest * (1.0 + _TAIL_TOLERANCE) + _TAIL_ROOM)
    return float(x[np.argmax(bad)]) if bad.any() else None


def tail_length(tail: Function) -> float:
    """Return the distance at which a tail has become negligible."""
    reach = 1e-6
    while reach < 1e15 and float(tail(np.array([reach]))[0]) > _TAIL_END:
        reach *= 1.25
    return reach


def _mass_bounds(x: Floats, logs: Floats) -> tuple[Floats, Floats]:
    """Return bounds on the mass of each cell.

    A concave logarithm lies above its chord on a cell and below the extended chords of the neighbouring cells; so does the mass.
    """
    width = x[1] - x[0]
    with np.errstate(invalid="ignore", over="ignore"):  # outside the support, and next to it
        slopes = np.diff(logs, prepend=-np.inf, append=-np.inf)  # slopes[j]: of the cell that ends at point j, times its width
        smallest = width * _mean_exp(logs[:-1], logs[1:])
        from_left = width * _mean_exp(logs[:-1], logs[:-1] + slopes[:-2])
        from_right = width * _mean_exp(logs[1:] - slopes[2:], logs[1:])
    largest = np.fmin(np.where(logs[:-1] > -np.inf, from_left, np.inf), np.where(logs[1:] > -np.inf, from_right, np.inf))
    return np.where(np.isnan(smallest), 0.0, smallest), largest


def _mean_exp(left: Floats, right: Floats) -> Floats:
    """Return the mean of ``e^y`` for y on a straight line from ``left`` to ``right``."""
    rise = right - left
    small = np.abs(rise) < 1e-5
    ratio = np.where(small, 1.0 + 0.5 * rise, np.expm1(np.where(small, 1.0, rise)) / np.where(small, 1.0, rise))
    return np.asarray(np.exp(left) * ratio)
