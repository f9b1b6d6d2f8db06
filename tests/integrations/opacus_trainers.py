"""Training functions for the tests of OpacusTrial: some follow the plan, some violate it. This module imports torch and Opacus."""

import copy
import io
import itertools
import logging
import math
import os
import sys
import warnings
from pathlib import Path

import torch
from opacus import GradSampleModule
from opacus.layers import DPLSTM
from opacus.optimizers import DPOptimizer
from opacus.utils.batch_memory_manager import BatchMemoryManager
from torch.nn.functional import cross_entropy
from torch.nn.utils.rnn import pack_padded_sequence
from torch.utils.data import BatchSampler, DataLoader, IterableDataset, SequentialSampler, TensorDataset, default_collate

import privselect as ps

RECORDS = 60
SYNTHETIC = 40
FEATURES, CLASSES = 4, 3
PLAN = ps.DPSGD(noise_multiplier=2.5, sampling_probability=0.2, steps=12)


def records(count=RECORDS):
    """Synthetic features and labels."""
    generator = torch.Generator().manual_seed(3)
    features = torch.randn(count, FEATURES, generator=generator)
    return features.numpy(), features.abs().argmax(1).remainder(CLASSES).numpy()


def dataset(data):
    return TensorDataset(*(torch.from_numpy(column) for column in data))


def network(*between):
    return torch.nn.Sequential(torch.nn.Linear(FEATURES, 6), *between, torch.nn.Tanh(), torch.nn.Linear(6, CLASSES))


def parts(data, private, *between, lr=0.5, **options):
    """A model, with its private model, optimizer and loader."""
    model = network(*between)
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    return model, *private.make_private(model, optimizer, dataset(data), max_grad_norm=1.0, **options)


def step(model, optimizer, batch):
    optimizer.zero_grad()
    cross_entropy(model(batch[0]), batch[1]).backward()
    optimizer.step()


def result(model):
    weights = torch.cat([parameter.detach().reshape(-1) for parameter in model.parameters()])
    return float(weights.sum().nan_to_num()), {"weights": weights}


# -- as planned ------------------------------------------------------------------------------------------------------------


def plain(_candidate, data, private):
    model, wrapped, optimizer, loader = parts(data, private)
    assert len(loader) == private.plan.steps
    for batch in loader:
        step(wrapped, optimizer, batch)
    assert len(loader) == 0
    return result(model)


def in_epochs(_candidate, data, private):
    model, wrapped, optimizer, loader = parts(data, private)
    for _ in range(5):
        for batch in itertools.islice(loader, 5):
            step(wrapped, optimizer, batch)
    return result(model)


def from_a_plain_loader(_candidate, data, private):
    """A loader with its own collate function, another optimizer and a schedule."""

    def collate(entries):
        return {"x": torch.stack([entry[0] for entry in entries]), "y": torch.stack([entry[1] for entry in entries])}

    model = network()
    model[2].bias.requires_grad_(requires_grad=False)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    loader = DataLoader(dataset(data), batch_size=7, collate_fn=collate)
    wrapped, optimizer, loader = private.make_private(model, optimizer, loader, max_grad_norm=0.5)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2)
    for batch in loader:
        step(wrapped, optimizer, (batch["x"], batch["y"]))
        schedule.step()
    return result(model)


def in_small_parts(_candidate, data, private):
    model, wrapped, optimizer, loader = parts(data, private)
    with BatchMemoryManager(data_loader=loader, max_physical_batch_size=3, optimizer=optimizer) as small:
        for batch in small:
            assert len(batch[0]) <= 3
            step(wrapped, optimizer, batch)
    return result(model)


def meddling(_candidate, data, private):
    """Changes of the sampler have no effect."""
    model, wrapped, optimizer, loader = parts(data, private)
    loader.batch_sampler.sample_rate, loader.batch_sampler.num_samples = 1.0, 5
    loader.batch_sampler.generator = torch.Generator().manual_seed(0)
    for batch in loader:
        step(wrapped, optimizer, batch)
    return result(model)


def averaging(_candidate, data, private):
    """Copies of the model may be made, and run without gradients."""
    model, wrapped, optimizer, loader = parts(data, private)
    average = torch.optim.swa_utils.AveragedModel(model)
    for batch in loader:
        step(wrapped, optimizer, batch)
        average.update_parameters(model)
        with torch.no_grad():
            average(batch[0])
            model(batch[0])
    return result(copy.deepcopy(average.module))


