"""The probe of a training function on synthetic batches: it refuses a loss or model in which records influence each other's gradients."""

import importlib

import numpy as np
import pytest

import privselect as ps
from privselect.errors import ParameterError
from privselect.integrations import OpacusTrial
from privselect.tuning.plan_violation import PlanViolation
from privselect.tuning.randomness import Randomness

pytestmark = pytest.mark.opacus

OWN = (
    "plain",
    "adam",
    "in double precision",
    "large features",
    "nearly equal features",
    "all weights 0",
    "in parts",
    "scaled",
    "with a schedule",
    "most gradients 0",
    "dropout",
    "functional dropout",
    "dropout in another order",
    "layer norm",
    "group norm",
    "recurrent",
    "attention",
    "noise in the layers",
    "augmentation",
    "augmented records",
    "with a schedule of the learning rate",
    "large batches",
    "large batches in parts",
)
SUMMED = ("sum", "sum over a constant", "sum with dropout", "sum of a recurrent model", "caught")
MIXED = (
    "sum in parts",
    "sum with noise",
    "sum over the root, with noise",
    "nearly a mean",
    "class weights",
    "an ignored label",
    "contrastive",
    "contrastive with noise",
    "mixup",
    "penalised mean",
    "little penalised mean",
    "penalised mean of 0",
    "hardest records",
    "records above a threshold",
    "weights by position",
    "neighbours in the batch",
    "standardised",
    "centred layer",
    "memory of earlier batches",
    "sum in the first step",
    "hardest records of a large batch",
    "sum of a large batch",
    "padded words",
    "a loss times itself",
    "a loss over itself",
)
SETTINGS = ("learning rate by size", "learning rate by loss", "momentum by size")


@pytest.fixture(scope="module")
def losses():
    return importlib.import_module("opacus_losses")  # imported only if these tests run: it imports torch


@pytest.fixture(scope="module")
def sentences():
    return importlib.import_module("privselect.integrations.opacus.gradient_probe")


def probed(losses, train, data, *, plan=None, **candidate):
    OpacusTrial(train, losses.PLAN if plan is None else plan, records=len(data[0])).probe(data, candidate)


def test_every_training_function_is_tried(losses):
    assert [tuple(group) for group in (losses.OWN, losses.SUMMED, losses.MIXED, losses.SETTINGS)] == [OWN, SUMMED, MIXED, SETTINGS]


@pytest.mark.parametrize("name", OWN)
def test_gradients_of_each_records_own_are_accepted(losses, name):
    train, data = losses.OWN[name]
    probed(losses, train, data())


@pytest.mark.parametrize("name", SUMMED)
def test_a_summed_loss_is_refused(losses, sentences, name):
    train, data = losses.SUMMED[name]
    with pytest.raises(ParameterError) as caught:
        probed(losses, train, data())
    assert str(caught.value) == sentences.SUMMED


@pytest.mark.parametrize("name", MIXED)
def test_records_that_influence_each_other_are_refused(losses, sentences, name):
    train, data = losses.MIXED[name]
    with pytest.raises(ParameterError) as caught:
        probed(losses, train, data())
    assert str(caught.value) == sentences.MIXED


@pytest.mark.parametrize("name", SETTINGS)
def test_an_optimizer_whose_settings_depend_on_the_batch_is_refused(losses, sentences, name):
    train, data = losses.SETTINGS[name]
    with pytest.raises(ParameterError) as caught:
        probed(losses, train, data())
    assert str(caught.value) == sentences.SETTINGS


def test_a_plan_with_large_batches_is_probed_on_large_batches(losses):
    seen = []

    def noting(model, features, labels):
        seen.append(len(labels))
        return losses.mean_loss(model, features, labels)

    for records, largest in ((500, 130), (10**6, 1024), (60, 23), (40, 20)):
        seen.clear()
        OpacusTrial(losses.trained(losses.network, noting), losses.PLAN, records=records).probe(losses.table(), {})
        assert max(seen) == largest


@pytest.mark.parametrize("steps", [1, 2, 7])
def test_plans_of_few_steps(losses, sentences, steps):
    plan = ps.DPSGD(noise_multiplier=2, sampling_probability=0.2, steps=steps)
    for name in ("plain", "noise in the layers"):
        train, data = losses.OWN[name]
        probed(losses, train, data(), plan=plan)
    train, data = losses.MIXED["class weights"]
    with pytest.raises(ParameterError) as caught:
        probed(losses, train, data(), plan=plan)
    assert str(caught.value) == sentences.MIXED


