"""Softmax regression by DP-SGD as a scikit-learn classifier."""

from __future__ import annotations

import secrets
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from privselect.errors import ParameterError
from privselect.integrations.sklearn.input_checks import check_labels, read_classes
from privselect.mechanisms import DPSGD
from privselect.open_spec import UNKNOWN
from privselect.tuning.plan_ids import plan_id
from privselect.tuning.softmax_dpsgd import NOTES, SoftmaxDPSGD, to_grid_rows

_SEED_BYTES = 32
_RECORDS_NOTE = "the number of records that gradients are divided by is read from the data and declared public"


@dataclass(frozen=True)
class _GeneratorSource:
    """The randomness of one training, which uses one generator."""

    generator: np.random.Generator

    def numpy(self) -> np.random.Generator:
        """Return the generator."""
        return self.generator


@plan_id("PrivateSoftmax")
@dataclass(eq=False, repr=False)
class PrivateSoftmax(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Multinomial logistic regression by DP-SGD.

    - ``noise_multiplier``: the noise of each step in units of ``clip``. None: a ``PrivateSearch`` computes it from its budget.
    - ``records``: the public (approximate) number of records, which divides the noisy sums of gradients. None declares the number of
      records in the data public.
    - ``classes``: the labels, which are public. None declares the labels in the data public. A record with another label adds nothing.
    - ``random_state``: None for the operating system's entropy. An integer makes fits and their noise repeatable; it is for tests.

    ``mechanism`` is what one fit leaks. It does not depend on the learning rate or the clipping norm.
    """

    noise_parameter: ClassVar[str] = "noise_multiplier"
    learning_rate_parameter: ClassVar[str] = "learning_rate"

    noise_multiplier: float | None = None
    sampling_probability: float = 0.2
    steps: int = 100
    _: KW_ONLY
    records: int | None = None
    learning_rate: float = 1.0
    clip: float = 1.0
    classes: Any = None
    random_state: Any = None

    @property
    def mechanism(self) -> DPSGD:
        """What one fit leaks; an open description if ``noise_multiplier`` is None."""
        return DPSGD(UNKNOWN if self.noise_multiplier is None else self.noise_multiplier, self.sampling_probability, self.steps)

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for the certificate."""
        return NOTES if self.records is not None else (*NOTES, _RECORDS_NOTE)

    def fit(self, X: Any, y: Any) -> PrivateSoftmax:  # noqa: N803 - scikit-learn's name
        """Train on the records; the fitted attributes are private."""
        if self.noise_multiplier is None:
            raise ParameterError(
                "`noise_multiplier` must be a positive number to fit alone, got None: PrivateSearch computes it from a budget"
            )
        check_labels("y", y)
        X, y = validate_data(self, X, y, dtype="numeric")  # noqa: N806
        check_classification_targets(y)
        classes = read_classes(self.classes, y)
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
            X,
            _class_indices(y, classes),
            learning_rate=self.learning_rate,
            clip=self.clip,
            randomness=_GeneratorSource(self._generator()),
        )
        self.coef_, self.intercept_ = model["weights"], model["bias"]
        return self

    def decision_function(self, X: Any) -> Any:  # noqa: N803
        """Return one number per class, or one in all for two classes; those of a record depend on that record alone."""
        logits = self._logits(X)
        return logits[:, 1] - logits[:, 0] if len(self.classes_) == 2 else logits

    def predict_proba(self, X: Any) -> Any:  # noqa: N803
        """Return the probability of each class."""
        logits = self._logits(X)
        odds = np.exp(logits - logits.max(axis=1, keepdims=True))
        return odds / odds.sum(axis=1, keepdims=True)

    def predict(self, X: Any) -> Any:  # noqa: N803
        """Return the most probable class."""
        logits = self._logits(X)
        return self.classes_[logits.argmax(axis=1)]

    def _logits(self, X: Any) -> Any:  # noqa: N803
        check_is_fitted(self)
        rows = to_grid_rows(np.asarray(validate_data(self, X, reset=False, dtype="numeric"), dtype=np.float64))
        return rows.logits(np.vstack([self.coef_, self.intercept_])) * rows.lengths[:, None]

    def _generator(self) -> np.random.Generator:
        seed = secrets.token_bytes(_SEED_BYTES) if self.random_state is None else check_random_state(self.random_state).bytes(_SEED_BYTES)
        return np.random.Generator(np.random.PCG64DXSM(np.random.SeedSequence(int.from_bytes(seed, "big"), pool_size=8)))


def _class_indices(labels: Any, classes: Any) -> Any:
    """Return the index of each label among the classes, and -1 for a label that is not a class."""
    indices = np.searchsorted(classes, labels)
    known = classes[np.minimum(indices, len(classes) - 1)] == labels
    return np.where(known, indices, -1)
