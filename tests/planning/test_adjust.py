"""How many steps each noise level may take: by cor:adjust, and as a mixture at the same total."""

import json
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import privselect as ps
from privselect.cli import main
from privselect.errors import NotCoveredError, ParameterError
from privselect.mechanisms.base import MAX_RUNS
from privselect.mechanisms.gaussian import gaussian_delta
from privselect.planning.adjust.cor_adjust import thresholds_for_base, thresholds_for_total
from privselect.planning.adjust.step_search import StepSearch
from privselect.selection.bounds.paper_bounds import cor_adjust

SMALL = {"noise_multipliers": [2, 4], "sampling_probability": 0.1, "delta": 1e-5}
GEOMETRIC = ps.Geometric(mean=5)
WAVERING = 3e-4  # how far, relative, the upper end of an epsilon may be above the least that is proved


def small(**kwargs):
    return ps.adjust(**{**SMALL, "count": GEOMETRIC, **kwargs})


@pytest.fixture(scope="module")
def found():
    return small(epsilon=2)


@pytest.fixture(scope="module")
def papers():
    """The paper's own experiment."""
    return ps.adjust(noise_multipliers=[2, 3, 4], sampling_probability=0.01, count=ps.Geometric(mean=30), delta=1e-6, epsilon_base=1.5)


def steps_of(adjustment):
    return [candidate.steps for candidate in adjustment.candidates]


def with_steps(adjustment, steps):
    """The selection with other numbers of steps, put together anew."""
    parts = [(part.weight, replace(part.spec, steps=taken)) for part, taken in zip(adjustment.mechanism.parts, steps, strict=True)]
    return ps.Selection(ps.Mixture(parts), adjustment.count)


def assert_spends_the_budget(adjustment):
    """It is kept, and one more step for any one candidate is not proved to keep it."""
    steps = steps_of(adjustment)
    assert with_steps(adjustment, steps).epsilon_at(adjustment.delta) == adjustment.cost
    assert adjustment.cost.upper <= adjustment.epsilon
    for place in range(len(steps)):
        more = [taken + (other == place) for other, taken in enumerate(steps)]
        assert with_steps(adjustment, more).epsilon_at(adjustment.delta).upper > adjustment.epsilon


def assert_keeps_both_thresholds(adjustment, *, rate):
    points = np.array(adjustment.thresholds.points)

    def kept(noise, steps):
        candidate = ps.DPSGD(noise_multiplier=noise, sampling_probability=rate, steps=steps)
        return (candidate.delta_at(points[:, 0]).upper <= points[:, 1]).all()

    for candidate in adjustment.candidates:
        assert kept(candidate.noise_multiplier, candidate.cor_adjust_steps)
        assert not kept(candidate.noise_multiplier, candidate.cor_adjust_steps + 1)


# -- the thresholds ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("mu", "epsilon"), [(0.344, 1.5), (1e-6, 1e-6), (1e-6, 0.0), (5.0, 0.0), (40.0, 700.0), (0.1, 1.0), (2.0, 30.0)])
def test_the_gaussian_profile_by_many_digits(mu, epsilon):
    import mpmath

    with mpmath.workdps(60):
        m, e = mpmath.mpf(mu), mpmath.mpf(epsilon)
        truth = float(mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m))
    # Two Mills ratios that agree in the first six digits, where mu is 1e-6, leave ten of sixteen.
    assert float(gaussian_delta(mu, epsilon)) == pytest.approx(truth, rel=1e-9)


def test_the_papers_thresholds():
    found = thresholds_for_base(1.5, 1e-6, ps.Geometric(mean=30))
    # By scipy's brentq and a grid, apart from the code.
    assert found.points[0] == pytest.approx((0.566956, 0.00941104), rel=1e-5)
    assert found.points[1] == pytest.approx((1.738460, 1e-6 / 30), rel=1e-6)
    assert found.epsilon == cor_adjust(*found.points[0], found.epsilon_hat, ps.Geometric(mean=30))
    assert found.delta_hat * 30 <= 1e-6
    near = [e + math.log1p(29 * float(gaussian_delta(0.344345746, e)) * math.exp(-e)) for e in (0.5, found.epsilon_1, 0.63)]
    assert min(near) == near[1]


