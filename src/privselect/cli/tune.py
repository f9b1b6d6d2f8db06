"""``privselect tune``."""

import shlex
import sys
from contextlib import contextmanager
from pathlib import Path
from traceback import print_exception
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from privselect.cli.options import AsJson
from privselect.cli.printing import print_json, working
from privselect.cli.reading import read_closed_plan
from privselect.errors import ParameterError, PrivselectError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from privselect.planning.plan_file import PlanFile
    from privselect.tuning.dry_run import DryTrial
    from privselect.tuning.plan_loader import Prepared
    from privselect.tuning.release import Release

Plan = Annotated[Path, typer.Argument(metavar="PLAN", help="A plan file with the tables [space] and [tune].", show_default=False)]
OutFolder = Annotated[Path | None, typer.Option("--out", metavar="DIR", help="A new folder for the release.")]
LedgerFolder = Annotated[Path | None, typer.Option("--ledger", metavar="DIR", help="The folder of ledgers, private to its owner.")]
Executor = Annotated[str | None, typer.Option("--executor", metavar="NAME", help="serial, processes, dask or ray.")]
Workers = Annotated[int | None, typer.Option("--workers", metavar="N", help="How many trials are run at a time.")]
Again = Annotated[bool, typer.Option("--again", help="Run a plan once more that was released before; the certificate covers both.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="A few trials on synthetic data, nothing hidden; nothing private is touched.")]
Curator = Annotated[bool, typer.Option("--curator", help="Show progress, which tells K: for nobody but the curator.")]
InsecureSeed = Annotated[int | None, typer.Option("--insecure-seed", metavar="N", help="For tests; marks the certificate as insecure.")]

_FAILED, _INTERRUPTED = 1, 130


def tune(
    plan: Plan,
    out: OutFolder = None,
    ledger: LedgerFolder = None,
    executor: Executor = None,
    workers: Workers = None,
    again: Again = False,
    dry_run: DryRun = False,
    curator: Curator = False,
    insecure_seed: InsecureSeed = None,
    json: AsJson = False,
) -> None:
    """Run a plan: draw K trials in secret and release the best one alone, with its certificate. The same command resumes a run."""
    if dry_run and json:
        raise ParameterError("--json tells what was released, got it with --dry-run, which releases nothing")
    options: dict[str, Any] = {
        "out": None if out is None else str(out),
        "ledger": None if ledger is None else str(ledger),
        "executor": executor,
        "workers": workers,
        "insecure_seed": insecure_seed,
    }

    from privselect.tuning.import_names import importable
    from privselect.tuning.run_registry import DEFAULT

    file = read_closed_plan(plan)
    if ledger is None and (file.tune is None or file.tune.ledger is None):
        options["ledger"] = str(plan.absolute().parent / DEFAULT)  # wherever the command is given, the same plan finds its runs

    with importable(plan.parent):
        if dry_run:
            _try(file, {**options, "out": "unused"})
            return
        with interruptible():
            from privselect.tuning.plan_loader import prepared

            release = run_prepared(prepared(file, again=again, curator=curator, **options))
    print_release(release, plan, as_json=json)


@contextmanager
def interruptible() -> "Iterator[None]":
    """Ctrl-C is one line that tells nothing of how far the run was."""
    try:
        yield
    except KeyboardInterrupt:
        print("interrupted; nothing is released, and the run can be resumed", file=sys.stderr)
        raise typer.Exit(_INTERRUPTED) from None


def run_prepared(run: "Prepared") -> "Release":
    """One trial on synthetic data first, where there is such, then the run; no text of an error that may hold records."""
    from privselect.tuning.dry_run import try_once

    with working("tuning"):
        if run.synthetic is not None:
            try_once(run.tuning, run.synthetic)
        try:
            return run.tuning.run(run.load)
        except (PrivselectError, KeyboardInterrupt):
            raise
        except BaseException as error:  # noqa: BLE001 - a traceback may hold records
            raise ParameterError(
                f"the run ended with {type(error).__name__}, whose text is not shown as it may hold records; nothing is released; "
                "`privselect tune --dry-run` shows more, on synthetic data"
            ) from None


def _try(file: "PlanFile", options: dict[str, Any]) -> None:
    """Everything shown, as nothing is private here; what is wrong with the objective comes with its traceback."""
    from privselect.tuning.dry_run import dry_run
    from privselect.tuning.plan_loader import prepared

    try:
        run = prepared(file, **options)
    except PrivselectError as error:
        if error.__cause__ is not None:
            _trace(error.__cause__)
        raise
    if run.synthetic is None:
        raise ParameterError("a dry run needs `synthetic` in [tune], a function that returns data that is nobody's, got none")
    try:
        for number, trial in enumerate(dry_run(run.tuning, run.synthetic), start=1):
            _print_trial(number, trial)
    except Exception as error:  # noqa: BLE001 - whatever the objective raises
        _trace(error)
    print("dry run on synthetic data: nothing private was touched, no ledger was begun, nothing is released")


def _trace(error: BaseException) -> NoReturn:
    sys.stdout.flush()
    print_exception(error)
    raise typer.Exit(_FAILED)


def _print_trial(number: int, trial: "DryTrial") -> None:
    size = "nothing exported" if trial.size is None else f"{trial.size} bytes exported"
    print(f"trial {number}: {_listed(trial.candidate)}: score {trial.score}, {trial.seconds:.3f} s, {size}")
    if trial.pure is False:
        print("note: the same randomness gave another outcome; a trial must take all its randomness from what it is given", flush=True)


def _listed(candidate: dict[str, Any]) -> str:
    return ", ".join(f"{name} = {value!r}" for name, value in candidate.items())


def print_release(release: "Release", plan: Path, *, as_json: bool) -> None:
    """What is public, and nothing else."""
    out, total = Path(str(release.out)), release.certificate.total
    out = out.relative_to(Path.cwd()) if out.is_relative_to(Path.cwd()) else out
    files = sorted(str(file) for file in out.iterdir())
    certificate = next(file for file in files if file.endswith("certificate.json"))
    if as_json:
        print_json(
            {
                "fallback": release.is_fallback,
                "candidate": release.candidate,
                "score": release.score,
                "epsilon": {"lower": total.lower, "upper": total.upper},
                "delta": total.delta,
                "files": files,
            }
        )
        return
    if release.candidate is None:
        print("released   the fallback: no trial was drawn or all failed, and which of the two stays secret")
    else:
        print("candidate ", _listed(release.candidate))
        print("score     ", release.score)
    from privselect.text_forms import write_value

    print(f"epsilon    [{total.lower}, {total.upper}] at delta {write_value(total.delta)}")
    for number, file in enumerate(files):
        print("files     " if number == 0 else "          ", file)
    print(f"verify     privselect verify {shlex.quote(certificate)} --plan {shlex.quote(str(plan))}")
