"""Load a run from a plan file: import and check everything it names, without accessing private data."""

from __future__ import annotations

import contextlib
import functools
import importlib
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from privselect._util.validation import format_value
from privselect.errors import MissingExtraError, ParameterError, PrivselectError
from privselect.planning.plan_tables import IMPORT_NAME
from privselect.text_forms import parse_number
from privselect.tuning.distributions import read_distribution
from privselect.tuning.executors import read_engine
from privselect.tuning.exports import EXPORT_KINDS
from privselect.tuning.isolation import suppress_output
from privselect.tuning.probe import check_synthetic
from privselect.tuning.scores import LazyHoldout, NoisyCount
from privselect.tuning.space import Space
from privselect.tuning.transfer import SAME
from privselect.tuning.tune import configure_run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from privselect.planning.plan_file import PlanFile
    from privselect.planning.plan_tables import NoisyCountTable, TuneTable
    from privselect.tuning.tuning_run import TuningRun

# Fields passed to the run unchanged; for a field missing in the file, the run has its own default.
_PASSED_FIELDS = (
    "out",
    "ledger",
    "seed_bits",
    "timeout",
    "final_timeout",
    "memory_limit",
    "release_at",
    "deadline",
    "constant_work",
    "losses",
)
_TEXT_HIDDEN = "its text is hidden because it may contain records; `privselect tune --dry-run` shows more, on synthetic data"


@dataclass(frozen=True, repr=False)
class LoadedRun:
    """A run, the loader of its data, and the loader of synthetic data if the plan names one."""

    tuning: TuningRun
    load: Callable[[], Any]
    synthetic: Callable[[], Any] | None


def load_run(file: PlanFile, **options: Any) -> LoadedRun:
    """Return the run of a plan file; ``options`` that are not None replace fields of the file."""
    tune = file.tune
    if tune is None:
        raise ParameterError("a run needs a table [tune] in its plan, with objective, data and score, got none")
    if file.space is None:
        raise ParameterError("a run needs a table [space] in its plan, with the distribution of each hyperparameter, got none")
    if file.visible is not None:
        raise ParameterError(
            f"a visible search is run from Python, with ps.VisibleSearch; a run needs `count` in [search], got visible = {file.visible}"
        )
    if file.count is None:
        raise ParameterError("a run needs `count` in [search] of its plan, the law of K, such as geometric(mean=30), got none")
    file.terms()  # raises if the noise of the score is neither stated nor part of the mechanism
    stated = {name: getattr(tune, name) for name in (*_PASSED_FIELDS, "executor", "workers")}
    given = {name: value for part in (stated, options) for name, value in part.items() if value is not None}
    engine = read_engine(given.pop("executor"), given.pop("workers", None))
    if "out" not in given:
        raise ParameterError("a run needs a folder for its release, `out` in [tune] or --out, got none")
    run = configure_run(
        import_function("objective", tune.objective),
        _space(file),
        mechanism=file.mechanism,
        count=file.count,
        final=file.final,
        transfer=SAME if file.train is None else _transfer(file.train.transfer),
        learning_rate=None if file.train is None else file.train.learning_rate,
        final_noise=file.final_noise,
        split=file.split,  # refused, like final_noise, because nothing is open
        subsample=file.subsample,
        score=tune.score if isinstance(tune.score, str) else _noisy_count(tune.score, file.score_sigma),
        delta=file.delta,
        epsilon=file.epsilon,
        # A fallback from a function without arguments cannot depend on the data either.
        fallback=call_function("fallback", tune.fallback) if isinstance(tune.fallback, str) else tune.fallback,
        export=_export(tune),
        declared=file.declared,
        engine=engine,
        mechanism_of=None if tune.mechanism_of is None else import_function("mechanism_of", tune.mechanism_of),
        **given,
    )
    synthetic = None if tune.synthetic is None else import_function("synthetic", tune.synthetic)
    check_synthetic(run.spec.objective, synthetic)
    return LoadedRun(run, import_loader("data", tune.data), synthetic)


