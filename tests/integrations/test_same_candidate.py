"""Every interface to the tuner releases the same candidate from the same secret: they are one engine.

An interface is a function of the seed that runs ``score_of`` over ``LAWS``, and gives the released candidate and score.
"""

import math

import pytest
from scipy.stats import loguniform, randint, uniform
from sklearn.base import BaseEstimator

import privselect as ps
from privselect.integrations import PrivateSearch, PrivateStudy

pytestmark = pytest.mark.usefixtures("once")
LAWS = {
    "rate": ps.LogUniform(1e-3, 10.0),
    "momentum": ps.Uniform(0.5, 1.5),
    "depth": ps.Integer(2, 9),
    "kind": ps.Choice(["a", "b", "c"]),
}
GIVEN = {"mechanism": ps.Gaussian(sigma=4), "count": ps.Geometric(mean=8), "delta": 1e-6, "ledger": None}
DATA = [[0.0], [1.0], [2.0]]


def score_of(candidate):
    """The same in every interface; no two candidates are alike."""
    return -abs(math.log(candidate["rate"])) - candidate["momentum"] + candidate["depth"] / 7 + (candidate["kind"] == "b")


def plainly(seed):
    def objective(candidate, _data, _randomness):
        return score_of(candidate), None

    release = ps.tune(objective, LAWS, data=DATA, score="public", executor="serial", insecure_seed=seed, **GIVEN)
    return release.candidate, release.score


class Scored(BaseEstimator):
    """An estimator that is no more than its parameters."""

    def __init__(self, rate=1.0, momentum=1.0, depth=2, kind="a"):
        self.rate, self.momentum, self.depth, self.kind = rate, momentum, depth, kind

    def fit(self, X, y=None):  # noqa: ARG002, N803
        self.fitted_ = True
        return self

    def score(self, X, y=None):  # noqa: ARG002, N803
        return score_of(self.get_params())


def by_sklearn(seed):
    space = {"rate": loguniform(1e-3, 10.0), "momentum": uniform(0.5, 1.0), "depth": randint(2, 10), "kind": ["a", "b", "c"]}
    search = PrivateSearch(Scored(), space, validation=(DATA, None), random_state=seed, **GIVEN).fit(DATA)
    return search.best_params_, search.best_score_


def by_optuna(seed):
    def objective(trial):
        return score_of(
            {
                "rate": trial.suggest_float("rate", 1e-3, 10.0, log=True),
                "momentum": trial.suggest_float("momentum", 0.5, 1.5),
                "depth": trial.suggest_int("depth", 2, 9),
                "kind": trial.suggest_categorical("kind", ["a", "b", "c"]),
            }
        )

    study = PrivateStudy(direction="maximize", score="public", insecure_seed=seed, **GIVEN)
    study.optimize(objective, data=DATA)
    return study.best_params, study.best_value


INTERFACES = {"sklearn": by_sklearn, "optuna": by_optuna}


@pytest.mark.parametrize("interface", INTERFACES)
@pytest.mark.parametrize("seed", range(3))
def test_the_same_secret_releases_the_same_candidate(interface, seed):
    assert INTERFACES[interface](seed) == plainly(seed)


def test_another_secret_releases_another_candidate():
    assert len({repr(plainly(seed)) for seed in range(3)}) == 3
