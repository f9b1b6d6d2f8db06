"""Defaults of a space: exact probabilities, honoured values, and refusals in one sentence."""

import itertools
import json
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import privselect as ps
from privselect.errors import ParameterError
from privselect.integrations.optuna.distributions import EvenSteps, LogInteger
from privselect.integrations.sklearn.distributions import ScipyDistribution
from privselect.tuning import defaults as defaults_module
from privselect.tuning import distributions as distributions_module
from privselect.tuning.distributions import Choice, Distribution, Integer, LogUniform, Uniform
from privselect.tuning.plan_violation import PlanViolation
from privselect.tuning.randomness import Stream, derive_key
from privselect.tuning.runner import RunDraws
from privselect.tuning.space import DefineByRunSpace, Space, read_space
from privselect.tuning.suggest import NOT_SEARCHED, OUTSIDE_RANGE, Suggest

SECRET = bytes(range(32))
FALSE_ALARM = 1e-6  # of each statistical test here; the secret is fixed, so that a run that passed passes again
LAWS = {"rate": LogUniform(1e-3, 1.0), "batch": Choice([1, 2, 4], ["1/2", "1/3", "1/6"]), "depth": Integer(1, 2)}


# -- every path through the sampler, with its exact probability -------------------------------------------------------------------


class Paths:
    """Stand-in for random bits that goes through every sequence of answers once, and multiplies their probabilities."""

    def __init__(self, monkeypatch):
        for module in (defaults_module, distributions_module):
            monkeypatch.setattr(module, "uniform_below", self.below)
        monkeypatch.setattr(defaults_module, "bernoulli", lambda p, _: self.below(p.denominator, None) < p.numerator)
        self.chosen, self.position, self.probability = [], 0, Fraction(1)

    def below(self, n, _):
        if self.position == len(self.chosen):
            self.chosen.append([0, n])
        answer, _ = self.chosen[self.position]
        self.position += 1
        self.probability /= n
        return answer

    def getrandbits(self, _k):
        return 0  # real numbers are not enumerated

    def __iter__(self):
        while True:
            self.position, self.probability = 0, Fraction(1)
            yield
            while self.chosen and self.chosen[-1][0] == self.chosen[-1][1] - 1:
                self.chosen.pop()
            if not self.chosen:
                return
            self.chosen[-1][0] += 1


def enumerated(space, monkeypatch):
    """Return the exact probability of every finite part, by all paths through the sampler."""
    total = Counter()
    paths = Paths(monkeypatch)
    for _ in paths:
        candidate = space.draw(paths)
        total[json.dumps(space.finite_part(candidate))] += paths.probability
    assert sum(total.values()) == 1
    return dict(total)


MIXTURES = {
    "one default fixes all": ([{"rate": 0.1, "batch": 2, "depth": 1}], "1/2"),
    "two defaults, one of them in part": ([{"rate": 0.1, "batch": 4, "depth": 2}, {"batch": 1}], "2/7"),
    "a default fixes no finite part": ([{"rate": 0.5}], "1/3"),
    "the same default twice": ([{"batch": 1, "depth": 1}, {"batch": 1, "depth": 1}, {"depth": 2}], "9/10"),
    "never a default": ([{"batch": 1}], 0),
    "always a default": ([{"batch": 1}, {"batch": 4, "depth": 2}], 1),
}


@pytest.mark.parametrize("kind", MIXTURES)
def test_the_listed_probabilities_are_those_of_every_path_through_the_sampler(kind, monkeypatch):
    defaults, weight = MIXTURES[kind]
    space = Space(LAWS, defaults=defaults, weight=weight)
    listed = space.listed()
    assert len({json.dumps(candidate) for _, candidate in listed}) == len(listed)
    assert {json.dumps(candidate): probability for probability, candidate in listed} == enumerated(space, monkeypatch)


