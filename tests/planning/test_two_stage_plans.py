"""Plans of a search followed by a final training: each meets the budget, and a little less noise does not."""

from fractions import Fraction

import pytest

import privselect as ps
from privselect.errors import NeighbourError, ParameterError, TextFormError
from privselect.planning.plan import check_plan, plan_or_check
from privselect.planning.plan_result import Problem, Solved
from privselect.planning.search import BudgetSearch
from privselect.planning.search_range import FastOptions
from privselect.planning.split import FINAL_NOISE
from privselect.planning.stages import read_probability

BUDGET = {"epsilon": 2, "delta": 1e-5}
solve = BudgetSearch.solve
FAST = {**BUDGET, "fast": FastOptions()}
GAUSSIAN, FINAL = "gaussian(sigma=?)", "gaussian(sigma=5)"
SHORT = "dpsgd(noise_multiplier=?, sampling_probability=1024/60000, steps=60)"
LONG = "dpsgd(noise_multiplier={}, sampling_probability=1024/60000, steps=600)"


@pytest.mark.parametrize(
    ("mechanism", "terms", "further"),
    [
        (GAUSSIAN, {"count": "geometric(mean=10)", "final": FINAL}, 0.999),
        ("gaussian(sigma=6)", {"count": "geometric(mean=10)", "final": GAUSSIAN}, 0.999),
        ("gaussian(sigma=6)", {"count": "geometric(mean=?)", "final": FINAL}, 1.01),
        (GAUSSIAN, {"visible": 6, "final": FINAL}, 0.999),
        (GAUSSIAN, {"visible": 6}, 0.999),
        ("gaussian(sigma=6)", {"visible": 4, "final": GAUSSIAN}, 0.999),
    ],
)
def test_the_solution_meets_the_budget_and_a_little_less_safe_exceeds_it(mechanism, terms, further):
    plan = ps.plan(mechanism, **terms, **BUDGET)
    assert plan.cost.upper <= 2
    assert plan.cost == plan.whole.epsilon_at(1e-5)
    texts = {"mechanism": mechanism, **{name: terms[name] for name in ("count", "final") if name in terms}}
    filled = {name: ps.parse(text.replace("?", repr(plan.value * further))) for name, text in texts.items()}
    assert ps.search_then_train(**filled, visible=terms.get("visible")).epsilon_at(1e-5).upper > 2


def test_one_command_gives_the_plan_of_the_prototype():
    plan = ps.plan(SHORT, "geometric(mean=30)", final=LONG.format(1.9), epsilon=1, delta=1e-5)
    assert plan.solved == (Solved("search", "noise_multiplier", plan.value),)
    assert 3.0 < plan.value <= 3.07
    assert 0.95 < plan.cost.lower <= plan.cost.upper <= 1
    assert plan.final == ps.parse(LONG.format(1.9))


def test_a_visible_search_of_six_trials_needs_about_the_noise_of_the_best_of_thirty():
    plan = ps.plan(SHORT, visible=6, final=LONG.format(1.9), epsilon=1, delta=1e-5, fast=FastOptions())
    assert plan.value == pytest.approx(3.12, abs=0.01)
    assert (plan.count, plan.visible, plan.law) == (None, 6, ps.Fixed(6))
    assert "6, all released" in plan.summary()
    assert plan.summary().splitlines()[-1].startswith("P(good trial) ")  # no line above it that it belongs to
    assert plan.summary().endswith("if drawn independently")


@pytest.mark.parametrize("rule", [{"final_noise": 1.07}, {"split": "auto"}, {"final_noise": 1.3}])
def test_both_stages_are_solved_by_a_rule(rule):
    plan = ps.plan(GAUSSIAN, "geometric(mean=10)", final=GAUSSIAN, **rule, **BUDGET)
    factor = rule.get("final_noise", FINAL_NOISE)
    alone = ps.plan(GAUSSIAN, **BUDGET).value
    (stage, name, final), (other, parameter, search) = plan.solved
    assert (stage, name, other, parameter) == ("final", "sigma", "search", "sigma")
    # The noise alone is computed to 3e-4, on the safe side.
    assert factor * alone * (1 - 1e-6) <= final <= factor * alone * (1 + 5e-4)
    assert plan.final == ps.Gaussian(sigma=final)
    assert plan.mechanism == ps.Gaussian(sigma=search)
    assert plan.cost.upper <= 2
    assert check_plan(plan.mechanism, plan.count, final=plan.final, **BUDGET).cost == plan.cost
    chosen, rest = plan.reasons
    assert chosen.startswith(f"final training: sigma {final:.3f}"[:-2])
    assert f"{100 * (factor - 1):.4g}% more than alone (1.99" in chosen
    assert ("auto" in chosen) == ("split" in rule)
    assert rest.startswith("search: sigma ")
    with pytest.raises(ParameterError, match="the plan was solved for 2 numbers: read `solved`"):
        _ = plan.value
    assert plan.problem == Problem(GAUSSIAN, "geometric(mean=10)", GAUSSIAN, rule.get("final_noise"), rule.get("split"))
    assert [one["stage"] for one in plan.as_dict()["solved"]] == ["final", "search"]
    assert "search sigma" in plan.summary()
    assert "final sigma" in plan.summary()


