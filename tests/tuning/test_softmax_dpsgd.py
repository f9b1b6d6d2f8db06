"""What one record can do to a training, the law of its noise and of its samples, and that what is run is what is accounted."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import binomtest, chisquare, kstest

import privselect as ps
from privselect.errors import ParameterError
from privselect.tuning.softmax_dpsgd import (
    GRID,
    SoftmaxDPSGD,
    add_noise,
    clipped_sum,
    correct,
    poisson_sample,
    predict,
    predict_rows,
    to_grid_rows,
)

FALSE_ALARM = 1e-6  # of each statistical test below
FEATURES, CLASSES = 5, 3

numbers = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True),
    st.floats(-2.0, 2.0),
    st.sampled_from([0.0, 1e308, -1e308, 1.7976931348623157e308, 5e-324, math.inf, -math.inf, math.nan]),
)
labels = st.sampled_from([0.0, 1.0, 2.0, 3.0, -1.0, 0.5, math.nan, math.inf, 1e300])
models = arrays(np.float64, (FEATURES + 1, CLASSES), elements=st.one_of(st.floats(-3.0, 3.0), numbers))
clips = st.one_of(st.floats(1e-3, 10.0), st.sampled_from([5e-324, 1e-300, 1e300]))


@st.composite
def data_sets(draw, least=1):
    size = draw(st.integers(least, 20))
    return draw(arrays(np.float64, (size, FEATURES), elements=numbers)), np.array(draw(st.lists(labels, min_size=size, max_size=size)))


class Seeded:
    """Stands in for a trial's randomness."""

    def __init__(self, rng):
        self.seed = rng.bytes(32)

    def numpy(self):
        return np.random.default_rng(list(self.seed))


class Watched:
    """A generator that remembers what it was asked for."""

    def __init__(self, seed=1):
        self.rng, self.noise, self.samples = np.random.default_rng(seed), [], []

    def numpy(self):
        return self

    def normal(self, loc, scale, size):
        self.noise.append((loc, scale, size))
        return self.rng.normal(loc, scale, size)

    def integers(self, *bounds, size, dtype):
        self.samples.append(size)
        return self.rng.integers(*bounds, size=size, dtype=dtype)


def trainer(**changed):
    values = {"noise_multiplier": 1.0, "sampling_probability": 0.5, "steps": 3, "records": 20, "classes": CLASSES, "features": FEATURES}
    return SoftmaxDPSGD(**{**values, **changed})


def some_data(rng, size=20):
    return rng.normal(size=(size, FEATURES)), rng.integers(0, CLASSES, size=size)


def sum_of(features, given_labels, model, clip):
    return clipped_sum(to_grid_rows(features), given_labels[:, None] == np.arange(CLASSES), model, clip)


def flat(model):
    return np.append(model["weights"].ravel(), model["bias"])


# One record moves the sum by at most the clipping norm. No tolerance: the sums are whole numbers of clip/GRID^2.


@given(data_sets(), models, clips)
def test_a_sum_is_that_of_its_records_exactly_and_none_adds_more_than_the_clipping_norm(data, model, clip):
    features, given_labels = data
    alone = [sum_of(features[i : i + 1], given_labels[i : i + 1], model, clip) for i in range(len(features))]
    for part in alone:
        assert sum(int(entry) ** 2 for entry in part.flat) <= int(GRID) ** 4
    assert np.array_equal(sum_of(features, given_labels, model, clip), sum(alone))


@given(data_sets(least=2), models, clips, st.data())
def test_adding_or_removing_any_record_moves_the_sum_by_at_most_the_clipping_norm(data, model, clip, draw):
    features, given_labels = data
    out = draw.draw(st.integers(0, len(features) - 1))
    others = np.arange(len(features)) != out
    moved = sum_of(features, given_labels, model, clip) - sum_of(features[others], given_labels[others], model, clip)
    assert sum(int(entry) ** 2 for entry in moved.flat) <= int(GRID) ** 4


