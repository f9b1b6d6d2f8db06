"""The index that leaves the mechanism: with the right probability, for any scores, and without a float on the way.

Every statistical test looks at a p-value above 1e-7, on seeded entropy: it fails falsely once in 1e7 changes of the draws.
"""

import random
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from drawn_noise import chi_square, seeded
from scipy.integrate import quad
from scipy.stats import gumbel_r, laplace, norm

import privselect as ps
from privselect.errors import ParameterError
from privselect.noisy_max.sampling.exact_argmax import _argmax_by_refinement, exact_argmax
from privselect.noisy_max.sampling.noise_samplers import sampler_for
from privselect.noisy_max.sampling.rejection_sampler import Density, RejectionSampler
from privselect.noisy_max.sampling.sample_grid import Box, IntegerGrid, RealGrid
from privselect.noisy_max.scores import read_scores
from privselect.tuning.randomness import Stream

ALARM = 1e-7
SCORES = [3.0, 0.0, 2.5]
CONTINUOUS = [ps.Gaussian(sigma=1.5), ps.Laplace(scale=1.2), ps.Gumbel(scale=0.8), ps.Exponential(scale=2)]
DISCRETE = [ps.DiscreteGaussian(sigma=1.5), ps.DiscreteLaplace(scale=1.2)]
SCIPY = {
    Density.NORMAL: (norm.pdf, norm.cdf),
    Density.LAPLACE: (laplace.pdf, laplace.cdf),
    Density.EXPONENTIAL: (lambda z: np.exp(-z) * (z >= 0), lambda z: -np.expm1(-np.maximum(z, 0.0))),
    Density.GUMBEL: (gumbel_r.pdf, gumbel_r.cdf),
}


def shares(shape, places):
    """The probability of each of these to be the largest with noise of this shape, by numeric integrals."""
    pdf, cdf = SCIPY[shape]

    def chance(i):
        others = [p for j, p in enumerate(places) if j != i]
        return quad(lambda x: pdf(x - places[i]) * np.prod([cdf(x - p) for p in others]), -40, 60, points=sorted(places), limit=200)[0]

    return [chance(i) for i in range(len(places))]


def whole_chances(shape, scale, scores):
    """The same on the integers, where ties are broken uniformly: a sum over all outcomes."""
    k = np.arange(-25, 26)
    weights = shape.density(k / scale)
    weights /= weights.sum()
    a, b, c = (k + s for s in scores)
    joint = weights[:, None, None] * weights[None, :, None] * weights[None, None, :]
    table = np.stack(np.broadcast_arrays(a[:, None, None], b[None, :, None], c[None, None, :]))
    best = table == table.max(axis=0)
    return [float((joint * best[i] / best.sum(axis=0)).sum()) for i in range(3)]


def frequencies(indices, m):
    return np.bincount(indices, minlength=m)


@pytest.mark.parametrize("noise", CONTINUOUS, ids=str)
@pytest.mark.parametrize("sensitivity", [1, Fraction(7, 10)])
def test_three_scores_win_as_often_as_they_should(noise, sensitivity):
    found = ps.report_noisy_max(np.tile(SCORES, (60_000, 1)), noise, sensitivity, entropy=seeded(1))
    wanted = shares(sampler_for(noise).shape, [score / float(sensitivity) / sampler_for(noise).scale for score in SCORES])
    assert sum(wanted) == pytest.approx(1.0, abs=1e-7)
    assert chi_square(frequencies(found, 3), wanted) > ALARM


@pytest.mark.parametrize("noise", CONTINUOUS, ids=str)
def test_scores_that_are_not_floats_win_as_often_as_they_should(noise):
    scores = [Fraction(10, 3), 10**400, 10**400 + Fraction(1, 3)]
    found = ps.report_noisy_max([scores] * 2000, noise, Fraction(2, 3), entropy=seeded(11))
    wanted = shares(sampler_for(noise).shape, [0.0, 0.5 / sampler_for(noise).scale])
    assert set(found.tolist()) == {1, 2}
    assert chi_square(frequencies(found, 3)[1:], wanted) > ALARM


