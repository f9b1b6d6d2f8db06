"""The demonstration's trial: softmax regression by DP-SGD on handwritten digits, scored by a noisy count on held-out ones.

A template for a trial of one's own: what a plan file names as objective, data, synthetic and correct is here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from privselect._util.validation import format_value
from privselect.errors import ParameterError
from privselect.mechanisms import DPSGD, Disjoint, Mechanism
from privselect.tuning import demo_data, softmax_dpsgd
from privselect.tuning.plan_ids import plan_id

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from privselect.tuning.randomness.trial_randomness import Randomness
    from privselect.tuning.space import Candidate

RECORDS = 1150  # about how many are trained on: declared, public, and the same whoever takes part
_SIGMA = 4.0  # of the noise on the count


def question(out: Path) -> dict[str, Any]:
    """The demonstration's plan, its noise left open, in the fields of a plan file."""
    here = __name__
    return {
        "version": 1,
        "mechanism": f"disjoint(dpsgd(noise_multiplier=?, sampling_probability=1/5, steps=200), discrete_gaussian(sigma={_SIGMA:g}))",
        "count": "negative_binomial(eta=2, mean=20)",
        "epsilon": 3.0,
        "delta": 1e-5,
        "declared": {
            "unit": "one handwritten digit",
            "trust_model": "central: whoever runs the demonstration sees the digits",
            "records_public": False,
            "not_covered": ("the ranges of the search space were chosen on these digits",),
        },
        "space": {"learning_rate": {"log_uniform": [0.03, 30.0]}, "clip": {"log_uniform": [0.03, 3.0]}},
        "tune": {
            "objective": f"{here}:DigitsTrial",
            "data": f"{here}:private",
            "synthetic": f"{here}:synthetic",
            "score": {"correct": f"{here}:correct", "sigma": _SIGMA, "fraction": "1/5", "ids": "ids"},
            "export": "arrays",
            "out": str(out),
            "ledger": str(out.with_name(f"{out.name}.ledger")),
        },
    }


@plan_id("demo_trial")
@dataclass(frozen=True)
class DigitsTrial:
    """The objective: trains with the very numbers of the plan's mechanism, so that what is run is what is accounted for."""

    trainer: softmax_dpsgd.SoftmaxDPSGD

    @classmethod
    def for_mechanism(cls, mechanism: Mechanism) -> DigitsTrial:
        """The trial that runs the DP-SGD of a plan."""
        parts = mechanism.parts if isinstance(mechanism, Disjoint) else (mechanism,)
        for part in parts:
            if isinstance(part, DPSGD):
                return cls(
                    softmax_dpsgd.SoftmaxDPSGD(
                        part.noise_multiplier, part.sampling_probability, part.steps, RECORDS, demo_data.CLASSES, demo_data.FEATURES
                    )
                )
        raise ParameterError(f"`mechanism` must hold a dpsgd(...) for this trial to run, got {format_value(str(mechanism))}")

    @property
    def mechanism(self) -> DPSGD:
        """What one training leaks."""
        return self.trainer.mechanism

    @property
    def notes(self) -> tuple[str, ...]:
        """What the certificate must say of the trainer."""
        return self.trainer.notes

    def __call__(self, candidate: Candidate, data: dict[str, Any], randomness: Randomness) -> tuple[None, dict[str, Any]]:
        """A model; its score is a matter of the hold-out, which is not here."""
        model = self.trainer.train(
            data["features"], data["labels"], learning_rate=candidate["learning_rate"], clip=candidate["clip"], randomness=randomness
        )
        return None, model


def private() -> dict[str, Any]:
    """The digits that the demonstration treats as private."""
    return _columns(demo_data.load().private)


def synthetic() -> dict[str, Any]:
    """Made-up records of the same form, for a dry run."""
    return _columns(demo_data.synthetic().private)


@plan_id("demo_correct")
def correct(model: dict[str, Any], held: dict[str, Any]) -> NDArray[np.bool_]:
    """Whether each held-out digit is recognised."""
    return softmax_dpsgd.correct(model, held["features"], held["labels"])


def test_accuracy(model: dict[str, Any]) -> float:
    """On the digits that the demonstration treats as public."""
    test = demo_data.load().test
    return float(softmax_dpsgd.correct(model, test.features, test.labels).mean())


def _columns(records: demo_data.Records) -> dict[str, Any]:
    return {"ids": list(records.ids), "features": records.features, "labels": records.labels}
