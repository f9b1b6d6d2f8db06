"""Steps that learn from the data before the private estimator does: no mechanism covers them unless the user says so."""

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

_FITS = {"fit", "fit_transform", "fit_predict", "_fit"}

_INSIDE = (
    "a step of the estimator learns from the private data and no mechanism covers it, got {name!r}; use one that learns nothing, fit it on "
    "public data, or declare that the mechanism covers it with covered=({name!r},)"
)
_BEFORE = (
    "a step before the search learns from the private data and no mechanism covers it, got {name!r}; use one that learns nothing, fit it "
    "on public data, or declare with covered=({name!r},) that it is private and that you add what it leaks to the certificate"
)


def read_covered(given: Any) -> tuple[str, ...]:
    """Names of steps."""
    wanted = "the names of steps that the mechanism covers, such as ('scaler',)"
    if isinstance(given, str):
        raise ParameterError(f"`covered` must be {wanted}, got the text {given!r}")
    return check_sequence("covered", given, wanted)


def check_steps(estimator: Any, covered: tuple[str, ...]) -> tuple[str, ...]:
    """Refuse an estimator with steps that learn in the clear; which of the declared names were needed."""
    return _needed([*_learning(estimator)], covered, _INSIDE)


def check_around(search: Any, covered: tuple[str, ...]) -> tuple[str, ...]:
    """The same for the steps before the search in a pipeline that is fitting it.

    The pipeline is found among the callers. What other code did to the data before, or a meta-estimator of another kind, is not seen:
    the certificate says that it is not covered.
    """
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - the way to the callers
    learning: list[tuple[str, ...]] = []
    while frame is not None:
        owner = frame.f_locals.get("self")
        if frame.f_code.co_name in _FITS and isinstance(owner, Pipeline):
            places = [place for place, (_, step) in enumerate(owner.steps) if step is search]
            # A pipeline around that pipeline fits it as one of its own steps.
            search = owner if places else search
            learning += [path for name, step in owner.steps[: places[0] if places else 0] for path in _paths(name, step)]
        frame = frame.f_back
    return _needed(learning, covered, _BEFORE)


def private_part(estimator: Any) -> Any:
    """The estimator whose mechanism is accounted for: the last step of a pipeline, however deep."""
    while isinstance(estimator, Pipeline) and estimator.steps:
        estimator = estimator.steps[-1][1]
    return estimator


def _needed(learning: list[tuple[str, ...]], covered: tuple[str, ...], refusal: str) -> tuple[str, ...]:
    for path in learning:
        if not any(name in path for name in covered):
            raise ParameterError(refusal.format(name=path[-1]))
    return tuple(name for name in covered if any(name in path for path in learning))


def _learning(estimator: Any) -> Iterator[tuple[str, ...]]:
    """The names under which each step that learns can be declared: of those around it, and its own."""
    if isinstance(estimator, Pipeline):
        for name, step in estimator.steps[:-1]:
            yield from _paths(name, step)
        if estimator.steps:
            name, last = estimator.steps[-1]
            yield from (_beneath(name, path) for path in _learning(last))
    elif isinstance(estimator, ColumnTransformer | FeatureUnion):
        yield from _inside(estimator)


def _paths(name: str, step: Any) -> Iterator[tuple[str, ...]]:
    if isinstance(step, Pipeline):
        for inner, part in step.steps:
            yield from (_beneath(name, path) for path in _paths(inner, part))
    elif isinstance(step, ColumnTransformer | FeatureUnion):
        yield from (_beneath(name, path) for path in _inside(step))
    elif not _learns_nothing(step):
        yield (name,)


def _inside(union: Any) -> Iterator[tuple[str, ...]]:
    parts = union.transformers if isinstance(union, ColumnTransformer) else union.transformer_list
    for name, step, *_ in parts:
        yield from _paths(name, step)
    if isinstance(union, ColumnTransformer):
        yield from _paths("remainder", union.remainder)


def _beneath(name: str, path: tuple[str, ...]) -> tuple[str, ...]:
    return (name, *(f"{name}__{inner}" for inner in path))


def _learns_nothing(step: Any) -> bool:
    if step is None or isinstance(step, str | FunctionTransformer | FrozenEstimator):  # "passthrough", "drop"; fitted before
        return True
    return not get_tags(step).requires_fit
