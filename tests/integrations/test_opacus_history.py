"""The history of an Opacus accountant: as a list, and of an actual training run."""

import math
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import privselect as ps
from privselect.errors import NotCoveredError, ParameterError
from privselect.integrations import mechanism_from_history


def dpsgd(noise, rate, steps):
    return ps.DPSGD(noise_multiplier=noise, sampling_probability=rate, steps=steps)


class Accountant:
    """The interface of every accountant of Opacus."""

    def __init__(self, history, name="rdp"):
        self.history, self.name = history, name

    def mechanism(self):
        return self.name


def test_a_plain_list():
    assert mechanism_from_history([(1.1, 0.01, 500)]) == dpsgd(1.1, 0.01, 500)
    assert mechanism_from_history([(np.float64(1.1), 0.01, np.int64(5))]) == dpsgd(1.1, 0.01, 5)
    assert mechanism_from_history([(2, 1, 3)]) == dpsgd(2, 1, 3)
    assert mechanism_from_history([(1.1, 0.01, 500), (1.1, 0.01, 20)]) == dpsgd(1.1, 0.01, 520)


@pytest.mark.parametrize("name", ["rdp", "prv"])
def test_an_accountant(name):
    assert mechanism_from_history(Accountant([(1.1, 0.01, 500)], name)) == dpsgd(1.1, 0.01, 500)


def test_stages():
    history = [(1.1, 0.01, 500), (1.3, 0.01, 20), (1.1, 0.02, 7), (1.3, 0.01, 30)]
    stages = dpsgd(1.1, 0.01, 500), dpsgd(1.3, 0.01, 50), dpsgd(1.1, 0.02, 7)
    assert mechanism_from_history(history) == ps.Composed(stages)


def test_a_central_limit_is_refused_but_not_its_history():
    accountant = Accountant([(1.1, 0.01, 500)], "gdp")
    with pytest.raises(
        NotCoveredError, match=r"gdp accountant of Opacus is a central limit approximation and understates epsilon; .*`accountant.history`"
    ):
        mechanism_from_history(accountant)
    assert mechanism_from_history(accountant.history) == dpsgd(1.1, 0.01, 500)


def test_an_unknown_accountant_is_refused():
    with pytest.raises(NotCoveredError, match="the accountant must be one of prv, rdp, got 'new'"):
        mechanism_from_history(Accountant([(1.1, 0.01, 500)], "new"))
    with pytest.raises(NotCoveredError, match="the accountant must be one of prv, rdp, got None"):
        mechanism_from_history(SimpleNamespace(history=[(1.1, 0.01, 500)]))


@pytest.mark.parametrize(
    ("history", "sentence"),
    [
        ([], "`history` must hold at least one step, got none"),
        (Accountant([]), "`history` must hold at least one step, got none"),
        (None, "`history` must be an accountant of Opacus or its history, triples (noise_multiplier, sample_rate, num_steps), got None"),
        ([(1.1, 0.01)], "each stage must be a triple (noise_multiplier, sample_rate, num_steps), got (1.1, 0.01)"),
        ([3], "each stage must be a triple (noise_multiplier, sample_rate, num_steps), got 3"),
        ([(0.0, 0.01, 5)], "`noise_multiplier` must be in (0, inf), got 0.0"),
        ([(math.nan, 0.01, 5)], "`noise_multiplier` must be in (0, inf), got nan"),
        ([(1.1, 1.5, 5)], "`sample_rate` must be in (0, 1], got 1.5"),
        ([(1.1, 0.01, 0)], "`num_steps` must be an integer >= 1 and <= 1000000000, got 0"),
        ([(1.1, 0.01, 2.5)], "`num_steps` must be an integer >= 1 and <= 1000000000, got 2.5"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_sentence(history, sentence):
    with pytest.raises(ParameterError) as caught:
        mechanism_from_history(history)
    assert str(caught.value) == sentence


def test_a_history_is_read_without_opacus():
    use = "from privselect.integrations import mechanism_from_history as read; read([(1.1, 0.01, 500)])"
    check = "import sys; assert not {'torch', 'opacus', 'dp_accounting'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", f"{use}; {check}"], check=True)


# -- a real run ------------------------------------------------------------------------------------------------------------

real = [pytest.mark.opacus, pytest.mark.filterwarnings("ignore")]  # Opacus and torch warn of their own
STEPS, RATE, NOISE, DELTA = 12, 0.25, 1.5, 1e-5


def trained(name, *, batch=16, epochs=3, noises=(NOISE,)):
    """The accountant of a tiny model, after ``epochs`` with each of the noises."""
    import torch
    from opacus import PrivacyEngine

    torch.manual_seed(1)
    torch.set_num_threads(1)
    data = torch.utils.data.TensorDataset(torch.randn(64, 3), torch.randint(0, 2, (64,)))
    model = torch.nn.Linear(3, 2)
    engine = PrivacyEngine(accountant=name)
    model, optimizer, loader = engine.make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        data_loader=torch.utils.data.DataLoader(data, batch_size=batch),
        noise_multiplier=noises[0],
        max_grad_norm=1.0,
    )
    for noise in noises:
        optimizer.noise_multiplier = noise
        for _ in range(epochs):
            for records, labels in loader:
                optimizer.zero_grad()
                torch.nn.functional.cross_entropy(model(records), labels).backward()
                optimizer.step()
    return engine.accountant


