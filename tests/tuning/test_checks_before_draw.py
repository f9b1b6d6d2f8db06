"""Checks before K is drawn: what would make every trial fail, or the guarantee false, is refused."""

import random
import threading

import numpy as np
import pytest
from scipy.sparse import csr_array

import privselect as ps
from privselect.errors import ParameterError
from privselect.tuning.scores import NoisyCount
from privselect.tuning.trial_mechanism import leaks_at_most
from privselect.tuning.tune import configure_run

SPACE = {"x": ps.Uniform(0, 1)}
GIVEN = {
    "mechanism": "gaussian(sigma=4)",
    "count": "geometric(mean=5)",
    "score": "public",
    "delta": 1e-6,
    "ledger": None,
    "executor": "serial",
}


def train(candidate, _data, _randomness):
    return candidate["x"], None


def refused(said, objective=train, space=SPACE, **given):
    with pytest.raises(ParameterError, match=said):
        ps.tune(objective, space, data=1, **{**GIVEN, **given})


def test_a_trial_on_synthetic_data_finds_an_objective_that_cannot_run():
    refused(
        "failed before any private data was accessed: the score must be a finite number", lambda _c, _d, _r: ("good", None), synthetic=0
    )
    refused("failed with ZeroDivisionError before any private data was accessed", lambda _c, d, _r: (1 / d, None), synthetic=0)


def test_a_timeout_that_cannot_be_kept_is_refused():
    found = []

    def elsewhere():
        try:
            refused("cannot stop a trial outside of the main thread, got 60", timeout=60)
        except BaseException as error:  # noqa: BLE001 - handed to the test
            found.append(error)

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert not found


def test_a_space_with_a_state_or_a_generator_of_its_own_is_refused():
    grid = iter(range(10**6))
    said = "`space` must take all its randomness from `suggest`"
    refused(said, space=lambda suggest: suggest.choice("x", [next(grid)]))
    refused(said, space=lambda suggest: suggest.choice("x", [random.random()]))  # noqa: S311


def test_unknown_options_and_flags_that_are_no_flags():
    refused("`seed` is not an option of tune. Options are again, ", seed=3)
    refused("`visible` is not an option of tune; a visible search is run by VisibleSearch. Options are again, ", visible=3)
    refused("`again` must be true or false, got 'yes'", again="yes")


def test_more_discrete_noise_does_not_always_leak_less():
    """epsilon at 1e-6 is 4.478 at sigma 1.0025 and at least 4.780 at 1.0325."""
    assert ps.DiscreteGaussian(sigma=1.0325).epsilon_at(1e-6).lower > ps.DiscreteGaussian(sigma=1.0025).epsilon_at(1e-6).upper
    assert not leaks_at_most(ps.DiscreteGaussian(sigma=1.0325), ps.DiscreteGaussian(sigma=1.0025))
    assert leaks_at_most(ps.Gaussian(sigma=5), ps.Gaussian(sigma=4))


class Objective:
    mechanism = ps.Gaussian(sigma=0.01)

    def __call__(self, candidate, data, randomness):
        return train(candidate, data, randomness)


def test_what_the_objective_says_of_itself_is_compared_however_the_mechanism_is_given():
    said = "must cover what the objective states that it runs"
    refused(said, Objective(), mechanism=ps.Gaussian(sigma=100))
    refused(said, Objective(), {"x": ps.Choice([1, 2])}, mechanism=lambda _: ps.Gaussian(sigma=100))


def right(_artifact, held):
    return np.ones(len(held), dtype=bool)


def test_the_noise_of_the_score_alone_is_not_a_mechanism_of_training():
    score = NoisyCount(right, sigma=4, holdout=np.arange(3))
    refused("`mechanism` must be disjoint", mechanism="disjoint(discrete_gaussian(sigma=4))", score=score)


def test_candidates_that_differ_share_the_noise_of_the_score():
    score = NoisyCount(right, sigma=4, holdout=np.arange(3))
    given = {**GIVEN, "mechanism": lambda c: ps.Gaussian(sigma=c["x"]), "score": score, "epsilon": None}
    given |= {"fallback": None, "export": None, "declared": None, "mechanism_of": None}
    from privselect.tuning.executors import Serial

    del given["executor"]
    tuning = configure_run(train, {"x": ps.Choice([4, 8])}, engine=Serial(), **given)
    assert str(tuning.spec.mechanism) == (
        "disjoint(mixture(1/2*gaussian(sigma=4), 1/2*gaussian(sigma=8)), discrete_gaussian(sigma=4, neighbours=add_remove))"
    )


class ByIndex:
    """A table that gathers by index, and takes the two truth values for 0 and 1."""

    def __init__(self, records):
        self.records = records

    def __len__(self):
        return len(self.records)

    def __getitem__(self, places):
        return ByIndex([self.records[int(place)] for place in places])


def test_data_that_reads_a_mask_as_places_is_refused():
    score = NoisyCount(right, sigma=4, fraction=0.5, ids=lambda data: list(range(len(data))))
    with pytest.raises(ParameterError, match="must support selecting records by a boolean mask"):
        score.split(ByIndex(list(range(100))), bytes(32))


def test_columns_of_any_kind_are_split_alike():
    score = NoisyCount(right, sigma=4, fraction=0.5, ids="ids")
    data = {"ids": tuple(range(100)), "x": csr_array(np.eye(100)), "y": list(range(100)), "z": np.arange(100)}
    trained, held = score.split(data, bytes(32))
    assert sorted([*trained["ids"], *held["ids"]]) == list(range(100))
    for part in (trained, held):
        assert list(part["ids"]) == part["y"] == part["z"].tolist() == part["x"].toarray().argmax(axis=1).tolist()


def test_arrays_under_the_names_that_torch_gives_them():
    release = ps.tune(
        lambda c, _d, _r: (c["x"], {"layers.0.weight": np.ones(2), "0.bias": np.zeros(1)}), SPACE, data=1, **GIVEN, export="arrays"
    )
    assert set(release.artifact) == {"layers.0.weight", "0.bias"}