@pytest.mark.parametrize("size", [1, 2, 3, 7, 8, 9, 31, 64, 65, 257])
def test_many_records_and_many_features_still_sum_exactly(size, fresh_rng):
    features, given_labels = (
        fresh_rng.normal(size=(size, 130)) * 10.0 ** fresh_rng.uniform(-3, 3, (size, 1)),
        fresh_rng.integers(0, CLASSES, size),
    )
    model = fresh_rng.normal(size=(131, CLASSES))
    whole = sum_of(features, given_labels, model, 0.7)
    assert np.array_equal(whole, sum(sum_of(features[i : i + 1], given_labels[i : i + 1], model, 0.7) for i in range(size)))
    order = fresh_rng.permutation(size)
    assert np.array_equal(whole, sum_of(features[order], given_labels[order], model, 0.7))


@pytest.mark.parametrize("size", [2, 5, 64, 257])
def test_a_records_logits_are_the_same_in_any_company(size, fresh_rng):
    rows, model = to_grid_rows(fresh_rng.normal(size=(size, 130))), fresh_rng.normal(size=(131, CLASSES))
    together = rows.logits(model)
    assert np.array_equal(together, np.vstack([rows[np.array([i])].logits(model) for i in range(size)]))


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_record_that_is_not_finite_adds_nothing(value):
    features = np.array([[0.0, value, 1.0, 0.0, 0.0]])
    assert not sum_of(features, np.array([1]), np.ones((FEATURES + 1, CLASSES)), 1.0).any()


@pytest.mark.parametrize("label", [-1, CLASSES, 0.5, math.nan, 2**62])
def test_a_label_that_is_no_class_adds_nothing(label):
    assert not sum_of(np.ones((1, FEATURES)), np.array([label]), np.zeros((FEATURES + 1, CLASSES)), 1.0).any()


@pytest.mark.parametrize("value", [1e308, -1e308])
def test_a_huge_record_is_clipped_and_not_lost(value):
    features = np.full((1, FEATURES), value)
    norm = np.linalg.norm(sum_of(features, np.array([1]), np.zeros((FEATURES + 1, CLASSES)), 1.0)) / GRID**2
    assert 0.99 < norm <= 1.0


@pytest.mark.parametrize("clip", [0.1, 1.0, 100.0])
def test_the_sum_is_that_of_clipped_gradients_written_out(clip, fresh_rng):
    features, given_labels = some_data(fresh_rng)
    model = fresh_rng.normal(size=(FEATURES + 1, CLASSES))
    expected = np.zeros_like(model)
    for x, label in zip(np.hstack([features, np.ones((20, 1))]), given_labels, strict=True):
        odds = np.exp(x @ model)
        gradient = np.outer(x, odds / odds.sum() - (np.arange(CLASSES) == label))
        expected += gradient * min(1.0, clip / np.linalg.norm(gradient))
    found = sum_of(features, given_labels, model, clip) * clip / GRID**2
    # Two roundings of 1/GRID, relative to the clipping norm, in each of 20 records.
    assert np.abs(found - expected).max() <= 20 * 3 / GRID * clip


# The noise.


def test_the_noise_is_gaussian_with_the_stated_deviation(fresh_rng):
    drawn = add_noise(fresh_rng, np.zeros((200, 100)), 2.5)
    assert kstest(drawn.ravel(), "norm", args=(0.0, 2.5)).pvalue > FALSE_ALARM


def test_no_records_still_give_noise_scaled_by_the_public_size_alone(fresh_rng):
    model = trainer(steps=1, features=999, classes=20, noise_multiplier=3.0, sampling_probability=0.25, records=80).train(
        np.zeros((0, 999)), np.zeros(0), learning_rate=0.5, clip=2.0, randomness=Seeded(fresh_rng)
    )
    assert kstest(flat(model), "norm", args=(0.0, 0.5 * 3.0 * 2.0 / (0.25 * 80))).pvalue > FALSE_ALARM


def test_an_empty_sample_still_gives_noise(fresh_rng):
    features, given_labels = some_data(fresh_rng)
    model = trainer(sampling_probability=1e-300, records=2**53, steps=1).train(
        features, given_labels, learning_rate=1e-280, clip=1.0, randomness=Seeded(fresh_rng)
    )
    assert np.all(flat(model) != 0.0)


def test_each_number_of_each_step_has_its_own_noise(fresh_rng):
    steps = [add_noise(fresh_rng, np.zeros((20, 10)), 1.0) for _ in range(2)]
    assert len(np.unique(steps)) == 400