def test_the_weight_is_split_evenly_over_the_defaults():
    space = Space({"x": Choice([1, 2, 3])}, defaults=[{"x": 1}, {"x": 3}], weight=Fraction(1, 5))
    assert {c["x"]: p for p, c in space.listed()} == {
        1: Fraction(1, 10) + Fraction(4, 15),
        2: Fraction(4, 15),
        3: Fraction(1, 10) + Fraction(4, 15),
    }


def test_a_space_in_which_every_candidate_is_a_default_lists_real_numbers_too():
    space = Space(LAWS, defaults=[{"rate": 0.5, "batch": 1}, {"rate": 0.1}], weight=1)
    assert space.finite_part({"rate": 0.5, "batch": 1, "depth": 2}) == {"rate": 0.5, "batch": 1, "depth": 2}
    assert sum(p for p, c in space.listed() if c["rate"] == 0.5) == Fraction(1, 2)
    assert "rate" not in Space(LAWS, defaults=[{"rate": 0.5}, {"batch": 1}], weight=1).finite_part({"rate": 0.5, "batch": 1, "depth": 2})


def test_too_many_candidates_are_not_listed():
    many = {"a": Integer(1, 40), "b": Integer(1, 40)}
    assert Space(many, defaults=[{"a": 1, "b": 1}]).listed() is None
    assert len(Space(many, defaults=[{"a": 1}, {"b": 2}], weight=1).listed()) == 79
    assert Space(lambda suggest: suggest.integer("a", 1, 2), defaults=[{"a": 1}]).listed() is None


def test_a_mixture_is_accounted_for_by_the_exact_probabilities():
    release = ps.tune(
        lambda candidate, _data, _randomness: (candidate["rate"], None),
        Space(LAWS, defaults=[{"rate": 0.1, "batch": 2}], weight="1/2"),
        mechanism=lambda candidate: ps.Gaussian(sigma=4.0 * candidate["batch"]),
        count=ps.Geometric(mean=3),
        score="public",
        delta=1e-6,
        ledger=None,
        executor="serial",
    )
    assert release.certificate.plan.mechanism == "mixture(2/3*gaussian(sigma=8), 1/4*gaussian(sigma=4), 1/12*gaussian(sigma=16))"


# -- draws --------------------------------------------------------------------------------------------------------------------------


def drawn(space, count):
    draws = RunDraws(SECRET, count, space)
    return [draws.candidate(slot) for slot in range(count)]


def test_defaults_are_drawn_with_their_weight():
    # A chi-square of 4000 draws over two defaults and the rest, false alarm 1e-6.
    space = Space(LAWS, defaults=[{"rate": 0.25, "batch": 2, "depth": 1}, {"rate": 0.125}], weight="2/5")
    counts = Counter({0.25: "first", 0.125: "second"}.get(candidate["rate"], "none") for candidate in drawn(space, 4000))
    assert stats.chisquare([counts["first"], counts["second"], counts["none"]], [800, 800, 2400]).pvalue > FALSE_ALARM


def test_what_a_default_leaves_out_is_drawn_from_the_space():
    # A chi-square of the depths, and of the batches, that one default leaves out; false alarm 1e-6 each.
    found = drawn(Space(LAWS, defaults=[{"rate": 0.5}], weight=1), 3000)
    assert {candidate["rate"] for candidate in found} == {0.5}
    counts = Counter((candidate["batch"], candidate["depth"]) for candidate in found)
    expected = [250 * weight for weight in (3, 2, 1) for _ in range(2)]
    assert stats.chisquare([counts[key] for key in itertools.product([1, 2, 4], [1, 2])], expected).pvalue > FALSE_ALARM