@pytest.mark.parametrize("count", [ps.Geometric(mean=30), ps.NegativeBinomial(eta=-0.5, mean=300), ps.Logarithmic(mean=3)])
@pytest.mark.parametrize("epsilon", [1e-3, 0.5, 3.0, 40.0, 700.0])
def test_thresholds_for_a_total_meet_it(count, epsilon):
    found = thresholds_for_total(epsilon, 1e-6, count)
    assert epsilon * (1 - 1e-6) <= found.epsilon <= epsilon
    if found.epsilon_base > 0.0:
        again = thresholds_for_base(found.epsilon_base, 1e-6, count)
        assert again.epsilon == pytest.approx(epsilon, rel=1e-6)  # argmin and total are each found to about that


# -- the search over steps -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("truth", [1, 2, 3, 17, 4005, 18_226, 10**6 + 1, MAX_RUNS - 1])
@pytest.mark.parametrize("first", [1.0, 1e4, 1e30])
@pytest.mark.parametrize("slope", [0.6, 15.0])
def test_neighbours_around_a_level_from_few_values(truth, first, slope):
    asked = []

    def value(steps):
        asked.append(steps)
        return 10.0 * (math.log(steps) - math.log(truth + 0.5)) + 0.3 * (math.log(steps) - math.log(truth)) ** 3

    assert StepSearch(value, first, slope).bracket(0.0) == (truth, truth + 1)
    assert len(asked) == len(set(asked)) <= 40


@pytest.mark.parametrize("value", [0.0, -math.inf, -5.0])
def test_a_level_that_is_never_reached(value):
    assert StepSearch(lambda _: value, 100.0, 15.0).bracket(0.0) == (MAX_RUNS, MAX_RUNS + 1)


@pytest.mark.parametrize("value", [1e-300, 3.0, math.inf])
def test_a_level_that_one_step_exceeds(value):
    search = StepSearch(lambda _: value, 100.0, 15.0)
    assert search.bracket(0.0) == (0, 1)
    assert search.interpolate(0.0, close=0.03) == 1


def test_a_wavering_function_still_ends_between_neighbours():
    low, high = StepSearch(lambda steps: math.log(steps / 5000.0) + 1e-3 * math.sin(steps), 100.0, 1.0).bracket(0.0)
    assert high == low + 1
    assert abs(low - 5000) < 10


# -- the two ways ----------------------------------------------------------------------------------------------------------


def test_both_ways_on_a_small_case(found):
    assert_keeps_both_thresholds(found, rate=0.1)
    assert_spends_the_budget(found)
    assert found.thresholds.epsilon <= found.epsilon == 2.0
    assert found.note is None
    assert all(candidate.gain > 0.0 for candidate in found.candidates)


def test_the_steps_of_cor_adjust_cost_less_than_it_says(found):
    taken = [candidate.cor_adjust_steps for candidate in found.candidates]
    assert found.cor_adjust_cost == with_steps(found, taken).epsilon_at(1e-5)
    assert found.cor_adjust_cost.upper < found.thresholds.epsilon


def test_either_budget_asks_the_same_question(found):
    again = small(epsilon_base=found.thresholds.epsilon_base)
    assert again.epsilon == pytest.approx(2.0, rel=1e-6)
    assert [c.cor_adjust_steps for c in again.candidates] == [c.cor_adjust_steps for c in found.candidates]


def test_a_larger_budget_allows_more(found):
    larger = small(epsilon=2.2)
    for one, other in zip(found.candidates, larger.candidates, strict=True):
        assert one.steps < other.steps
        assert one.cor_adjust_steps < other.cor_adjust_steps


def test_equal_shares_spend_alike(found):
    spent = [ps.Selection(part.spec, GEOMETRIC).delta_at(2.0).upper for part in found.mechanism.parts]
    # Steps are whole, and one step with the lower noise is a third of that candidate's delta.
    assert spent[0] == pytest.approx(spent[1], rel=0.35)


def test_a_larger_share_takes_more_steps(found):
    uneven = small(epsilon=2, shares=[3, 1])
    assert_spends_the_budget(uneven)
    assert [candidate.share for candidate in uneven.candidates] == [Fraction(3, 4), Fraction(1, 4)]
    assert steps_of(uneven)[0] > steps_of(found)[0]
    assert steps_of(uneven)[1] < steps_of(found)[1]


def test_a_rare_candidate_may_take_more_steps(found):
    rare = small(epsilon=2, probabilities=[0.01, 0.99])
    assert_spends_the_budget(rare)
    assert [part.weight for part in rare.mechanism.parts] == [Fraction(1, 100), Fraction(99, 100)]
    assert steps_of(rare)[0] > steps_of(found)[0]
    # cor:adjust does not know how often a candidate is drawn.
    assert [c.cor_adjust_steps for c in rare.candidates] == [c.cor_adjust_steps for c in found.candidates]


