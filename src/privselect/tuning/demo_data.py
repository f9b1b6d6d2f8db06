"""Data for the demonstration: the handwritten digits that come with scikit-learn, and a made-up set of the same shape."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

import numpy as np

from privselect.errors import MissingExtraError
from privselect.tuning.holdout_split import keyed_split

if TYPE_CHECKING:
    from numpy.typing import NDArray

CLASSES, FEATURES = 10, 64
_LEVELS = 16  # a pixel counts the dark points, of 16
_TEST = 0.2
_TEST_KEY = b"privselect digits: public test set"
_SIZE = 1797  # of the made-up set, as of the real one
_BLUR = 8.0  # about as hard to learn as the real one
_SYNTHETIC = 20_260_101  # fixed and public: this set is nobody's data


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Records:
    """Records: features in [0, 1] (one row each), labels from 0 to 9, and an id each that never changes."""

    features: NDArray[np.float64]
    labels: NDArray[np.int64]
    ids: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.ids)

    def part(self, members: NDArray[np.bool_]) -> Records:
        """Those marked, in their order."""
        ids = tuple(record for record, member in zip(self.ids, members, strict=True) if member)
        return Records(self.features[members], self.labels[members], ids)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Data:
    """What the demonstration treats as ``private``, and a ``test`` part that it treats as public."""

    private: Records
    test: Records


def load() -> Data:
    """1797 images of 8 by 8 pixels, scaled by 1/16 and by nothing that depends on them; about a fifth of them is the test part.

    An image's id is its place in scikit-learn's file, which is part of its releases and does not change. Both the digits and the key
    that parts them are public: the demonstration shows how it is done, it does not protect anyone.
    """
    try:
        datasets = import_module("sklearn.datasets")
    except ImportError:
        raise MissingExtraError("the digits need scikit-learn; install it with: pip install 'privselect[demo]'") from None
    pixels, labels = datasets.load_digits(return_X_y=True)
    return _parted("digit", np.asarray(pixels, dtype=np.float64), np.asarray(labels, dtype=np.int64))


def synthetic() -> Data:
    """Ten random shapes with noise, drawn from a fixed public generator: for dry runs, and where scikit-learn is missing."""
    rng = np.random.default_rng(_SYNTHETIC)
    shapes = rng.uniform(0.0, _LEVELS, size=(CLASSES, FEATURES))
    labels = rng.integers(0, CLASSES, size=_SIZE)
    pixels = np.rint(np.clip(shapes[labels] + rng.normal(0.0, _BLUR, size=(_SIZE, FEATURES)), 0.0, _LEVELS))
    return _parted("synthetic", pixels, labels)


def _parted(kind: str, pixels: NDArray[np.float64], labels: NDArray[np.int64]) -> Data:
    everything = Records(pixels / _LEVELS, labels, tuple(f"{kind}-{place}" for place in range(len(labels))))
    test = keyed_split(everything.ids, _TEST, _TEST_KEY)
    return Data(everything.part(~test), everything.part(test))