def test_without_defaults_the_draws_and_the_plan_are_unchanged():
    plain = Space(LAWS)
    assert plain.as_dict() == {name: law.as_dict() for name, law in LAWS.items()}
    assert plain.notes == ()
    stream = Stream(derive_key(SECRET, "candidate"))
    assert plain.draw(stream) == {
        name: law.draw(again) for again in [Stream(derive_key(SECRET, "candidate"))] for name, law in LAWS.items()
    }
    assert Space(LAWS, defaults=[]).as_dict() == plain.as_dict()
    assert Space(LAWS, defaults=[{"depth": 1}], weight=0).draw(Stream(SECRET)) == plain.draw(Stream(SECRET))


def test_the_plan_of_a_space_with_defaults_is_its_own():
    space = Space(LAWS, defaults=[{"rate": 1, "batch": np.int64(4)}, {"depth": 2.0}], weight=0.1)
    assert space.as_dict() == {"space": Space(LAWS).as_dict(), "defaults": [{"rate": 1.0, "batch": 4}, {"depth": 2}], "weight": "1/10"}
    assert json.dumps(space.as_dict()["defaults"]) == '[{"rate": 1.0, "batch": 4}, {"depth": 2}]'  # as they would be drawn
    named = Space({"space": Choice([1]), "defaults": Choice([1]), "weight": Choice([1])}).as_dict()
    assert all(isinstance(value, dict) for value in named.values())
    assert not any(isinstance(value, list) for value in named.values())


def test_the_certificate_names_the_defaults_in_one_line():
    (note,) = Space(LAWS, defaults=[{"rate": 1}]).notes
    assert note == (
        "each candidate starts from the default with probability 1/2, and is drawn from the space without defaults otherwise; "
        "names that a default leaves out are drawn"
    )
    assert "one of 2 defaults, all equally likely, with probability 1/10," in Space(LAWS, [{"rate": 1}, {"depth": 1}], 0.1).notes[0]


def test_a_representation_shows_the_defaults():
    assert repr(Space({"a": Integer(1, 2)}, [{"a": 1}])) == "Space({'a': Integer(low=1, high=2)}, defaults=[{'a': 1}], weight='1/2')"
    assert repr(DefineByRunSpace("s", [{"a": 1}], 1)) == "DefineByRunSpace('s', defaults=[{'a': 1}], weight='1')"


# -- functions ----------------------------------------------------------------------------------------------------------------------


def by_run(suggest):
    if suggest.choice("kind", ["plain", "deep"], [3, 1]) == "deep":
        suggest.integer("layers", 2, 3)
    suggest.uniform("momentum", 0.0, 1.0)


def test_a_function_gets_the_values_of_a_default():
    found = drawn(Space(by_run, defaults=[{"kind": "deep", "layers": 3}], weight=1), 50)
    assert {(candidate["kind"], candidate["layers"]) for candidate in found} == {("deep", 3)}
    assert len({candidate["momentum"] for candidate in found}) == 50


def test_a_name_of_one_branch_is_used_where_the_branch_is_taken():
    shapes = Counter(candidate.get("layers") for candidate in drawn(Space(by_run, defaults=[{"layers": 2}], weight=1), 400))
    assert set(shapes) == {None, 2}
    assert stats.binomtest(shapes[2], 400, 0.25).pvalue > FALSE_ALARM


def test_a_function_that_fails_on_a_default_is_left_to_the_check_of_the_run():
    with pytest.raises(ParameterError, match="`space` must draw candidates"):
        ps.tune(
            lambda *_: (1.0, None),
            Space(lambda suggest: suggest.nothing(), defaults=[{"a": 1}]),
            mechanism=ps.Gaussian(sigma=4),
            count=ps.Geometric(mean=3),
            score="public",
            delta=1e-6,
            ledger=None,
        )


# -- define by run ------------------------------------------------------------------------------------------------------------------


