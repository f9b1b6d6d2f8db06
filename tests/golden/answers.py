"""Answer the questions of the golden record, every float written in hexadecimal."""

from __future__ import annotations

import ctypes
import os
import platform
from typing import Any

import numpy as np
import scipy

import privselect as ps


def answer(question: dict[str, Any]) -> list[str]:
    """Return the numbers that answer one question, an infinity and a missing number included."""
    return [_written(number) for number in _ANSWERS[question["ask"]](question)]


def environment() -> dict[str, str]:
    """Name what may change the last bit of a float: the numerical libraries and the instructions they choose."""
    from numpy._core._multiarray_umath import __cpu_features__ as features

    gnu = getattr(ctypes.CDLL(None), "gnu_get_libc_version", None)
    if gnu is not None:
        gnu.restype = ctypes.c_char_p
    return {
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "libc": "unknown" if gnu is None else gnu().decode(),
        "machine": platform.machine(),
        "threads": os.environ.get("OPENBLAS_NUM_THREADS", "all"),  # sums in another order
        "instructions": " ".join(name for name in ("AVX2", "FMA3", "AVX512F", "AVX512_SKX", "NEON") if features.get(name)),
    }


def _written(number: Any) -> str:
    return "none" if number is None else float(number).hex()


def _ends(interval: ps.Interval) -> list[Any]:
    lowers = [None] * np.size(interval.upper) if interval.lower is None else np.ravel(interval.lower).tolist()
    return [*lowers, *np.ravel(interval.upper).tolist()]


def _epsilon(question: dict[str, Any]) -> list[Any]:
    return _ends(ps.parse(question["of"]).epsilon_at(delta=question["delta"]))


def _delta(question: dict[str, Any]) -> list[Any]:
    return _ends(ps.parse(question["of"]).delta_at(epsilon=question["epsilon"]))


def _renyi(question: dict[str, Any]) -> list[Any]:
    return np.asarray(ps.parse(question["of"]).renyi_at(question["alpha"])).tolist()


def _noisy_max_bounds(question: dict[str, Any]) -> list[Any]:
    bounds = ps.parse(question["of"]).bounds(question["delta"])
    return [bounds[name] for name in sorted(bounds)]


def _log_concave(question: dict[str, Any]) -> list[Any]:
    """Logistic noise, which has no text form."""
    from scipy.special import expit

    noise = ps.LogConcave(lambda x: -np.abs(x) - 2.0 * np.log1p(np.exp(-np.abs(x))), expit, lambda x: expit(-x), name="logistic")
    found = ps.NoisyMax(noise, m=question["m"]).epsilon_at(question["delta"])
    return _ends(found)


def _compare(question: dict[str, Any]) -> list[Any]:
    found = ps.compare(ps.parse(question["of"]), delta=question["delta"])
    others = [found.bounds[name] for name in sorted(found.bounds) if name != "exact"]
    return [*_ends(found.base), *_ends(found.bounds["exact"]), *others, found.selection_gap]


def _law(question: dict[str, Any]) -> list[Any]:
    law = ps.parse(question["of"])
    shares = np.array([0.0, 1e-9, 1e-3, 0.3, 1.0])
    numbers = np.arange(7)
    return [
        *law.log_dpgf(shares).tolist(),
        *law.log_pmf(numbers).tolist(),
        law.expected(),
        law.probability_of_zero(),
        law.quantile(0.9),
        law.sampling_error,
    ]


def _plan(question: dict[str, Any]) -> list[Any]:
    found = ps.plan(question["of"], question["count"], epsilon=question["epsilon"], delta=question["delta"])
    return [found.value, *_ends(found.cost)]


def _adjust(question: dict[str, Any]) -> list[Any]:
    found = ps.adjust(
        noise_multipliers=[2, 3, 4],
        sampling_probability=question["sampling_probability"],
        count=ps.parse(question["count"]),
        delta=question["delta"],
        epsilon_base=question["epsilon_base"],
    )
    return [*_ends(found.cost), *(candidate.steps for candidate in found.candidates)]


def _design(question: dict[str, Any]) -> list[Any]:
    asked = {name: question[name] for name in ("epsilon", "delta", "tau", "cap", "mean")}
    found = ps.design(ps.parse(question["of"]), **asked)
    return [*_ends(found.epsilon), found.success_probability, *(found.count.log_pmf(np.arange(question["cap"] + 1)).tolist())]


def _certificate(question: dict[str, Any]) -> list[Any]:
    found = ps.certify(question["of"], question["count"], delta=question["delta"])
    points = [number for point in found.curve for number in (point.epsilon, point.delta)]
    return [found.total.lower, found.total.upper, found.base.upper, found.gaussian_dp.mu, found.gaussian_dp.delta, *points]


_ANSWERS = {
    "epsilon": _epsilon,
    "delta": _delta,
    "renyi": _renyi,
    "noisy_max_bounds": _noisy_max_bounds,
    "log_concave": _log_concave,
    "compare": _compare,
    "law": _law,
    "plan": _plan,
    "adjust": _adjust,
    "design": _design,
    "certificate": _certificate,
}