def test_one_candidate_and_one_trial_is_plain_dp_sgd():
    found = ps.adjust(noise_multipliers=[4], sampling_probability=0.1, count=ps.Geometric(mean=1), delta=1e-5, epsilon=2)
    (candidate,) = found.candidates
    alone = ps.DPSGD(noise_multiplier=4, sampling_probability=0.1, steps=candidate.steps)
    assert alone.epsilon_at(1e-5).upper <= 2.0 * (1.0 + WAVERING)
    assert ps.DPSGD(noise_multiplier=4, sampling_probability=0.1, steps=candidate.steps + 2).epsilon_at(1e-5).upper > 2.0


@pytest.mark.parametrize("count", [ps.Poisson(mean=3), ps.Geometric(mean=5, cap=50), ps.Binomial(n=40, p=0.1)])
def test_other_laws_have_the_mixture_alone(count):
    found = small(count=count, epsilon=2)
    assert_spends_the_budget(found)
    assert found.thresholds is None
    assert found.cor_adjust_cost is None
    assert found.note == f"cor:adjust covers truncated negative binomial K without a cap, got {count}"
    assert all(candidate.cor_adjust_steps is None and candidate.gain is None for candidate in found.candidates)
    assert found.as_dict()["cor_adjust"] is None


@pytest.mark.slow
def test_where_cor_adjust_allows_no_step_the_mixture_still_may():
    found = small(noise_multipliers=[1, 4], epsilon=2)
    assert found.note == "even with steps = 1, noise multiplier 1 exceeds the thresholds of cor:adjust"
    assert found.thresholds is None
    assert_spends_the_budget(found)


@pytest.mark.slow
def test_the_papers_experiment(papers):
    taken = [candidate.cor_adjust_steps for candidate in papers.candidates]
    assert taken == pytest.approx([4005, 9928, 18222], rel=0.005)
    assert_keeps_both_thresholds(papers, rate=0.01)
    assert_spends_the_budget(papers)
    assert papers.epsilon == pytest.approx(3.16025, abs=1e-5)
    assert papers.cor_adjust_cost.upper < 2.5
    assert all(candidate.gain > 0.5 for candidate in papers.candidates)
    # The budget is not only kept but met: what is left is less than a step of the noisiest candidate, and what bounds waver by.
    assert papers.cost.upper > papers.epsilon * (1.0 - 1e-4)


@pytest.mark.slow
def test_a_larger_mean_lowers_the_thresholds():
    found = ps.adjust(noise_multipliers=[2, 3, 4], sampling_probability=0.01, count=ps.Geometric(mean=300), delta=1e-6, epsilon_base=1.5)
    assert [candidate.cor_adjust_steps for candidate in found.candidates] == pytest.approx([3989, 9913, 18208], rel=0.005)
    assert_spends_the_budget(found)


# -- refusals --------------------------------------------------------------------------------------------------------------

BAD = [
    ({"noise_multipliers": []}, "`noise_multipliers` must hold at least one number, got none"),
    ({"noise_multipliers": 2}, "`noise_multipliers` must be a list of numbers, got 2"),
    ({"noise_multipliers": [2, 0]}, r"`noise_multipliers` must be in \(0, inf\), got 0"),
    ({"noise_multipliers": [2, math.nan]}, r"`noise_multipliers` must be in \(0, inf\), got nan"),
    ({"noise_multipliers": "24"}, r"`noise_multipliers` must be in \(0, inf\), got '2'"),
    ({"noise_multipliers": [2, 4, 2]}, "`noise_multipliers` must differ from each other, got 2 2 times"),
    ({"sampling_probability": 0}, r"`sampling_probability` must be in \(0, 1\], got 0"),
    ({"sampling_probability": 1.5}, r"`sampling_probability` must be in \(0, 1\], got 1.5"),
    ({"delta": 0}, r"`delta` must be in \(0, 1\), got 0"),
    ({"count": "geometric(mean=5)"}, "`count` must be a law of K such as"),
    ({"epsilon": None}, "one of `epsilon` and `epsilon_base` must be given, got neither"),
    ({"epsilon_base": 1}, "one of `epsilon` and `epsilon_base` must be given, got both"),
    ({"epsilon": 0}, r"`epsilon` must be in \(0, 700\], got 0"),
    ({"epsilon": 701}, r"`epsilon` must be in \(0, 700\], got 701"),
    ({"epsilon": None, "epsilon_base": -1}, r"`epsilon_base` must be in \(0, 700\], got -1"),
    ({"epsilon": None, "epsilon_base": 699}, "`epsilon_base` must give a total epsilon of at most 700, got 699"),
    ({"probabilities": [1]}, "`probabilities` must hold one number for each of the 2 noise levels, got 1"),
    ({"probabilities": [0.5, 0.6]}, "`probabilities` must sum to 1, got 1.1"),
    ({"probabilities": [1 / 3, 2 / 3]}, "`probabilities` must sum to 1, got"),
    ({"probabilities": [0, 1]}, "`probabilities` must be positive, got 0"),
    ({"probabilities": [1.5, -0.5]}, "`probabilities` must be positive, got -0.5"),
    ({"probabilities": 1}, "`probabilities` must be a list of numbers, got 1"),
    ({"shares": [1, 2, 3]}, "`shares` must hold one number for each of the 2 noise levels, got 3"),
    ({"shares": [1, 0]}, "`shares` must be positive, got 0"),
    ({"shares": [1, "a"]}, "`shares` must be a finite number, got 'a'"),
    ({"epsilon": 0.01}, "`epsilon` must be at least what one step costs, got 0.01: even with steps = 1 for every candidate"),
]


