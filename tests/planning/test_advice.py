"""Advice: one table of all ways to tune, and a recommendation that follows a public rule."""

import json

import pytest

import privselect as ps
from privselect.errors import ParameterError
from privselect.planning.advice import NO_TUNING, ONE_SHOT, SECRET, VISIBLE, recommend, released_noise, shorter_training

TRAINING = "dpsgd(noise_multiplier=?, sampling_probability=1024/60000, steps=600)"
BUDGET = {"epsilon": 1, "delta": 1e-5}


@pytest.fixture(scope="module")
def advice():
    return ps.advise(TRAINING, **BUDGET)


def test_every_way_keeps_the_budget(advice):
    assert list(advice.plans) == [NO_TUNING, ONE_SHOT, SECRET, VISIBLE]
    assert all(plan.cost.upper <= 1 for plan in advice.plans.values())
    noise = {way: released_noise(plan) for way, plan in advice.plans.items()}
    assert noise[NO_TUNING] == pytest.approx(1.772, rel=1e-3)
    assert noise[ONE_SHOT] > 2.8
    assert noise[SECRET] == noise[VISIBLE] == pytest.approx(1.896, rel=1e-3)
    assert advice.plans[SECRET].mechanism.steps == 60
    assert advice.plans[SECRET].final.steps == 600


def test_the_table_and_the_recommendation(advice):
    assert advice.recommended == SECRET
    assert advice.plan is advice.plans[SECRET]
    assert advice.reason == "the released model needs 7% more noise than without tuning; one shot needs 60% more"
    assert advice.caution is None
    lines = advice.summary().splitlines()
    assert lines[1].split()[:4] == ["no", "tuning", "-", "1.773"]
    assert "recommended  secret search" in lines
    assert "--split auto --epsilon 1 --delta 1e-05" in lines[-1]
    told = advice.as_dict()
    assert [way["way"] for way in told["ways"]] == list(advice.plans)
    assert json.dumps(told)


@pytest.mark.parametrize(
    ("knowledge", "way", "said"),
    [
        ({"defaults": 1, "interactive": False}, NO_TUNING, "nothing to choose from"),
        ({"defaults": 3, "interactive": False}, SECRET, "it chooses among the 3 known settings if they are its `defaults`"),
        ({"defaults": 3, "interactive": True}, SECRET, "among the 3 known settings"),
        ({"defaults": 0, "interactive": True}, VISIBLE, "each of 6 candidates can be chosen from earlier results"),
        ({"defaults": 0, "interactive": False}, SECRET, "7% more"),
    ],
)
def test_what_is_publicly_known_changes_the_recommendation(advice, knowledge, way, said):
    found, reason = recommend(advice.plans, **knowledge)
    assert found == way
    assert said in reason


def test_one_shot_if_it_needs_no_more_noise_than_a_final_training():
    # With a pure guarantee, selection adds about 3 log(20) to epsilon: little next to a huge budget.
    advice = ps.advise("laplace(scale=?)", epsilon=300, delta=1e-5)
    assert released_noise(advice.plans[ONE_SHOT]) <= released_noise(advice.plans[SECRET])
    assert advice.recommended == ONE_SHOT
    assert "every trial is a full training" in advice.reason


def test_the_noise_of_a_private_score_is_solved_too():
    advice = ps.advise("gaussian(sigma=?)", epsilon=2, delta=1e-5, private_score=True, search="gaussian(sigma=?)")
    for way in (ONE_SHOT, SECRET, VISIBLE):
        assert [one.parameter for one in advice.plans[way].solved if one.stage == "search"] == ["sigma", "sigma"]
        assert isinstance(advice.plans[way].mechanism, ps.Disjoint)
    assert isinstance(advice.plans[NO_TUNING].mechanism, ps.Gaussian)
    assert [line.count("(count: ") for line in advice.comparison().splitlines()[1:5]] == [0, 1, 1, 1]


def test_a_search_much_noisier_than_the_released_model_is_pointed_out():
    # A trial as long as the final training has only the rest of the budget for 20 of them.
    advice = ps.advise("gaussian(sigma=?)", **BUDGET)
    final, search = (one.value for one in advice.plan.solved)
    assert advice.caution.startswith(f"a search trial has {search / final:.1f} times the noise of the released model: check")
    assert f"caution      {advice.caution}" in advice.summary().splitlines()
    assert advice.as_dict()["caution"] == advice.caution
    assert ps.advise("gaussian(sigma=?)", **BUDGET, defaults=1).caution is None  # nothing is searched


def test_the_recommended_command_is_the_recommended_plan(advice):
    words = advice.command
    assert words.startswith("privselect plan --mechanism 'dpsgd(noise_multiplier=?")
    assert "--count 'negative_binomial(eta=2, mean=20)'" in words


def test_a_search_trial_of_dpsgd_is_shorter():
    assert shorter_training(ps.parse(TRAINING)).fill(2.0) == ps.DPSGD(noise_multiplier=2, sampling_probability=1024 / 60000, steps=60)
    assert shorter_training(ps.parse(TRAINING.replace("600)", "5)"))).fill(2.0).steps == 1
    gaussian = ps.parse("gaussian(sigma=?)")
    assert shorter_training(gaussian) is gaussian


@pytest.mark.parametrize(
    ("mechanism", "options", "said"),
    [
        ("gaussian(sigma=4)", {}, "`mechanism` must have exactly one open noise, such as .* got 'gaussian"),
        (TRAINING.replace("?", "2").replace("=600", "=?"), {}, "`mechanism` must have exactly one open noise"),
        (TRAINING.replace("=600", "=0"), {}, "`steps` must be an integer >= 1, got 0"),
        (TRAINING, {"search": "gaussian(sigma=4)"}, "`search` must have exactly one open noise"),
        (TRAINING, {"defaults": -1}, "`defaults` must be an integer >= 0 and <= 1000, got -1"),
        (TRAINING, {"interactive": 3}, "`interactive` must be True or False, got 3"),
        (TRAINING, {"epsilon": 0}, r"`epsilon` must be in \(0, inf\), got 0"),
    ],
)
def test_what_cannot_be_advised_is_refused_in_one_sentence(mechanism, options, said):
    with pytest.raises(ParameterError, match=said) as refusal:
        ps.advise(mechanism, **{**BUDGET, **options})
    assert "\n" not in str(refusal.value)
