"""A search followed by a final training: brute force over small mechanisms, the stages of a mechanism, and the other bounds."""

import itertools
from fractions import Fraction

import mpmath
import numpy as np
import pytest

import privselect as ps
from closed_forms import DIGITS
from privselect.errors import NotCoveredError, ParameterError
from privselect.mechanisms.factors import factors_of
from privselect.selection.comparison_curves import comparison_curves
from privselect.selection.staged_bounds import STAGED_BOUNDS
from privselect.selection.two_stages import Stages, search_then_train, stages_of
from selection.orders import exact, selected_masses
from small_pairs import ORDERS, hockey, mechanism_of, normalized, product, random_weights, small

LAWS = [ps.Geometric(mean=3), ps.NegativeBinomial(eta=2, mean=4), ps.Poisson(mean=2), ps.Finite({1: 1, 3: 2}), ps.Binomial(n=4, p=0.5)]
TRIAL = ps.DPSGD(noise_multiplier=3.04, sampling_probability=1024 / 60000, steps=60)
TRAINING = ps.DPSGD(noise_multiplier=1.9, sampling_probability=1024 / 60000, steps=600)
TWO_STAGES = ps.search_then_train(TRIAL, ps.Geometric(mean=30), TRAINING)


def selected(count, laws, order):
    """Both distributions of the winner's outcome in this order of scores."""
    return tuple(selected_masses(count, [exact(masses[i]) for i in order]) for masses in laws)


def in_digits(laws):
    return tuple([exact(mass) for mass in masses] for masses in laws)


def check_small(rng, count):
    """Every order of a small search, then a small training: what both release together."""
    trial = tuple(map(normalized, random_weights(rng)))
    final = tuple(map(normalized, (rng.integers(1, 30, 3), rng.integers(1, 30, 3))))
    epsilon = float(rng.choice([0.0, rng.uniform(0.0, 1.0), rng.uniform(0.0, 3.0)]))
    found = search_then_train(mechanism_of(*trial), count, mechanism_of(*final)).delta_at(epsilon)
    with mpmath.workdps(DIGITS):
        orders = ORDERS[len(trial[0])]
        worst = max(hockey(product(selected(count, trial, order), in_digits(final)), epsilon) for order in orders)
    told = f"{count}, {trial}, then {final}, epsilon={epsilon!r}"
    assert worst <= found.upper, told
    assert found.lower <= found.upper, told


@pytest.mark.parametrize("count", LAWS, ids=str)
def test_no_order_of_both_outputs_leaks_more(count):
    rng = np.random.default_rng(41)
    for _ in range(8):
        check_small(rng, count)


@pytest.mark.soak
@pytest.mark.parametrize("count", LAWS, ids=str)
def test_no_order_of_both_outputs_in_a_long_campaign(count, campaign, fresh_rng):
    for _ in range(campaign(400)):
        check_small(fresh_rng, count)


def test_the_lower_bound_is_reached_by_an_order_with_split_outcomes():
    """Outcomes of randomised response in quarters: the best of all their orders reaches the lower bound and stays below the upper one."""
    (laws, mechanism), (last, final) = small((7, 3), (3, 7)), small((3, 2), (2, 3))
    count, parts, epsilon = ps.Geometric(mean=3), 4, 0.8
    found = search_then_train(mechanism, count, final).delta_at(epsilon)
    fine = tuple([mass / parts for mass in masses for _ in range(parts)] for masses in laws)
    best = 0
    with mpmath.workdps(DIGITS):
        for chosen in itertools.combinations(range(2 * parts), parts):  # the places of the outcomes of high loss
            high, low = iter(range(parts)), iter(range(parts, 2 * parts))
            order = [next(high) if place in chosen else next(low) for place in range(2 * parts)]
            best = max(best, hockey(product(selected(count, fine, order), in_digits(last)), epsilon))
    assert best <= found.upper
    assert 0.9 * found.lower <= best


def test_with_a_private_hold_out_a_record_sees_counts_or_trials_and_then_the_training():
    """A held-out record is in the counts of the search, another one in its trainings, and both are in the final training."""
    rng, count = np.random.default_rng(42), ps.Geometric(mean=3)
    for _ in range(3):
        trained, counted, final = (tuple(map(normalized, rng.integers(1, 20, (2, 3)))) for _ in range(3))
        trial = ps.Disjoint((mechanism_of(*trained), mechanism_of(*counted)))
        epsilon = float(rng.uniform(0.0, 1.5))
        found = search_then_train(trial, count, mechanism_of(*final)).delta_at(epsilon)
        with mpmath.workdps(DIGITS):
            worst = max(
                hockey(product(selected(count, part, order), in_digits(final)), epsilon)
                for part in (trained, counted)
                for order in ORDERS[3]
            )
        assert worst <= found.upper
        assert found.lower <= found.upper
        alone = [search_then_train(mechanism_of(*part), count, mechanism_of(*final)).delta_at(epsilon).upper for part in (trained, counted)]
        assert found.upper == pytest.approx(max(alone), rel=1e-12)


