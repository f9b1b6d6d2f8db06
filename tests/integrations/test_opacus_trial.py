"""Training with Opacus under a plan: a training that follows it is released, any other ends the run without a release."""

import importlib
import math
import os
import sqlite3
import struct
import subprocess
import sys
import time
from contextlib import closing
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import privselect as ps
from privselect.errors import AbortedError, MissingExtraError, ParameterError
from privselect.integrations import OpacusTrial
from privselect.tuning.plan_violation import PlanViolation
from privselect.tuning.randomness import Randomness

SEEDS = [bytes([number]) * 32 for number in range(1, 5)]
SPACE = {"unused": ps.Uniform(0, 1)}


@pytest.fixture(scope="module")
def trainers():
    return importlib.import_module("opacus_trainers")  # imported only if these tests run: it imports torch


@pytest.fixture(scope="module")
def messages():
    """Every message of a plan violation, by its name."""
    modules = [importlib.import_module(f"privselect.integrations.opacus.{name}") for name in ("trial", "session", "training_monitor")]
    return {
        name: text
        for module in modules
        for name, text in vars(module).items()
        if name.isupper() and not name.startswith("_") and isinstance(text, str) and " " in text
    }


def trial_of(trainers, train, plan=None, **options):
    return OpacusTrial(train, trainers.PLAN if plan is None else plan, **({"records": trainers.RECORDS} | options))


def tuned(trainers, objective, **options):
    usual = {"count": ps.Geometric(mean=5), "score": "public", "delta": 1e-5, "export": "arrays", "executor": "serial", "ledger": None}
    usual |= {"data": trainers.records(), "synthetic": trainers.records(trainers.SYNTHETIC)}
    return ps.tune(objective, SPACE, **(usual | options))


def test_without_opacus_it_asks_for_it():
    use = "import sys; sys.modules['opacus'] = None; from privselect.integrations import OpacusTrial; OpacusTrial(print, records=5)"
    result = subprocess.run([sys.executable, "-c", use], capture_output=True, text=True, check=False)
    assert result.stderr.splitlines()[-1].startswith(MissingExtraError.__module__)
    assert result.stderr.splitlines()[-1].endswith("OpacusTrial needs Opacus; install it with: pip install 'privselect[opacus]'")


