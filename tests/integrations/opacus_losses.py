"""Training functions for the tests of the probe: in some a record's gradient is its own, in others it depends on other records.

This module imports torch and Opacus.
"""

import numpy as np
import torch
from opacus.layers import DPLSTM, DPMultiheadAttention
from opacus.utils.batch_memory_manager import BatchMemoryManager
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset, TensorDataset, default_collate

import privselect as ps

PLAN = ps.DPSGD(noise_multiplier=2.5, sampling_probability=0.2, steps=12)
RECORDS, FEATURES, CLASSES = 40, 8, 3
cross_entropy = functional.cross_entropy


def generator():
    return torch.Generator().manual_seed(5)


def table():
    made = generator()
    return torch.randn(RECORDS, FEATURES, generator=made), torch.randint(CLASSES, (RECORDS,), generator=made)


def images():
    made = generator()
    return torch.randn(RECORDS, 3, 16, 16, generator=made), torch.randint(CLASSES, (RECORDS,), generator=made)


def words():
    made = generator()
    return torch.randint(30, (RECORDS, 9), generator=made), torch.randint(CLASSES, (RECORDS,), generator=made)


def mean_loss(model, features, labels):
    return cross_entropy(model(features), labels)


def each_loss(model, features, labels):
    return cross_entropy(model(features), labels, reduction="none")


def trained(make, loss=mean_loss, *, optimizer=torch.optim.SGD, collate=None, part=None):
    """A training function."""

    def train(_candidate, data, private):
        model = make()
        inner = optimizer(model.parameters(), lr=0.1)
        loader = DataLoader(TensorDataset(*data), collate_fn=collate)
        wrapped, outer, loader = private.make_private(model, inner, loader, max_grad_norm=1.0)
        if part is None:
            run_steps(wrapped, outer, loader, loss)
        else:
            with BatchMemoryManager(data_loader=loader, max_physical_batch_size=part, optimizer=outer) as parts:
                run_steps(wrapped, outer, parts, loss)
        return 0.0, {"weights": torch.cat([parameter.detach().reshape(-1) for parameter in model.parameters()])}

    return train


def run_steps(model, optimizer, loader, loss):
    for features, labels in loader:
        optimizer.zero_grad()
        loss(model, features, labels).backward()
        optimizer.step()


# -- models ----------------------------------------------------------------------------------------------------------------


def network(*between):
    return nn.Sequential(nn.Linear(FEATURES, 16), *between, nn.Tanh(), nn.Linear(16, CLASSES))


def zeros():
    model = network()
    for parameter in model.parameters():
        nn.init.zeros_(parameter)
    return model


def convolutional():
    layers = [nn.Conv2d(3, 8, 3, stride=2), nn.GroupNorm(4, 8), nn.ReLU(), nn.Dropout2d(0.2), nn.Conv2d(8, 8, 3), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, CLASSES))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.last = nn.Embedding(30, 6), nn.Linear(8, CLASSES)
        self.layers = DPLSTM(6, 8, batch_first=True, num_layers=2, dropout=0.3)

    def forward(self, features):
        return self.last(self.layers(self.words(features))[0][:, -1])


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.norm, self.last = nn.Embedding(30, 8), nn.LayerNorm(8), nn.Linear(8, CLASSES)
        self.attention = DPMultiheadAttention(8, 2, dropout=0.1, batch_first=True)

    def forward(self, features):
        words = self.words(features)
        return self.last(self.norm(words + self.attention(words, words, words, need_weights=False)[0]).mean(1))


class Layers(nn.Module):
    """Two layers with a function between them."""

    def __init__(self, between):
        super().__init__()
        self.first, self.last, self.between = nn.Linear(FEATURES, 16), nn.Linear(16, CLASSES), between

    def forward(self, features):
        return self.last(torch.tanh(self.between(self.first(features))))


def functional_dropout():
    return Layers(lambda hidden: functional.dropout(functional.dropout(hidden, 0.5), 0.2))


def noisy():
    """Noise in the layers, which is drawn for a whole batch."""
    return Layers(lambda hidden: (hidden + 0.5 * torch.randn_like(hidden)) * (torch.rand(len(hidden), 16) > 0.5))


def centred():
    return Layers(lambda hidden: hidden - hidden.mean(0))


def augmented(entries):
    """Noise of numpy, which is drawn for a whole batch."""
    features, labels = default_collate(entries)
    return features + torch.from_numpy(np.random.normal(size=features.shape)).float(), labels  # noqa: NPY002


def unseeded(entries):
    features, labels = default_collate(entries)
    return features + torch.from_numpy(np.random.default_rng().normal(size=features.shape)).float(), labels


def reversed_batch(entries):
    return default_collate(entries[::-1])


# -- losses ----------------------------------------------------------------------------------------------------------------


def summed(model, features, labels):
    return each_loss(model, features, labels).sum()