def _space(file: PlanFile) -> Space:
    fields, defaults, weight = file.candidates()
    if isinstance(fields.get("function"), str):
        if len(fields) > 1:
            raise ParameterError("`function` of the space must be its only entry besides defaults, got hyperparameters too")
        return Space(import_function("space.function", fields["function"]), defaults, weight)
    return Space({name: read_distribution(name, distribution) for name, distribution in fields.items()}, defaults, weight)


def _noisy_count(fields: NoisyCountTable, sigma: float | None) -> NoisyCount:
    ids: Any = fields.ids
    if ids is not None and ":" in ids:
        ids = import_loader("score.ids", ids)
    return NoisyCount(
        correct=import_function("score.correct", fields.correct),
        sigma=sigma,
        holdout=None if fields.holdout is None else LazyHoldout(import_loader("score.holdout", fields.holdout)),
        fraction=parse_number(fields.fraction) if isinstance(fields.fraction, str) else fields.fraction,
        ids=ids,
    )


def _transfer(name: str) -> Any:
    return import_function("transfer", name) if ":" in name else name


def _export(tune: TuneTable) -> Any:
    if tune.export is None or tune.export in EXPORT_KINDS:
        return tune.export
    if ":" not in tune.export:
        raise ParameterError(f"`export` must be one of {', '.join(EXPORT_KINDS)}, or module:function, got {format_value(tune.export)}")
    return import_function("export", tune.export)


# -- functions named as module:function ----------------------------------------------------------------------------------------


@contextlib.contextmanager
def importable_folder(folder: Path) -> Iterator[None]:
    """Let modules in this folder be imported, as Python does for those next to a script."""
    place = str(folder.resolve())
    sys.path.insert(0, place)
    importlib.invalidate_caches()
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):
            sys.path.remove(place)


def import_function(key: str, name: str) -> Callable[..., Any]:
    """Return the function named ``module:function``. The cause of a failed import is kept for a dry run to show."""
    if not IMPORT_NAME.fullmatch(name):
        raise ParameterError(f"`{key}` must be a name such as module:function, got {format_value(name)}")
    module, _, attribute = name.partition(":")
    try:
        found: Any = importlib.import_module(module)
    except ModuleNotFoundError as error:  # its text contains only a module's name
        raise ParameterError(f"`{key}` must be an importable module:function, got {format_value(name)} ({error})") from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        reason = f"importing {module} raised {type(error).__name__}; {_TEXT_HIDDEN}"
        raise ParameterError(f"`{key}` must be an importable module:function, got {format_value(name)} ({reason})") from error
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise ParameterError(
                f"`{key}` must be an existing module:function, got {format_value(name)}: {format_value(module)} has no {part}"
            )
        found = getattr(found, part)
    if not callable(found):
        raise ParameterError(f"`{key}` must be a function, got {format_value(name)}, which is a {type(found).__name__}")
    return found  # type: ignore[no-any-return]  # only known to be callable


def import_loader(key: str, name: str) -> Callable[..., Any]:
    """Return a function that reads private records, wrapped so nothing it prints and no text of its errors is shown."""
    reader = import_function(key, name)

    @functools.wraps(reader)
    def read(*arguments: Any) -> Any:
        try:
            with suppress_output():
                return reader(*arguments)
        except (KeyboardInterrupt, MissingExtraError):
            raise
        except BaseException as error:  # noqa: BLE001 - includes SystemExit, whose text Python would print
            raise _function_failed(key, name, error) from None

    return read


def call_function(key: str, name: str) -> Any:
    """Return the result of the named function, called without arguments."""
    try:
        return import_function(key, name)()
    except (KeyboardInterrupt, PrivselectError):
        raise
    except BaseException as error:
        raise _function_failed(key, name, error) from error


def _function_failed(key: str, name: str, error: BaseException) -> ParameterError:
    return ParameterError(f"`{key}` must be a function that succeeds, got {type(error).__name__} from {format_value(name)}; {_TEXT_HIDDEN}")