# The samples.


def test_every_subset_of_records_is_drawn_as_often_as_independence_says(fresh_rng):
    times, q = 20_000, 0.3
    drawn = np.zeros(8)
    for _ in range(times):
        drawn[sum(1 << int(i) for i in poisson_sample(fresh_rng, q, 3))] += 1
    sizes = np.array([i.bit_count() for i in range(8)])
    assert chisquare(drawn, times * q**sizes * (1 - q) ** (3 - sizes)).pvalue > FALSE_ALARM


@pytest.mark.parametrize("q", [1.0, 0.5, 0.1, 256 / 60_000, 2.0**-11 + 2.0**-63])
def test_the_probability_of_a_draw_is_exact(q):
    class Edge:
        def integers(self, low, high, size, dtype):
            assert (low, high, size) == (0, 2**64, 3)
            threshold = int(q * 2**64)
            return np.array([0, threshold - 1, min(threshold, 2**64 - 1)], dtype=dtype)

    assert (q * 2.0**64).is_integer()
    assert poisson_sample(Edge(), q, 3).tolist() == ([0, 1] if q < 1.0 else [0, 1, 2])


@pytest.mark.parametrize("q", [2.0**-64 * 0.99, 1e-300])
def test_a_probability_below_the_grid_is_rounded_down(q):
    class Zero:
        def integers(self, *_, size, dtype):
            return np.zeros(size, dtype=dtype)

    assert poisson_sample(Zero(), q, 5).size == 0


def test_a_training_step_draws_each_record_with_the_stated_probability(fresh_rng):
    # The same record n times, hardly any noise: the step's length counts the records drawn.
    n, q, runs = 50, 0.2, 400
    features, given_labels = np.ones((n, FEATURES)), np.zeros(n, dtype=int)
    alone = sum_of(features[:1], given_labels[:1], np.zeros((FEATURES + 1, CLASSES)), 1.0) / GRID**2
    one = trainer(steps=1, noise_multiplier=1e-6, sampling_probability=q, records=n)
    drawn = []
    for _ in range(runs):
        model = one.train(features, given_labels, learning_rate=q * n, clip=1.0, randomness=Seeded(fresh_rng))
        drawn.append(np.linalg.norm(flat(model)) / np.linalg.norm(alone))
    counts = np.rint(drawn)
    assert np.abs(drawn - counts).max() < 1e-3
    assert binomtest(int(counts.sum()), runs * n, q).pvalue > FALSE_ALARM
    assert len(np.unique(counts)) > 3


# What is run is what is accounted.


@pytest.mark.parametrize("steps", [1, 7])
def test_the_loop_uses_the_numbers_of_the_mechanism(steps):
    one = trainer(steps=steps, noise_multiplier=1.7, sampling_probability=0.3)
    watched = Watched()
    one.train(*some_data(np.random.default_rng(3)), learning_rate=1.0, clip=4.0, randomness=watched)
    assert one.mechanism == ps.DPSGD(noise_multiplier=1.7, sampling_probability=0.3, steps=steps)
    assert watched.noise == [(0.0, one.mechanism.noise_multiplier, (FEATURES + 1, CLASSES))] * one.mechanism.steps
    assert watched.samples == [20] * one.mechanism.steps


def test_what_was_run_cannot_be_changed_afterwards():
    with pytest.raises(dataclasses.FrozenInstanceError):
        trainer().noise_multiplier = 9.0


def test_a_planned_mechanism_is_the_one_that_is_run():
    plan = ps.plan(ps.DPSGD(noise_multiplier=ps.UNKNOWN, sampling_probability=1.0, steps=5), ps.Geometric(mean=5), epsilon=3, delta=1e-5)
    one = trainer(noise_multiplier=plan.value, sampling_probability=1.0, steps=5)
    assert one.mechanism == plan.mechanism
    assert ps.Selection(one.mechanism, ps.Geometric(mean=5)).epsilon_at(delta=1e-5).upper <= 3


def test_the_notes_are_lines_for_a_certificate():
    assert ps.Declared(not_covered=trainer().notes).not_covered == trainer().notes


# Training.