@pytest.mark.parametrize("noise", DISCRETE, ids=str)
@pytest.mark.parametrize("sensitivity", [1, Fraction(1, 3), 0.5])
def test_three_scores_win_as_often_as_they_should_on_the_integers(noise, sensitivity):
    steps = [3, 0, 2]
    given = [[step * Fraction(sensitivity) for step in steps]] * 3000
    found = ps.report_noisy_max(given, noise, sensitivity, entropy=seeded(2))
    how = sampler_for(noise)
    assert chi_square(frequencies(found, 3), whole_chances(how.shape, how.scale, steps)) > ALARM


def test_gumbel_noise_is_the_exponential_mechanism():
    scores = np.array([0.0, 1.0, 2.5, 3.0])
    found = ps.report_noisy_max(np.tile(scores, (100_000, 1)), ps.Gumbel(scale=1.5), 2, entropy=seeded(3))
    weights = np.exp(scores / 3.0)
    assert chi_square(frequencies(found, 4), weights / weights.sum()) > ALARM


def test_exponential_noise_is_permute_and_flip():
    """In random order, each is taken with probability exp(score - best), in units of the scale (McKenna and Sheldon 2020)."""
    p = np.exp(np.array([-1.0, 0.0, -0.4]) / 2.0)
    orders = [(a, b, c) for a in range(3) for b in range(3) for c in range(3) if len({a, b, c}) == 3]
    wanted = np.zeros(3)
    for order in orders:
        left = 1.0 / 6.0
        for i in order:
            wanted[i] += left * p[i]
            left *= 1.0 - p[i]
    found = ps.report_noisy_max(np.tile([2.0, 3.0, 2.6], (100_000, 1)), ps.Exponential(scale=2), entropy=seeded(4))
    assert wanted.sum() == pytest.approx(1.0)
    assert chi_square(frequencies(found, 3), wanted) > ALARM


@pytest.mark.parametrize(("shape", "unit"), [*((shape, Fraction(1)) for shape in Density), (Density.NORMAL, Fraction(1, 3))])
def test_boxes_that_overlap_are_refined_until_one_is_largest(shape, unit):
    """Boxes of a sixteenth: of three scores, one vector in five or so is compared as fractions."""
    stairs = RejectionSampler(shape, RealGrid(box_bits=2, cell_bits=2), 12)
    scores, _ = read_scores(np.tile([0.0, 0.3 * float(unit), 0.25 * float(unit)], (5000, 1)))
    entropy = Requests(seeded(5))
    found = exact_argmax(scores, unit, stairs, entropy)
    assert entropy.narrowed > 400
    assert chi_square(frequencies(found, 3), shares(shape, [0.0, 0.3, 0.25])) > ALARM


@pytest.mark.parametrize("shape", [Density.NORMAL, Density.LAPLACE])
def test_integer_noise_that_was_refined_is_compared_exactly(shape):
    stairs = RejectionSampler(shape, IntegerGrid(1.5), 9)
    scores, _ = read_scores([[1, 0, 1]] * 10_000)
    found = exact_argmax(scores, Fraction(1), stairs, seeded(6))
    assert chi_square(frequencies(found, 3), whole_chances(shape, 1.5, [1, 0, 1])) > ALARM


class Requests:
    """Counts the requests for 32 bits, by which a box is refined."""

    def __init__(self, source):
        self.source, self.narrowed = source, 0

    def getrandbits(self, k):
        self.narrowed += k == 32
        return self.source.getrandbits(k)