def test_the_choice_of_a_default_and_the_draws_of_the_objective_share_no_bits():
    # A chi-square of the first bit that the objective draws, in candidates from a default and others; false alarm 1e-6.
    space = DefineByRunSpace("s", [{"x": 1}], weight="1/2")
    pairs = Counter()
    for candidate in drawn(space, 2000):
        suggest = Suggest.of_candidate(candidate)
        pairs["fixed" in candidate, suggest.draw("other", Integer(0, 1))] += 1
    assert stats.chisquare([pairs[key] for key in itertools.product([True, False], [0, 1])]).pvalue > FALSE_ALARM


def test_a_define_by_run_candidate_carries_what_its_default_fixes():
    space = DefineByRunSpace("s", [{"learning rate": 0.5, "layers": [64, 32]}], weight=1)
    candidate = space.draw(Stream(SECRET))
    assert candidate == {"stream": SECRET.hex(), "fixed": {"learning rate": 0.5, "layers": (64, 32)}}
    suggest = Suggest.of_candidate(json.loads(json.dumps(candidate)))  # as another process gets it
    assert suggest.draw("learning rate", LogUniform(0.1, 1.0)) == 0.5
    assert suggest.draw("layers", Choice([[64, 32], [8]])) == (64, 32)
    assert 1 <= suggest.draw("depth", Integer(1, 9)) <= 9
    assert space.as_dict()["space"] == {"suggested": "s"}
    assert DefineByRunSpace("s").draw(Stream(SECRET)) == {"stream": SECRET.hex()}


def test_a_default_outside_the_range_of_an_objective_is_a_plan_violation():
    suggest = Suggest.of_candidate(DefineByRunSpace("s", [{"x": 3}], weight=1).draw(Stream(SECRET)))
    with pytest.raises(PlanViolation) as raised:
        suggest.draw("x", Uniform(0, 1))
    assert raised.value.message == OUTSIDE_RANGE
    assert raised.value.details == "`x` of the space must be in [0.0, 1.0], got 3"


def test_a_final_training_gets_its_values_and_draws_no_others():
    suggest = Suggest.of_candidate(DefineByRunSpace("s").final_candidate({"rate": 0.01, "kind": "a", "layers": [4, 2]}))
    assert suggest.draw("rate", LogUniform(0.1, 1.0)) == 0.01  # a transfer may leave the range of the search
    assert suggest.draw("layers", Choice([[4, 2], [1]])) == (4, 2)
    for name, law in (("depth", Integer(1, 2)), ("kind", Choice(["b"]))):
        with pytest.raises(PlanViolation) as raised:
            suggest.draw(name, law)
        assert raised.value.message == (NOT_SEARCHED if name == "depth" else OUTSIDE_RANGE)


# -- candidates from elsewhere --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("space", "candidate", "said"),
    [
        (LAWS, {"rate": 0.5, "batch": 2, "depth": 1}, None),
        (LAWS, {"rate": 2.0, "batch": 2, "depth": 1}, "`rate` of the space must be in [0.001, 1.0], got 2.0"),
        (LAWS, {"rate": 0.5, "batch": 3, "depth": 1}, "`batch` of the space must be one of [1, 2, 4], got 3"),
        (LAWS, {"rate": 0.5, "batch": 2}, "the candidate has no value for 'depth'"),
        (LAWS, {"rate": 0.5, "batch": 2, "depth": 1, "x": 1}, "the space has no hyperparameter 'x'"),
        (by_run, {"kind": "deep", "layers": 2, "momentum": 0.5}, None),
        (by_run, {"kind": "deep", "momentum": 0.5}, "the candidate has no value for 'layers'"),
        (by_run, {"kind": "plain", "layers": 2, "momentum": 0.5}, "the space has no hyperparameter 'layers'"),
        (by_run, {"kind": "plain", "momentum": -1}, "`momentum` of the space must be in [0.0, 1.0], got -1"),
        (lambda _: 1 / 0, {"x": 1}, "the space failed with ZeroDivisionError"),
    ],
    ids=itertools.count(),
)
def test_a_candidate_outside_the_space_is_named(space, candidate, said):
    assert Space(space).fault(candidate) == said
    assert DefineByRunSpace("s").fault(candidate) is None