def test_the_sum_is_divided_by_the_public_size_and_by_nothing_else(fresh_rng):
    features, given_labels = some_data(fresh_rng)
    how = {"learning_rate": 1.0, "clip": 1.0, "randomness": Seeded(fresh_rng)}
    small = trainer(steps=1, records=16).train(features, given_labels, **how)
    large = trainer(steps=1, records=32).train(features, given_labels, **how)
    assert np.array_equal(flat(small), 2.0 * flat(large))
    whole = trainer(steps=1, sampling_probability=1.0, noise_multiplier=1e-12)
    once = whole.train(features, given_labels, **how)
    twice = whole.train(np.vstack([features, features]), np.append(given_labels, given_labels), **how)
    assert np.allclose(flat(twice), 2.0 * flat(once), rtol=0.0, atol=1e-8)  # the noise, of 1e-12


def test_the_same_randomness_gives_the_same_model_and_other_randomness_another(fresh_rng):
    data, seeded = some_data(fresh_rng), Seeded(fresh_rng)
    first, second, other = (trainer().train(*data, learning_rate=1.0, clip=1.0, randomness=r) for r in (seeded, seeded, Seeded(fresh_rng)))
    assert np.array_equal(flat(first), flat(second))
    assert not np.array_equal(flat(first), flat(other))


def test_records_that_add_nothing_are_told_apart_by_nothing(fresh_rng):
    features, given_labels = some_data(fresh_rng)
    seeded, models = Seeded(fresh_rng), []
    for bad, label in ((math.nan, 0.0), (math.inf, 1.0), (0.3, -1.0), (1e308, math.nan)):
        changed, relabelled = features.copy(), given_labels.astype(float)
        changed[4, 2], relabelled[4] = bad, label
        models.append(flat(trainer().train(changed, relabelled, learning_rate=1.0, clip=1.0, randomness=seeded)))
    assert all(np.array_equal(models[0], model) for model in models)
    assert np.isfinite(models[0]).all()


@pytest.mark.parametrize(("learning_rate", "clip"), [(1e308, 1e308), (1e308, 1.0), (5e-324, 5e-324), (1.0, 1e308)])
def test_what_overflows_is_an_outcome_without_a_warning(learning_rate, clip, fresh_rng):
    features, given_labels = some_data(fresh_rng)
    model = trainer().train(features, given_labels, learning_rate=learning_rate, clip=clip, randomness=Seeded(fresh_rng))
    assert correct(model, features, given_labels).shape == (20,)


def test_it_learns_what_can_be_learnt(fresh_rng):
    given_labels = fresh_rng.integers(0, CLASSES, 300)
    features = np.eye(FEATURES)[given_labels] + 0.1 * fresh_rng.normal(size=(300, FEATURES))
    one = trainer(noise_multiplier=0.5, steps=100, records=300, sampling_probability=0.2)
    model = one.train(features, given_labels, learning_rate=1.0, clip=1.0, randomness=Seeded(fresh_rng))
    assert model["weights"].shape == (FEATURES, CLASSES)
    assert model["bias"].shape == (CLASSES,)
    assert correct(model, features, given_labels).mean() > 0.95


# Predictions.


def test_a_prediction_depends_on_its_own_record_alone(fresh_rng):
    features, _ = some_data(fresh_rng, 257)
    model = {"weights": fresh_rng.normal(size=(FEATURES, CLASSES)), "bias": fresh_rng.normal(size=CLASSES)}
    together = predict(model, features)
    assert np.array_equal(together, np.concatenate([predict(model, features[i : i + 1]) for i in range(257)]))
    assert (together == (features @ model["weights"] + model["bias"]).argmax(axis=1)).mean() > 0.99


def test_a_record_without_numbers_is_never_right():
    model = {"weights": np.zeros((FEATURES, CLASSES)), "bias": np.zeros(CLASSES)}
    features = np.array([[math.nan] * FEATURES, [1.0] * FEATURES, [math.inf] * FEATURES, [1e308] * FEATURES])
    assert predict(model, features).tolist() == [-1, 0, -1, 0]
    assert correct(model, features, np.array([-1, 0, 0, 1])).tolist() == [False, True, False, False]