def test_a_large_factor_is_not_written_in_percent():
    plan = ps.plan(GAUSSIAN, visible=2, final=GAUSSIAN, final_noise=1000, **FAST)
    assert "1000 times the noise alone (1.99" in plan.reasons[0]


def test_the_search_for_the_noise_of_a_trial_starts_at_that_of_the_final_training(monkeypatch):
    tried = []
    monkeypatch.setattr(BudgetSearch, "solve", lambda self, start, elasticity=0.5: tried.append(start) or solve(self, start, elasticity))
    ps.plan(GAUSSIAN, visible=2, final="gaussian(sigma=6)", **FAST)
    ps.plan("gaussian(sigma=9)", visible=2, final=GAUSSIAN, **FAST)
    assert tried[0] == 6.0
    assert 6.0 not in tried[1:]


def test_the_rest_may_pay_for_trials_instead_of_noise():
    plan = ps.plan("gaussian(sigma=8)", "geometric(mean=?)", final=GAUSSIAN, final_noise=1.2, **FAST)
    assert [one.stage for one in plan.solved] == ["final", "search"]
    assert plan.count.mean > 1
    assert plan.cost.upper <= 2


def test_a_search_before_a_final_training_has_a_default_law():
    plan = ps.plan(GAUSSIAN, final=FINAL, **FAST)
    assert plan.count == ps.default_count()
    assert "law of K: negative_binomial(eta=2, mean=20), the default" in plan.reasons
    assert ps.plan(GAUSSIAN, **FAST).count is None


def test_parts_of_a_disjoint_trial_each_get_the_whole_budget():
    trial = "disjoint(gaussian(sigma=?), discrete_gaussian(sigma=?, neighbours=add_remove))"
    plan = ps.plan(trial, "geometric(mean=5)", **BUDGET)
    assert [one.parameter for one in plan.solved] == ["sigma", "sigma"]
    for part, one in zip(plan.mechanism.parts, plan.solved, strict=True):
        assert part.sigma == one.value
        assert 2 * (1 - 1e-4) < ps.Selection(part, plan.count).epsilon_at(1e-5).upper <= 2
    assert plan.cost.upper <= 2
    assert len(plan.reasons) == 2
    inner = "disjoint(disjoint(gaussian(sigma=?), gaussian(sigma=30)), discrete_gaussian(sigma=?, neighbours=add_remove))"
    assert ps.plan(inner, "geometric(mean=5)", **BUDGET).solved == plan.solved


@pytest.mark.parametrize("kind", [{"count": "geometric(mean=3)"}, {"visible": 3}])
def test_parts_of_a_disjoint_trial_before_a_final_training(kind):
    trial = "disjoint(gaussian(sigma=?), gaussian(sigma=?))"
    plan = ps.plan(trial, **kind, final=GAUSSIAN, split="auto", **FAST)
    assert [one.stage for one in plan.solved] == ["final", "search", "search"]
    assert plan.solved[1].value == plan.solved[2].value
    assert plan.cost.upper <= 2
    assert plan.cost.upper == pytest.approx(2, rel=5e-3)


def test_a_sample_of_the_records_allows_less_noise_in_the_search():
    alone = ps.plan(GAUSSIAN, "geometric(mean=10)", final=FINAL, **FAST)
    sampled = ps.plan(GAUSSIAN, "geometric(mean=10)", final=FINAL, subsample="1/10", **FAST)
    assert sampled.subsample == Fraction(1, 10)
    assert sampled.value < alone.value
    assert sampled.cost.upper <= 2
    assert "each record with probability 1/10" in sampled.summary()


@pytest.mark.parametrize("given", ["1/10", 0.1, Fraction(1, 10)])
def test_a_probability_is_read_exactly(given):
    assert read_probability(given) == Fraction(1, 10)


@pytest.mark.parametrize("given", ["", "1/0", 0, 2, "one", float("nan"), None, True, "1e-999999999999", -0.1])
def test_what_is_no_probability_is_refused(given):
    with pytest.raises(ParameterError, match=r"`subsample` must be a probability in \(0, 1\] such as 1/10, got"):
        read_probability(given)