@pytest.mark.opacus
class TestAsPlanned:
    @pytest.mark.parametrize(
        ("name", "weights"),
        [
            ("plain", 51),
            ("in_epochs", 51),
            ("from_a_plain_loader", 51),
            ("in_small_parts", 51),
            ("averaging", 51),
            ("own_layer", 57),
            ("diverging", 51),
            ("freezing", 51),
            ("leaving_nothing", 51),
            ("sorted_sequences", 127),
        ],
    )
    def test_the_plan_is_kept(self, trainers, name, weights):
        score, artifact = trial_of(trainers, getattr(trainers, name))({}, trainers.records(), Randomness(SEEDS[0]))
        assert math.isfinite(score)
        assert artifact["weights"].numel() == weights

    def test_a_trial_that_copies_the_optimizer_does_not_harm_the_next(self, trainers):
        with pytest.raises(TypeError, match="a private optimizer cannot be copied"):
            trial_of(trainers, trainers.copying_the_optimizer)({}, trainers.records(), Randomness(SEEDS[0]))
        trial_of(trainers, trainers.plain)({}, trainers.records(), Randomness(SEEDS[0]))

    def test_how_batches_are_taken_makes_no_difference(self, trainers):
        # In passes, with another rate on the sampler, or without zero_grad; a batch in parts is summed, and so rounded, in another order.
        runs = [
            trial_of(trainers, getattr(trainers, name))({}, trainers.records(), Randomness(SEEDS[0]))[1]["weights"].numpy()
            for name in ("plain", "in_epochs", "meddling", "without_clearing", "in_small_parts")
        ]
        for run in runs[1:4]:
            assert np.array_equal(runs[0], run)
        assert np.allclose(runs[0], runs[4], rtol=0, atol=1e-5)

    def test_empty_batches(self, trainers):
        plan = ps.DPSGD(noise_multiplier=2, sampling_probability=0.02, steps=40)  # of 3 records, seldom one is in a batch
        for name in ("plain", "from_a_plain_loader", "in_small_parts", "own_layer"):
            train = getattr(trainers, name)
            _, artifact = trial_of(trainers, train, plan, records=50)({}, trainers.records(3), Randomness(SEEDS[1]))
            assert artifact["weights"].isfinite().all()

    def test_the_same_randomness_gives_the_same_and_other_randomness_another(self, trainers):
        objective, data = trial_of(trainers, trainers.plain), trainers.records()
        runs = [objective({}, data, Randomness(seed))[1]["weights"].numpy().tobytes() for seed in [*SEEDS, *SEEDS]]
        assert runs[:4] == runs[4:]
        assert len(set(runs)) == 4

    def test_the_release_is_the_same_everywhere(self, trainers):
        def release(**options):
            found = tuned(trainers, trial_of(trainers, trainers.plain), insecure_seed=7, **options)
            return found.candidate, found.score, found.artifact["weights"].tobytes()

        assert release() == release(executor="processes", workers=2)

    def test_what_belongs_to_the_process_is_left_as_it_was(self, trainers):
        import torch

        before = torch.get_num_threads(), torch.get_rng_state()
        trial_of(trainers, trainers.careless, threads=3)({}, trainers.records(), Randomness(SEEDS[0]))
        assert torch.is_grad_enabled()
        assert torch.get_default_dtype() == torch.float32
        assert torch.get_num_threads() == before[0]
        assert torch.equal(torch.get_rng_state(), before[1])


@pytest.mark.opacus
class TestNoiseAndBatches:
    """Tests of the objects that make_private returns."""

    @staticmethod
    def steps(plan, features, *, records, clip, width=1000):
        """The gradient of each step and the records in its batch, for a layer without bias trained on the sum of its outputs."""
        steps = []

        def train(_candidate, _data, private):
            steps.extend(TestNoiseAndBatches.trained(private, features, clip, width))
            return 0.0, None

        OpacusTrial(train, plan, records=records)({}, None, Randomness(SEEDS[2]))
        return steps

    @staticmethod
    def trained(private, features, clip, width):
        import torch

        model = torch.nn.Linear(features.shape[1], width, bias=False)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
        data = torch.utils.data.TensorDataset(features, torch.arange(len(features)))
        wrapped, optimizer, loader = private.make_private(model, optimizer, data, max_grad_norm=clip)
        for rows, places in loader:
            optimizer.zero_grad()
            (wrapped(rows).sum() / max(len(rows), 1)).backward()
            optimizer.step()
            yield model.weight.grad.numpy().copy(), places.tolist()

    def test_the_noise_is_the_planned_one(self):
        import torch

        plan = ps.DPSGD(noise_multiplier=1.5, sampling_probability=0.25, steps=200)
        noise = np.array([gradient for gradient, _ in self.steps(plan, torch.zeros(80, 5), records=100, clip=2.0)])
        deviation = 1.5 * 2.0 / (0.25 * 100)  # by the declared number of records, not by the 80 that are there
        assert abs(noise.std() / deviation - 1) < 0.005  # of a million normal numbers: 7 standard deviations
        assert abs(noise.mean()) < 6 * deviation / 1000
        assert len(np.unique(noise)) > 0.9 * noise.size  # none is used twice; floats of 24 bits now and then agree

    def test_batches_are_poisson_samples_of_the_planned_rate(self):
        import torch

        count, rate, steps = 80, 0.13, 600
        plan = ps.DPSGD(noise_multiplier=1, sampling_probability=rate, steps=steps)
        batches = [places for _, places in self.steps(plan, torch.zeros(count, 1), records=70, clip=1.0, width=1)]
        sizes = np.array([len(places) for places in batches])
        variance = count * rate * (1 - rate)
        assert len(batches) == steps
        assert abs(sizes.mean() - count * rate) < 5 * math.sqrt(variance / steps)
        assert abs(sizes.var() / variance - 1) < 5 * math.sqrt(2 / steps)
        often = np.bincount(np.concatenate([np.array(places, dtype=int) for places in batches]), minlength=count)
        assert np.abs(often - steps * rate).max() < 5 * math.sqrt(steps * rate * (1 - rate))
        assert np.abs(np.corrcoef(sizes[:-1], sizes[1:])[0, 1]) < 5 / math.sqrt(steps)

    def test_a_rate_of_one_takes_all(self):
        import torch

        plan = ps.DPSGD(noise_multiplier=1, sampling_probability=1, steps=3)
        assert [places for _, places in self.steps(plan, torch.zeros(9, 1), records=9, clip=1.0)] == 3 * [list(range(9))]

    @pytest.mark.parametrize("odd", [1e9, math.nan, math.inf, -1e38])
    def test_no_record_moves_a_step_further_than_its_clip(self, odd):
        import torch

        plan = ps.DPSGD(noise_multiplier=1e-6, sampling_probability=1, steps=2)
        features = torch.full((6, 2), 1e-3)
        without = [gradient for gradient, _ in self.steps(plan, features, records=10, clip=0.5, width=3)]
        features = torch.cat([features, torch.tensor([[odd, 1.0]])])
        beside = [gradient for gradient, _ in self.steps(plan, features, records=10, clip=0.5, width=3)]
        for one, other in zip(without, beside, strict=True):
            assert np.isfinite(other).all()
            assert np.linalg.norm(one - other) <= 0.5 / 10 * 1.0001


