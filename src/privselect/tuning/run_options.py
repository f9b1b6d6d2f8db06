"""Check the options of a run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from privselect._util.validation import POSITIVE, check_number, format_value, integer_range
from privselect.errors import ParameterError
from privselect.tuning.isolation import can_limit_time
from privselect.tuning.randomness import SECURE_SEED_BITS
from privselect.tuning.release_time import parse_release_time

if TYPE_CHECKING:
    from privselect.tuning.tuning_run import TuningRun


def check_options(run: TuningRun) -> TuningRun:
    """Return the run with its options checked, without accessing the data."""
    check_number("seed_bits", run.seed_bits, integer_range(1, SECURE_SEED_BITS))
    check_number("losses", run.losses, integer_range(0, 1000))
    seeds, sizes = integer_range(0, 2**256 - 1), integer_range(2**20, 2**60)
    numbers = {"insecure_seed": seeds, "deadline": POSITIVE, "timeout": POSITIVE, "final_timeout": POSITIVE, "memory_limit": sizes}
    for name, allowed in numbers.items():
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
    if run.final_timeout is not None and run.spec.final is None:
        raise ParameterError(f"`final_timeout` needs a final training, `final`, got {run.final_timeout} without one")
    limits_time = engine.can_limit_time and (engine.name != "serial" or can_limit_time())
    for name in ("timeout", "final_timeout"):
        if getattr(run, name) is not None and not limits_time:
            place = " outside of the main thread" if engine.can_limit_time else ""
            raise ParameterError(
                f"`{name}` must be None with the executor {engine.name}, which cannot stop a trial{place}, got {getattr(run, name)}"
            )
    if run.memory_limit is not None and not engine.can_limit_memory:
        raise ParameterError(
            f"`memory_limit` must be None with the executor {engine.name}, which cannot limit the memory of one trial, "
            f"got {run.memory_limit}"
        )