class Same:
    """The same words for both scores, so that their boxes coincide; then real bits."""

    def __init__(self, source):
        self.source, self.first = source, True

    def getrandbits(self, k):
        if self.first:
            self.first = False
            half = int("1" + "0" * 31 + "1" * 32, 2) >> 1
            return sum(half << 64 * i for i in range(k // 64))
        return self.source.getrandbits(k)


def test_equal_scores_in_one_box_win_equally_often():
    source = seeded(7)
    found = [ps.report_noisy_max([5, 5], ps.Gaussian(sigma=2), entropy=Same(source)) for _ in range(800)]
    assert chi_square(frequencies(found, 2), [0.5, 0.5]) > ALARM


@pytest.mark.parametrize("unit", [1, 5])
def test_in_one_box_half_a_box_is_a_lead_of_seven_in_eight(unit):
    """The lower score must have a place in the upper half of the box, and further up than the other by half a box: 1/8."""
    source, lead = seeded(12), unit * Fraction(1, 2**39)
    found = [ps.report_noisy_max([lead, 0], ps.Laplace(scale=1), unit, entropy=Same(source)) for _ in range(500)]
    assert chi_square(frequencies(found, 2), [7 / 8, 1 / 8]) > ALARM


def test_in_one_box_a_score_above_by_less_than_any_float_can_tell_wins():
    """The gap is 2^-38 of a unit, a whole box, less 2^-200: the lower score wins only if 162 further bits say so."""
    box = Fraction(1, 2**38)
    found = [ps.report_noisy_max([0, box - Fraction(1, 2**200)], ps.Laplace(scale=1), entropy=Same(seeded(s))) for s in range(50)]
    assert found == [1] * 50


def test_boxes_that_only_touch_are_distinguished():
    places = [(Fraction(0), Box(5, 3, integer=False)), (Fraction(1, 8), Box(5, 3, integer=False))]
    assert _argmax_by_refinement(places, None) == 1  # without a further bit


def test_ties_are_broken_uniformly():
    noise = ps.DiscreteLaplace(scale=0.01)  # none, all but surely
    found = ps.report_noisy_max([[2, 7, 7, 1, 7]] * 30_000, noise, entropy=seeded(8))
    assert chi_square(frequencies(found, 5)[[1, 2, 4]], np.full(3, 1 / 3)) > ALARM
    assert set(found.tolist()) == {1, 2, 4}


@pytest.mark.parametrize("noise", [*CONTINUOUS, *DISCRETE], ids=str)
def test_no_float_noise_on_the_default_path(noise, monkeypatch):
    def refuse(*_arguments, **_options):
        raise AssertionError("float noise")

    for name in ("random", "gauss", "normalvariate", "uniform", "expovariate"):
        monkeypatch.setattr(random, name, refuse)
        monkeypatch.setattr(random.Random, name, refuse)
    for name in ("default_rng", "normal", "laplace", "random", "standard_normal", "gumbel", "exponential", "Generator"):
        monkeypatch.setattr(np.random, name, refuse)
    assert ps.report_noisy_max([10**6, 0, 0], noise) == 0
    assert ps.report_noisy_max([[10**6, 0, 0]] * 20, noise).tolist() == [0] * 20
    if not sampler_for(noise).integer:
        with pytest.raises(AssertionError, match="float noise"):  # and where it is asked for, it is what runs
            ps.report_noisy_max([10**6, 0, 0], noise, insecure_float=True)


@pytest.mark.parametrize("noise", CONTINUOUS, ids=str)
def test_float_noise_has_nearly_the_same_distribution(noise):
    """By numpy's own entropy: a false alarm once in 1e7 runs."""
    found = ps.report_noisy_max(np.tile(SCORES, (60_000, 1)), noise, insecure_float=True)
    wanted = shares(sampler_for(noise).shape, [score / sampler_for(noise).scale for score in SCORES])
    assert chi_square(frequencies(found, 3), wanted) > ALARM


@pytest.mark.parametrize("noise", [*CONTINUOUS, *DISCRETE], ids=str)
def test_the_same_key_gives_the_same_answer(noise):
    scores = np.arange(600).reshape(200, 3) % 5
    first, again, other = (ps.report_noisy_max(scores, noise, entropy=Stream(key)).tolist() for key in (b"a" * 32, b"a" * 32, b"b" * 32))
    assert first == again != other


def test_a_vector_gives_an_int_and_a_batch_an_array():
    noise = ps.Gaussian(sigma=1)
    assert type(ps.report_noisy_max([0, 100], noise)) is int
    batch = ps.report_noisy_max(np.array([[0, 100], [100, 0]], dtype=np.int32), noise)
    assert batch.tolist() == [1, 0]
    assert ps.report_noisy_max(np.empty((0, 4)), noise).shape == (0,)
    assert ps.report_noisy_max([7], noise) == 0


def test_a_large_batch_keeps_its_rows_apart():
    scores = np.zeros((60_000, 7))
    best = np.arange(60_000) % 7
    scores[np.arange(60_000), best] = 1000.0
    assert np.array_equal(ps.report_noisy_max(scores, ps.Gaussian(sigma=2)), best)
    assert np.array_equal(ps.report_noisy_max(scores, ps.DiscreteGaussian(sigma=2), top=7)[:, 0], best)


def test_top_peels_with_fresh_noise():
    """Gumbel noise: the probability of an order is that of drawing without replacement, by weights exp(score/scale)."""
    weights = np.exp([0.0, 0.7, 1.5])
    found = ps.report_noisy_max(np.tile([0.0, 0.7, 1.5], (60_000, 1)), ps.Gumbel(scale=1), top=2, entropy=seeded(9))
    assert found.shape == (60_000, 2)
    pairs = [(a, b) for a in range(3) for b in range(3) if a != b]
    wanted = [weights[a] / weights.sum() * weights[b] / (weights.sum() - weights[a]) for a, b in pairs]
    counts = [int(np.sum((found[:, 0] == a) & (found[:, 1] == b))) for a, b in pairs]
    assert chi_square(counts, wanted) > ALARM
    everything = ps.report_noisy_max([1, 2, 3, 4], ps.Laplace(scale=5), top=4)
    assert sorted(everything.tolist()) == [0, 1, 2, 3]


HUGE = 10**400


@pytest.mark.parametrize(
    ("scores", "sensitivity", "winner"),
    [
        ([1e308, -1e308], 1, 0),
        ([-1e308, 1e308], 1e-300, 1),
        ([0, 1e-300], 1e-305, 1),
        ([HUGE, HUGE + 1000], 1, 1),
        ([HUGE, 0.5], 10**390, 0),
        ([2**63, -1], 1, 0),
        ([2**70 + 1000, 1.5, 2**70], 1, 0),
        (np.array([2**60, 2**60 + 1000]), 1, 1),
        (np.array([2**63, 2**63 + 5000], dtype=np.uint64), 1, 1),
        (np.array([0, 1000], dtype=np.longdouble), 1, 1),
        (np.array([0, 1000], dtype=np.float16), 1, 1),
        ([Decimal(0), Decimal(1000)], 1, 1),
        ([Fraction(1, 3), Fraction(10**30, 3)], 1, 1),
        ([np.float32(0), np.int64(1000)], Decimal(1), 1),
    ],
)
def test_scores_of_any_size_are_compared_as_they_are(scores, sensitivity, winner):
    """The gap is 100 scales of the noise or more: another winner has less than 1e-40 of a probability."""
    assert ps.report_noisy_max(scores, ps.Laplace(scale=5), sensitivity) == winner
    if not isinstance(scores[0], Fraction):
        assert ps.report_noisy_max(scores, ps.Laplace(scale=5), sensitivity, insecure_float=True) == winner


def test_huge_integer_scores_under_discrete_noise():
    noise = ps.DiscreteLaplace(scale=2)
    assert ps.report_noisy_max([HUGE, HUGE + 500], noise) == 1
    assert ps.report_noisy_max([1e308, 0.0], noise) == 0
    assert ps.report_noisy_max([2**60, 2**60 + 500], noise) == 1
    assert ps.report_noisy_max([2**60 * 7, 2**60 * 5], noise, 2**60) in {0, 1}


def test_a_tiny_gap_between_huge_scores_is_not_rounded_away():
    """2^70 and 2^70 + 1 are the same float; with noise of scale 1 the second wins with probability 1 - 3/(4e)."""
    found = ps.report_noisy_max([[2**70, 2**70 + 1]] * 2000, ps.Laplace(scale=1), entropy=seeded(10))
    wrong = 0.75 / np.e
    assert chi_square(frequencies(found, 2), [wrong, 1.0 - wrong]) > ALARM


def test_a_float_sensitivity_is_read_on_the_sound_side():
    from privselect.noisy_max.scores import read_sensitivity

    for given in (0.1, 0.3, 1e-7, 123.456, 1e22, 5e-324, np.float64(0.7), np.float32(0.1)):
        assert read_sensitivity(given) >= Fraction(float(given))
        assert read_sensitivity(given) >= Fraction(repr(float(given)))
    for given in (np.longdouble(1) / 3, 1 - np.finfo(np.longdouble).epsneg, np.array(0.1)):
        assert read_sensitivity(given) >= Fraction(*given[()].as_integer_ratio())
    assert read_sensitivity(Fraction(1, 10)) == read_sensitivity(Decimal("0.1")) == Fraction(1, 10)


BAD_SCORES = [
    ([1.0, float("nan")], "NaN or infinite"),
    ([77.125, float("inf")], "NaN or infinite"),
    ([Fraction(1, 3), float("-inf")], "NaN, infinite"),
    (np.array([[77.125, np.nan]]), "NaN or infinite"),
    ([Decimal("77.125"), Decimal("nan")], "NaN, infinite"),
    ([1, Decimal("1.77e99999999")], "1000 digits"),
    ([], "shape (0,)"),
    ([[]], "shape (1, 0)"),
    (np.empty((3, 0)), "shape (3, 0)"),
    (77.125, "shape ()"),
    ([[[77.125]]], "shape (1, 1, 1)"),
    ([[77.125, 2], [3]], "type list"),
    ([True, False], "type bool"),
    (np.array([True, False]), "type bool"),
    ([77.125, True], "type bool"),
    (["77.125", "2"], "type str"),
    (np.array(["77.125", "2"]), "type <U6"),
    ([77.125, None], "type NoneType"),
    ([77.125, 1j], "type complex"),
    (None, "type NoneType"),
    ({77.125: 1}, "type dict"),
    (np.ma.array([1.0, 77.125], mask=[False, True]), "a masked array"),
    ([np.ma.array([1.0, 77.125], mask=[False, True])], "a masked array"),
]


@pytest.mark.parametrize(("scores", "said"), BAD_SCORES, ids=str)
def test_bad_scores_are_rejected_without_showing_one(scores, said):
    with pytest.raises(ParameterError) as caught:
        ps.report_noisy_max(scores, ps.Gaussian(sigma=4))
    message = str(caught.value)
    assert message.startswith("`scores` must be a vector of finite numbers")
    assert said in message
    assert "77" not in message
    assert "\n" not in message
    behind = caught.value.__context__
    while behind is not None:  # nor does what lies behind it
        assert "77" not in str(behind)
        behind = behind.__context__


@pytest.mark.parametrize("sensitivity", [0, -1, 0.0, -0.5, float("nan"), float("inf"), "1", None, True, Fraction(-1, 2), [1]])
def test_bad_sensitivities_are_rejected(sensitivity):
    with pytest.raises(ParameterError, match="`sensitivity` must be"):
        ps.report_noisy_max([1, 2], ps.Gaussian(sigma=4), sensitivity)


@pytest.mark.parametrize("noise", [ps.Pure(epsilon=1), "gaussian(sigma=4)", None, 4, ps.Composed(ps.Gaussian(sigma=4))], ids=str)
def test_what_cannot_be_drawn_exactly_is_rejected(noise):
    with pytest.raises(ParameterError, match="to be drawn exactly"):
        ps.report_noisy_max([1, 2], noise)


def test_discrete_noise_that_is_too_broad_is_rejected():
    with pytest.raises(ParameterError, match=r"must have a scale of at most 1e\+11"):
        ps.report_noisy_max([1, 2], ps.DiscreteLaplace(scale=1e12))


@pytest.mark.parametrize("top", [0, -1, 3, 1.5, float("nan"), "2", None, True])
def test_bad_tops_are_rejected(top):
    with pytest.raises(ParameterError, match="`top` must be"):
        ps.report_noisy_max([1, 2], ps.Gaussian(sigma=4), top=top)


@pytest.mark.parametrize(
    ("scores", "sensitivity"),
    [([0.5, 77.0], 1), ([0.3, 77.0], 0.1), ([Fraction(1, 3), 77], 1), ([3, 77], 2), ([2**60 + 1, 77], 2), ([1e308, 77.5], 1)],
)
def test_discrete_noise_needs_whole_multiples(scores, sensitivity):
    with pytest.raises(ParameterError, match="must be integer multiples of the sensitivity") as caught:
        ps.report_noisy_max(scores, ps.DiscreteLaplace(scale=2), sensitivity)
    assert "77" not in str(caught.value)


def test_other_bad_input_is_rejected():
    with pytest.raises(ParameterError, match="getrandbits"):
        ps.report_noisy_max([1, 2], ps.Gaussian(sigma=4), entropy=5)
    with pytest.raises(ParameterError, match="`insecure_float` must be True or False, got 'no'"):
        ps.report_noisy_max([1, 2], ps.Gaussian(sigma=4), insecure_float="no")
    with pytest.raises(ParameterError, match="`insecure_float` must be True or False"):
        ps.report_noisy_max([1, 2], ps.Gaussian(sigma=4), insecure_float=[True])
    with pytest.raises(ParameterError, match="discrete noise is drawn in integers"):
        ps.report_noisy_max([1, 2], ps.DiscreteLaplace(scale=2), insecure_float=True)
