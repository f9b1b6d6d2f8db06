"""The trial and the data of ``privselect demo``: DP-SGD on handwritten digits, scored by a noisy count on held-out digits.

A template for your own trial: the plan file names the objective, data, synthetic data and ``correct`` of this module.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from privselect.errors import MissingExtraError
from privselect.mechanisms import DPSGD, Mechanism
from privselect.tuning import softmax_dpsgd
from privselect.tuning.plan_ids import plan_id
from privselect.tuning.plan_violation import PlanViolation
from privselect.tuning.scores import keyed_split, select_records

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from privselect.tuning.randomness import Randomness
    from privselect.tuning.space import Candidate

CLASSES, FEATURES = 10, 64
RECORDS = 1150  # declared, public number of training records, approximately the true one
DEFAULTS = (  # settings that someone might try first; half of the candidates are one of them
    {"learning_rate": 3.0, "clip": 1.0},
    {"learning_rate": 10.0, "clip": 0.3},
    {"learning_rate": 1.0, "clip": 0.3},
)
SEARCH = "dpsgd(noise_multiplier=?, sampling_probability=1/5, steps=20)"  # a search trial has a tenth of the steps
FINAL = "dpsgd(noise_multiplier=?, sampling_probability=1/5, steps=200)"
_PIXEL_LEVELS = 16
_TEST_SHARE = 0.2
_TEST_KEY = b"privselect digits: public test set"
_SYNTHETIC_SIZE = 1797  # as many as the real digits
_SYNTHETIC_NOISE = 8.0  # makes the synthetic digits about as hard to learn as the real ones
_SYNTHETIC_SEED = 20_260_101  # fixed and public, because synthetic data is not private


def demo_plan(out: Path) -> dict[str, Any]:
    """Return the demo's plan: a search with cheap trials, then one training. All noise is left open."""
    return {
        "version": 2,
        "epsilon": 3.0,
        "delta": 1e-5,
        "search": {
            "mechanism": f"disjoint({SEARCH}, discrete_gaussian(sigma=?))",
            "count": "negative_binomial(eta=2, mean=20)",
        },
        "train": {
            "mechanism": FINAL,
            "transfer": "noise",
            "split": "auto",
        },
        "declared": {
            "unit": "one handwritten digit",
            "trust_model": "central: the person running the demo sees the digits",
            "records_public": False,
            "not_covered": ("the ranges and the defaults of the search space were chosen on these digits",),
        },
        "space": {
            "learning_rate": {"log_uniform": [0.03, 30.0]},
            "clip": {"log_uniform": [0.03, 3.0]},
            "defaults": list(DEFAULTS),
            "weight": "1/2",
        },
        "tune": {
            "objective": f"{__name__}:digits_trial",
            "data": f"{__name__}:private",
            "synthetic": f"{__name__}:synthetic",
            "score": {"correct": f"{__name__}:correct", "fraction": "1/5", "ids": "ids"},
            "export": "arrays",
            "out": str(out),
            "ledger": str(out.with_name(f"{out.name}.ledger")),
        },
    }


@plan_id("demo_trial")
@dataclass(frozen=True)
class DigitsTrial:
    """The objective. It is told which DP-SGD to run, so what is run is what is accounted for, in both stages of a run."""

    notes: ClassVar[tuple[str, ...]] = softmax_dpsgd.NOTES

    def __call__(
        self, candidate: Candidate, data: dict[str, Any], randomness: Randomness, mechanism: Mechanism
    ) -> tuple[None, dict[str, Any]]:
        """Train a model. The score is None because it is counted on the hold-out later."""
        trainer = trainer_of(mechanism)
        model = trainer.train(
            data["features"], data["labels"], learning_rate=candidate["learning_rate"], clip=candidate["clip"], randomness=randomness
        )
        return None, model


def trainer_of(mechanism: Mechanism) -> softmax_dpsgd.SoftmaxDPSGD:
    """Return the trainer that runs this DP-SGD."""
    if not isinstance(mechanism, DPSGD):
        raise PlanViolation("the mechanism of the plan must be a dpsgd(...) for this trial", str(mechanism))
    settings = (mechanism.noise_multiplier, mechanism.sampling_probability, mechanism.steps)
    return softmax_dpsgd.SoftmaxDPSGD(*settings, RECORDS, CLASSES, FEATURES)


digits_trial = DigitsTrial()


def private() -> dict[str, Any]:
    """Return the digits that the demo treats as private."""
    return _as_columns(load_digits().private)


def synthetic() -> dict[str, Any]:
    """Return synthetic records of the same form, for a dry run."""
    return _as_columns(synthetic_digits().private)


@plan_id("demo_correct")
def correct(model: dict[str, Any], held: dict[str, Any]) -> NDArray[np.bool_]:
    """Return whether each held-out digit is recognised."""
    return softmax_dpsgd.correct(model, held["features"], held["labels"])


def public_test_accuracy(model: dict[str, Any]) -> float:
    """Return the accuracy on the digits that the demo treats as public."""
    test = load_digits().test
    return float(softmax_dpsgd.correct(model, test.features, test.labels).mean())


# -- the data ------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DigitRecords:
    """Digits: features in [0, 1] (one row each), labels from 0 to 9, and a permanent id each."""

    features: NDArray[np.float64]
    labels: NDArray[np.int64]
    ids: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DigitSplit:
    """The digits that the demo treats as ``private``, and a ``test`` part that it treats as public."""

    private: DigitRecords
    test: DigitRecords


def load_digits() -> DigitSplit:
    """Load the 1797 images of 8 by 8 pixels that come with scikit-learn, scaled by 1/16; about a fifth is the test part.

    An image's id is its position in scikit-learn's file, which does not change between releases. Both the digits and the key of the
    split are public: the demo only shows how a run works.
    """
    try:
        datasets = import_module("sklearn.datasets")
    except ImportError:
        raise MissingExtraError("the digits need scikit-learn; install it with: pip install 'privselect[demo]'") from None
    pixels, labels = datasets.load_digits(return_X_y=True)
    return _split("digit", np.asarray(pixels, dtype=np.float64), np.asarray(labels, dtype=np.int64))


def synthetic_digits() -> DigitSplit:
    """Draw ten random shapes with noise from a fixed public generator, for dry runs and if scikit-learn is missing."""
    rng = np.random.default_rng(_SYNTHETIC_SEED)
    shapes = rng.uniform(0.0, _PIXEL_LEVELS, size=(CLASSES, FEATURES))
    labels = rng.integers(0, CLASSES, size=_SYNTHETIC_SIZE)
    noise = rng.normal(0.0, _SYNTHETIC_NOISE, size=(_SYNTHETIC_SIZE, FEATURES))
    pixels = np.rint(np.clip(shapes[labels] + noise, 0.0, _PIXEL_LEVELS))
    return _split("synthetic", pixels, labels)


def _split(kind: str, pixels: NDArray[np.float64], labels: NDArray[np.int64]) -> DigitSplit:
    ids = tuple(f"{kind}-{index}" for index in range(len(labels)))
    test = keyed_split(ids, _TEST_SHARE, _TEST_KEY)
    private, public = (DigitRecords(*select_records((pixels / _PIXEL_LEVELS, labels, ids), mask)) for mask in (~test, test))
    return DigitSplit(private, public)


def _as_columns(records: DigitRecords) -> dict[str, Any]:
    return {"ids": list(records.ids), "features": records.features, "labels": records.labels}
