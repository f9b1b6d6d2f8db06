"""Transfer rules: the candidate of the final training as a function of the winner's."""

import itertools
import math
import sys

import pytest
from two_stage_runs import DATA, FINAL, SEARCH, SPACE, objective

import privselect as ps
from privselect.errors import ParameterError
from privselect.tuning.space import Space
from privselect.tuning.transfer import SameAccumulatedNoise, Transfer, read_transfer, transfer_name

CANDIDATE = {"learning_rate": 0.5, "clip": 1.0}


def test_the_same_is_a_copy():
    rule = read_transfer("same", None, SEARCH, FINAL)
    assert rule.name == "same"
    assert rule.apply(CANDIDATE) == CANDIDATE
    assert rule.apply(CANDIDATE) is not CANDIDATE


def accumulated(rate, training):
    """The standard deviation of the noise that all steps add, for clipping norm 1 and one record."""
    return rate * training.noise_multiplier * math.sqrt(training.steps) / training.sampling_probability


@pytest.mark.parametrize(
    "final", [FINAL, ps.DPSGD(3.0, 0.1, 5), ps.DPSGD(1.9, 1024 / 60000, 600), ps.DPSGD(1.0, 1.0, 1)], ids=["both", "none", "many", "full"]
)
def test_the_accumulated_noise_stays_the_same(final):
    rule = read_transfer("noise", None, SEARCH, final)
    after = rule.apply(CANDIDATE)
    assert after["clip"] == CANDIDATE["clip"]
    assert accumulated(after["learning_rate"], final) == pytest.approx(accumulated(CANDIDATE["learning_rate"], SEARCH), rel=1e-12)


def test_the_factor_of_the_prototype_is_about_one_half():
    q = 1024 / 60000
    assert SameAccumulatedNoise("lr", ps.DPSGD(3.07, q, 60), ps.DPSGD(1.9, q, 600)).factor(ps.DPSGD(3.07, q, 60)) == pytest.approx(
        0.511, abs=1e-3
    )


def test_the_certificate_states_the_factor():
    q = 1024 / 60000
    rule = read_transfer("noise", "lr", ps.DPSGD(3.07, q, 60), ps.DPSGD(1.9, q, 600))
    assert rule.name == "noise(lr)"
    assert rule.note == "the winner's candidate, with lr multiplied by 0.510957, so that the accumulated noise stays the same"


def test_the_factor_follows_the_mechanism_of_the_candidate():
    def search(candidate):
        return ps.DPSGD(candidate["noise"], 0.1, 5)

    rule = read_transfer("noise", None, search, FINAL)
    rates = [rule.apply({"learning_rate": 0.5, "noise": noise})["learning_rate"] for noise in (2.0, 4.0)]
    assert rates[1] == pytest.approx(2.0 * rates[0])


def halved(candidate):
    candidate["learning_rate"] /= 2  # what it does to its argument stays with it
    return candidate


def test_a_function_is_named_in_the_plan_and_cannot_change_its_argument():
    rule = read_transfer(halved, None, SEARCH, FINAL)
    assert rule.name == f"{__name__}:halved" == transfer_name(halved, None)
    before = dict(CANDIDATE)
    assert rule.apply(before) == {"learning_rate": 0.25, "clip": 1.0}
    assert before == CANDIDATE


def test_only_the_rule_noise_may_leave_the_space():
    space = Space({"learning_rate": ps.LogUniform(0.4, 0.6), "clip": ps.Choice([1.0])})
    assert read_transfer("noise", None, SEARCH, FINAL).fault(CANDIDATE, space) is None
    assert "must return a candidate of the space: `learning_rate`" in read_transfer(halved, None, SEARCH, FINAL).fault(CANDIDATE, space)


counter = itertools.count()
REFUSED = {
    "raises": (
        lambda _: 1 / 0,
        r"`transfer` must be a function that succeeds, got ZeroDivisionError: division by zero for {'learning_rate",
    ),
    "exits": (lambda _: sys.exit("text"), r"`transfer` must be a function that succeeds, got SystemExit: text for {'learning_rate"),
    "no JSON": (lambda candidate: {**candidate, "clip": object()}, "can be written as JSON, got TypeError"),
    "not a number": (lambda candidate: {**candidate, "clip": math.nan}, "can be written as JSON, got ValueError"),
    "not a function of it": (
        lambda candidate: {**candidate, "learning_rate": 0.5 / (1 + next(counter))},
        "must be a function of the candidate alone, got two different results",
    ),
    "nothing": (lambda _: None, "must return a dict with the hyperparameters learning_rate, clip, got None"),
    "a name less": (lambda _: {"clip": 0.5}, "must return a dict with the hyperparameters learning_rate, clip"),
    "a name more": (lambda candidate: {**candidate, "steps": 3}, "must return a dict with the hyperparameters learning_rate, clip"),
    "outside": (lambda candidate: {**candidate, "learning_rate": 100.0}, "must return a candidate of the space: `learning_rate`"),
    "another option": (lambda candidate: {**candidate, "clip": 0.75}, "must return a candidate of the space: `clip`"),
}


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(("transfer", "said"), REFUSED.values(), ids=REFUSED)
def test_a_rule_that_fails_is_refused_before_anything_is_drawn(tmp_path, transfer, said):
    with pytest.raises(ParameterError, match=said):
        run(tmp_path, transfer=transfer)
    assert not list(tmp_path.rglob("*.sqlite"))


WRONG = {
    "no learning rate": ({"transfer": "noise", "learning_rate": "lr"}, "'noise' needs a hyperparameter 'lr', got learning_rate, clip"),
    "not a learning rate": ({"transfer": "noise", "learning_rate": 3}, "`learning_rate` must be the name of a hyperparameter, got 3"),
    "a learning rate for nothing": ({"learning_rate": "clip"}, "`learning_rate` is for the transfer rule 'noise' only"),
    "another search": ({"transfer": "noise", "mechanism": "gaussian(sigma=4)"}, r"needs a dpsgd\(...\) in both stages, got 'gaussian"),
    "another training": ({"transfer": "noise", "final": "gaussian(sigma=4)"}, r"needs a dpsgd\(...\) in both stages, got 'gaussian"),
    "not a rule": ({"transfer": 3}, "`transfer` must be 'same', 'noise' or a function of the candidate, got 3"),
}


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(("given", "said"), WRONG.values(), ids=WRONG)
def test_a_rule_that_does_not_fit_is_refused(tmp_path, given, said):
    with pytest.raises(ParameterError, match=said):
        run(tmp_path, **given)
    assert not list(tmp_path.rglob("*.sqlite"))


def run(folder, **given):
    usual = {"mechanism": SEARCH, "final": FINAL, "count": ps.Poisson(mean=3), "score": "public", "delta": 1e-6}
    return ps.tune(objective, SPACE, data=DATA, executor="serial", ledger=folder, **{**usual, **given})


def test_a_default_that_is_transferred_may_leave_the_space():
    space = Space(SPACE, defaults=[{"learning_rate": 10.0}], weight=1)
    rule = Transfer("up", lambda candidate: {**candidate, "learning_rate": 11.0}, "")
    assert rule.fault({"learning_rate": 10.0, "clip": 1.0}, space) is not None
    assert Transfer("up", rule.function, "", inside=False).fault({"learning_rate": 10.0, "clip": 1.0}, space) is None