# -- what a distribution contains -----------------------------------------------------------------------------------------------------

CONTAINED = {
    "uniform": (Uniform(0, 1), {0: 0.0, 1.0: 1.0, np.float32(0.5): 0.5}, [-0.1, 1.1, float("nan"), True, "0.5", None, [0.5]]),
    "log uniform": (LogUniform(0.1, 1), {0.1: 0.1, Fraction(1, 2): 0.5}, [0, 2]),
    "integer": (Integer(-2, 4), {-2: -2, 4: 4, 3.0: 3, np.int64(1): 1}, [-3, 5, 0.5, False, "1"]),
    "choice": (Choice(["a", None, 2, 0.5, False]), {"a": "a", None: None, 2.0: 2, False: False}, [0, "b", 1, {"a": 1}, float("nan")]),
    "choice of lists": (Choice([[1, 2], [3]]), {(1, 2): (1, 2)}, [[2, 1], 3]),
    "choice of equal options": (Choice([1, True, 1.0]), {1: 1}, [0]),
    "even steps": (EvenSteps(0.0, 1.0, 0.1), {0.3: 3 * 0.1, 1.0: 1.0, 0: 0.0}, [0.35, -0.1, 1.1, True, "0.1"]),
    "even integers": (EvenSteps(3, 19, 4), {7: 7, 19.0: 19}, [8, -1, 23]),
    "log integer": (LogInteger(1, 64), {1: 1, 64.0: 64}, [0, 65, 1.5, True]),
    "normal": (ScipyDistribution(stats.norm(0, 1)), {-7: -7.0}, [float("inf"), "a", True]),
    "gamma": (ScipyDistribution(stats.gamma(2)), {3: 3.0}, [-1]),
    "binomial": (ScipyDistribution(stats.binom(5, 0.3)), {2.0: 2}, [2.5, 6, -1]),
    "a table": (ScipyDistribution(stats.rv_discrete(values=([1.5, 2], [0.5, 0.5]))()), {1.5: 1.5, 2: 2.0}, [1, 3]),
    "a table of integers": (ScipyDistribution(stats.rv_discrete(values=([1, 2], [0.5, 0.5]))()), {1.0: 1}, [3]),
}


@pytest.mark.parametrize("kind", CONTAINED)
def test_a_distribution_knows_its_values_and_their_form(kind):
    law, inside, outside = CONTAINED[kind]
    for value, form in inside.items():
        assert law.contains(value)
        assert law.normalize(value) == form
        assert type(law.normalize(value)) is type(form)
    assert not any(law.contains(value) for value in outside)
    assert law.allowed.startswith(("in [", "an integer >= ", "one of "))


@pytest.mark.parametrize("kind", CONTAINED)
def test_a_distribution_contains_what_it_draws_in_the_same_form(kind):
    law = CONTAINED[kind][0]
    entropy = Stream(derive_key(SECRET, "contains"))
    for _ in range(50):
        value = law.draw(entropy)
        assert law.contains(value)
        assert law.normalize(value) == value
        assert type(law.normalize(value)) is type(value)


def test_a_distribution_of_the_user_can_be_fixed_if_it_lists_its_values():
    class Die(Distribution):
        def draw(self, entropy):
            return 1 + entropy.getrandbits(1)

        def as_dict(self):
            return {"die": 2}

    with pytest.raises(ParameterError, match="a Die must define `contains` before a default can fix its value"):
        Space({"x": Die()}, defaults=[{"x": 1}])
    Die.listed = lambda _: [(Fraction(1, 2), 1), (Fraction(1, 2), 2)]
    assert Space({"x": Die()}, defaults=[{"x": 1}], weight=1).draw(Stream(SECRET)) == {"x": 1}
    with pytest.raises(ParameterError, match="`x` of default 1 must be a value of <"):
        Space({"x": Die()}, defaults=[{"x": 3}])