@pytest.mark.parametrize(("given", "message"), BAD)
def test_bad_input_is_one_sentence(given, message):
    with pytest.raises(ParameterError, match=message):
        small(**{"epsilon": 2, **given})


@pytest.mark.slow
def test_a_budget_that_limits_nothing():
    with pytest.raises(ParameterError, match="`epsilon` must be small enough to limit the steps, got 2: even 1000000000 steps"):
        small(noise_multipliers=[1e7], epsilon=2)


def test_the_papers_way_needs_its_law():
    message = r"K without a cap, got poisson\(mean=3\); the mixture needs the total `epsilon` instead"
    with pytest.raises(NotCoveredError, match=f"cor:adjust covers truncated negative binomial {message}"):
        small(count=ps.Poisson(mean=3), epsilon_base=1)


def test_the_papers_way_needs_a_step_for_each_candidate():
    with pytest.raises(NotCoveredError, match=r"even with steps = 1, noise multiplier 0\.3 exceeds the thresholds of cor:adjust"):
        small(noise_multipliers=[0.3, 4], epsilon_base=1)


# -- the command line ------------------------------------------------------------------------------------------------------

COMMAND = ["adjust", "--noise-multipliers", "2,4", "--sampling-probability", "1/10", "--count", "geometric(mean=5)", "--delta", "1e-5"]


@pytest.fixture
def run(capsys):
    def run_once(*arguments):
        with pytest.raises(SystemExit) as ended:
            main([*COMMAND, *arguments])
        out, err = capsys.readouterr()
        return ended.value.code, out, err

    return run_once


def test_json_says_what_python_says(run, found):
    code, out, err = run("--epsilon", "2", "--json")
    assert (code, err) == (0, "")
    told = json.loads(out)
    assert told == found.as_dict()
    assert told["candidates"][0]["probability"] == "1/2"
    assert ps.parse(told["mechanism"]) == found.mechanism


def test_the_table_holds_both_ways(run, found):
    code, out, _ = run("--epsilon", "2")
    assert code == 0
    for candidate in found.candidates:
        assert str(candidate.cor_adjust_steps) in out
        assert str(candidate.steps) in out
    assert "cor:adjust: epsilon 2.00000 by the corollary" in out


def test_fractions_are_read_exactly(run):
    code, out, _ = run("--epsilon", "2", "--probabilities", "1/3,2/3", "--shares", "1,2", "--json")
    assert code == 0
    assert [(row["probability"], row["share"]) for row in json.loads(out)["candidates"]] == [("1/3", "1/3"), ("2/3", "2/3")]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "one of `epsilon` and `epsilon_base` must be given, got neither"),
        (["--epsilon", "2", "--epsilon-base", "1"], "one of `epsilon` and `epsilon_base` must be given, got both"),
        (["--epsilon", "much"], "`epsilon` must be a number, got 'much'"),
        (["--epsilon", "1e999999"], "`epsilon` must be a number, got '1e999999'"),
        (["--epsilon", "-1"], "`epsilon` must be in (0, 700], got -1"),
        (["--epsilon", "2", "--probabilities", "1/2;1/2"], "`probabilities` must be numbers separated by commas, got '1/2;1/2'"),
        (["--epsilon", "2", "--probabilities", "1/2,1/3"], "`probabilities` must sum to 1, got 0.8333333333333334"),
        (["--epsilon", "2", "--shares", ""], "`shares` must be numbers separated by commas, got ''"),
    ],
)
def test_a_refusal_is_one_line_and_code_2(run, arguments, message):
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith(f"error: {message}")
    assert err.count("\n") == 1