class TestWhatCannotBeProbed:
    def test_too_few_records(self, losses):
        few = tuple(column[:7] for column in losses.table())
        with pytest.raises(ParameterError, match=r"`synthetic` must have at least 8 records for a probe of the loss, got 7"):
            probed(losses, losses.trained(losses.network), few)
        probed(losses, losses.trained(losses.network), tuple(column[:8] for column in losses.table()))
        with pytest.raises(ParameterError, match="the gradients grow"):
            probed(losses, losses.trained(losses.network, losses.summed), tuple(column[:8] for column in losses.table()))

    def test_records_that_are_all_equal(self, losses, sentences):
        features, labels = losses.table()
        for alike in ((features[:1].repeat(40, 1), labels[:1].repeat(40)), (0 * features, 0 * labels)):
            with pytest.raises(ParameterError) as caught:
                probed(losses, losses.trained(losses.network), alike)
            assert str(caught.value) == sentences.UNVARIED

    def test_randomness_from_elsewhere(self, losses, sentences):
        with pytest.raises(ParameterError) as caught:
            probed(losses, losses.trained(losses.network, collate=losses.unseeded), losses.table())
        assert str(caught.value) == sentences.UNSEEDED

    def test_a_training_that_ends_early(self, losses, sentences):
        def train(_candidate, data, private):
            model = losses.network()
            optimizer = losses.torch.optim.SGD(model.parameters(), lr=0.1)
            private.make_private(model, optimizer, losses.TensorDataset(*data), max_grad_norm=1.0)
            return 0.0, None

        with pytest.raises(ParameterError) as caught:
            probed(losses, train, losses.table())
        assert str(caught.value) == sentences.NO_STEPS

    def test_a_model_of_another_shape_each_time(self, losses):
        widths = iter(range(8, 100))

        def train(candidate, data, private):
            width = next(widths)
            make = lambda: losses.nn.Sequential(losses.nn.Linear(8, width), losses.nn.Linear(width, 3))  # noqa: E731
            return losses.trained(make)(candidate, data, private)

        with pytest.raises(ParameterError, match="must make the same model each time"):
            probed(losses, train, losses.table())

    def test_errors_and_violations_are_raised_as_they_are(self, losses):
        def failing(*_):
            raise KeyError("gone")

        with pytest.raises(KeyError, match="gone"):
            probed(losses, losses.trained(losses.network, failing), losses.table())
        with pytest.raises(PlanViolation, match="BatchNorm"):
            probed(losses, losses.trained(lambda: losses.network(losses.nn.BatchNorm1d(16))), losses.table())


class TestInARun:
    @staticmethod
    def tuned(losses, train, *, space=None, **options):
        usual = {
            "data": losses.table(),
            "synthetic": losses.table(),
            "count": ps.Geometric(mean=2),
            "score": "public",
            "delta": 1e-5,
            "export": "arrays",
            "executor": "serial",
            "ledger": None,
        }
        objective = OpacusTrial(train, losses.PLAN, records=losses.RECORDS)
        return ps.tune(objective, space or {"unused": ps.Uniform(0, 1)}, **(usual | options))

    def test_a_summed_loss_is_refused_before_data_is_used_and_nothing_is_spent(self, losses, sentences, tmp_path):
        seen = []

        def train(candidate, data, private):
            seen.append(data)
            return losses.trained(losses.network, losses.summed)(candidate, data, private)

        private, synthetic = losses.table(), losses.table()
        with pytest.raises(ParameterError) as caught:
            self.tuned(losses, train, data=private, synthetic=synthetic, out=tmp_path / "out", ledger=tmp_path / "ledger")
        assert str(caught.value) == f"the trial on synthetic data failed before any private data was accessed: {sentences.SUMMED}"
        assert seen
        assert all(data is synthetic for data in seen)
        assert list(tmp_path.iterdir()) == []

    def test_synthetic_data_is_required(self, losses, tmp_path):
        with pytest.raises(ParameterError, match="`synthetic` is required: this objective is probed on data of the same form"):
            self.tuned(losses, losses.trained(losses.network), synthetic=None, ledger=tmp_path / "ledger")
        assert list(tmp_path.iterdir()) == []

    def test_each_option_is_probed(self, losses):
        space = {"loss": ps.Choice(["mean", "sum"]), "learning_rate": ps.LogUniform(0.1, 1)}
        with pytest.raises(ParameterError, match="the gradients grow"):
            self.tuned(losses, losses.chosen_loss, space=space)
        assert self.tuned(losses, losses.chosen_loss, space={"loss": ps.Choice(["mean"])}).certificate

    def test_the_certificate_says_what_the_probe_saw_and_misses(self, losses):
        notes = " ".join(self.tuned(losses, losses.trained(losses.network)).certificate.run.notes)
        assert "the gradient of a record did not change, beyond rounding, with the other records of its batch" in notes
        assert "the settings of the optimizer, such as its learning rate, did not change with the records" in notes
        assert "on batches as large as planned but of at most 1024 records" in notes
        assert "depends on the records of a batch only in later steps, in larger batches, or for other records or candidates" in notes


class TestWhy:
    def test_with_a_summed_loss_one_record_moves_a_step_by_more_than_its_clip(self, losses):
        # Each gradient is 1, below the clipping norm after it was multiplied by the size of the batch; a new record makes all longer.
        plan = ps.DPSGD(noise_multiplier=1e-9, sampling_probability=1, steps=1)
        expected = {"mean": (lambda model, x, _: model(x).mean(), 1.0), "sum": (lambda model, x, _: model(x).sum() / 50, 79 / 50)}
        for loss, moved in expected.values():
            train = losses.trained(lambda: losses.nn.Linear(1, 1, bias=False), loss)
            weights = [
                OpacusTrial(train, plan, records=40)({}, (losses.torch.ones(count, 1),) * 2, Randomness(bytes(32)))[1]["weights"]
                for count in (39, 40)
            ]
            assert abs(float(weights[1] - weights[0])) == pytest.approx(moved * 0.1 / 40, rel=1e-4)


def test_the_probe_leaves_the_generators_as_they_were(losses):
    train, data = losses.OWN["dropout"]
    before = losses.torch.get_rng_state(), np.random.get_state()[1].tolist()  # noqa: NPY002
    probed(losses, train, data())
    assert losses.torch.equal(before[0], losses.torch.get_rng_state())
    assert before[1] == np.random.get_state()[1].tolist()  # noqa: NPY002
