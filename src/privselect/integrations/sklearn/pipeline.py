"""Check for pipeline steps that learn from the data before the private estimator: a mechanism covers them only if declared."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import get_tags

from privselect._util.validation import check_sequence
from privselect.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

    Path = tuple[str, ...]  # names under which a step can be declared: those of the steps that contain it, and its own

_FIT_METHODS = {"fit", "fit_transform", "fit_predict", "_fit"}

_INNER_STEP = (
    "step {name!r} learns from the private data, and no mechanism covers it. Use a stateless step, fit the step on public data, or pass "
    "covered=({name!r},) if `mechanism` covers it"
)
_OUTER_STEP = (
    "step {name!r} before the search learns from the private data, and no mechanism covers it. Use a stateless step, fit the step on "
    "public data, or pass covered=({name!r},) if the step is private and you add its privacy cost to that of the certificate"
)


def read_covered(given: Any) -> tuple[str, ...]:
    """Return the step names in ``covered`` as a tuple."""
    expected = "a tuple of step names that the mechanism covers, such as ('scaler',)"
    if isinstance(given, str):
        raise ParameterError(f"`covered` must be {expected}, got {given!r}")
    return check_sequence("covered", given, expected)


def check_inner_steps(estimator: Any, covered: tuple[str, ...]) -> tuple[str, ...]:
    """Check that all learning steps of the estimator are declared; return the declared names that were needed."""
    return _check_declared([*_learning_steps(estimator)], covered, _INNER_STEP)


def check_outer_steps(search: Any, covered: tuple[str, ...]) -> tuple[str, ...]:
    """Check that all learning steps before the search, in a pipeline that is fitting it, are declared; return the names needed.

    The pipeline is found in the call stack. Other code that processed the data, and meta-estimators of other kinds, are not found. The
    certificate says that they are not covered.
    """
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - the documented access to the call stack
    learning: list[Path] = []
    while frame is not None:
        owner = frame.f_locals.get("self")
        if frame.f_code.co_name in _FIT_METHODS and isinstance(owner, Pipeline):
            positions = [position for position, (_, step) in enumerate(owner.steps) if step is search]
            # An outer pipeline fits this pipeline as one of its steps.
            search = owner if positions else search
            learning += [path for name, step in owner.steps[: positions[0] if positions else 0] for path in _learning_paths(name, step)]
        frame = frame.f_back
    return _check_declared(learning, covered, _OUTER_STEP)


def final_estimator(estimator: Any) -> Any:
    """Return the estimator whose mechanism is accounted for: the last step of nested pipelines."""
    while isinstance(estimator, Pipeline) and estimator.steps:
        estimator = estimator.steps[-1][1]
    return estimator


def final_prefix(estimator: Any) -> str:
    """Return the prefix of parameter names of the final estimator, such as ``"model__"``."""
    prefix = ""
    while isinstance(estimator, Pipeline) and estimator.steps:
        name, estimator = estimator.steps[-1]
        prefix += f"{name}__"
    return prefix


def _check_declared(learning: list[Path], covered: tuple[str, ...], message: str) -> tuple[str, ...]:
    for path in learning:
        if not any(name in path for name in covered):
            raise ParameterError(message.format(name=path[-1]))
    return tuple(name for name in covered if any(name in path for path in learning))


def _learning_steps(estimator: Any) -> Iterator[Path]:
    if isinstance(estimator, Pipeline):
        for name, step in estimator.steps[:-1]:
            yield from _learning_paths(name, step)
        if estimator.steps:
            name, last = estimator.steps[-1]
            yield from (_nest(name, path) for path in _learning_steps(last))
    elif isinstance(estimator, ColumnTransformer | FeatureUnion):
        yield from _learning_parts(estimator)


def _learning_paths(name: str, step: Any) -> Iterator[Path]:
    if isinstance(step, Pipeline):
        for inner, part in step.steps:
            yield from (_nest(name, path) for path in _learning_paths(inner, part))
    elif isinstance(step, ColumnTransformer | FeatureUnion):
        yield from (_nest(name, path) for path in _learning_parts(step))
    elif not _is_stateless(step):
        yield (name,)


def _learning_parts(union: Any) -> Iterator[Path]:
    parts = union.transformers if isinstance(union, ColumnTransformer) else union.transformer_list
    for name, step, *_ in parts:
        yield from _learning_paths(name, step)
    if isinstance(union, ColumnTransformer):
        yield from _learning_paths("remainder", union.remainder)


def _nest(name: str, path: Path) -> Path:
    return (name, *(f"{name}__{inner}" for inner in path))


def _is_stateless(step: Any) -> bool:
    if step is None or isinstance(step, str | FunctionTransformer | FrozenEstimator):  # a str is "passthrough" or "drop"
        return True
    return not get_tags(step).requires_fit
