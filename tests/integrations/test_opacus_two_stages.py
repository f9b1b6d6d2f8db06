"""Opacus in a search followed by a final training: each stage must train with its own plan, or nothing is released."""

import importlib

import numpy as np
import pytest

import privselect as ps
from privselect.errors import AbortedError, ParameterError
from privselect.integrations import OpacusTrial
from privselect.tuning.randomness import Randomness

pytestmark = pytest.mark.opacus

SPACE = {"learning_rate": ps.LogUniform(0.1, 1)}
OPEN = {
    "mechanism": "dpsgd(noise_multiplier=?, sampling_probability=1/5, steps=3)",
    "final": "dpsgd(noise_multiplier=?, sampling_probability=1/4, steps=9)",
}
STATED = {"mechanism": ps.DPSGD(9.0, 0.2, 3), "final": ps.DPSGD(5.0, 0.25, 9)}  # nothing to solve for, which is faster
COUNT = ps.Fixed(k=3)


@pytest.fixture(scope="module")
def trainers():
    return importlib.import_module("opacus_trainers")  # imported only if these tests run: it imports torch


class Noting:
    """A training function that notes the plan and the result of each training on the private records."""

    def __init__(self, trainers, by_steps=None):
        self.trainers, self.by_steps, self.seen = trainers, by_steps or {}, []

    def __call__(self, candidate, data, private):
        train = self.by_steps.get(private.plan.steps, self.trainers.plain)
        private_records = len(data[0]) == self.trainers.RECORDS
        if not private_records and not getattr(train, "on_synthetic", False):
            train = self.trainers.plain
        score, artifact = train(candidate, data, private)
        if private_records:
            self.seen.append((private.plan, candidate["learning_rate"], artifact["weights"].tolist()))
        return score, artifact


def tuned(trainers, train, **options):
    usual = {"score": "public", "delta": 1e-5, "epsilon": 5.0, "export": "arrays", "executor": "serial", "ledger": None}
    usual |= {"data": trainers.records(), "synthetic": trainers.records(trainers.SYNTHETIC), "count": COUNT}
    return ps.tune(OpacusTrial(train, records=trainers.RECORDS), SPACE, **(usual | STATED | options))


def test_five_lines_from_a_budget_to_a_trained_network(trainers):
    """Everything else is the stock training loop."""
    data = trainers.records()
    trial = OpacusTrial(trainers.plain, records=60)
    release = ps.tune(
        trial, SPACE, **OPEN, split="auto", epsilon=1, delta=1e-5, data=data, synthetic=data, score="public", export="arrays", ledger=None
    )
    assert 0.99 < release.certificate.total.upper <= 1
    assert ps.verify(release.certificate.to_json()).holds
    assert release.plan.count == ps.default_count()
    assert release.artifact["weights"].shape == (51,)


def test_each_stage_trains_with_its_own_plan(trainers):
    train = Noting(trainers)
    release = tuned(trainers, train, transfer="noise")
    plans = [plan for plan, _, _ in train.seen]
    assert plans == [STATED["mechanism"]] * 3 + [STATED["final"]]
    assert release.certificate.plan.final == str(STATED["final"])
    assert release.artifact["weights"].tolist() == train.seen[-1][2]
    assert release.trained_with["learning_rate"] == train.seen[-1][1] != release.candidate["learning_rate"]
    assert not release.certificate.run.mechanism_claimed
    notes = " ".join(release.certificate.run.notes)
    assert "every training, of a trial or the final one, is done by Opacus" in notes


@pytest.mark.parametrize("steps", [3, 9])
def test_a_violation_in_either_stage_ends_the_run_without_a_release(trainers, steps, tmp_path):
    train = Noting(trainers, {steps: trainers.one_less})
    for _ in range(2):  # also if the run is resumed
        with pytest.raises(AbortedError, match="the accountant's history is not the planned training; nothing is released"):
            tuned(trainers, train, out=tmp_path / "out", ledger=tmp_path / "ledger")
    assert not (tmp_path / "out").exists()
    assert [plan.steps for plan, _, _ in train.seen] == ([3, 3] if steps == 3 else [3, 3, 3, 9, 9])  # found at the end of a training


