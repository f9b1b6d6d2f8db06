"""A run stated by its budget: the noise is solved for before anything is drawn, and a killed run is found again."""

from dataclasses import replace

import numpy as np
import pytest
from two_stage_runs import DATA, SPACE, Recorded, held_out, objective, right

import privselect as ps
from privselect.errors import LedgerError, ParameterError
from privselect.planning.plan import plan as real_plan
from privselect.tuning import budget as module
from privselect.tuning.ledger import Ledger

OPEN = "dpsgd(noise_multiplier=?, sampling_probability=0.1, steps=5)"
OPEN_FINAL = "dpsgd(noise_multiplier=?, sampling_probability=0.2, steps=20)"
BUDGET = {"epsilon": 2.0, "delta": 1e-5}


def solve(*arguments, **named):
    """Plans are solved once for each question."""
    key = repr((arguments, named))
    if key not in SOLVED:
        SOLVED[key] = real_plan(*arguments, **named)
    return SOLVED[key]


SOLVED = {}


@pytest.fixture
def tuned(quick, tmp_path, monkeypatch):  # noqa: ARG001 - certificates at once
    monkeypatch.setattr(module, "plan", solve)

    def run(trial=objective, space=SPACE, **given):
        usual = {
            "data": DATA,
            "mechanism": OPEN,
            "final": OPEN_FINAL,
            "split": "auto",
            "score": "public",
            "export": "arrays",
            "executor": "serial",
            "ledger": tmp_path / "ledgers",
            "insecure_seed": 3,
            **BUDGET,
        }
        return ps.tune(trial, space, **{**usual, **given})

    return run


class Interrupted:
    def __init__(self):
        self.left = 2

    def __call__(self, candidate, data, randomness, mechanism):
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt
        return objective(candidate, data, randomness, mechanism)


def test_both_stages_are_told_the_noise_that_was_solved_for_and_the_release_says_why(tuned):
    trial = Recorded()
    release = tuned(trial)
    plan = release.plan
    assert {call[1] for call in trial.of("search")} == {plan.mechanism}
    assert {call[1] for call in trial.of("final")} == {plan.final}
    assert plan.count == ps.default_count()
    assert plan.cost.upper <= 2.0
    assert [one.parameter for one in plan.solved] == ["noise_multiplier", "noise_multiplier"]
    assert plan.reasons
    assert plan.problem.mechanism == OPEN
    terms = release.certificate.plan
    assert (terms.mechanism, terms.count, terms.final) == (str(plan.mechanism), str(plan.count), str(plan.final))


def test_a_budget_alone_gives_a_certificate_that_verifies_within_it(tmp_path):
    release = ps.tune(
        objective,
        SPACE,
        data=DATA,
        mechanism=OPEN,
        final="dpsgd(noise_multiplier=4, sampling_probability=0.2, steps=20)",
        count="geometric(mean=5)",
        score="public",
        executor="serial",
        ledger=tmp_path,
        **BUDGET,
    )
    assert 0.99 * 2.0 < release.certificate.total.upper <= 2.0
    assert ps.verify(release.certificate).holds


def test_the_noise_of_the_score_is_solved_for_together_with_that_of_training(tuned):
    trial = Recorded(held_out)
    score = ps.NoisyCount(right, fraction=0.25, ids="id")
    release = tuned(trial, score=score)
    training, noise = release.plan.mechanism.parts
    assert {call[1] for call in trial.of("search")} == {training}
    assert isinstance(noise, ps.DiscreteGaussian)
    assert {one.parameter for one in release.plan.solved} == {"noise_multiplier", "sigma"}
    assert f"plus noise: {noise}" in release.certificate.plan.declared.score
    stated = tuned(trial, score=replace(score, sigma=60.0), ledger=None).plan.mechanism
    assert stated.parts[1].sigma == 60.0
    written = "disjoint(dpsgd(noise_multiplier=?, sampling_probability=0.1, steps=5), discrete_gaussian(sigma=?, neighbours=add_remove))"
    assert tuned(trial, score=score, mechanism=written, ledger=None).plan.mechanism == release.plan.mechanism


def test_the_noise_of_the_score_alone_may_be_open(tuned):
    trial = Recorded(held_out)
    mechanism = ps.DPSGD(4.0, 0.1, 5)
    given = {"final": None, "split": None, "count": "geometric(mean=5)", "mechanism": mechanism}
    release = tuned(trial, score=ps.NoisyCount(right, fraction=0.25, ids="id"), **given)
    assert release.plan.mechanism.parts[0] == mechanism
    assert release.trained_with is None


def test_without_a_law_of_k_there_is_a_default(tuned):
    assert tuned(final=None, split=None, mechanism=ps.Gaussian(sigma=9), ledger=None).plan.count == ps.default_count()
    assert tuned(final=None, split=None, ledger=None).plan.count == ps.default_count()


def test_a_killed_run_is_found_again_without_solving_even_if_another_version_would_solve_differently(tuned, tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    expected = tuned(ledger=None)
    trial = Interrupted()
    with pytest.raises(KeyboardInterrupt):
        tuned(trial)

    def other_version(*_, **__):
        raise AssertionError("solved again")

    monkeypatch.setattr(module, "plan", other_version)
    release = tuned(trial)
    assert len(list((tmp_path / "ledgers").iterdir())) == 1
    assert (release.candidate, release.trained_with) == (expected.candidate, expected.trained_with)
    assert np.array_equal(release.artifact["weights"], expected.artifact["weights"])
    assert (release.plan.mechanism, release.plan.final, release.plan.problem) == (
        expected.plan.mechanism,
        expected.plan.final,
        expected.plan.problem,
    )
    # So is a released one: its tombstone still says what it was solved from.
    with pytest.raises(LedgerError, match="this plan was already run and released"):
        tuned(trial)


@pytest.mark.parametrize("change", [{"epsilon": 2.5}, {"split": None, "final_noise": 1.2}, {"space": {**SPACE, "clip": ps.Choice([0.5])}}])
def test_another_question_is_another_run(tuned, tmp_path, change):
    with pytest.raises(KeyboardInterrupt):
        tuned(Interrupted())
    tuned(**change)
    assert len(list((tmp_path / "ledgers").iterdir())) == 2


def test_a_plan_of_the_same_numbers_is_the_same_run(tuned):
    release = tuned()
    stated = {"mechanism": release.plan.mechanism, "final": release.plan.final, "count": release.plan.count, "split": None}
    with pytest.raises(LedgerError, match="this plan was already run and released"):
        tuned(**stated)


def test_the_ledger_keeps_the_question_and_no_solution_of_it_in_the_name(tuned, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        tuned(Interrupted())
    (path,) = (tmp_path / "ledgers").iterdir()
    found = Ledger.glance(path)
    assert found.problem.startswith("sha256:")
    assert found.problem != found.plan
    assert not found.released


def test_what_depends_on_the_candidate_cannot_be_solved_for(tuned):
    with pytest.raises(ParameterError, match="`mechanism` must be one mechanism for all candidates"):
        tuned(held_out, mechanism=lambda _: ps.Gaussian(sigma=4), score=ps.NoisyCount(right, fraction=0.25, ids="id"))
    with pytest.raises(ParameterError, match="`mechanism` must be one mechanism for all candidates"):
        tuned(held_out, mechanism=None, score=ps.NoisyCount(right, fraction=0.25, ids="id"))