@pytest.mark.opacus
class TestViolations:
    def test_every_one_is_found_and_says_a_fixed_sentence(self, trainers, messages):
        for name, several in trainers.VIOLATIONS.items():
            for train in several:
                for seed in SEEDS[:2]:
                    with pytest.raises(PlanViolation) as caught:
                        trial_of(trainers, train)({}, trainers.records(), Randomness(seed))
                    assert caught.value.message == messages[name], train

    def test_every_sentence_is_tried(self, trainers, messages):
        elsewhere = {"WRONG_DEVICE", "MISSING_SEED_BITS", "INVALID_PLAN"}
        assert set(messages) == {*trainers.VIOLATIONS} | elsewhere

    def test_a_plan_that_goes_wrong_in_the_trial(self, trainers, messages):
        for plan in (lambda candidate: candidate["missing"], lambda _: ps.Gaussian(sigma=4)):
            with pytest.raises(PlanViolation) as caught:
                trial_of(trainers, trainers.plain, plan)({}, trainers.records(), Randomness(SEEDS[0]))
            assert caught.value.message == messages["INVALID_PLAN"]

    def test_devices(self, trainers, messages):
        import torch

        from privselect.integrations.opacus.session import _noise_generator

        with pytest.raises(PlanViolation) as caught:
            trial_of(trainers, trainers.plain, device="cuda")({}, trainers.records(), Randomness(SEEDS[0]))
        assert caught.value.message == messages["WRONG_DEVICE"]
        with pytest.raises(PlanViolation) as caught:
            _noise_generator(Randomness(SEEDS[0]), torch.device("cuda"))
        assert caught.value.message == messages["MISSING_SEED_BITS"]

    @pytest.mark.parametrize("executor", ["serial", "processes"])
    def test_a_step_too_many_ends_the_run_without_a_release(self, trainers, messages, tmp_path, executor):
        objective = trial_of(trainers, trainers.on_private_data(trainers.one_more))
        options = {
            "executor": executor,
            "workers": None if executor == "serial" else 2,
            "out": tmp_path / "out",
            "ledger": tmp_path / "ledger",
        }
        for _ in range(2):  # also where the run is taken up again
            with pytest.raises(AbortedError) as caught:
                tuned(trainers, objective, **options)
            assert str(caught.value) == messages["WRONG_BATCH"] + "; nothing is released"
        assert not (tmp_path / "out").exists()
        assert not self.released(tmp_path / "ledger")

    def test_others_end_the_run_too(self, trainers, messages, tmp_path):
        ends = {
            "UNSUPPORTED_LAYER": trainers.batch_norm,
            "OWN_SAMPLER": trainers.given(trainers.GIVEN["OWN_SAMPLER"][0]),
            "OPTIMIZER_CHANGED": trainers.changing("noise_multiplier", 1.5),
            "WRONG_BATCH": trainers.foreign,
            "WRONG_HISTORY": trainers.one_less,
            "NO_CALL": trainers.never,
        }
        for name, train in ends.items():
            with pytest.raises(AbortedError) as caught:
                tuned(trainers, trial_of(trainers, trainers.on_private_data(train)), out=tmp_path / "out", ledger=tmp_path / name)
            assert str(caught.value) == f"{messages[name]}; nothing is released"
            assert not (tmp_path / "out").exists()
            assert not self.released(tmp_path / name)

    def test_on_synthetic_data_it_says_more(self, trainers):
        with pytest.raises(ParameterError, match=r"private loader: 12 batches drawn before step 13"):
            tuned(trainers, trial_of(trainers, trainers.one_more))

    @staticmethod
    def released(folder):
        (file,) = [path for path in folder.iterdir() if path.suffix != ".lock"]
        with closing(sqlite3.connect(file)) as connection:
            return bool(connection.execute("SELECT released FROM run").fetchone()[0])


