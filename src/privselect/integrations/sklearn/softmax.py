"""Softmax regression by DP-SGD as a classifier of scikit-learn's."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from privselect.integrations.sklearn.input_checks import check_labels
from privselect.mechanisms import DPSGD
from privselect.tuning.plan_ids import plan_id
from privselect.tuning.softmax_dpsgd import NOTES, SoftmaxDPSGD, to_grid_rows

_SEED_BYTES = 32
_RECORDS = "the number of records that gradients are divided by is taken from the data, and so is declared to be public"


@dataclass(frozen=True)
class _Source:
    """The generator of a training."""

    generator: np.random.Generator

    def numpy(self) -> np.random.Generator:
        """The only one: a training asks once."""
        return self.generator


@plan_id("PrivateSoftmax")
class PrivateSoftmax(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Multinomial logistic regression by DP-SGD; ``mechanism`` is what one fit leaks, whatever the learning rate and the clipping norm.

    ``records`` is the public (approximate) number of records, which the noisy sums of gradients are divided by; without it, that of the
    data is taken to be public. ``classes`` are the labels, as public knowledge; without them, those in the data are taken to be.
    A record with another label adds nothing. ``random_state=None`` is the operating system's entropy; a number makes a fit that can
    be repeated, noise and all, and is for tests.
    """

    def __init__(  # noqa: PLR0913 - parameters of an estimator
        self,
        noise_multiplier: float = 1.0,
        sampling_probability: float = 0.2,
        steps: int = 100,
        *,
        records: int | None = None,
        learning_rate: float = 1.0,
        clip: float = 1.0,
        classes: Any = None,
        random_state: Any = None,
    ) -> None:
        self.noise_multiplier = noise_multiplier
        self.sampling_probability = sampling_probability
        self.steps = steps
        self.records = records
        self.learning_rate = learning_rate
        self.clip = clip
        self.classes = classes
        self.random_state = random_state

    @property
    def mechanism(self) -> DPSGD:
        """What one fit leaks."""
        return DPSGD(self.noise_multiplier, self.sampling_probability, self.steps)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a certificate must say of it."""
        return NOTES if self.records is not None else (*NOTES, _RECORDS)

    def fit(self, X: Any, y: Any) -> PrivateSoftmax:  # noqa: N803 - scikit-learn's name
        """Train on the records; what is kept of them is private."""
        check_labels("y", y)
        check_labels("classes", self.classes)
        X, y = validate_data(self, X, y, dtype="numeric")  # noqa: N806
        check_classification_targets(y)
        classes = np.unique(y if self.classes is None else self.classes)
        if len(classes) < 2:
            raise ValueError(f"a classifier needs at least 2 classes; the data, or `classes`, has {len(classes)} class")
        self.classes_ = classes
        trainer = SoftmaxDPSGD(
            self.noise_multiplier,
            self.sampling_probability,
            self.steps,
            records=len(X) if self.records is None else self.records,
            classes=len(classes),
            features=X.shape[1],
        )
        model = trainer.train(
            X, _places(y, classes), learning_rate=self.learning_rate, clip=self.clip, randomness=_Source(self._generator())
        )
        self.coef_, self.intercept_ = model["weights"], model["bias"]
        return self

    def decision_function(self, X: Any) -> Any:  # noqa: N803
        """A number for each class, or for the second of two; each record's depend on that record alone."""
        logits = self._logits(X)
        return logits[:, 1] - logits[:, 0] if len(self.classes_) == 2 else logits

    def predict_proba(self, X: Any) -> Any:  # noqa: N803
        """The probability of each class."""
        logits = self._logits(X)
        odds = np.exp(logits - logits.max(axis=1, keepdims=True))
        return odds / odds.sum(axis=1, keepdims=True)

    def predict(self, X: Any) -> Any:  # noqa: N803
        """The likeliest class."""
        logits = self._logits(X)
        return self.classes_[logits.argmax(axis=1)]

    def _logits(self, X: Any) -> Any:  # noqa: N803
        check_is_fitted(self)
        rows = to_grid_rows(np.asarray(validate_data(self, X, reset=False, dtype="numeric"), dtype=np.float64))
        return rows.logits(np.vstack([self.coef_, self.intercept_])) * rows.lengths[:, None]

    def _generator(self) -> np.random.Generator:
        drawn = secrets.token_bytes(_SEED_BYTES) if self.random_state is None else check_random_state(self.random_state).bytes(_SEED_BYTES)
        return np.random.Generator(np.random.PCG64DXSM(np.random.SeedSequence(int.from_bytes(drawn, "big"), pool_size=8)))


def _places(labels: Any, classes: Any) -> Any:
    """Each label's place among the classes, and -1 for one that is none of them."""
    places = np.searchsorted(classes, labels)
    known = classes[np.minimum(places, len(classes) - 1)] == labels
    return np.where(known, places, -1)