def without_clearing(_candidate, data, private):
    """Gradients are cleared after each step, even without zero_grad."""
    model, wrapped, optimizer, loader = parts(data, private)
    for features, labels in loader:
        cross_entropy(wrapped(features), labels).backward()
        optimizer.step()
    return result(model)


def freezing(_candidate, data, private):
    """A frozen layer stays unchanged, even if its gradient already exists, without noise."""
    model, wrapped, optimizer, loader = parts(data, private)
    for place, (features, labels) in enumerate(loader):
        optimizer.zero_grad()
        cross_entropy(wrapped(features), labels).backward()
        if place == 5:
            model[0].requires_grad_(requires_grad=False)
            frozen = model[0].weight.detach().clone()
        optimizer.step()
    assert torch.equal(model[0].weight, frozen)
    return result(model)


def leaving_nothing(_candidate, data, private):
    """Opacus stores gradients of single records on the parameters, which are pickled with them."""
    model = network()
    optimizer = torch.optim.SGD(model[2].parameters(), lr=0.5)  # one layer alone: of the other nobody would clear them
    wrapped, optimizer, loader = private.make_private(model, optimizer, dataset(data), max_grad_norm=1.0)
    for batch in loader:
        step(wrapped, optimizer, batch)
        for parameter in model.parameters():
            assert parameter.grad_sample is None
            assert parameter.summed_grad is None
    for secret in (model, wrapped, optimizer, loader):
        try:
            torch.save(secret, io.BytesIO())
        except TypeError as error:
            assert "pickled" in str(error)  # noqa: PT017 - what is under test is a part of this function
        else:
            raise AssertionError
    torch.save(model.state_dict(), io.BytesIO())
    return result(model)


def careless(candidate, data, private):
    """Global settings of torch are restored."""
    returned = plain(candidate, data, private)
    torch.set_grad_enabled(False)
    torch.set_default_dtype(torch.float64)
    return returned


def copying_the_optimizer(_candidate, data, private):
    _, _, optimizer, _ = parts(data, private)
    copy.deepcopy(optimizer)


class Recurrent(torch.nn.Module):
    """Each feature is a time step; the first feature sets the number of steps."""

    def __init__(self, *, enforce_sorted):
        super().__init__()
        self.layer, self.last, self.enforce_sorted = DPLSTM(1, 4, batch_first=True), torch.nn.Linear(4, CLASSES), enforce_sorted

    def forward(self, features):
        if not len(features):
            return self.last(self.layer(features.unsqueeze(2))[0][:, -1])
        packed = pack_padded_sequence(features.unsqueeze(2), lengths(features), batch_first=True, enforce_sorted=self.enforce_sorted)
        return self.last(self.layer(packed)[1][0][-1])


def lengths(features):
    return 1 + features[:, 0].abs().long().clamp(max=FEATURES - 1)


def recurrent(*, enforce_sorted):
    def collate(entries):
        features, labels = default_collate(entries)
        order = lengths(features).argsort(descending=True)
        return features[order], labels[order]

    def train(_candidate, data, private):
        model = Recurrent(enforce_sorted=enforce_sorted)
        loader = DataLoader(dataset(data), collate_fn=collate if enforce_sorted else None)
        wrapped, optimizer, loader = private.make_private(model, torch.optim.Adam(model.parameters()), loader, max_grad_norm=1.0)
        for batch in loader:
            step(wrapped, optimizer, batch)
        return result(model)

    return train


sorted_sequences, packed_out_of_order = recurrent(enforce_sorted=True), recurrent(enforce_sorted=False)


class Scale(torch.nn.Module):
    """A layer without a grad sampler in Opacus."""

    def __init__(self):
        super().__init__()
        self.factor = torch.nn.Parameter(torch.ones(6))

    def forward(self, features):
        return features * self.factor


def own_layer(_candidate, data, private):
    model, wrapped, optimizer, loader = parts(data, private, Scale())
    for batch in loader:
        step(wrapped, optimizer, batch)
    return result(model)


def diverging(_candidate, data, private):
    model, wrapped, optimizer, loader = parts(data, private, lr=math.inf)
    for batch in loader:
        step(wrapped, optimizer, batch)
    assert not result(model)[1]["weights"].isfinite().all()
    return result(model)


# -- otherwise -------------------------------------------------------------------------------------------------------------


