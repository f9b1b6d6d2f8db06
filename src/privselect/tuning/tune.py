"""``ps.tune``: check the arguments, then draw K, run the trials and release the winner."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privselect._util.validation import POSITIVE, check_number, format_value, integer_range
from privselect.certificates.model import Declared, with_score_declaration
from privselect.counts import Count
from privselect.errors import ParameterError
from privselect.text_forms import parse
from privselect.tuning.executors import read_engine
from privselect.tuning.exports import read_export
from privselect.tuning.isolation import can_limit_time
from privselect.tuning.randomness import SECURE_SEED_BITS
from privselect.tuning.release import parse_release_time
from privselect.tuning.run_spec import RunSpec
from privselect.tuning.scores import read_score, score_statement
from privselect.tuning.space import Space
from privselect.tuning.trial_mechanism import resolve_mechanism
from privselect.tuning.tuning_run import TuningRun

if TYPE_CHECKING:
    from collections.abc import Callable

    from privselect.mechanisms import Mechanism
    from privselect.tuning.executors import Engine
    from privselect.tuning.release import Release
    from privselect.tuning.trial_mechanism import MechanismOf

_NOT_OPTIONS = {"spec", "declared", "engine", "epsilon", "delta"}  # fields of TuningRun that are arguments of tune itself


def tune(  # noqa: PLR0913 - a run has this many parts
    objective: Callable[..., Any],
    space: Any,
    *,
    data: Any = None,
    mechanism: Mechanism | MechanismOf | str | None = None,
    count: Count | str,
    score: Any = None,
    delta: float,
    epsilon: float | None = None,
    fallback: Any = None,
    export: Any = None,
    declared: Declared | None = None,
    executor: Engine | str = "processes",
    workers: int | None = None,
    mechanism_of: MechanismOf | None = None,
    synthetic: Any = None,
    **options: Any,
) -> Release:
    """Run K trials of ``objective`` on candidates drawn from ``space``, and release only the best one, with its certificate.

    ``objective(candidate, data, randomness)`` returns ``(score, artifact)`` and must take all its randomness from ``randomness``.

    - ``mechanism``: what one trial leaks.
    - ``count``: the law of K.
    - ``score``: how the score is private: "public", NoisyCount(...) or "covered".
    - ``export``: how the artifact is released: "arrays", "safetensors", a function that returns bytes, or None for the candidate only.
    - ``fallback``: what is released if no trial is drawn or all trials fail.
    - ``synthetic``: non-private data of the same form. One trial runs on it before K is drawn, so an objective that cannot run is found
      before anything is spent. Without it, if all trials fail, the fallback is released without any message.
    - ``options``: out, ledger, again, insecure_seed, seed_bits, timeout, memory_limit, release_at, deadline, constant_work, losses,
      curator.

    To resume a run that was killed, make the same call again. Ctrl-C and a missed deadline release nothing.
    """
    run = configure_run(
        objective,
        space,
        mechanism=mechanism,
        count=count,
        score=score,
        delta=delta,
        epsilon=epsilon,
        fallback=fallback,
        export=export,
        declared=declared,
        engine=read_engine(executor, workers),
        mechanism_of=mechanism_of,
        **options,
    )
    if synthetic is not None:
        from privselect.tuning.dry_run import run_synthetic_trial

        run_synthetic_trial(run, lambda: synthetic)
    return run.run(None if data is None else lambda: data)


def configure_run(  # noqa: PLR0913 - as many as tune has
    objective: Callable[..., Any],
    space: Any,
    *,
    mechanism: Any,
    count: Any,
    score: Any,
    fallback: Any,
    export: Any,
    declared: Declared | None,
    mechanism_of: MechanismOf | None,
    **options: Any,
) -> TuningRun:
    """Check every argument of a run and return the run; the data is not accessed."""
    if not callable(objective):
        raise ParameterError(f"`objective` must be a function of (candidate, data, randomness), got {format_value(objective)}")
    space = space if isinstance(space, Space) else Space(space)
    score, export = read_score(score), read_export(export)
    count = parse(count) if isinstance(count, str) else count
    if not isinstance(count, Count):
        raise ParameterError(f"`count` must be a law of K such as geometric(mean=30), got {format_value(count)}")
    mechanism = parse(mechanism) if isinstance(mechanism, str) else mechanism
    trial = resolve_mechanism(mechanism, mechanism_of, objective, score, space)
    if fallback is not None and export is None:
        raise ParameterError(f"`fallback` must be None when nothing is exported, got {format_value(fallback)}")
    encoded = None if fallback is None or export is None else export.encode(fallback)
    spec = RunSpec(objective, space, trial.mechanism, count, score, export, encoded, trial.mechanism_of, trial.mixture_of)
    allowed = {field.name for field in fields(TuningRun)} - {"spec", "declared"}
    for name in options:
        if name not in allowed:
            raise ParameterError(f"`{name}` is not an option of tune. Options are {', '.join(sorted(allowed - _NOT_OPTIONS))}")
    return _check_options(TuningRun(spec, declared=with_score_declaration(declared or Declared(), score_statement(score)), **options))


def _check_options(run: TuningRun) -> TuningRun:
    check_number("seed_bits", run.seed_bits, integer_range(1, SECURE_SEED_BITS))
    check_number("losses", run.losses, integer_range(0, 1000))
    seeds, sizes = integer_range(0, 2**256 - 1), integer_range(2**20, 2**60)
    for name, allowed in (("insecure_seed", seeds), ("deadline", POSITIVE), ("timeout", POSITIVE), ("memory_limit", sizes)):
        if getattr(run, name) is not None:
            check_number(name, getattr(run, name), allowed)
    for name in ("again", "constant_work", "curator"):
        if not isinstance(getattr(run, name), bool):
            raise ParameterError(f"`{name}` must be true or false, got {format_value(getattr(run, name))}")
    _check_trial_limits(run)
    if run.constant_work and run.spec.count.largest is None:
        raise ParameterError(
            f"`constant_work` needs a law of K with a largest K, such as geometric(mean=30, cap=100), got {run.spec.count}"
        )
    if run.out is not None and not isinstance(run.out, str | Path):
        raise ParameterError(f"`out` must be the path of a folder, got {format_value(run.out)}")
    out = None if run.out is None else Path(run.out).absolute()  # whether the folder is free is checked when the run starts
    return replace(run, out=out, release_at=parse_release_time(run.release_at))


def _check_trial_limits(run: TuningRun) -> None:
    engine = run.engine
    if run.timeout is not None and not (engine.can_limit_time and (engine.name != "serial" or can_limit_time())):
        place = " outside of the main thread" if engine.can_limit_time else ""
        raise ParameterError(f"`timeout` must be None with the executor {engine.name}, which cannot stop a trial{place}, got {run.timeout}")
    if run.memory_limit is not None and not engine.can_limit_memory:
        raise ParameterError(
            f"`memory_limit` must be None with the executor {engine.name}, which cannot limit the memory of one trial, "
            f"got {run.memory_limit}"
        )
