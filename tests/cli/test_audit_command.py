import json

import pytest

from privselect.audit.audited_run import Measurement
from privselect.audit.independence_test import IndependenceTest
from privselect.audit.report import ALL_CASES, AuditReport
from privselect.cli import main
from privselect.cli.output import print_table


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as ended:
        main(["audit", *arguments])
    said = capsys.readouterr()
    return ended.value.code, said.out, said.err


def test_help_says_that_the_output_contains_no_secrets(capsys):
    code, out, _ = run(capsys, "--help")
    assert code == 0
    assert "the output contains no secrets" in " ".join(out.split())


@pytest.mark.parametrize("selections", ["0", "-5", "9999", "1e3", "many"])
def test_too_few_selections_are_refused(capsys, selections):
    code, out, err = run(capsys, "--selections", selections)
    assert (code, out) == (2, "")
    assert err.startswith("error:")
    assert err.count("\n") == 1


def test_an_unknown_fault_is_refused(capsys):
    code, _, err = run(capsys, "--fault", "nothing")
    assert code == 2
    assert "redrawn, capped, deadline, reused-noise, without-replacement, got 'nothing'" in err


def test_the_table_shows_every_case_in_full_in_80_columns(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    measurements = tuple(Measurement(case, 1000, (300, 60)) for case in ALL_CASES)
    print_table(AuditReport(measurements, IndependenceTest((1,) * 16)).table())
    printed = capsys.readouterr().out
    assert "…" not in printed
    assert "gaussian(sigma=1.5)" in printed


@pytest.mark.slow
def test_the_audit_as_a_table_and_as_json(capsys):
    """A false alarm, of probability 0.6% in all, shows as exit code 1 and is told so."""
    code, out, err = run(capsys, "--selections", "10000")
    assert err == ""
    assert code == (0 if "\nall tests passed" in out else 1)
    assert "geometric(mean=3)" in out
    assert "chi-square" in out


@pytest.mark.slow
def test_a_fault_is_rejected(capsys):
    code, out, _ = run(capsys, "--selections", "10000", "--fault", "capped", "--json")
    found = json.loads(out)
    assert code == 1
    assert found["passed"] is False
    assert found["fault"] == "capped"
    assert [one["passed"] for one in found["cases"]] == [False]
    assert found["cases"][0]["selections"] == 5000