def one_more(_candidate, data, private):
    model, wrapped, optimizer, loader = parts(data, private)
    for batch in loader:
        step(wrapped, optimizer, batch)
    step(wrapped, optimizer, batch)
    return result(model)


def one_less(_candidate, data, private):
    model, wrapped, optimizer, loader = parts(data, private)
    for batch in itertools.islice(loader, private.plan.steps - 1):
        step(wrapped, optimizer, batch)
    return result(model)


def no_step(_candidate, data, private):
    return result(parts(data, private)[0])


def batch_norm(_candidate, data, private):
    return result(parts(data, private, torch.nn.BatchNorm1d(6))[0])


def batch_norm_without_parameters(_candidate, data, private):
    return result(parts(data, private, torch.nn.BatchNorm1d(6, affine=False, track_running_stats=False))[0])


class RunningMean(torch.nn.Module):
    """A layer without parameters that stores statistics of the data, which no validator detects."""

    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(6))

    def forward(self, features):
        if len(features):
            self.mean += features.detach().mean(0)
        return features


def hidden_statistics(_candidate, data, private):
    model, wrapped, optimizer, loader = parts(data, private, RunningMean())
    for batch in loader:
        step(wrapped, optimizer, batch)
    return result(model)


class ReplacedMean(RunningMean):
    """RunningMean with a new tensor in each batch."""

    def forward(self, features):
        if len(features):
            self.mean = self.mean + features.detach().mean(0)
        return features


def replaced_statistics(_candidate, data, private):
    model, wrapped, optimizer, loader = parts(data, private, ReplacedMean())
    for batch in loader:
        step(wrapped, optimizer, batch)
    return result(model)


def another_head(_candidate, data, private):
    """Train privately as planned, then train a new last layer without privacy."""
    model, wrapped, optimizer, loader = parts(data, private)
    for batch in loader:
        step(wrapped, optimizer, batch)
    wrapped.remove_hooks()
    model[2] = torch.nn.Linear(6, CLASSES)
    step(model, torch.optim.SGD(model[2].parameters(), lr=0.1), dataset(data).tensors)
    return result(model)


def half_precision(_candidate, data, private):
    """Gradient norms are then rounded to 8 bits, and all gradients depend on the batch size."""
    model, wrapped, optimizer, loader = parts(data, private)
    for features, labels in loader:
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = cross_entropy(wrapped(features), labels)
        loss.backward()
        optimizer.step()
    return result(model)


def known_noise(_candidate, data, private):
    model, wrapped, optimizer, loader = parts(data, private)
    optimizer.generator.manual_seed(1)
    for batch in loader:
        step(wrapped, optimizer, batch)
    return result(model)


class Routed(torch.nn.Module):
    """A second pass through the layer for some of the records."""

    def __init__(self):
        super().__init__()
        self.layer, self.last = torch.nn.Linear(FEATURES, FEATURES), torch.nn.Linear(FEATURES, CLASSES)

    def forward(self, features):
        once = self.layer(features)
        some = features[:, 0] > 0
        twice = once.clone()
        twice[some] = self.layer(once[some])
        return self.last(twice)


def routed(_candidate, data, private):
    model = Routed()
    wrapped, optimizer, loader = private.make_private(model, torch.optim.Adam(model.parameters()), dataset(data), max_grad_norm=1.0)
    for batch in loader:
        step(wrapped, optimizer, batch)
    return result(model)


def given(what):
    """A training function with other arguments of make_private."""

    def train(_candidate, data, private):
        model = network()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
        arguments = {"module": model, "optimizer": optimizer, "data_loader": dataset(data), "max_grad_norm": 1.0}
        private.make_private(**(arguments | what(arguments)))
        return result(model)

    return train


class Stream(IterableDataset):
    def __iter__(self):
        return iter(())


