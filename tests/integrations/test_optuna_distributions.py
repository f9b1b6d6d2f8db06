"""The draws of a private trial have the exact distribution of Optuna's RandomSampler."""

import math
import warnings
from collections import Counter

import numpy as np
import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from scipy import stats

from privselect.integrations.optuna.distributions import EvenSteps, LogInteger, from_optuna, to_optuna
from privselect.integrations.optuna.objective import UndrawableError
from privselect.integrations.optuna.trial import PrivateTrial
from privselect.tuning.distributions import Choice, Integer, LogUniform, Uniform
from privselect.tuning.randomness import Randomness, Stream, derive_key
from privselect.tuning.suggest import Suggest

DRAWS = 1500
WRONG = 1e-4  # the tests draw the same numbers each time: once right, always right

FINITE = {
    "int": (lambda trial: trial.suggest_int("x", -2, 4), range(-2, 5)),
    "int by steps": (lambda trial: trial.suggest_int("x", 3, 20, step=4), [3, 7, 11, 15, 19]),
    "float by steps": (lambda trial: trial.suggest_float("x", 0.2, 0.8, step=0.1), [k * 0.1 + 0.2 for k in range(6)] + [0.8]),
    "the old float by steps": (lambda trial: trial.suggest_discrete_uniform("x", 0.0, 1.0, 0.3), [0.0, 0.3, 0.6, 3 * 0.3]),
    "categorical": (lambda trial: trial.suggest_categorical("x", ["a", None, 2, 0.5, False]), ["a", None, 2, 0.5, False]),
}
REAL = {
    "float": (lambda trial: trial.suggest_float("x", -3.0, 5.0), lambda x: (x + 3) / 8),
    "the old float": (lambda trial: trial.suggest_uniform("x", 1.0, 2.0), lambda x: x - 1),
    "float on a log scale": (lambda trial: trial.suggest_float("x", 1e-5, 1e-1, log=True), lambda x: np.log10(x) / 4 + 1.25),
    "the old float on a log scale": (lambda trial: trial.suggest_loguniform("x", 1.0, math.e), np.log),
}


def a_trial(number=0):
    return PrivateTrial(Suggest(Stream(derive_key(bytes(32), "candidate", number)), in_trial=True), Randomness(bytes(32)))


def private(suggest, draws=DRAWS):
    return [suggest(a_trial(number)) for number in range(draws)]


def stock(suggest, draws=DRAWS):
    """Draws of Optuna's RandomSampler."""
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [suggest(study.ask()) for _ in range(draws)]


@pytest.fixture(autouse=True)
def quiet():
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    yield
    optuna.logging.set_verbosity(before)


class Bits:
    """A source of fixed bits."""

    def __init__(self, number):
        self.number = number

    def getrandbits(self, k):
        assert self.number < 2**k
        return self.number


@pytest.mark.parametrize("kind", FINITE)
def test_of_finitely_many_values_each_is_as_likely_as_any_other(kind):
    suggest, values = FINITE[kind]
    counts = Counter(private(suggest))
    assert set(counts) == set(values)  # both ends included, and nothing else
    assert stats.chisquare([counts[value] for value in values]).pvalue > WRONG


@pytest.mark.parametrize("kind", FINITE)
def test_the_values_and_their_types_are_those_of_the_random_sampler(kind):
    suggest, _ = FINITE[kind]
    assert {(value, type(value)) for value in private(suggest, 600)} == {(value, type(value)) for value in stock(suggest, 600)}


@pytest.mark.parametrize("kind", REAL)
def test_real_numbers_have_their_law_and_that_of_the_random_sampler(kind):
    suggest, share = REAL[kind]
    drawn = np.array(private(suggest))
    assert stats.kstest(share(drawn), "uniform").pvalue > WRONG
    assert stats.ks_2samp(drawn, stock(suggest)).pvalue > WRONG


@pytest.mark.parametrize(("low", "high"), [(1, 1), (1, 9), (4, 300), (1, 10**9)])
def test_whole_numbers_on_a_log_scale_end_where_optuna_ends_them(low, high):
    law = LogInteger(low, high)
    assert (law.draw(Bits(0)), law.draw(Bits(2**53 - 1))) == (low, high)
    whole = math.log((high + 0.5) / (low - 0.5))
    for k in range(low, min(high, low + 200)):
        end = math.log((k + 0.5) / (low - 0.5)) / whole * (2**53 - 1)
        assert law.draw(Bits(int(end * (1 - 1e-12)))) == k
        assert law.draw(Bits(int(end * (1 + 1e-12)) + 1)) == k + 1


def test_whole_numbers_on_a_log_scale_have_the_law_of_the_random_sampler():
    def suggest(trial):
        return trial.suggest_int("x", 2, 12, log=True)

    values = np.arange(2, 13)
    expected = np.log((values + 0.5) / (values - 0.5)) / math.log(12.5 / 1.5)
    ours, theirs = (np.array([counts[value] for value in values]) for counts in (Counter(private(suggest)), Counter(stock(suggest))))
    assert ours.sum() == theirs.sum() == DRAWS
    assert stats.chisquare(ours, expected * DRAWS).pvalue > WRONG
    assert stats.chisquare(theirs, expected * DRAWS).pvalue > WRONG