@pytest.mark.opacus
class TestDescribed:
    @pytest.mark.parametrize(
        ("fields", "sentence"),
        [
            ({"train": 3}, "`train` must be a function of (candidate, data, private), got 3"),
            ({"plan": "dpsgd"}, "`plan` must be a DPSGD, or a function of the candidate that returns one, got 'dpsgd'"),
            ({"records": 0}, "`records` must be an integer >= 1 and <= 1000000000000, got 0"),
            ({"records": 4}, "`plan` must expect at least one record in a batch, sampling_probability * records >= 1, got 0.2 * 4"),
            ({"device": "tpu"}, "`device` must be cpu, cuda or a device such as cuda:1, got 'tpu'"),
            ({"threads": 0}, "`threads` must be an integer >= 1 and <= 1024, got 0"),
        ],
    )
    def test_what_makes_no_sense_is_refused_in_one_sentence(self, trainers, fields, sentence):
        usual = {"train": trainers.plain, "plan": trainers.PLAN, "records": trainers.RECORDS}
        with pytest.raises(ParameterError) as caught:
            OpacusTrial(**(usual | fields))
        assert str(caught.value) == sentence

    def test_the_certificate_says_what_is_not_covered(self, trainers):
        objective = trial_of(trainers, trainers.plain)
        release = tuned(trainers, objective)
        assert release.certificate.plan.mechanism == str(trainers.PLAN)
        notes = " ".join(release.certificate.run.notes)
        for words in ("not hardened", "which is not cryptographic", "60 records", "mean of one term for each record", "is not checked"):
            assert words in notes
        assert "seed of 64 bits" in " ".join(trial_of(trainers, trainers.plain, device="cuda").notes)

    def test_a_mechanism_that_covers_less_is_refused(self, trainers):
        weaker = ps.DPSGD(noise_multiplier=3, sampling_probability=0.2, steps=12)
        reasons = {trainers.PLAN: "must cover", (lambda _: trainers.PLAN): "may leak more than the declared"}
        for plan, reason in reasons.items():
            with pytest.raises(ParameterError, match=reason):
                tuned(trainers, trial_of(trainers, trainers.plain, plan), mechanism=weaker)

    def test_the_plan_knows_the_training_function(self, trainers, tmp_path):
        tuned(trainers, trial_of(trainers, trainers.plain), out=tmp_path / "out")
        assert "opacus_trainers:plain" in (tmp_path / "out" / "plan.json").read_text()


