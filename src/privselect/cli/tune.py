"""``privselect tune``."""

import shlex
import sys
from contextlib import contextmanager
from pathlib import Path
from traceback import print_exception
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from privselect.cli.options import JsonOption, option, read_solved_plan
from privselect.cli.output import EXIT_FAILED, EXIT_INTERRUPTED, format_interval, print_json, spinner
from privselect.errors import ParameterError, PrivselectError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from privselect.planning.plan_file import PlanFile
    from privselect.tuning.dry_run import DryRunTrial
    from privselect.tuning.plan_loader import LoadedRun
    from privselect.tuning.release import Release

PlanArgument = Annotated[Path, typer.Argument(metavar="PLAN", help="A plan file with the tables [space] and [tune].", show_default=False)]
OutFolder = Annotated[Path | None, option("out", "DIR", "The new folder for the release. Default: `out` of the plan.")]
LedgerFolder = Annotated[Path | None, option("ledger", "DIR", "The private folder of ledgers. Default: .privselect next to the plan.")]
ExecutorOption = Annotated[str | None, option("executor", "NAME", "serial, processes, dask or ray. Default: `executor` of the plan.")]
_WORKERS = "The number of trials that run at the same time. Default: `workers` of the plan."
WorkersOption = Annotated[int | None, option("workers", "N", _WORKERS)]
_AGAIN = "Run a plan again that was already released. The certificate covers all its runs together."
AgainOption = Annotated[bool, typer.Option("--again", help=_AGAIN)]
_DRY_RUN = "Run three trials, and the final training, on synthetic data and show everything. Private data is not used."
DryRunOption = Annotated[bool, typer.Option("--dry-run", help=_DRY_RUN)]
_CURATOR = "Show progress and the planned work, which reveals K. Only for the curator of the data."
CuratorOption = Annotated[bool, typer.Option("--curator", help=_CURATOR)]
SeedOption = Annotated[int | None, option("insecure-seed", "N", "Use a seed, for tests. The certificate is marked as insecure.")]


def tune(
    plan: PlanArgument,
    out: OutFolder = None,
    ledger: LedgerFolder = None,
    executor: ExecutorOption = None,
    workers: WorkersOption = None,
    again: AgainOption = False,
    dry_run: DryRunOption = False,
    curator: CuratorOption = False,
    insecure_seed: SeedOption = None,
    json: JsonOption = False,
) -> None:
    """Run a plan: search, train with the winner's candidate, and release.

    K trials are drawn in secret. Only the best one is released, with its certificate; with a table [train], its candidate is trained
    once more and this model is released. The same command resumes an interrupted run.
    """
    if dry_run and json:
        raise ParameterError("--json prints a release and cannot be combined with --dry-run, which releases nothing")
    options: dict[str, Any] = {"executor": executor, "workers": workers, "insecure_seed": insecure_seed}
    options |= {name: None if path is None else str(path) for name, path in (("out", out), ("ledger", ledger))}

    from privselect.tuning.plan_loader import importable_folder, load_run
    from privselect.tuning.run_registry import DEFAULT_LEDGER_FOLDER

    plan_file = read_solved_plan(plan)
    if ledger is None and (plan_file.tune is None or plan_file.tune.ledger is None):
        options["ledger"] = str(plan.absolute().parent / DEFAULT_LEDGER_FOLDER)  # independent of the current folder

    with importable_folder(plan.parent):
        if dry_run:
            _dry_run(plan_file, {**options, "out": "unused"})
            return
        with report_interrupt():
            release = run_plan(load_run(plan_file, again=again, curator=curator, **options))
    print_release(release, plan, as_json=json)


@contextmanager
def report_interrupt() -> "Iterator[None]":
    """Turn Ctrl-C into one line that does not reveal the progress of the run."""
    try:
        yield
    except KeyboardInterrupt:
        print("interrupted; nothing is released, and the run can be resumed", file=sys.stderr)
        raise typer.Exit(EXIT_INTERRUPTED) from None


