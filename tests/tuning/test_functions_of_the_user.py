"""Transfer rules, mechanisms of candidates and spaces are functions of the user: what they print or look at after the draw of K."""

import traceback

import pytest
from two_stage_runs import DATA, FINAL, SEARCH, SPACE, objective

import privselect as ps
from privselect.errors import AbortedError

NONE, THREE = 8, 1  # seeds by which K is 0 and 3 under poisson(mean=1)


@pytest.fixture
def tuned(quick):  # noqa: ARG001 - certificates at once
    """A run of two stages; what is given takes the place of what is usual."""

    def run(trial=objective, space=SPACE, **given):
        usual = {"mechanism": SEARCH, "count": ps.Poisson(mean=1), "final": FINAL, "score": "public", "delta": 1e-6}
        where = {"data": DATA, "executor": "serial", "ledger": None, "insecure_seed": THREE}
        return ps.tune(trial, space, **{**usual, **where, **given})

    return run


def telling_space(suggest):
    print("space")  # noqa: T201 - what must not be counted
    suggest.log_uniform("learning_rate", 0.1, 10.0)
    suggest.choice("clip", [0.5, 1.0])


def telling_transfer(candidate):
    print("transfer")  # noqa: T201 - what must not be counted
    return candidate


def telling_mechanism(_):
    print("mechanism")  # noqa: T201 - what must not be counted
    return SEARCH


TELLING = {"space": {"space": telling_space}, "transfer": {"transfer": telling_transfer}, "mechanism": {"mechanism_of": telling_mechanism}}


@pytest.mark.parametrize("given", TELLING.values(), ids=TELLING)
def test_what_a_function_prints_is_not_shown(tuned, capfd, given):
    """The number of its calls depends on K."""
    for seed in (NONE, THREE):
        tuned(**given, insecure_seed=seed)
        assert capfd.readouterr() == ("", "")


def test_a_transfer_that_looks_at_the_trials_returns_what_it_returned_before_the_data(tuned):
    seen = []

    def trial(candidate, data, randomness, mechanism):
        score, model = objective(candidate, data, randomness, mechanism)
        seen.append(score)
        return score, model

    def peeking(candidate):
        return {**candidate, "learning_rate": min(0.1 + sum(seen), 10.0)}

    release = tuned(trial, transfer=peeking)
    assert len(seen) == 4
    assert release.trained_with["learning_rate"] == 0.1


def halved(candidate):
    return {**candidate, "learning_rate": max(candidate["learning_rate"] / 2, 0.1)}


def test_without_a_winner_the_candidate_of_the_training_is_transferred_too(tuned):
    trained = []

    def trial(candidate, data, randomness, mechanism, stage):
        if stage == "final":
            trained.append(dict(candidate))
        return objective(candidate, data, randomness, mechanism)

    for transfer in ("same", halved):
        assert tuned(trial, transfer=transfer, insecure_seed=NONE).is_fallback
    assert trained[1] == halved(trained[0]) != trained[0]


@pytest.mark.parametrize(("given", "error"), [({"deadline": 0.3}, AbortedError), ({}, KeyboardInterrupt)], ids=["deadline", "interrupt"])
def test_a_traceback_does_not_tell_the_stage(tuned, given, error):
    told = []
    for stopped in ("search", "final"):

        def trial(candidate, data, randomness, mechanism, stage, stopped=stopped):
            outcome = objective(candidate, data, randomness, mechanism)
            if stage == stopped and error is KeyboardInterrupt:
                raise KeyboardInterrupt
            while stage == stopped:
                pass
            return outcome

        with pytest.raises(error) as caught:
            tuned(trial, **given, timeout=1.0, final_timeout=1.0)
        assert caught.value.__context__ is caught.value.__cause__ is None
        told.append("".join(traceback.format_exception(caught.value)))
    assert told[0] == told[1]
    assert "_run_stages" not in told[0]