@pytest.mark.parametrize("ends", [(0.1, 2.3, 0.1), (-1.0, 1.0, 0.25), (0.0, 1e6, 0.001), (5, 5, 3), (-7, 13, 5)])
def test_steps_are_those_of_optuna_from_end_to_end(ends):
    law = EvenSteps(*ends)
    last = law.count - 1
    assert law.draw(Bits(0)) == ends[0]
    assert law.draw(Bits(last)) == pytest.approx(ends[1], rel=1e-12)
    distribution = to_optuna(law.as_dict())
    assert isinstance(distribution, IntDistribution if isinstance(ends[0], int) else FloatDistribution)
    assert all(distribution._contains(law.draw(Bits(index))) for index in {0, last // 3, last // 2, last})


def test_a_law_that_a_plain_space_has_is_that_law():
    assert from_optuna(FloatDistribution(0, 1)) == Uniform(0, 1)
    assert from_optuna(FloatDistribution(1, 2, log=True)) == LogUniform(1, 2)
    assert from_optuna(IntDistribution(1, 5)) == Integer(1, 5)
    assert from_optuna(CategoricalDistribution(["a", 1])) == Choice(["a", 1])
    assert from_optuna(IntDistribution(2, 10, step=4)).as_dict() == {"steps": [2, 10, 4]}


@pytest.mark.parametrize(
    "distribution",
    [
        FloatDistribution(-1, 1),
        FloatDistribution(0.1, 1, log=True),
        FloatDistribution(0, 1, step=0.25),
        IntDistribution(1, 5),
        IntDistribution(1, 64, log=True),
        IntDistribution(0, 64, step=16),
        CategoricalDistribution(["a", None, True, 0.5, 3]),
    ],
    ids=str,
)
def test_a_law_in_plain_form_gives_optunas_distribution_back(distribution):
    assert to_optuna(from_optuna(distribution).as_dict()) == distribution


def test_conditional_spaces_draw_each_branch_by_its_own_law():
    def suggest(trial):
        if trial.suggest_categorical("classifier", ["svc", "forest"]) == "svc":
            return trial.suggest_float("svc_c", 1.0, 100.0, log=True)
        return trial.suggest_int("depth", 2, 5) + 1000

    trials = [a_trial(number) for number in range(DRAWS)]
    values = np.array([suggest(trial) for trial in trials])
    svc = values < 1000
    assert stats.binomtest(int(svc.sum()), DRAWS, 0.5).pvalue > WRONG
    assert stats.kstest(np.log(values[svc]) / math.log(100), "uniform").pvalue > WRONG
    assert stats.chisquare([int((values == 1000 + depth).sum()) for depth in range(2, 6)]).pvalue > WRONG
    assert {tuple(trial.params) for trial in trials} == {("classifier", "svc_c"), ("classifier", "depth")}
    assert all(trial.params.keys() == trial.distributions.keys() for trial in trials)


def test_names_are_any_text_and_draws_of_one_trial_are_independent():
    pairs = np.array([(t.suggest_float("learning rate", 0, 1), t.suggest_float("layer-0/width", 0, 1)) for t in map(a_trial, range(DRAWS))])
    assert abs(np.corrcoef(pairs.T)[0, 1]) < 4 / math.sqrt(DRAWS)


def test_the_same_name_gives_the_same_value_and_another_law_is_an_error():
    trial = a_trial()
    first = trial.suggest_float("x", 0, 1)
    assert trial.suggest_float("x", 0, 1) == first
    assert trial.params == {"x": first}
    others = [
        lambda: trial.suggest_float("x", 0, 2),
        lambda: trial.suggest_float("x", 0, 1, step=0.5),
        lambda: trial.suggest_int("x", 0, 1),
        lambda: trial.suggest_categorical("x", [0, 1]),
    ]
    for other in others:
        with pytest.raises(UndrawableError, match="was already drawn from"):
            other()


IMPOSSIBLE = {
    "low above high": lambda trial: trial.suggest_float("x", 1, 0),
    "no end": lambda trial: trial.suggest_float("x", 0, math.inf),
    "no end by steps": lambda trial: trial.suggest_float("x", 0, math.inf, step=1),
    "no number": lambda trial: trial.suggest_float("x", math.nan, 1),
    "logarithm of 0": lambda trial: trial.suggest_float("x", 0, 1, log=True),
    "steps on a log scale": lambda trial: trial.suggest_float("x", 0, 1, step=0.1, log=True),
    "too many steps": lambda trial: trial.suggest_float("x", 0, 1e300, step=1e-300),
    "logarithm of the whole number 0": lambda trial: trial.suggest_int("x", 0, 10, log=True),
    "too many whole numbers": lambda trial: trial.suggest_int("x", 0, 10**16),
    "no step": lambda trial: trial.suggest_int("x", 0, 10, step=0),
    "no choice": lambda trial: trial.suggest_categorical("x", []),
    "a choice that is no number": lambda trial: trial.suggest_categorical("x", [math.nan]),
    "an object": lambda trial: trial.suggest_categorical("x", [object()]),
    "a table": lambda trial: trial.suggest_categorical("x", [{"a": 1}]),
    "an empty name": lambda trial: trial.suggest_float("", 0, 1),
    "a name that is no text": lambda trial: trial.suggest_float(7, 0, 1),
}


@pytest.mark.parametrize("kind", IMPOSSIBLE)
def test_what_cannot_be_drawn_says_so(kind):
    with pytest.raises(UndrawableError, match=r"cannot be drawn: ."):
        IMPOSSIBLE[kind](a_trial())


def test_a_choice_is_the_objects_of_the_objective():
    lists = [[64, 32], [16]]
    drawn = private(lambda trial: trial.suggest_categorical("layers", lists), 20)
    assert {id(value) for value in drawn} == {id(value) for value in lists}
    typed = private(lambda trial: trial.suggest_categorical("x", [1, True, 1.0, np.int64(2)]), 60)
    assert {type(value) for value in typed} == {int, bool, float, np.int64}


def test_a_range_that_is_no_multiple_of_its_step_is_cut_as_by_optuna():
    drawn = private(lambda trial: trial.suggest_int("x", 0, 10, step=4), 60)
    assert set(drawn) == {0, 4, 8}