def test_a_visible_search_is_plain_composition():
    trials, final = ps.Gaussian(sigma=8), ps.Gaussian(sigma=5)
    whole = search_then_train(trials, final=final, visible=6)
    alone = ps.Gaussian(sigma=(6 / 64 + 1 / 25) ** -0.5)
    assert whole.epsilon_at(1e-6).upper == pytest.approx(alone.epsilon_at(1e-6).upper, rel=1e-12)


def test_the_split_of_a_private_hold_out_is_the_same_in_all_visible_trials():
    trained, counted = ps.Gaussian(sigma=8), ps.DiscreteGaussian(sigma=10, neighbours="add_remove")
    whole = search_then_train(ps.Disjoint((trained, counted)), visible=4)
    parts = [ps.Composed((part,), times=4) for part in (trained, counted)]
    assert whole == ps.Disjoint(tuple(parts))
    assert whole.epsilon_at(1e-6).upper == max(part.epsilon_at(1e-6).upper for part in parts)


STAGED = [
    Stages(TRIAL),
    Stages(TRIAL, ps.Geometric(mean=30)),
    Stages(TRIAL, ps.Geometric(mean=30), TRAINING),
    Stages(TRIAL, None, TRAINING, visible=6),
    Stages(TRIAL, ps.Poisson(mean=3), TRAINING, subsample=Fraction(1, 10)),
    Stages(TRIAL, None, TRAINING, visible=6, subsample=Fraction(1, 3)),
    Stages(ps.Disjoint((TRIAL, ps.DiscreteGaussian(sigma=5))), ps.Poisson(mean=3), TRAINING),
    Stages(ps.Disjoint((TRIAL, ps.DiscreteGaussian(sigma=5))), None, TRAINING, visible=3),
]


@pytest.mark.parametrize("stages", STAGED, ids=lambda stages: str(stages.whole))
def test_a_mechanism_has_the_stages_that_made_it(stages):
    assert stages_of(stages.whole) == stages
    assert stages_of(ps.parse(str(stages.whole))) == stages


def test_other_mechanisms_are_one_trial():
    for text in ("gaussian(sigma=4)", "composed(gaussian(sigma=4), times=10)", "composed(laplace(scale=4), gaussian(sigma=4))"):
        assert stages_of(ps.parse(text)) == Stages(ps.parse(text))


def test_a_search_is_secret_or_visible():
    with pytest.raises(ParameterError, match="either secret, with a law of K, or visible"):
        search_then_train(TRIAL, ps.Geometric(mean=3), TRAINING, visible=6)


# -- the other bounds --------------------------------------------------------------------------------------------------------


def test_the_exact_bound_is_the_smallest_bound_on_the_same_mechanism():
    found = ps.compare(TWO_STAGES, delta=1e-5)
    exact_upper = found.bounds["exact"].upper
    assert exact_upper <= 1.0
    assert exact_upper < found.bounds["paper"] < found.bounds["renyi"]
    assert exact_upper < found.bounds["composition"]  # another mechanism: every trial released
    assert found.final_alone.upper < exact_upper < found.final_alone.upper + found.base.upper * 30
    assert all(found.bounds[name] is None and found.notes[name] for name in ("pointwise", "ratio", "liu_talwar"))


@pytest.mark.parametrize("count", LAWS, ids=str)
def test_each_bound_is_above_the_exact_one_or_says_why_it_is_missing(count):
    stages = Stages(ps.Gaussian(sigma=6), count, ps.Gaussian(sigma=3))
    lower = stages.whole.epsilon_at(1e-5).lower
    for name in ("paper", "renyi"):
        try:
            assert STAGED_BOUNDS[name](stages, 1e-5) > lower
        except NotCoveredError as reason:
            assert str(reason)  # noqa: PT017 - the reason is shown to the user