GIVEN = {
    "OWN_SAMPLER": [
        lambda given: {"data_loader": DataLoader(given["data_loader"], batch_size=8, shuffle=True)},
        lambda given: {
            "data_loader": DataLoader(
                given["data_loader"], batch_sampler=OddBatches(SequentialSampler(given["data_loader"]), 8, drop_last=False)
            )
        },
    ],
    "INVALID_DATASET": [
        lambda given: {"data_loader": (given["data_loader"].tensors[0], given["data_loader"].tensors[1])},
        lambda _: {"data_loader": Stream()},
        lambda _: {"data_loader": None},
    ],
    "NOT_PLAIN": [
        lambda given: {"module": GradSampleModule(given["module"])},
        lambda given: {"optimizer": DPOptimizer(given["optimizer"], noise_multiplier=1.0, max_grad_norm=1.0, expected_batch_size=4)},
        lambda _: {"optimizer": torch.optim.SGD(network().parameters(), lr=0.5)},
        lambda _: {"module": None},
    ],
    "INVALID_CLIP": [lambda _: {"max_grad_norm": 0.0}, lambda _: {"max_grad_norm": [1.0, 1.0]}, lambda _: {"max_grad_norm": float("inf")}],
    "UNSUPPORTED_LAYER": [lambda given: {"module": given["module"].eval()}],
    "WRONG_PRECISION": [lambda given: {"module": given["module"].bfloat16()}],
}


class OddBatches(BatchSampler):
    pass


def changing(name, value):
    """A training function that changes the optimizer during training."""

    def train(_candidate, data, private):
        model, wrapped, optimizer, loader = parts(data, private)
        for place, batch in enumerate(loader):
            if place == 5:
                setattr(optimizer, name, value() if callable(value) else value)
            step(wrapped, optimizer, batch)
        return result(model)

    return train


CHANGES = {
    "noise_multiplier": 1.5,
    "max_grad_norm": 2.0,
    "expected_batch_size": 1.0,
    "loss_reduction": "sum",
    "generator": lambda: torch.Generator().manual_seed(0),
    "step_hook": None,
}


def foreign(_candidate, data, private):
    model, wrapped, optimizer, _ = parts(data, private)
    for batch in DataLoader(dataset(data), batch_size=12):
        step(wrapped, optimizer, batch)
    return result(model)


def foreign_beside(_candidate, data, private):
    """Draw the batches but train on all records."""
    model, wrapped, optimizer, loader = parts(data, private)
    for _ in loader:
        step(wrapped, optimizer, dataset(data).tensors)
    return result(model)


def fewer_records(_candidate, data, private):
    model, wrapped, optimizer, loader = parts(data, private)
    for features, labels in loader:
        step(wrapped, optimizer, (features[1:], labels[1:]))
    return result(model)


def twice_each(_candidate, data, private):
    """A record that occurs twice in a batch has twice the influence."""
    model, wrapped, optimizer, loader = parts(data, private)
    for features, labels in loader:
        step(wrapped, optimizer, (torch.cat([features, -features]), torch.cat([labels, labels])))
    return result(model)


def two_passes_backward(_candidate, data, private):
    model, wrapped, optimizer, loader = parts(data, private)
    for features, labels in loader:
        optimizer.zero_grad()
        for _ in range(2):
            cross_entropy(wrapped(features), labels).backward()
        optimizer.step()
    return result(model)


def shifted_twins(_candidate, data, private):
    """Each gradient contains two records, so each record is in two gradients."""
    model, wrapped, optimizer, loader = parts(data, private)
    for features, labels in loader:
        optimizer.zero_grad()
        (cross_entropy(wrapped(features), labels) + cross_entropy(wrapped(features.roll(1, 0)), labels.roll(1, 0))).backward()
        optimizer.step()
    return result(model)


def two_batches_in_a_step(_candidate, data, private):
    model, wrapped, optimizer, loader = parts(data, private)
    for place, batch in enumerate(loader):
        optimizer.signal_skip_step(do_skip=place % 2 == 0)
        step(wrapped, optimizer, batch)
    return result(model)


def passing_over(_candidate, data, private):
    model, wrapped, optimizer, loader = parts(data, private)
    for place, batch in enumerate(loader):
        if place != 4:
            step(wrapped, optimizer, batch)
    return result(model)


def inner_step(_candidate, data, private):
    model, wrapped, optimizer, loader = parts(data, private)
    for features, labels in loader:
        optimizer.zero_grad()
        cross_entropy(wrapped(features), labels).backward()
        optimizer.original_optimizer.step()
    return result(model)


def one_step_in_two(_candidate, data, private):
    """Take the private step, then the inner step once more."""
    model, wrapped, optimizer, loader = parts(data, private)
    for batch in loader:
        step(wrapped, optimizer, batch)
        optimizer.original_optimizer.step()
    return result(model)