def run_plan(run: "LoadedRun") -> "Release":
    """Run one trial on synthetic data if the plan names such data, then the plan itself. Error texts that may hold records are hidden."""
    from privselect.tuning.dry_run import run_synthetic_trial

    with spinner("starting") as tell:
        if run.synthetic is not None:
            tell("running on synthetic data")
            run_synthetic_trial(run.tuning, run.synthetic)
        try:
            return run.tuning.run(run.load, tell)
        except (PrivselectError, KeyboardInterrupt):
            raise
        except BaseException as error:  # noqa: BLE001 - a traceback may hold records
            raise ParameterError(
                f"the run ended with {type(error).__name__}. Its text is not shown because it may contain records. Nothing is released. "
                "`privselect tune --dry-run` shows more, on synthetic data."
            ) from None


def _dry_run(plan_file: "PlanFile", options: dict[str, Any]) -> None:
    """Run trials on synthetic data and show everything, including the traceback of an error in the objective."""
    from privselect.tuning.dry_run import dry_run
    from privselect.tuning.plan_loader import load_run

    try:
        run = load_run(plan_file, **options)
    except PrivselectError as error:
        if error.__cause__ is not None:
            _print_traceback(error.__cause__)
        raise
    if run.synthetic is None:
        raise ParameterError("a dry run needs `synthetic` in [tune], a function that returns data of no real person, got none")
    try:
        for number, trial in enumerate(dry_run(run.tuning, run.synthetic), start=1):
            _print_trial(number, trial)
    except Exception as error:  # noqa: BLE001 - the objective may raise anything
        _print_traceback(error)
    print("dry run on synthetic data: no private data was used, no ledger was created, nothing is released")


def _print_traceback(error: BaseException) -> NoReturn:
    sys.stdout.flush()
    print_exception(error)
    raise typer.Exit(EXIT_FAILED)


def _print_trial(number: int, trial: "DryRunTrial") -> None:
    size = "nothing exported" if trial.size is None else f"{trial.size} bytes exported"
    if trial.stage == "final":
        print(f"final training: {_format_candidate(trial.candidate)}: {trial.seconds:.3f} s, {size}")
        return
    print(f"trial {number}: {_format_candidate(trial.candidate)}: score {trial.score}, {trial.seconds:.3f} s, {size}")
    if trial.reproducible is False:
        print("note: the same randomness gave another outcome; a trial must use only the randomness it is given", flush=True)


def _format_candidate(candidate: dict[str, Any]) -> str:
    return ", ".join(f"{name} = {value!r}" for name, value in candidate.items())


def _reason(release: "Release") -> str:
    if release.certificate.plan.final is None:
        return "no trial was drawn or all trials failed; which of the two stays secret"
    return "no trial was drawn, all trials failed or the final training failed; which of these stays secret"


def _print_stages(release: "Release") -> None:
    terms, run = release.certificate.plan, release.certificate.run
    if terms.final is not None:
        sample = "" if terms.subsample is None else f", on a sample with probability {terms.subsample}"
        print(f"search     {terms.mechanism}, K from {terms.count}{sample}")
        print("training  ", terms.final)
    if run is not None and run.mechanism_claimed:
        print("claimed    the mechanism is stated by the user; the objective does not state what it runs")


def print_release(release: "Release", plan: Path, *, as_json: bool) -> None:
    """Print the public facts of a release, and nothing else."""
    from privselect.interval import Interval
    from privselect.text_forms import write_value

    out, total = Path(str(release.out)), release.certificate.total
    out = out.relative_to(Path.cwd()) if out.is_relative_to(Path.cwd()) else out
    files = sorted(str(file) for file in out.iterdir())
    certificate = next(file for file in files if file.endswith("certificate.json"))
    if as_json:
        values = {"fallback": release.is_fallback, "candidate": release.candidate, "score": release.score}
        values["trained_with"] = release.trained_with
        print_json({**values, "epsilon": {"lower": total.lower, "upper": total.upper}, "delta": total.delta, "files": files})
        return
    if release.candidate is None:
        print(f"released   the fallback: {_reason(release)}")
    else:
        print("candidate ", _format_candidate(release.candidate))
        print("score     ", release.score)
        if release.trained_with is not None:
            print("trained   ", _format_candidate(release.trained_with))
    _print_stages(release)
    print(f"epsilon    {format_interval(Interval(total.lower, total.upper))} at delta {write_value(total.delta)}")
    for number, file in enumerate(files):
        print("files     " if number == 0 else "          ", file)
    print(f"verify     privselect verify {shlex.quote(certificate)} --plan {shlex.quote(str(plan))}")
