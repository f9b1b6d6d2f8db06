"""``privselect demo``: the main job, from a budget to a verified release, on data that ships in a wheel."""

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from privselect.cli.printing import working
from privselect.cli.tune import interruptible, print_release, run_prepared

if TYPE_CHECKING:
    from privselect.certificates.certificate import Certificate

OutFolder = Annotated[
    Path, typer.Option("--out", metavar="DIR", help="The folder of the release; DIR.toml is the plan, DIR.ledger the ledger.")
]

_PICTURES = {"bounds.png": "mean", "bounds-over-delta.png": "delta"}


def demo(out: OutFolder = Path("demo")) -> None:
    """Plan a budget of (3, 1e-5), tune a model on real handwritten digits in private, release the winner with its certificate."""
    from privselect.planning.plan_file import PlanFile, read_plan, write_plan
    from privselect.report import write_report
    from privselect.tuning.demo import question
    from privselect.tuning.demo import test_accuracy as accuracy
    from privselect.tuning.plan_loader import prepared
    from privselect.tuning.release import check_out

    _begin_anew(out)
    if not out.with_name(f"{out.name}.ledger").exists():
        check_out(out)  # before the work begins
    file = out.with_name(f"{out.name}.toml")
    asked = PlanFile(**question(out))
    with interruptible():
        with working("planning"):
            answer = asked.plan()
        write_plan(answer, file, asked.declared, asked)
        print(answer.summary())
        print(f"plan written to {file}; run it with `privselect tune {file}`, as here:\n")
        release = run_prepared(prepared(read_plan(file)))
    with working("drawing"):
        _draw(release.certificate, out)
    with working("verifying, for the report"):
        write_report(out, promise_digest=read_plan(file).promise().digest())
    print_release(release, file, as_json=False)
    if release.candidate is not None:
        print(f"accuracy   {accuracy(release.artifact):.3f} on test digits that no trial has seen")
    print(f"report     {out / 'report.html'}, for people: open it in a browser, or print it")
    _print_bounds(release.certificate)


def _begin_anew(out: Path) -> None:
    """After a released demonstration, the next one is another: its data is public, and what it leaks is nobody's."""
    ledger = out.with_name(f"{out.name}.ledger")
    if (out / "release.json").exists() and (out / "certificate.json").exists() and ledger.is_dir():
        print("an earlier demonstration is replaced (with data of your own, running a plan again costs as much again)\n")
        shutil.rmtree(out)
        shutil.rmtree(ledger)


def _draw(certificate: "Certificate", out: Path) -> None:
    """What is public already, as pictures."""
    from privselect.selection.compare import compare
    from privselect.tuning.release import add_to_folder

    comparison = compare(certificate.promise.described(), delta=certificate.promise.delta)
    for name, over in _PICTURES.items():
        comparison.plot(out / name, over=over)
    add_to_folder(out, *_PICTURES)


def _print_bounds(certificate: "Certificate") -> None:
    from privselect._util.rounding import format_up
    from privselect.text_forms import write_value

    total, bounds = certificate.total, certificate.bounds
    print(f"\nthe same run by other accountants, at delta {write_value(total.delta)}:")
    said = {"privselect": total.upper, "privacy profiles (paper)": bounds and bounds.paper, "Renyi DP": bounds and bounds.renyi}
    for name, epsilon in said.items():
        print(f"  {name:26}epsilon {format_up(epsilon, 4)}" if isinstance(epsilon, float) else f"  {name:26}{epsilon}")