@pytest.mark.parametrize("steps", [3, 9])
def test_a_summed_loss_in_either_stage_is_refused_before_data_is_used(trainers, steps, tmp_path):
    def summed(_candidate, data, private):
        model, wrapped, optimizer, loader = trainers.parts(data, private)
        for features, labels in loader:
            optimizer.zero_grad()
            trainers.cross_entropy(wrapped(features), labels, reduction="sum").backward()
            optimizer.step()
        return trainers.result(model)

    summed.on_synthetic = True
    train = Noting(trainers, {steps: summed})
    with pytest.raises(ParameterError, match="the gradients grow with the size of the batch"):
        tuned(trainers, train, ledger=tmp_path / "ledger")
    assert train.seen == []
    assert list(tmp_path.iterdir()) == []


def test_stages_do_not_share_noise_even_with_the_same_randomness(trainers):
    trial = OpacusTrial(trainers.plain, records=60)
    plan, key = ps.DPSGD(2.5, 0.2, 3), bytes(32)

    def weights(mechanism, rate):
        return trial({"learning_rate": rate}, trainers.records(), Randomness(key), mechanism, "final")[1]["weights"].tolist()

    assert weights(plan, 1.0) == weights(plan, 1.0)
    assert weights(plan, 1.0) != weights(plan, 0.5)  # the training function does not use the rate
    assert weights(plan, 1.0) != weights(ps.DPSGD(2.5, 0.2, 4), 1.0)


def test_a_plan_of_its_own_is_for_one_shot_only(trainers):
    own = OpacusTrial(trainers.plain, STATED["mechanism"], records=60)
    with pytest.raises(ParameterError, match="`plan` must be left out when a final training follows: each stage then trains with the"):
        ps.tune(
            own,
            SPACE,
            **STATED,
            epsilon=9,
            delta=1e-5,
            count=COUNT,
            score="public",
            export="arrays",
            data=trainers.records(),
            synthetic=trainers.records(40),
            ledger=None,
        )


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"mechanism": ps.Gaussian(sigma=9)}, "`mechanism` must be a DPSGD, or a function of the candidate that returns one"),
        ({"final": ps.Gaussian(sigma=5)}, "`mechanism` must be a DPSGD, or a function of the candidate that returns one"),
        ({"final": ps.DPSGD(5.0, 0.01, 9)}, "at least one record in a batch"),
        ({"synthetic": None}, "`synthetic` is required"),
    ],
)
def test_what_opacus_cannot_train_is_refused_before_anything_is_drawn(trainers, options, said, tmp_path):
    train = Noting(trainers)
    with pytest.raises(ParameterError, match=said):
        tuned(trainers, train, ledger=tmp_path / "ledger", **options)
    assert train.seen == []
    assert list(tmp_path.iterdir()) == []


def test_a_visible_search_trains_as_planned_too(trainers):
    train = Noting(trainers)
    data = {"data": trainers.records(), "synthetic": trainers.records(trainers.SYNTHETIC)}
    trial = OpacusTrial(train, records=trainers.RECORDS)
    budget = {"epsilon": 5, "delta": 1e-5, **STATED}
    with ps.VisibleSearch(
        trial, SPACE, visible=2, score="public", export="arrays", executor="serial", ledger=None, **budget, **data
    ) as search:
        for rate in (0.2, 0.4):
            search.run({"learning_rate": rate})
        search.train({"learning_rate": 0.3})
    assert [(plan, rate) for plan, rate, _ in train.seen] == [
        (STATED["mechanism"], 0.2),
        (STATED["mechanism"], 0.4),
        (STATED["final"], 0.3),
    ]
    broken = OpacusTrial(Noting(trainers, {9: trainers.one_more}), records=trainers.RECORDS)
    with ps.VisibleSearch(
        broken, SPACE, visible=1, score="public", export="arrays", executor="serial", ledger=None, **budget, **data
    ) as search:
        search.run({"learning_rate": 0.2})
        with pytest.raises(AbortedError):
            search.train()


def test_trials_on_a_sample_use_the_declared_number_of_records(trainers):
    sizes = []

    def train(candidate, data, private):
        if private.plan.steps == 3:
            sizes.append(len(data[0]))
        return trainers.plain(candidate, data, private)

    release = tuned(trainers, train, subsample="1/2", insecure_seed=2)
    assert min(sizes) < 50
    assert release.certificate.plan.subsample == "1/2"
    assert np.isfinite(release.score)