def test_a_model_without_numbers_predicts_something(fresh_rng):
    features, _ = some_data(fresh_rng)
    model = {"weights": np.full((FEATURES, CLASSES), math.nan), "bias": np.zeros(CLASSES)}
    assert set(predict(model, features)) <= set(range(CLASSES))


# Bad input: one sentence, and no word of what a record holds.


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"noise_multiplier": 0}, "`noise_multiplier` must be in (0, inf), got 0"),
        ({"noise_multiplier": math.nan}, "`noise_multiplier` must be in (0, inf), got nan"),
        ({"sampling_probability": 1.5}, "`sampling_probability` must be in (0, 1], got 1.5"),
        ({"steps": 0}, "`steps` must be an integer >= 1, got 0"),
        ({"records": 0}, "`records` must be an integer >= 1 and <= 9007199254740992, got 0"),
        ({"classes": 1}, "`classes` must be an integer >= 2 and <= 1000000, got 1"),
        ({"features": 2.5}, "`features` must be an integer >= 1 and <= 1000000, got 2.5"),
    ],
)
def test_a_trainer_out_of_range_is_one_sentence(changed, message):
    with pytest.raises(ParameterError) as error:
        trainer(**changed)
    assert str(error.value) == message


def test_steps_that_cannot_be_accounted_are_refused():
    with pytest.raises(ParameterError, match="`steps` must be an integer >= 1 and <="):
        trainer(steps=10**30)


@pytest.mark.parametrize("name", ["learning_rate", "clip"])
@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf, "1", None])
def test_a_hyperparameter_out_of_range_is_one_sentence(name, value, fresh_rng):
    how = {"learning_rate": 1.0, "clip": 1.0, name: value}
    with pytest.raises(ParameterError, match=rf"`{name}` must be in \(0, inf\), got"):
        trainer().train(*some_data(fresh_rng), **how, randomness=Seeded(fresh_rng))


@pytest.mark.parametrize(
    ("features", "given_labels", "told"),
    [
        ([[1234.5] * FEATURES], np.zeros(1), "5 columns, got a list"),
        (np.array([[1234.5, None, 0, 0, 0]], dtype=object), np.zeros(1), "got one of object"),
        (np.full(FEATURES, 1234.5), np.zeros(5), "got 1 dimensions"),
        (np.full((2, 7), 1234.5), np.zeros(2), "5 columns, got 7"),
        (np.full((2, FEATURES), 1234.5), ["1234.5", "0"], "one for each record, got a list"),
        (np.full((2, FEATURES), 1234.5), np.array(["1234.5", "0"]), "got one of str"),
        (np.full((2, FEATURES), 1234.5), np.zeros((2, 1)), "got 2 dimensions"),
        (np.full((2, FEATURES), 1234.5), np.zeros(3), "a different number of labels"),
    ],
)
def test_data_of_another_form_are_refused_without_being_shown(features, given_labels, told, fresh_rng):
    with pytest.raises(ParameterError) as error:
        trainer().train(features, given_labels, learning_rate=1.0, clip=1.0, randomness=Seeded(fresh_rng))
    assert told in str(error.value)
    assert "1234.5" not in str(error.value)


@pytest.mark.parametrize("dtype", [np.bool_, np.uint8, np.int64, np.float16, np.float32, np.longdouble])
def test_features_of_any_number_type(dtype, fresh_rng):
    features = np.eye(FEATURES).astype(dtype)
    model = trainer().train(features, np.arange(FEATURES).astype(dtype), learning_rate=1.0, clip=1.0, randomness=Seeded(fresh_rng))
    assert model["weights"].dtype == np.float64


# Rows that are prepared once, for many models on the same records.


@given(data_sets(least=2), st.floats(1e-3, 1e3), clips)
def test_prepared_rows_train_and_predict_as_the_records_do(data, learning_rate, clip):
    features, given_labels = data
    rows = to_grid_rows(features)
    assert rows.width == FEATURES
    model, randomness = trainer(), Seeded(np.random.default_rng(3))
    given = {"learning_rate": learning_rate, "clip": clip, "randomness": randomness}
    one, other = model.train(features, given_labels, **given), model.train_rows(rows, given_labels, **given)
    assert np.array_equal(flat(one), flat(other), equal_nan=True)
    assert np.array_equal(predict(one, features), predict_rows(one, rows))