def summed_over_a_constant(model, features, labels):
    return each_loss(model, features, labels).sum() / 12


def nearly_mean(model, features, labels):
    return each_loss(model, features, labels).sum() / (len(labels) + 1)


def summed_over_the_root(model, features, labels):
    return each_loss(model, features, labels).sum() / len(labels) ** 0.5


def class_weights(model, features, labels):
    return cross_entropy(model(features), labels, weight=torch.tensor([1.0, 2.0, 1.0]))


def ignored_label(model, features, labels):
    return cross_entropy(model(features), labels, ignore_index=2)


def contrastive(model, features, _labels):
    outputs = functional.normalize(model(features), dim=1)
    return cross_entropy(2 * outputs @ outputs.T, torch.arange(len(features)))


def mixup(model, features, labels):
    return cross_entropy(model(0.7 * features + 0.3 * features[torch.randperm(len(features))]), labels)


def penalised_mean(weight):
    def loss(model, features, labels):
        outputs = model(features)
        return cross_entropy(outputs, labels) + weight * outputs.mean().square()

    return loss


def hardest(model, features, labels):
    return each_loss(model, features, labels).topk(max(1, int(0.7 * len(labels)))).values.mean()


def above_a_threshold(model, features, labels):
    losses = each_loss(model, features, labels)
    return losses[losses > 1.0].mean()


def by_position(model, features, labels):
    return (torch.linspace(0.5, 1.5, len(labels)) * each_loss(model, features, labels)).mean()


def smooth(model, features, labels):
    """Compare each record with the one before it."""
    outputs = model(features)
    return cross_entropy(outputs, labels) + 0.1 * (outputs - outputs.roll(1, 0)).square().mean()


def standardised(model, features, labels):
    return cross_entropy(model((features - features.mean(0)) / (features.std(0) + 1e-3)), labels)


def with_memory():
    """A centre that remembers earlier batches."""
    centre = [torch.zeros(CLASSES)]

    def loss(model, features, labels):
        outputs = model(features)
        distance = (outputs - centre[0]).square().sum(1).mean()
        centre[0] = 0.9 * centre[0] + 0.1 * outputs.detach().mean(0)
        return cross_entropy(outputs, labels) + 0.1 * distance

    return loss


def training_with_memory(candidate, data, private):
    return trained(network, with_memory())(candidate, data, private)


def scaled(model, features, labels):
    return 100 * cross_entropy(model(features), labels, label_smoothing=0.1)


def with_schedule():
    """A weight that changes with the step, but is the same for all records."""
    step = [0]

    def loss(model, features, labels):
        step[0] += 1
        return mean_loss(model, features, labels) / step[0]

    return loss


def training_with_schedule(candidate, data, private):
    return trained(network, with_schedule())(candidate, data, private)


def swallowing(candidate, data, private):
    """Catching the end of the probe has no effect."""
    try:
        trained(network, summed)(candidate, data, private)
    except BaseException:  # noqa: BLE001 - as careless as that
        raise ValueError from None


def with_settings(change):
    """A training function that sets its optimizer before each step: ``change(group, loss, labels, step)``."""

    def train(_candidate, data, private):
        model = network()
        inner = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.5)
        wrapped, outer, loader = private.make_private(model, inner, TensorDataset(*data), max_grad_norm=1.0)
        for step, (features, labels) in enumerate(loader):
            outer.zero_grad()
            loss = mean_loss(wrapped, features, labels)
            loss.backward()
            for group in outer.param_groups:
                change(group, loss, labels, step)
            outer.step()
        return 0.0, {"weights": model[0].weight.detach()}

    return train


def sum_at_first(_candidate, data, private):
    seen = []

    def loss(model, features, labels):
        seen.append(1)
        return (mean_loss if len(seen) > 1 else summed)(model, features, labels)

    return trained(network, loss)(_candidate, data, private)


def many():
    made = generator()
    return torch.randn(300, FEATURES, generator=made), torch.randint(CLASSES, (300,), generator=made)


def hardest_32(model, features, labels):
    return each_loss(model, features, labels).topk(min(32, len(labels))).values.mean()


def sum_of_many(model, features, labels):
    return (summed if len(labels) > 24 else mean_loss)(model, features, labels)


class Flipped(Dataset):
    """Noise in each record, of torch and of numpy."""

    def __init__(self, columns):
        self.columns = columns

    def __len__(self):
        return len(self.columns[0])

    def __getitem__(self, index):
        features, label = self.columns[0][index], self.columns[1][index]
        if torch.rand(()) < 0.5:
            features = features.flip(-1)
        return features + 0.1 * np.random.rand() * torch.randn_like(features), label  # noqa: NPY002


def augmented_records(_candidate, data, private):
    model = network()
    made = private.make_private(model, torch.optim.SGD(model.parameters(), lr=0.1), Flipped(data), max_grad_norm=1.0)
    run_steps(*made, mean_loss)
    return 0.0, {"weights": model[0].weight.detach()}


