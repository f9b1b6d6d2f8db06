"""``privselect demo``: from a budget to a verified release, on public data that scikit-learn contains."""

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from privselect.cli.options import option
from privselect.cli.output import DIGITS, spinner
from privselect.cli.tune import print_release, report_interrupt, run_plan

if TYPE_CHECKING:
    from privselect.certificates.certificate import Certificate

OutFolder = Annotated[Path, option("out", "DIR", "The folder of the release. DIR.toml is the plan and DIR.ledger the ledger.")]
_PLOTS = {"bounds.png": "mean", "bounds-over-delta.png": "delta"}


def demo(out: OutFolder = Path("demo")) -> None:
    """Plan, tune and release a model of digits.

    The budget is epsilon 3 at delta 1e-5. The data are handwritten digits that scikit-learn contains.
    """
    from privselect.planning.advice import advise
    from privselect.planning.plan_file import PlanFile, read_plan, write_plan
    from privselect.report import write_report
    from privselect.tuning.demo import DEFAULTS, FINAL, SEARCH, demo_plan, public_test_accuracy
    from privselect.tuning.plan_loader import load_run
    from privselect.tuning.release import check_release_folder, set_release_time

    _remove_earlier_demo(out)
    if not out.with_name(f"{out.name}.ledger").exists():
        check_release_folder(out)  # before the work begins
    plan_path = out.with_name(f"{out.name}.toml")
    problem = PlanFile(**demo_plan(out))
    with report_interrupt():
        with spinner("comparing the ways to tune"):
            known: dict[str, Any] = {"search": SEARCH, "defaults": len(DEFAULTS)}
            advice = advise(FINAL, epsilon=problem.epsilon, delta=problem.delta, private_score=True, **known)
        print(f"ways to tune with epsilon {problem.epsilon:g} at delta {problem.delta:g}:\n\n{advice.comparison()}\n")
        with spinner("planning"):
            solution = problem.plan()
        write_plan(solution, plan_path, problem.declared, problem)
        plan_file = read_plan(plan_path)
        print(solution.summary())
        print(f"plan written to {plan_path}; the next step is `privselect tune {plan_path}`:\n")
        release = run_plan(load_run(plan_file))
    with spinner("verifying and writing the report"):
        report = write_report(out, plan_hash=plan_file.terms().digest())
        if report.verification.comparison is not None:
            for name, over in _PLOTS.items():
                report.verification.comparison.plot(out / name, over=over)
            set_release_time(out, *_PLOTS)
    print_release(release, plan_path, as_json=False)
    if release.candidate is not None:
        print(f"accuracy   {public_test_accuracy(release.artifact):.1%} of the test digits, which no trial has used")
    print(f"report     {out / 'report.html'}, for a browser or a printer")
    _print_bounds(release.certificate)


def _remove_earlier_demo(out: Path) -> None:
    """Delete the release and the ledger of an earlier demonstration: its data is public, so its privacy cost does not matter."""
    ledger = out.with_name(f"{out.name}.ledger")
    if (out / "release.json").exists() and (out / "certificate.json").exists() and ledger.is_dir():
        print("an earlier demonstration is replaced (with your own data, each further run of a plan adds its privacy cost)\n")
        shutil.rmtree(out)
        shutil.rmtree(ledger)


def _print_bounds(certificate: "Certificate") -> None:
    from privselect._util.rounding import format_digits_up
    from privselect.text_forms import write_value

    total, bounds = certificate.total, certificate.bounds
    print(f"\nepsilon of the same run by other accountants, at delta {write_value(total.delta)}:")
    rows = {"privselect": total.upper, "privacy profiles (paper)": bounds and bounds.paper, "Renyi DP": bounds and bounds.renyi}
    for name, epsilon in rows.items():
        print(f"  {name:26}{format_digits_up(epsilon, DIGITS) if isinstance(epsilon, float) else epsilon}")
