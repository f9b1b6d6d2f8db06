"""What the certificate of a run with Opacus says beside its numbers."""

from __future__ import annotations

_CHECKED = (
    "every trial is trained by Opacus, and nothing is released unless each was found to have run its plan: the history of its accountant "
    "is exactly the planned DP-SGD, each step took as many records as its Poisson batch of the planned rate has, and nothing else changed "
    "the model's parameters"
)
_FLOATS = "the noise of Opacus is in floating point and not hardened (its secure mode is not used): attacks on rounding are not covered"
_GENERATOR = (
    "the noise and the batches come from torch's Mersenne Twister, whose whole state is drawn, but which is no cryptographic generator"
)
_SEEDED = (
    "the noise comes from a generator on the device {device}, which is not cryptographic and takes a seed of 64 bits; the batches come "
    "from torch's Mersenne Twister, whose whole state is drawn"
)
_DECLARED = (
    "the sampling rate comes from the plan, and gradients are divided by the batch expected of {records} records, a number that was "
    "declared and is public; Opacus would take both from the private data"
)
_MIXING = (
    "that an entry of the dataset is one unit, that a step is taken on the very records of its batch, that the loss is the mean of one "
    "term for each record, and that neither a layer nor the training function nor the way to collate mixes records or changes their order "
    "between layers is checked only as far as Opacus validates models"
)
_BESIDE = (
    "what the training function does beside the private steps, such as with statistics of the data, or with another model, is not checked"
)


def notes(records: int, device: str) -> tuple[str, ...]:
    """One line each; nothing here depends on data."""
    generator = _GENERATOR if device == "cpu" else _SEEDED.format(device=device)
    return (_CHECKED, _FLOATS, generator, _DECLARED.format(records=records), _MIXING, _BESIDE)
