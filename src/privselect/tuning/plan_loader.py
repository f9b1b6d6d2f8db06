"""From a plan file to the run that it describes: everything imported and checked, nothing private touched."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from privselect._util.validation import format_value
from privselect.errors import ParameterError
from privselect.planning.tune_config import NAME
from privselect.text_forms import parse, parse_number
from privselect.tuning.executors import read_engine
from privselect.tuning.import_names import function, guarded, made
from privselect.tuning.scores import Later, NoisyCount
from privselect.tuning.space import Space, read_distribution
from privselect.tuning.tune import Tuning, described

if TYPE_CHECKING:
    from collections.abc import Callable

    from privselect.planning.plan_file import PlanFile
    from privselect.planning.tune_config import NoisyCountFields, TuneFields

_KINDS_OF_EXPORT = ("arrays", "safetensors")
# Fields that a run takes as they are; what the file leaves out has the run's own default.
_AS_GIVEN = ("out", "ledger", "seed_bits", "timeout", "memory_limit", "release_at", "deadline", "constant_work", "losses")


@dataclass(frozen=True, repr=False)
class Prepared:
    """A run, how its data is loaded, and how data that is nobody's is, where the plan names such."""

    tuning: Tuning
    load: Callable[[], Any]
    synthetic: Callable[[], Any] | None


def prepared(file: PlanFile, **options: Any) -> Prepared:
    """The run of a plan file; ``options`` that are not None stand in the place of the file's."""
    tune, space, count = file.tune, file.space, file.count
    if tune is None:
        raise ParameterError("a run needs a table [tune] in its plan, with objective, data and score, got none")
    if space is None:
        raise ParameterError("a run needs a table [space] in its plan, with the law of each hyperparameter, got none")
    if count is None:
        raise ParameterError("a run needs `count` in its plan, the law of K, such as geometric(mean=30), got none")
    stated = {name: getattr(tune, name) for name in (*_AS_GIVEN, "executor", "workers")}
    given = {name: value for part in (stated, options) for name, value in part.items() if value is not None}
    engine = read_engine(given.pop("executor"), given.pop("workers", None))
    if "out" not in given:
        raise ParameterError("a run needs a folder for its release, `out` in [tune] or --out, got none")
    tuning = described(
        _objective(tune, file.mechanism),
        _space(space),
        mechanism=file.mechanism,
        count=count,
        score=_score(tune),
        delta=file.delta,
        epsilon=file.epsilon,
        fallback=_fallback(tune),
        export=_export(tune),
        declared=file.declared,
        engine=engine,
        mechanism_of=None if tune.mechanism_of is None else function("mechanism_of", tune.mechanism_of),
        **given,
    )
    synthetic = None if tune.synthetic is None else function("synthetic", tune.synthetic)
    return Prepared(tuning, guarded("data", tune.data), synthetic)


def _objective(tune: TuneFields, mechanism: str) -> Callable[..., Any]:
    """A function; or, where what is named can be made for a mechanism, that which runs the very numbers of the plan."""
    named = function("objective", tune.objective)
    make = getattr(named, "for_mechanism", None)
    return named if make is None else make(parse(mechanism))


def _space(fields: dict[str, Any]) -> Space:
    if isinstance(fields.get("function"), str):
        if len(fields) > 1:
            raise ParameterError("`function` of the space must stand alone, got hyperparameters beside it")
        return Space(function("space.function", _name("space.function", fields["function"])))
    return Space({name: read_distribution(name, law) for name, law in fields.items()})


def _score(tune: TuneFields) -> str | NoisyCount:
    return tune.score if isinstance(tune.score, str) else _noisy_count(tune.score)


def _noisy_count(fields: NoisyCountFields) -> NoisyCount:
    ids: Any = fields.ids
    if ids is not None and ":" in ids:
        ids = guarded("score.ids", _name("score.ids", ids))
    return NoisyCount(
        correct=function("score.correct", fields.correct),
        sigma=fields.sigma,
        holdout=None if fields.holdout is None else Later(guarded("score.holdout", fields.holdout)),
        fraction=parse_number(fields.fraction) if isinstance(fields.fraction, str) else fields.fraction,
        ids=ids,
    )


def _export(tune: TuneFields) -> Any:
    if tune.export is None or tune.export in _KINDS_OF_EXPORT:
        return tune.export
    if ":" not in tune.export:
        raise ParameterError(f"`export` must be one of {', '.join(_KINDS_OF_EXPORT)}, or module:function, got {format_value(tune.export)}")
    return function("export", _name("export", tune.export))


def _fallback(tune: TuneFields) -> Any:
    """Fixed in the plan, or made by a function that is given nothing: it cannot depend on the data."""
    return made("fallback", tune.fallback) if isinstance(tune.fallback, str) else tune.fallback


def _name(key: str, text: str) -> str:
    if not NAME.fullmatch(text):
        raise ParameterError(f"`{key}` must be a name such as module:function, got {format_value(text)}")
    return text
