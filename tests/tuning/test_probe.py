"""Objectives that are probed on synthetic data before anything is drawn."""

from dataclasses import dataclass, field

import pytest

import privselect as ps
from privselect.errors import ParameterError
from privselect.tuning.probe import check_synthetic, probed_candidates
from privselect.tuning.space import Space

SPACE = {"loss": ps.Choice(["mean", "sum", None]), "rate": ps.LogUniform(0.1, 1.0)}
SEARCH, FINAL = ps.Gaussian(sigma=4), ps.Gaussian(sigma=3)


@dataclass
class Probed:
    """Count what is probed and run; ``refused`` is the option that the probe refuses."""

    refused: object = "nothing"
    probes: list = field(default_factory=list)
    runs: list = field(default_factory=list)
    requires_synthetic = True

    def __call__(self, candidate, data, randomness, mechanism=None, stage=None):
        assert randomness
        self.runs.append((data, stage, mechanism))
        return 0.0, candidate

    def probe(self, synthetic, candidate, mechanism=None, stage=None):
        self.probes.append((synthetic, candidate["loss"], candidate["rate"], mechanism, stage))
        if candidate["loss"] == self.refused:
            raise ParameterError(f"the loss {candidate['loss']} is refused")


def tuned(objective, space=SPACE, **options):
    usual = {"data": "private", "synthetic": "synthetic", "mechanism": SEARCH, "count": ps.Fixed(2), "score": "public"}
    return ps.tune(objective, space, **(usual | {"delta": 1e-6, "executor": "serial", "ledger": None} | options))


@pytest.mark.usefixtures("quick")
def test_it_is_probed_on_synthetic_data_with_each_option_before_private_data_is_used():
    objective = Probed()
    tuned(objective)
    assert {probe[0] for probe in objective.probes} == {"synthetic"}
    assert {probe[1] for probe in objective.probes} == {"mean", "sum", None}
    assert {probe[3:] for probe in objective.probes} == {(SEARCH, "search")}
    assert [run[0] for run in objective.runs] == ["synthetic", "private", "private"]


@pytest.mark.usefixtures("quick")
def test_both_stages_are_probed_with_their_candidates_and_mechanisms():
    objective = Probed()
    tuned(objective, final=FINAL, transfer=lambda candidate: {**candidate, "rate": 0.5 * candidate["rate"] + 0.05})
    searched, trained = objective.probes[0::2], objective.probes[1::2]
    assert len(searched) == len(trained) >= 3
    for one, other in zip(searched, trained, strict=True):
        assert one[1] == other[1]
        assert other[2] == 0.5 * one[2] + 0.05
        assert one[3:] == (SEARCH, "search")
        assert other[3:] == (FINAL, "final")


@pytest.mark.parametrize("option", ["mean", "sum", None])
def test_what_the_probe_refuses_spends_nothing(option, tmp_path):
    objective = Probed(refused=option)
    with pytest.raises(ParameterError, match=f"before any private data was accessed: the loss {option} is refused"):
        tuned(objective, ledger=tmp_path / "ledger", out=tmp_path / "out")
    assert {run[0] for run in objective.runs} == {"synthetic"}
    assert list(tmp_path.iterdir()) == []


def test_without_synthetic_data_it_does_not_run(tmp_path):
    objective = Probed()
    with pytest.raises(ParameterError, match="`synthetic` is required"):
        tuned(objective, synthetic=None, ledger=tmp_path / "ledger")
    assert objective.runs == objective.probes == list(tmp_path.iterdir()) == []
    check_synthetic(lambda *_: None, None)  # no other objective needs it


def test_an_objective_of_a_plan_file_needs_synthetic_data_too(tmp_path, monkeypatch):
    from privselect.planning.plan_file import read_plan
    from privselect.tuning.plan_loader import importable_folder, load_run

    (tmp_path / "probed_trial.py").write_text(
        "def objective(candidate, data, randomness):\n    return 0.0, None\n\n\nobjective.requires_synthetic = True\n\n\n"
        "def data():\n    return None\n"
    )
    plan = tmp_path / "plan.toml"
    plan.write_text(
        'version = 2\nepsilon = 3\ndelta = 1e-6\n[search]\nmechanism = "gaussian(sigma=4)"\ncount = "geometric(mean=3)"\n'
        "[space]\nrate = {uniform = [0, 1]}\n"
        '[tune]\nobjective = "probed_trial:objective"\ndata = "probed_trial:data"\nscore = "public"\nout = "out"\n'
    )
    monkeypatch.chdir(tmp_path)
    with importable_folder(tmp_path), pytest.raises(ParameterError, match="`synthetic` is required"):
        load_run(read_plan(plan))


def test_few_candidates_have_the_options_of_the_space():
    wide = Space({"kind": ps.Choice(list("abcdef")), "depth": ps.Integer(1, 3), "rate": ps.Uniform(0, 1)})
    candidates = probed_candidates(wide)
    assert 6 <= len(candidates) <= 8
    assert {candidate["kind"] for candidate in candidates} == set("abcdef")
    assert candidates == probed_candidates(wide)
    assert len(probed_candidates(Space({"rate": ps.Uniform(0, 1)}))) == 2
    assert len(probed_candidates(Space({"many": ps.Choice(list(range(100)))}))) == 8