def test_a_visible_search_has_no_bounds_of_a_secret_one():
    found = ps.compare(search_then_train(TRIAL, final=TRAINING, visible=6), delta=1e-5)
    assert found.visible == 6
    assert found.composition_runs is None
    assert found.bounds["paper"] is None
    assert "secret search" in found.notes["paper"]
    assert found.bounds["renyi"] > found.bounds["exact"].upper


@pytest.mark.parametrize("over", ["mean", "delta"])
def test_curves_have_both_stages(over):
    curves = comparison_curves(TWO_STAGES, delta=1e-5, over=over, points=3)
    assert {len(curve) for curve in curves.values()} == {3}
    at = curves[over].index(30.0 if over == "mean" else 1e-5)
    assert curves["exact_upper"][at] == pytest.approx(0.99979, rel=1e-4)
    for place in range(3):
        assert curves["base"][place] <= curves["final"][place] < curves["exact_upper"][place]
        others = [curves[name][place] for name in ("paper", "renyi")]
        assert curves["exact_lower"][place] < curves["exact_upper"][place] < min(value for value in others if value is not None)
    assert curves["ratio"] == curves["liu_talwar"] == [None] * 3


def test_curves_of_a_visible_search_vary_its_number_of_trials():
    curves = comparison_curves(search_then_train(TRIAL, final=TRAINING, visible=6), delta=1e-5, over="mean", points=4)
    assert 6.0 in curves["mean"]
    assert curves["exact_upper"] == sorted(curves["exact_upper"])
    assert curves["paper"] == curves["composition"] == [None] * len(curves["mean"])


# -- parts that do not change are composed once ------------------------------------------------------------------------------


def test_each_training_and_each_selection_is_a_factor():
    chosen = ps.Selection(TRIAL, ps.Geometric(mean=30))
    steps = ps.Composed((chosen, TRAINING, ps.Gaussian(sigma=4), ps.Laplace(scale=9))).composition_steps()
    assert factors_of(steps) == (chosen, TRAINING, ps.Composed((ps.Gaussian(sigma=4), ps.Laplace(scale=9))))
    assert factors_of(ps.Composed((TRAINING, TRAINING)).composition_steps()) == (TRAINING.repeated(2),)


@pytest.mark.parametrize("delta", [1e-2, 1e-17, 1e-30])
def test_infinite_losses_of_one_order_are_not_forgotten(delta):
    """One order of the neighbours reveals everything with probability 0.04, the other never does. At a tiny delta, the rounding of the
    other order at an infinite epsilon exceeds delta, and its own finite epsilon must not replace the infinite one."""
    trial = mechanism_of(*map(normalized, ((2500, 6750, 425, 1), (23, 1, 0, 21000))))
    final = mechanism_of(*map(normalized, ((2, 1), (9, 5))))
    whole = search_then_train(trial, ps.Poisson(mean=2), final)
    assert whole.delta_at(700.0).upper > 0.04
    assert whole.epsilon_at(delta).upper == np.inf


def test_a_second_evaluation_composes_only_what_changed(monkeypatch):
    composed = []
    original = ps.DPSGD._make_brackets
    monkeypatch.setattr(ps.DPSGD, "_make_brackets", lambda self, accuracy: composed.append(self) or original(self, accuracy))
    final = ps.DPSGD(noise_multiplier=1.913, sampling_probability=0.0171, steps=300)
    for noise in (3.1, 3.2, 3.3):
        trial = ps.DPSGD(noise_multiplier=noise, sampling_probability=0.0171, steps=30)
        search_then_train(trial, ps.Geometric(mean=30), final).epsilon_fast(1e-5)
    assert composed.count(final) == 1


@pytest.mark.parametrize(
    "parts",
    [
        (TRAINING, ps.Gaussian(sigma=4)),
        (TRIAL, TRAINING),
        (ps.Selection(ps.Gaussian(sigma=4), ps.Geometric(mean=5)), ps.Laplace(scale=5)),
    ],
    ids=str,
)
def test_the_product_agrees_with_composition_on_a_lattice(parts):
    """The pairs of all parts, composed on a common lattice, are another way to the same number."""
    whole = ps.Composed(parts)
    deltas = np.array([1e-2, 1e-5, 1e-8])
    by_product = whole.epsilon_at(deltas)
    on_lattice = ps.Mechanism._epsilon_within(whole, deltas, 1e-4)
    assert np.all(by_product.lower <= on_lattice.upper)
    assert np.all(on_lattice.lower <= by_product.upper)
    np.testing.assert_allclose(by_product.upper, on_lattice.upper, rtol=2e-3)