def second_optimizer(_candidate, data, private):
    model, wrapped, optimizer, loader = parts(data, private)
    other = torch.optim.SGD(model.parameters(), lr=0.1)
    for batch in loader:
        optimizer.zero_grad()
        cross_entropy(wrapped(batch[0]), batch[1]).backward()
        other.step()
        optimizer.step()
    return result(model)


def fine_tuning(_candidate, data, private):
    """Train privately as planned, then continue without privacy."""
    model, wrapped, optimizer, loader = parts(data, private)
    for batch in loader:
        step(wrapped, optimizer, batch)
    wrapped.remove_hooks()
    other = torch.optim.SGD(model.parameters(), lr=0.1)
    step(model, other, dataset(data).tensors)
    return result(model)


def again(_candidate, data, private):
    model, wrapped, optimizer, loader = parts(data, private)
    for batch in loader:
        step(wrapped, optimizer, batch)
    parts(data, private)
    return result(model)


def never(_candidate, data, _private):
    model = network()
    step(model, torch.optim.SGD(model.parameters(), lr=0.5), dataset(data).tensors)
    return result(model)


def swallowing(candidate, data, private):
    """Catching a violation has no effect."""
    try:
        return one_more(candidate, data, private)
    except BaseException:  # noqa: BLE001 - as careless as that
        return 1.0, {"weights": torch.zeros(1)}


def on_private_data(train):
    """A training function that follows the plan on synthetic data, of which there is less."""

    def chosen(candidate, data, private):
        return (train if len(data[0]) == RECORDS else plain)(candidate, data, private)

    return chosen


VIOLATIONS = {
    "WRONG_BATCH": [one_more, foreign, foreign_beside, fewer_records, twice_each, two_passes_backward, swallowing],
    "WRONG_HISTORY": [one_less, no_step],
    "UNSUPPORTED_LAYER": [batch_norm, batch_norm_without_parameters],
    "MODEL_CHANGED": [hidden_statistics, replaced_statistics, another_head, second_optimizer, fine_tuning],
    "SKIPPED_BATCH": [two_batches_in_a_step, passing_over],
    "STEP_WITHOUT_NOISE": [inner_step, one_step_in_two],
    "SECOND_FORWARD": [shifted_twins],
    "SECOND_CALL": [again],
    "NO_CALL": [never],
    "OPTIMIZER_CHANGED": [known_noise, *(changing(name, value) for name, value in CHANGES.items())],
    "WRONG_PRECISION": [half_precision],
    "REORDERED_SEQUENCES": [packed_out_of_order],
    "UNEVEN_LAYERS": [routed],
}
for _name, _several in GIVEN.items():
    VIOLATIONS[_name] = [*VIOLATIONS.get(_name, []), *(given(what) for what in _several)]


# -- for the tests of secrecy ----------------------------------------------------------------------------------------------


def talkative(candidate, data, private):
    """Print losses, epsilon and score in every way, and write the score to a file of the test."""
    model, wrapped, optimizer, loader = parts(data, private)
    for place, batch in enumerate(loader):
        step(wrapped, optimizer, batch)
        sys.stderr.write(f"\rcanary {place}/{len(loader)}")
        print("canary", float(optimizer.params[0].sum()))  # noqa: T201
    score, artifact = result(model)
    epsilon = private.accountant.get_epsilon(1e-5)
    logging.getLogger("opacus").critical("canary %r %r", epsilon, score)
    warnings.warn(f"canary {score!r} {candidate}", stacklevel=1)
    os.write(1, f"canary {score!r}".encode())
    if len(data[0]) == RECORDS:  # the synthetic trial is no secret
        with Path(os.environ["ASIDE"], "scores").open("a", encoding="ascii") as file:
            file.write(f"{score!r}\n")
    return score, artifact


def main():
    """A user's script that runs in the current folder."""
    from privselect.integrations import OpacusTrial

    logging.basicConfig(stream=sys.stderr, level=logging.DEBUG)
    release = ps.tune(
        OpacusTrial(talkative, PLAN, records=RECORDS),
        {"unused": ps.Uniform(0, 1)},
        data=records(),
        synthetic=records(SYNTHETIC),
        count=ps.Geometric(mean=8),
        score="public",
        delta=1e-5,
        export="arrays",
        executor=sys.argv[1],
        workers=None if sys.argv[1] == "serial" else 2,
        out="released",
        insecure_seed=int(sys.argv[2]),
    )
    print("released", release.score)  # noqa: T201


if __name__ == "__main__":
    main()