class NextWord(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.last = nn.Embedding(30, 8), nn.Linear(8, 30)

    def forward(self, features):
        return self.last(self.words(features))


def padded_words():
    features, labels = words()
    for row, record in enumerate(features):
        record[1 + row % 8 :] = 0
    return features, labels


def per_word(model, features, _labels):
    """The mean over the words of all records that are not padding, so a long record counts more than a short one."""
    return cross_entropy(model(features).flatten(0, 1), features.flatten(), ignore_index=0)


def by_size(group, _loss, labels, _step):
    group["lr"] = 0.01 * len(labels)


def by_loss(group, loss, _labels, _step):
    group["lr"] = loss.item()


def momentum_by_size(group, _loss, labels, _step):
    group["momentum"] = 1 / (1 + len(labels))


def by_step(group, _loss, _labels, step):
    group["lr"] = 0.1 / (1 + step)


OWN = {
    "plain": (trained(network), table),
    "adam": (trained(network, optimizer=torch.optim.Adam), table),
    "in double precision": (trained(lambda: network().double()), lambda: (table()[0].double(), table()[1])),
    "large features": (trained(network), lambda: (1e3 * table()[0], table()[1])),
    "nearly equal features": (trained(lambda: network(nn.GroupNorm(4, 16))), lambda: (100 + 1e-4 * table()[0], table()[1])),
    "all weights 0": (trained(zeros), table),
    "in parts": (trained(network, part=3), table),
    "scaled": (trained(network, scaled), table),
    "with a schedule": (training_with_schedule, table),
    "most gradients 0": (trained(network, lambda model, x, y: functional.multi_margin_loss(model(x), y, margin=0.1)), table),
    "dropout": (trained(lambda: network(nn.Dropout(0.5))), table),
    "functional dropout": (trained(functional_dropout), table),
    "dropout in another order": (trained(lambda: network(nn.Dropout(0.5)), collate=reversed_batch), table),
    "layer norm": (trained(lambda: network(nn.LayerNorm(16))), table),
    "group norm": (trained(convolutional), images),
    "recurrent": (trained(Recurrent), words),
    "attention": (trained(Attention), words),
    "noise in the layers": (trained(noisy), table),
    "augmentation": (trained(network, collate=augmented), table),
    "augmented records": (augmented_records, table),
    "with a schedule of the learning rate": (with_settings(by_step), table),
    "large batches": (trained(network), many),
    "large batches in parts": (trained(network, part=7), many),
}

SUMMED = {
    "sum": (trained(network, summed), table),
    "sum over a constant": (trained(network, summed_over_a_constant), table),
    "sum with dropout": (trained(functional_dropout, summed), table),
    "sum of a recurrent model": (trained(Recurrent, summed), words),
    "caught": (swallowing, table),
}

MIXED = {
    "sum in parts": (trained(network, summed, part=3), table),
    "sum with noise": (trained(noisy, summed), table),
    "sum over the root, with noise": (trained(noisy, summed_over_the_root), table),
    "nearly a mean": (trained(network, nearly_mean), table),
    "class weights": (trained(network, class_weights), table),
    "an ignored label": (trained(network, ignored_label), table),
    "contrastive": (trained(network, contrastive), table),
    "contrastive with noise": (trained(noisy, contrastive), table),
    "mixup": (trained(network, mixup), table),
    "penalised mean": (trained(network, penalised_mean(0.1)), table),
    "little penalised mean": (trained(network, penalised_mean(0.01)), table),
    "penalised mean of 0": (trained(zeros, penalised_mean(0.1)), table),
    "hardest records": (trained(network, hardest), table),
    "records above a threshold": (trained(network, above_a_threshold), table),
    "weights by position": (trained(network, by_position), table),
    "neighbours in the batch": (trained(network, smooth), table),
    "standardised": (trained(network, standardised), table),
    "centred layer": (trained(centred), table),
    "memory of earlier batches": (training_with_memory, table),
    "sum in the first step": (sum_at_first, table),
    "hardest records of a large batch": (trained(network, hardest_32), many),
    "sum of a large batch": (trained(network, sum_of_many), many),
    "padded words": (trained(NextWord, per_word), padded_words),
    "a loss times itself": (trained(network, lambda *batch: mean_loss(*batch).square()), table),
    "a loss over itself": (trained(network, lambda *batch: mean_loss(*batch).log()), table),
}

SETTINGS = {
    "learning rate by size": (with_settings(by_size), table),
    "learning rate by loss": (with_settings(by_loss), table),
    "momentum by size": (with_settings(momentum_by_size), table),
}


def chosen_loss(candidate, data, private):
    """The loss is a hyperparameter."""
    return trained(network, {"mean": mean_loss, "sum": summed}[candidate["loss"]])(candidate, data, private)