@pytest.mark.opacus
@pytest.mark.parametrize("executor", ["serial", "processes"])
def test_a_talkative_training_is_not_heard(trainers, tmp_path, executor):
    for name in ("work", "aside"):
        (tmp_path / name).mkdir()
    script = Path(trainers.__file__)
    environment = {**os.environ, "ASIDE": str(tmp_path / "aside"), "TMPDIR": str(tmp_path / "work")}
    result = subprocess.run(
        [sys.executable, script, executor, "3"], cwd=tmp_path / "work", env=environment, capture_output=True, text=True, check=True
    )
    scores = [float(line) for line in (tmp_path / "aside" / "scores").read_text().split()]
    assert len(scores) > 3
    # Nothing is said but what the script says of the winner: no loss, no epsilon, no count.
    assert result.stdout == f"released {max(scores)}\n"
    assert result.stderr == ""
    files = [path.read_bytes() for path in (tmp_path / "work").rglob("*") if path.is_file()]
    assert files
    for score in {*scores} - {max(scores)}:
        for form in (repr(score).encode(), struct.pack("<d", score), struct.pack(">d", score)):
            assert not any(form in content for content in files)


# -- the whole: digits ------------------------------------------------------------------------------------------------------


def digits_plan(sizes, records, count):
    """For each batch size, the training that alone uses up the budget."""
    steps = {64: 150, 128: 120, 256: 100}
    return {
        size: ps.plan(
            ps.DPSGD(noise_multiplier=ps.UNKNOWN, sampling_probability=size / records, steps=steps[size]), count, epsilon=2.99, delta=1e-5
        ).mechanism
        for size in sizes
    }


def train_digits(test, candidate, data, private):
    import torch

    features, labels = (torch.from_numpy(column) for column in data)
    model = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.Tanh(), torch.nn.Linear(32, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=candidate["learning_rate"])
    dataset = torch.utils.data.TensorDataset(features, labels)
    wrapped, optimizer, loader = private.make_private(model, optimizer, dataset, max_grad_norm=candidate["clip"])
    for batch, answers in loader:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(wrapped(batch), answers).backward()
        optimizer.step()
    with torch.no_grad():
        right = model(torch.from_numpy(test[0])).argmax(1) == torch.from_numpy(test[1])
    return float(right.double().mean()), model.state_dict()


@pytest.mark.opacus
def test_digits_are_learned_within_the_budget(capsys):
    from privselect.tuning import demo

    began = time.perf_counter()
    data = demo.load_digits()
    private, test = ((part.features.astype(np.float32), part.labels) for part in (data.private, data.test))
    count = ps.Poisson(mean=6)
    plans = digits_plan((64, 128, 256), 1400, count)
    objective = OpacusTrial(partial(train_digits, test), lambda candidate: plans[candidate["batch"]], records=1400)
    release = ps.tune(
        objective,
        {"learning_rate": ps.LogUniform(0.5, 4), "clip": ps.LogUniform(0.5, 2), "batch": ps.Choice([64, 128, 256])},
        data=private,
        synthetic=private,  # a test may
        count=count,
        score="public",
        epsilon=3,
        delta=1e-5,
        export="arrays",
        executor="processes",
        workers=2,
        ledger=None,
        insecure_seed=1,
    )
    seconds = time.perf_counter() - began
    with capsys.disabled():
        print(f"\naccuracy {release.score:.3f}, epsilon {release.certificate.total.upper:.4f}, {seconds:.0f} s")  # noqa: T201
    assert release.score >= 0.85
    assert release.certificate.total.upper <= 3
    assert release.certificate.plan.mechanism.startswith("mixture(")
    assert release.artifact["0.weight"].shape == (32, 64)