def optimistic_epsilon(noise, rate, steps, delta):
    """A lower bound by dp-accounting."""
    from dp_accounting.pld import privacy_loss_distribution

    step = privacy_loss_distribution.from_gaussian_mechanism(noise, sampling_prob=rate, pessimistic_estimate=False, use_connect_dots=False)
    return step.self_compose(steps).get_epsilon_for_delta(delta)


class TestRealRuns:
    pytestmark = real

    @pytest.mark.parametrize("name", ["prv", "rdp"])
    def test_the_run_is_what_was_trained(self, name):
        assert mechanism_from_history(trained(name)) == dpsgd(NOISE, RATE, STEPS)

    def test_epsilon_is_between_the_truth_and_what_opacus_says(self):
        accountant = trained("prv")
        ours = mechanism_from_history(accountant).epsilon_at(DELTA)
        stated = 0.01
        prv = accountant.get_epsilon(DELTA, eps_error=stated)
        assert optimistic_epsilon(NOISE, RATE, STEPS, DELTA) <= ours.upper
        if ours.lower is not None:
            assert ours.lower <= prv
        # Theirs is the upper end of an estimate give or take its error.
        assert ours.upper <= prv
        assert prv <= ours.upper + 2 * stated
        assert ours.upper <= trained("rdp").get_epsilon(DELTA)

    def test_full_batches(self):
        accountant = trained("prv", batch=64)
        ours = mechanism_from_history(accountant)
        assert ours == dpsgd(NOISE, 1.0, 3)
        gaussian = ps.Gaussian(sigma=NOISE / math.sqrt(3)).epsilon_at(DELTA)
        assert gaussian.lower <= ours.epsilon_at(DELTA).upper <= gaussian.upper * 1.001
        assert abs(accountant.get_epsilon(DELTA, eps_error=0.01) - gaussian.upper) <= 0.02

    def test_noise_that_changes_on_the_way(self):
        accountant = trained("prv", noises=(NOISE, 2.0))
        ours = mechanism_from_history(accountant)
        assert ours == ps.Composed((dpsgd(NOISE, RATE, STEPS), dpsgd(2.0, RATE, STEPS)))
        prv = accountant.get_epsilon(DELTA, eps_error=0.01)
        assert ours.epsilon_at(DELTA).upper <= prv <= ours.epsilon_at(DELTA).upper + 0.02

    def test_the_central_limit_is_below_the_truth(self):
        accountant = trained("gdp", batch=1)
        with pytest.raises(NotCoveredError, match="central limit"):
            mechanism_from_history(accountant)
        assert accountant.get_epsilon(DELTA) < optimistic_epsilon(*accountant.history[0], DELTA)
        assert optimistic_epsilon(*accountant.history[0], DELTA) <= mechanism_from_history(accountant.history).epsilon_at(DELTA).upper