# -- refusals -------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Space(LAWS, [{"rate": 3}]), "`rate` of default 1 must be in [0.001, 1.0], got 3"),
        (lambda: Space(LAWS, [{"rate": 1}, {"depth": 3}]), "`depth` of default 2 must be an integer >= 1 and <= 2, got 3"),
        (lambda: Space(LAWS, [{"batch": 3}]), "`batch` of default 1 must be one of [1, 2, 4], got 3"),
        (lambda: Space(LAWS, [{"lr": 1}]), "`defaults` must use hyperparameters of the space (rate, batch, depth), got 'lr'"),
        (lambda: Space(LAWS, [{}]), "a default must fix at least one hyperparameter, got none in default 1"),
        (lambda: Space(LAWS, [{3: 1}]), "a default must name its hyperparameters by text, got 3 in default 1"),
        (lambda: Space(LAWS, [{"rate": object}]), "default 1 of the space: an option must be text"),
        (lambda: Space(LAWS, [{"rate": float("nan")}]), "default 1 of the space: an option must be text, a finite number"),
        (lambda: Space(LAWS, {"rate": 1}), "`defaults` must be a list of dicts of hyperparameters and values, got {'rate': 1}"),
        (lambda: Space(LAWS, "abc"), "`defaults` must be a list of dicts"),
        (lambda: Space(LAWS, [{"rate": 1}] * 1001), "`defaults` must have at most 1000 entries, got 1001"),
        (lambda: Space(LAWS, [{"rate": 1}], 1.5), "`weight` of the defaults must be a probability in [0, 1], such as 1/2, got 1.5"),
        (lambda: Space(LAWS, [{"rate": 1}], -0.1), "`weight` of the defaults must be a probability in [0, 1], such as 1/2, got -0.1"),
        (lambda: Space(LAWS, [{"rate": 1}], "3/2"), "`weight` of the defaults must be a probability in [0, 1], such as 1/2, got '3/2'"),
        (
            lambda: Space(LAWS, [{"rate": 1}], float("nan")),
            "`weight` of the defaults must be a probability in [0, 1], such as 1/2, got nan",
        ),
        (lambda: Space(LAWS, [{"rate": 1}], "1/0"), "`weight` of the defaults must be a probability in [0, 1], such as 1/2, got '1/0'"),
        (lambda: Space(LAWS, weight=0.5), "`weight` is the probability of the defaults and needs `defaults`, got 0.5 and none"),
        (lambda: Space(by_run, [{"layers": 4}]), "default 1: `layers` of the space must be an integer >= 2 and <= 3, got 4"),
        (lambda: Space(by_run, [{"momentum": 0.5}, {"lr": 4}]), "`defaults` must use hyperparameters of the space, got 'lr' in default 2"),
        (lambda: read_space(Space(LAWS, [{"rate": 1}]), [{"rate": 1}]), "`defaults` must be given once"),
        (lambda: read_space(LAWS, None, 0.5), "`weight` is the probability of the defaults"),
    ],
    ids=itertools.count(),
)
def test_bad_defaults_are_refused_in_one_sentence(make, said):
    with pytest.raises(ParameterError) as caught:
        make()
    assert str(caught.value).startswith(said)
    assert "\n" not in str(caught.value)


def test_a_space_is_read_with_its_defaults():
    own = Space(LAWS, [{"rate": 1}])
    assert read_space(own) is own
    assert read_space(LAWS, [{"rate": 1}]).as_dict() == own.as_dict()
    assert read_space(Space(LAWS), [{"rate": 1}]).as_dict() == own.as_dict()
    assert read_space(by_run, [{"momentum": 1}], 1).draw(Stream(SECRET))["momentum"] == 1.0
    assert isinstance(read_space(DefineByRunSpace("s"), [{"x": 1}]), DefineByRunSpace)
