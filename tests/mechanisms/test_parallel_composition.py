"""Disjoint: the largest of the parts in all that is asked, and never less than what small mechanisms, split at will, really leak."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

import privselect as ps
from closed_forms import discrete_hockey
from privselect.certificates.model import RunMetadata
from privselect.errors import NeighbourError, ParameterError
from privselect.integrations import pld_from_mechanism
from privselect.mechanisms.neighbours import ADD_REMOVE, REPLACE_ONE
from privselect.pairs import Bracket
from privselect.pairs.envelope import envelope
from privselect.selection.compare import BOUNDS
from selection.orders import worst_of
from small_pairs import Given, hockey, product, small

DELTAS = [1e-2, 1e-6]
LINE = [-2.0, -0.7, -0.2, 0.0, 0.1, 0.4, 0.9, 1.3, 2.5]
TRAINING = ps.DPSGD(noise_multiplier=1.1, sampling_probability=0.05, steps=60)
COUNTING = ps.DiscreteGaussian(sigma=4)
GAUSSIAN, PURE = ps.Gaussian(sigma=4), ps.Pure(epsilon=0.8)  # their profiles cross: at 0.7 the pure one is above, at 0.8 it is 0
LEAKY = ps.Approximate(epsilon=0.2, delta=1e-7)
PAIRS = [(TRAINING, COUNTING), (GAUSSIAN, PURE), (GAUSSIAN, LEAKY), (TRAINING, PURE)]
CAPPED = ps.Geometric(mean=3, cap=6)


SMALL = [
    [((5, 6), (7, 1)), ((1, 8), (5, 4))],
    [((2, 1), (1, 9)), ((0, 7, 2), (7, 6, 0))],
    [((5, 3), (3, 5)), ((98, 1, 1), (99, 1, 0))],
]


# -- the largest of the parts -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("parts", PAIRS, ids=str)
def test_it_leaks_what_the_worst_part_leaks(parts):
    whole = ps.Disjoint(parts)
    for found, apart in (
        (whole.delta_at(LINE), [part.delta_at(LINE) for part in parts]),
        (whole.epsilon_at(DELTAS), [part.epsilon_at(DELTAS) for part in parts]),
    ):
        for end in ("lower", "upper"):
            assert getattr(found, end).tolist() == np.maximum(*(getattr(one, end) for one in apart)).tolist()
    orders = np.array([1.5, 2.0, 8.0])
    assert whole.renyi_at(orders).tolist() == np.maximum(*(part.renyi_at(orders) for part in parts)).tolist()


@pytest.mark.parametrize(
    ("parts", "count"),
    [
        *itertools.product(PAIRS, [ps.Geometric(mean=30)]),
        (PAIRS[0], ps.Poisson(mean=10)),
        (PAIRS[2], ps.Poisson(mean=10)),
        (PAIRS[1], CAPPED),
    ],
    ids=str,
)
def test_a_selection_costs_the_greater_of_the_two_selections(parts, count):
    apart = [ps.Selection(part, count) for part in parts]
    for ordered in (parts, parts[::-1]):
        chosen = ps.Selection(ps.Disjoint(ordered), count)
        found, alone = chosen.epsilon_at(DELTAS), [one.epsilon_at(DELTAS) for one in apart]
        assert found.upper.tolist() == np.maximum(*(one.upper for one in alone)).tolist()
        # The search for a lower end starts from what the other part gave, and may end a little higher.
        np.testing.assert_allclose(found.lower, np.maximum(*(one.lower for one in alone)), rtol=1e-4)
        assert np.all(found.lower <= found.upper)
    some = LINE[::3]
    deltas, alone = chosen.delta_at(some), [one.delta_at(some) for one in apart]
    for end in ("lower", "upper"):
        assert getattr(deltas, end).tolist() == np.maximum(*(getattr(one, end) for one in alone)).tolist()
    curve, curves = chosen.upper_curve(), [one.upper_curve() for one in apart]
    assert [curve(e) for e in LINE[3:]] == [max(one(e) for one in curves) for e in LINE[3:]]


def test_few_trials_are_bounded_by_composing_each_part_by_itself():
    parts, count = (ps.Approximate(epsilon=0.4, delta=1e-3), ps.Pure(epsilon=0.7)), ps.Finite({1: 1, 3: 2})
    assert len(ps.Disjoint(parts).composed_pairs(3)) == len(ps.Disjoint(parts).brackets) == 2
    found, apart = ps.Selection(ps.Disjoint(parts), count), [ps.Selection(part, count) for part in parts]
    assert found.delta_at([0.3, 1.5]).upper.tolist() == np.maximum(*(one.delta_at([0.3, 1.5]).upper for one in apart)).tolist()


def test_where_profiles_cross_it_is_less_than_the_selection_over_their_maximum():
    whole, count = ps.Disjoint((GAUSSIAN, PURE)), ps.Geometric(mean=30)
    upper = whole.brackets_by_order["both"].upper
    maximum = Given(Bracket(upper, (upper,)))
    np.testing.assert_allclose(maximum.epsilon_at(DELTAS).upper, whole.epsilon_at(DELTAS).upper, rtol=1e-6)
    # Proved: the upper end of one lies below the lower end of the other.
    assert ps.Selection(whole, count).epsilon_at(1e-4).upper < 0.996 * ps.Selection(maximum, count).epsilon_at(1e-4).lower
    assert ps.Selection(whole, count).epsilon_at(1e-6).upper < 0.92 * ps.Selection(maximum, count).epsilon_at(1e-6).lower


INNER = [ps.Selection(part, ps.Poisson(mean=2)) for part in (LEAKY, PURE)]


def test_a_selection_over_parts_is_one_of_selections_on_parts():
    over = ps.Selection(ps.Disjoint((LEAKY, PURE)), ps.Poisson(mean=2))
    assert over.cases == ps.Disjoint(INNER).cases == tuple(INNER)


@pytest.mark.slow
def test_selections_nest():
    over = ps.Selection(ps.Disjoint((LEAKY, PURE)), ps.Poisson(mean=2))
    outer = [ps.Selection(one, ps.Geometric(mean=3)).epsilon_at(1e-6).upper for one in (over, ps.Disjoint(INNER), *INNER)]
    assert outer[0] == outer[1] == max(outer[2:])
    assert [bracket.upper.p_only for bracket in over.brackets] == [one.brackets[0].upper.p_only for one in INNER]


@pytest.mark.parametrize("count", [ps.Geometric(mean=30), ps.Poisson(mean=5), ps.Binomial(n=8, p=0.5)], ids=str)
def test_every_other_bound_is_that_of_the_worst_part(count):
    found = ps.compare(ps.Selection(ps.Disjoint((GAUSSIAN, PURE)), count), delta=1e-6)
    apart = [ps.compare(ps.Selection(part, count), delta=1e-6) for part in (GAUSSIAN, PURE)]
    for name in BOUNDS:
        expected = [one.bounds[name] for one in apart]
        assert found.bounds[name] == (None if None in expected else max(expected)), name
    assert found.base.upper == max(one.base.upper for one in apart)


def test_parts_may_be_disjoint_themselves_or_have_no_lower_bound():
    inner = ps.Disjoint((GAUSSIAN, PURE))
    assert ps.Disjoint((inner, LEAKY)).cases == (GAUSSIAN, PURE, LEAKY)
    vague = ps.Renyi(((2.0, 0.01), (10.0, 0.05)))
    found = ps.Disjoint((GAUSSIAN, vague))
    assert vague.epsilon_at(1e-6).lower is None
    assert found.epsilon_at(1e-6).lower == GAUSSIAN.epsilon_at(1e-6).lower
    assert ps.Selection(found, ps.Geometric(mean=3)).epsilon_at(1e-6).lower is None


# -- one pair above all parts ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("parts", [*PAIRS, (TRAINING, COUNTING, PURE, LEAKY)], ids=str)
def test_one_bracket_for_each_order_covers_every_part(parts):
    line = np.linspace(-3.0, 3.0, 401)
    whole = ps.Disjoint(parts)
    found = whole.brackets_by_order
    assert set(found) == ({"remove", "add"} if TRAINING in parts else {"both"})
    for direction, bracket in found.items():
        above = bracket.upper.hockey_stick(line, side=1)
        ours = [one for part in parts for one in part.brackets if one.direction in {direction, "both"}]
        assert np.all(above >= np.maximum.reduce([one.upper.hockey_stick(line) for one in ours]))
        np.testing.assert_allclose(above, np.maximum.reduce([one.upper.hockey_stick(line, side=1) for one in ours]), rtol=1e-6, atol=1e-12)
        assert all(
            np.any([np.all(low.hockey_stick(line, side=-1) <= above) for one in ours for low in one.lowers]) for low in bracket.lowers
        )
        assert len(bracket.lowers) == len(parts)


def test_a_pair_above_random_pairs_is_their_maximum():
    rng = np.random.default_rng(5)
    for _ in range(100):
        given = [small([1, *rng.integers(0, 9, 3).tolist()], [*rng.integers(0, 9, 3).tolist(), 1]) for _ in range(int(rng.integers(2, 5)))]
        pair = envelope([mechanism.brackets[0].upper for _, mechanism in given])
        for epsilon in rng.uniform(-3.0, 3.0, 8).tolist():
            true = max(discrete_hockey(*laws, epsilon) for laws, _ in given)
            assert true <= pair.hockey_stick(epsilon, side=1) <= true + 1e-10  # rounding of the slopes between close knots


# -- what small mechanisms really leak -------------------------------------------------------------------------------------


@pytest.mark.parametrize("weights", SMALL, ids=str)
@pytest.mark.parametrize("count", [ps.Geometric(mean=4), ps.Poisson(mean=3), ps.Finite({1: 1, 2: 3})], ids=str)
def test_no_order_of_both_outputs_leaks_more(weights, count):
    """The outputs of both parts together, in any order of scores, with the record in either part and anything in the other."""
    parts = [small(*one) for one in weights]
    chosen = ps.Selection(ps.Disjoint([mechanism for _, mechanism in parts]), count)
    for epsilon in (0.0, 0.4, 1.1):
        worst = 0.0
        for (laws, _), (others, _) in (parts, parts[::-1]):
            for rest in others:
                p, q = ([a * b for a in law for b in rest if b] for law in laws)
                orders = np.array(list(itertools.permutations(range(len(p)))))
                worst = max(worst, worst_of(count, p, q, orders, epsilon), worst_of(count, q, p, orders, epsilon))
        found = chosen.delta_at(epsilon)
        assert worst <= found.upper
        assert found.lower <= found.upper


@pytest.mark.parametrize("weights", SMALL, ids=str)
@pytest.mark.parametrize("runs", [2, 3])
def test_runs_may_split_the_records_differently(weights, runs):
    parts = [small(*one) for one in weights]
    whole = ps.Disjoint([mechanism for _, mechanism in parts])
    ways = [product(*(laws for laws, _ in way)) for way in itertools.product(parts, repeat=runs)]
    for composed in (ps.Composed((whole,), times=runs), ps.Composed((whole,) * runs)):
        for epsilon in (-0.5, 0.0, 0.3, 1.0, 1.8):
            found, worst = composed.delta_at(epsilon), max(hockey(way, epsilon) for way in ways)
            assert found.lower <= worst <= found.upper
            assert found.lower >= max(hockey(product(*[laws] * runs), epsilon) for laws, _ in parts) * (1 - 1e-3) - 1e-9


def test_splits_that_differ_can_leak_more_than_either_part_throughout():
    one, other = (small(*weights)[0] for weights in SMALL[0])
    same = max(hockey(product(laws, laws), 1.0) for laws in (one, other))
    assert hockey(product(one, other), 1.0) > same + 0.07
    whole = ps.Disjoint([small(*weights)[1] for weights in SMALL[0]])
    assert max(float(pair.hockey_stick(1.0)) for pair in whole.composed_pairs(2)) < same + 1e-9  # all trials of one selection split alike
    assert ps.Composed((whole,), times=2).delta_at(1.0).upper > same + 0.07


def test_two_kinds_of_splits_composed_and_mixed():
    (a, b), (c, d) = ([small(*one) for one in weights] for weights in SMALL[:2])
    first, second = (ps.Disjoint([mechanism for _, mechanism in parts]) for parts in ((a, b), (c, d)))
    composed = ps.Composed((first, second))
    mixed = ps.Mixture(((Fraction(1, 3), first), (Fraction(2, 3), second)))
    assert composed.neighbours == mixed.neighbours == ADD_REMOVE
    for epsilon in (0.0, 0.2, 0.9):
        pairs = [(x, y) for (x, _), (y, _) in itertools.product((a, b), (c, d))]
        found = composed.delta_at(epsilon)
        assert found.lower <= max(hockey(product(*pair), epsilon) for pair in pairs) <= found.upper
        found = mixed.delta_at(epsilon)
        shares = [[[Fraction(1, 3) * m for m in u] + [Fraction(2, 3) * m for m in v] for u, v in zip(x, y, strict=True)] for x, y in pairs]
        assert found.lower <= max(hockey((p, q), epsilon) for p, q in shares) <= found.upper
    assert ps.Selection(mixed, ps.Geometric(mean=3)).delta_at(1.0).upper <= 1.0


def test_composed_once_is_itself_and_with_others_no_less_than_its_parts():
    whole = ps.Disjoint((GAUSSIAN, PURE))
    assert ps.Composed((whole,)).epsilon_at(1e-6) == whole.epsilon_at(1e-6)
    found = ps.Composed((whole, ps.Laplace(scale=2))).epsilon_at(DELTAS)
    for part in whole.parts:
        assert np.all(found.upper >= ps.Composed((part, ps.Laplace(scale=2))).epsilon_at(DELTAS).lower)
    alike = ps.Disjoint([ps.Composed((part,), times=5) for part in whole.parts]).epsilon_at(DELTAS)
    assert np.all(alike.lower <= ps.Composed((whole,), times=5).epsilon_at(DELTAS).upper)


def test_a_privacy_loss_distribution_covers_every_part():
    pld = pld_from_mechanism(ps.Disjoint((TRAINING, COUNTING, PURE)), 1e-3)
    for part in (TRAINING, COUNTING, PURE):
        for epsilon in (0.0, 0.5, 1.0):
            assert pld.get_delta_for_epsilon(epsilon) >= part.delta_at(epsilon).lower


# -- what is rejected, and the text -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "part",
    [
        ps.Gaussian(sigma=4, neighbours=REPLACE_ONE),
        ps.SampledGaussian(noise_multiplier=2, batch_size=1, records=10),
        ps.Selection(ps.Pure(epsilon=1, neighbours=REPLACE_ONE), ps.Fixed(k=2)),
    ],
    ids=str,
)
def test_a_part_stated_for_replaced_records_is_rejected(part):
    with pytest.raises(NeighbourError, match="a replaced record may change parts"):
        ps.Disjoint((GAUSSIAN, part))


def test_it_is_stated_for_adding_or_removing_a_record():
    assert ps.Disjoint((GAUSSIAN, PURE)).neighbours == ADD_REMOVE
    with pytest.raises(NeighbourError, match="disagree"):
        ps.Composed((ps.Disjoint((GAUSSIAN, PURE)), ps.Gaussian(sigma=4, neighbours=REPLACE_ONE)))


@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        ((), "`disjoint` needs at least one part such as gaussian(sigma=4), got none"),
        (3, "`parts` must be mechanisms, got 3"),
        ((3,), "`disjoint` needs parts that are mechanisms, got 3"),
    ],
)
def test_invalid_input_is_rejected_in_one_sentence(parts, sentence):
    with pytest.raises(ParameterError) as caught:
        ps.Disjoint(parts)
    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    "text",
    [
        "disjoint(dpsgd(noise_multiplier=1.1, sampling_probability=0.05, steps=60), discrete_gaussian(sigma=3))",
        "disjoint(gaussian(sigma=4))",
        "selection(disjoint(pure(epsilon=1), disjoint(gaussian(sigma=4), laplace(scale=2))), geometric(mean=30))",
        "composed(disjoint(gaussian(sigma=4), pure(epsilon=1)), times=3)",
    ],
)
def test_the_text_says_it_all(text):
    described = ps.parse(text)
    assert str(described) == text
    assert ps.parse(str(described)) == described
    assert hash(ps.parse(text)) == hash(described)


# -- certificates and plans --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("run", [None, pytest.param(RunMetadata(runs=2), marks=pytest.mark.slow)], ids=["plan", "two runs"])
def test_a_certificate_says_what_the_split_must_be(run):
    certificate = ps.certify("disjoint(gaussian(sigma=4), pure(epsilon=0.8))", "geometric(mean=10)", delta=1e-6, run=run)
    assert ps.verify(certificate.to_json()).holds
    assert "Disjoint" in certificate.theorems
    assert certificate.neighbours == ADD_REMOVE
    assert "The part that a record belongs to depends only on that record" in certificate.statement
    if run is None:
        apart = [ps.Selection(part, ps.Geometric(mean=10)).epsilon_at(1e-6).upper for part in (GAUSSIAN, PURE)]
        assert certificate.total.upper == max(apart)


@pytest.mark.slow
def test_a_plan_solves_for_a_number_inside():
    training = "dpsgd(noise_multiplier={}, sampling_probability=0.05, steps=20)"
    text, count = f"disjoint({training}, discrete_gaussian(sigma=30))", ps.Geometric(mean=10)
    plan = ps.plan(text.format("?"), count, epsilon=2, delta=1e-6)
    assert plan.mechanism == ps.parse(text.format(plan.value))
    assert plan.cost == plan.whole.epsilon_at(1e-6) == ps.Selection(plan.mechanism.parts[0], count).epsilon_at(1e-6)
    assert plan.cost.upper <= 2.0 < ps.Selection(ps.parse(text.format(0.999 * plan.value)), count).epsilon_at(1e-6).upper
    with pytest.raises(ParameterError, match="noise_multiplier"):  # the other part alone is too much
        ps.plan(text.replace("sigma=30", "sigma=1").format("?"), count, epsilon=2, delta=1e-6)
