"""Whether two functions are the density and the distribution function of log-concave noise."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from privselect.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Function = Callable[[Floats], Floats]

_OUTER = 1e-13  # of mass beyond the places that are looked at
_PLACES = 4000
_STRIDES = (1, 7, 50, 400)  # of second differences: a gentle bend shows over a longer way
_LOOSE = 1e-9  # of a logarithm, beside the digits that a large one has lost
_FIT = 1e-6  # relative, of a mass against the integral of the density, beside _ROOM
_ROOM = 1e-10
_TAIL_START = 1.0 - 1e-6
_TAIL_PLACES = 400
_TAIL_FIT, _TINY = 1e-3, 1e-290
_FARTHEST = 1e-100


def check_law(log_density: Function, distribution: Function, survival: Function | None) -> None:
    """One clear sentence where it is not so."""
    low, high = quantile(distribution, _OUTER), quantile(distribution, 1.0 - _OUTER)
    if not low < high:
        raise ParameterError(f"`distribution` must rise from 0 to 1 without a jump, got one that does so at {low:g}")
    x = np.linspace(low, high, _PLACES + 1)
    law = values_of("distribution", distribution, x)
    if not (np.all(law >= 0.0) and np.all(law <= 1.0) and np.all(np.diff(law) >= -1e-15)):
        place = x[np.argmax((law < 0.0) | (law > 1.0) | (np.diff(law, prepend=0.0) < -1e-15))]
        raise ParameterError(f"`distribution` must rise from 0 to 1, got {float(distribution(np.array([place]))[0]):g} at {place:g}")
    logs = values_of("log_density", log_density, x)
    _check_concave(x, logs)
    _check_fit(x, logs, np.diff(law))
    if survival is not None:
        rest = values_of("survival", survival, x)
        apart = np.abs(law + rest - 1.0)
        if not np.all(apart <= 1e-9):
            place = int(np.argmax(apart))
            raise ParameterError(f"`survival` must be 1 - distribution, got {rest[place]:g} beside {law[place]:g} at {x[place]:g}")
        lost = lost_in_tail(log_density, distribution, survival)
        if lost is not None:
            raise ParameterError(f"`survival` must keep its digits in the tail, or be left out, got one that does not at {lost:g}")


def values_of(name: str, function: Function, x: Floats) -> Floats:
    """The function's values, as many floats as places, none of them NaN or above all numbers."""
    with np.errstate(all="ignore"):
        values = np.asarray(function(x))
    if values.shape != x.shape or values.dtype.kind not in "fiu":
        raise ParameterError(f"`{name}` must give one float for each of the {len(x)} places in an array, got shape {values.shape}")
    values = values.astype(np.float64)
    bad = ~(values < np.inf)
    if bad.any():
        raise ParameterError(f"`{name}` must give numbers, got {values[bad][0]} at {x[bad][0]:g}")
    return values


def quantile(distribution: Function, share: float) -> float:
    """About where the distribution function passes ``share``."""

    def is_past(x: float) -> bool:
        return float(values_of("distribution", distribution, np.array([x]))[0]) >= share

    reach = 1.0
    while not (is_past(reach) and not is_past(-reach)):
        reach *= 2.0
        if reach > 1e15:
            raise ParameterError(f"`distribution` must rise from 0 to 1, got one that does not pass {share} between -1e15 and 1e15")
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
    at, finite = x[inside], logs[inside]
    for stride in _STRIDES:
        left, middle, right = finite[: -2 * stride], finite[stride:-stride], finite[2 * stride :]
        bend = 0.5 * (left + right) - middle
        bad = bend > _LOOSE + 4e-15 * (np.abs(left) + np.abs(middle) + np.abs(right))
        if bad.any():
            worst = int(np.argmax(np.where(bad, bend, -np.inf)))
            place = at[worst + stride]
            raise ParameterError(f"`log_density` must be concave, got a chord that lies {bend[worst]:.2g} above it at {place:g}")


def _check_fit(x: Floats, logs: Floats, masses: Floats) -> None:
    least, most = _mass_bounds(x, logs)
    bad = (masses < least * (1.0 - _FIT) - _ROOM) | (masses > most * (1.0 + _FIT) + _ROOM)
    if bad.any():
        place = int(np.argmax(bad))
        raise ParameterError(
            f"`distribution` must be the integral of the density, got a rise of {masses[place]:.3g} from {x[place]:g} to {x[place + 1]:g} "
            f"where the density has {least[place]:.3g}"
        )


def lost_in_tail(log_density: Function, distribution: Function, survival: Function) -> float | None:
    """Where a tail first does not fall as its density does, in digits of its own; None where it always does.

    A tail that was found as 1 less something has none beyond 1e-16, and would pass for one that is not there.
    """
    start = quantile(distribution, _TAIL_START)
    x = start + reach_of(lambda x: values_of("survival", survival, start + x)) * np.linspace(0.0, 1.0, _TAIL_PLACES + 1)
    least, most = _mass_bounds(x, values_of("log_density", log_density, x))
    masses = -np.diff(values_of("survival", survival, x))
    bad = (masses < least * (1.0 - _TAIL_FIT) - _TINY) | (masses > most * (1.0 + _TAIL_FIT) + _TINY)
    return float(x[np.argmax(bad)]) if bad.any() else None


def reach_of(tail: Function) -> float:
    """How far a tail goes until hardly anything is left."""
    reach = 1e-6
    while reach < 1e15 and float(tail(np.array([reach]))[0]) > _FARTHEST:
        reach *= 1.25
    return reach


def _mass_bounds(x: Floats, logs: Floats) -> tuple[Floats, Floats]:
    """A concave logarithm lies above its chord on a cell, and below the neighbours' chords drawn out: so does the mass."""
    width = x[1] - x[0]
    with np.errstate(invalid="ignore", over="ignore"):  # outside the support, and next to it
        slopes = np.diff(logs, prepend=-np.inf, append=-np.inf)  # slopes[j]: of the cell that ends at place j, times its width
        least = width * _mean_exp(logs[:-1], logs[1:])
        from_left = width * _mean_exp(logs[:-1], logs[:-1] + slopes[:-2])
        from_right = width * _mean_exp(logs[1:] - slopes[2:], logs[1:])
    most = np.fmin(np.where(logs[:-1] > -np.inf, from_left, np.inf), np.where(logs[1:] > -np.inf, from_right, np.inf))
    return np.where(np.isnan(least), 0.0, least), most


def _mean_exp(left: Floats, right: Floats) -> Floats:
    """The mean of ``e^y`` along a straight line from ``left`` to ``right``."""
    rise = right - left
    small = np.abs(rise) < 1e-5
    ratio = np.where(small, 1.0 + 0.5 * rise, np.expm1(np.where(small, 1.0, rise)) / np.where(small, 1.0, rise))
    return np.asarray(np.exp(left) * ratio)