def test_a_plan_without_an_open_number_is_checked():
    terms = {"final": FINAL, "visible": 4, **BUDGET}
    plan = plan_or_check("gaussian(sigma=9)", **terms)
    assert plan.solved == ()
    assert plan.value is None
    assert plan.whole == ps.search_then_train(ps.Gaussian(sigma=9), final=ps.Gaussian(sigma=5), visible=4)
    assert plan.search == ps.Composed((ps.Gaussian(sigma=9),), times=4)
    with pytest.raises(ParameterError, match="the plan must meet its budget, epsilon 2 at delta 1e-05, got an epsilon of"):
        plan_or_check("gaussian(sigma=3)", **terms)
    assert plan_or_check(GAUSSIAN, **terms).value < 9


REPLACE = "gaussian(sigma=5, neighbours=replace_one)"
BAD = [
    ((GAUSSIAN, None, GAUSSIAN), {}, 'both open: pass final_noise=1.07 or split="auto" to divide the budget, got'),
    (
        (GAUSSIAN, None, "gaussian(sigma=1)"),
        {},
        r"`final` must cost less than the budget, epsilon 2 at delta 1e-05, got .* with epsilon 4.37[0-9]$",
    ),
    ((SHORT, None, REPLACE), {}, "search and final training must be stated for the same neighbouring relation, got add_remove for dpsgd"),
    ((GAUSSIAN, None, GAUSSIAN), {"final_noise": 1}, r"`final_noise` must be in \(1, inf\), got 1"),
    ((GAUSSIAN, None, GAUSSIAN), {"final_noise": 0.5}, r"`final_noise` must be in \(1, inf\), got 0.5"),
    ((GAUSSIAN, None, GAUSSIAN), {"final_noise": 1.1, "split": "auto"}, "pass either `final_noise` or `split`, got 1.1 and 'auto'"),
    ((GAUSSIAN, None, FINAL), {"final_noise": 1.1}, "`final_noise` needs an open number in both stages, got none in the final training"),
    ((GAUSSIAN, None, None), {"split": "auto"}, "`split` divides the budget between two stages, got no final training: pass `final` too"),
    ((GAUSSIAN, None, None), {"final_noise": 1.1}, "`final_noise` divides the budget between two stages, got no final training"),
    ((FINAL, None, GAUSSIAN), {"split": "auto"}, "`split` needs an open number in both stages, got none in the search"),
    ((GAUSSIAN, None, GAUSSIAN), {"split": "half"}, "`split` must be \"auto\", got 'half'"),
    (
        (GAUSSIAN, "geometric(mean=3)", FINAL),
        {"visible": 3},
        "either secret, with a law of K, or visible, got geometric.* and 3 visible trials",
    ),
    ((GAUSSIAN, None, FINAL), {"visible": 0}, "`visible` must be an integer >= 1 and <= 1000000, got 0"),
    ((GAUSSIAN, None, FINAL), {"subsample": 2}, "`subsample` must be a probability"),
    ((GAUSSIAN, None, "geometric(mean=3)"), {}, "`final` must be a mechanism such as gaussian"),
    ((GAUSSIAN, None, LONG.format(2).replace("=600", "=?")), {"split": "auto"}, "a split needs an open noise such as .*, got steps"),
    ((GAUSSIAN, "geometric(mean=?)", FINAL), {}, "exactly one number must be left open, as \\? or UNKNOWN, got 2"),
    ((f"composed({GAUSSIAN}, {GAUSSIAN})", None, FINAL), {}, "exactly one number must be left open, as \\? or UNKNOWN, got 2"),
    ((f"disjoint(composed({GAUSSIAN}, {GAUSSIAN}), {GAUSSIAN})", None, FINAL), {}, "exactly one number must be left open, .*, got 3"),
    ((GAUSSIAN, "geometric(mean=?)", GAUSSIAN), {"split": "auto"}, "exactly one number must be left open, .* got 2"),
    (
        ("gaussian(sigma=1)", "geometric(mean=3)", GAUSSIAN),
        {},
        "no `sigma` tried meets epsilon 2 at delta 1e-05: even with K = 1 and sigma",
    ),
    ((FINAL, "geometric(mean=3)", FINAL), {}, "exactly one number must be left open, .* got none"),
]


@pytest.mark.parametrize(("stages", "terms", "said"), BAD)
def test_what_cannot_be_planned_is_refused_in_one_sentence(stages, terms, said):
    mechanism, count, final = stages
    with pytest.raises((ParameterError, NeighbourError, TextFormError), match=said) as refusal:
        ps.plan(mechanism, count, final=final, **terms, **BUDGET)
    assert "\n" not in str(refusal.value)


def test_a_check_refuses_the_same():
    with pytest.raises(NeighbourError, match="the same neighbouring relation"):
        check_plan("dpsgd(noise_multiplier=9, sampling_probability=0.1, steps=2)", final=REPLACE, **BUDGET)
    with pytest.raises(ParameterError, match="`final` must cost less than the budget"):
        check_plan("gaussian(sigma=9)", final="gaussian(sigma=1)", **BUDGET)
