"""The data of the demo."""

import sys

import numpy as np
import pytest

from privselect.errors import MissingExtraError
from privselect.tuning import demo
from privselect.tuning.softmax_dpsgd import SoftmaxDPSGD, correct


class Seeded:
    def __init__(self, rng):
        self.seed = rng.bytes(32)

    def numpy(self):
        return np.random.default_rng(list(self.seed))


@pytest.fixture(params=["load_digits", "synthetic_digits"])
def data(request):
    if request.param == "load_digits":
        pytest.importorskip("sklearn")
    return getattr(demo, request.param)()


def test_the_shape_and_the_scale(data):
    assert len(data.private) + len(data.test) == 1797
    for part in (data.private, data.test):
        assert part.features.shape == (len(part), demo.FEATURES)
        assert part.labels.shape == (len(part),)
        assert set(part.labels) == set(range(demo.CLASSES))
        assert part.features.min() == 0.0
        assert part.features.max() == 1.0
        assert np.array_equal(part.features * 16, np.rint(part.features * 16))


def test_every_record_has_its_own_id_and_is_in_one_part(data):
    assert len({*data.private.ids, *data.test.ids}) == 1797
    assert 250 < len(data.test) < 470


def test_it_is_the_same_every_time(data):
    again = demo.load_digits() if data.private.ids[0].startswith("digit") else demo.synthetic_digits()
    assert again.private.ids == data.private.ids
    assert np.array_equal(again.test.features, data.test.features)


def test_a_record_keeps_its_label_and_its_features():
    load_digits = pytest.importorskip("sklearn.datasets").load_digits
    pixels, labels = load_digits(return_X_y=True)
    test = demo.load_digits().test
    places = [int(record.removeprefix("digit-")) for record in test.ids]
    assert np.array_equal(test.features, pixels[places] / 16)
    assert np.array_equal(test.labels, labels[places])


def test_the_records_are_not_shown(data):
    assert "0." not in repr(data)
    assert "0." not in repr(data.private)


def test_with_little_noise_it_learns_well(data, fresh_rng):
    trainer = SoftmaxDPSGD(
        noise_multiplier=1e-3, sampling_probability=0.1, steps=200, records=1400, classes=demo.CLASSES, features=demo.FEATURES
    )
    model = trainer.train(data.private.features, data.private.labels, learning_rate=2.0, clip=1.0, randomness=Seeded(fresh_rng))
    assert correct(model, data.test.features, data.test.labels).mean() > 0.9


def test_without_scikit_learn_the_command_is_given(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'privselect\[demo\]'"):
        demo.load_digits()
