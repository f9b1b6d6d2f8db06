"""Many trials at once have the law of the recipes, and the winner is the best one."""

import numpy as np
import pytest

from privselect.errors import ParameterError
from privselect.regression.methods import OutputPerturbation
from privselect.regression.sufficient_statistics import SufficientStatistics
from research.figures.allowed_noise import TrialNoise
from research.figures.cross_validation import Sums
from research.figures.data_sets import Records
from research.figures.split_problem import CLIP, Problem, public_records, split_problem
from research.figures.tuned_regression import (
    RIDGES,
    Draws,
    Trials,
    draw_trials,
    fitted_posteriors,
    perturbed_outputs,
    precisions,
    winners,
)

NOISE = TrialNoise(0.4, 4e-10, 4e-10, 0.4)


class Scripted:
    """Normals that are given."""

    def __init__(self, *values):
        self.values = [np.asarray(value, dtype=np.float64) for value in values]

    def standard_normals(self, *shape):
        return self.values.pop(0).reshape(shape)


@pytest.fixture(scope="module")
def records():
    generator = np.random.default_rng(3)
    rows = generator.normal(size=(4000, 3)) * [1.0, 0.5, 0.1]
    rows /= np.linalg.norm(rows, axis=1)[:, None] * (1.0 + 1e-12)
    return Records(rows, np.clip(rows @ [0.5, -0.4, 0.2] + 0.1 * generator.normal(size=4000), -1.0, 1.0))


@pytest.fixture(scope="module")
def problem(records):
    return split_problem(records, np.random.default_rng(1))


@pytest.fixture(scope="module")
def draws():
    return draw_trials(3, 60.0, np.random.default_rng(5))


def test_the_parts_are_those_of_each_record_alone(records):
    fewer = Records(records.rows[:-1], records.targets[:-1])
    parts = [split_problem(one, np.random.default_rng(1)) for one in (records, fewer)]
    sizes = [(len(part.validation[1]), part.test.statistics.records) for part in parts]
    assert 0 <= sum(sizes[0]) - sum(sizes[1]) <= 1
    gram = parts[0].training.gram - parts[1].training.gram
    assert np.linalg.matrix_rank(gram, tol=1e-9) <= 1
    assert sizes[0][0] == pytest.approx(400, abs=120)


def test_the_public_number_is_above_the_training_records(problem):
    assert problem.training.records == public_records(4000)
    assert np.trace(problem.training.gram) <= public_records(4000)


def test_a_split_beyond_the_public_number_is_refused(records):
    class AllTraining:
        def random(self, size):
            return np.zeros(size)

    with pytest.raises(ParameterError, match="`records` must be at least the 4000 records"):
        split_problem(records, AllTraining())


@pytest.mark.parametrize("mu", [0.4, 0.02])
def test_precisions_are_those_of_the_recipe_but_for_the_rounding_of_the_leverage(problem, draws, mu):
    noise = TrialNoise(mu, 4e-10, 4e-10, mu)
    base = noise.recipe(1.0, problem.training.records).protocol
    norms = np.linalg.norm(problem.solutions(draws.ridges), axis=1)
    ours = precisions(base, draws.ridges, (float(problem.values[0]), norms), (draws.smallest, draws.norm))
    quotients = []
    for place, ridge in enumerate(draws.ridges.tolist()):
        proposal = noise.recipe(ridge, problem.training.records).protocol
        plan = proposal.propose(problem.training, Scripted(draws.smallest[place], draws.norm[place]))
        if plan is None:
            assert ours[place] == 0.0
        else:
            quotients.append(ours[place] / plan.precision)
    # The search for a signal is right to 5e-4.
    assert max(quotients) <= 1.0 + 1e-3
    assert np.median(quotients) > 0.97
    assert min(quotients) > 0.8
    assert (ours == 0.0).any() == (mu == 0.02)


def test_a_sample_has_the_posterior_s_mean_and_covariance(problem):
    ridge = np.array([50.0])
    still = Draws(ridge, np.zeros(1), np.zeros(1), np.zeros((1, 3)), np.zeros(1))
    middle = fitted_posteriors(problem, NOISE, still)
    assert problem.vectors @ middle.coefficients[0] == pytest.approx(problem.training.ridge_solution(50.0), rel=1e-9)
    moved = [fitted_posteriors(problem, NOISE, Draws(ridge, np.zeros(1), np.zeros(1), unit[None], np.zeros(1))) for unit in np.eye(3)]
    factor = problem.vectors @ np.array([one.coefficients[0] - middle.coefficients[0] for one in moved]).T
    posterior = np.linalg.inv(middle.precision[0] * (problem.training.gram + 50.0 * np.eye(3)))
    assert factor @ factor.T == pytest.approx(posterior, rel=1e-9)


def test_perturbed_outputs_are_those_of_the_recipe(problem, draws):
    trials = perturbed_outputs(problem, 0.3, draws)
    for place in range(5):
        ridge = float(draws.ridges[place])
        # The recipe's noise is the same in all directions: in the eigenvectors it is another draw of the same law.
        recipe = OutputPerturbation(0.3, ridge, problem.training.records)
        answer = recipe.run(problem.training, Scripted(problem.vectors @ draws.sample[place]))
        assert problem.vectors @ trials.coefficients[place] == pytest.approx(answer.coefficients, rel=1e-9)


def test_trials_are_drawn_with_replacement_from_the_ridges():
    draws = draw_trials(2, 600.0, np.random.default_rng(0))
    assert set(draws.ridges.tolist()) <= set(RIDGES.tolist())
    assert draws.sample.shape == (len(draws.ridges), 2)
    # The mean of 2000 geometric draws: 600 with a deviation of 13.4; six of them are passed with a chance of 2e-9.
    counts = [len(draw_trials(1, 600.0, np.random.default_rng(seed)).ridges) for seed in range(2000)]
    assert abs(np.mean(counts) - 600.0) < 81.0
    assert min(counts) >= 1


def simple(coefficients, score):
    """One feature, targets 1 in the validation part and 0.5 in the test part: the published validation prefers 1."""
    one = np.ones((4, 1))
    problem = Problem(
        SufficientStatistics.from_records(one, one[:, 0]), np.eye(1), np.ones(1), np.ones(1), (one, one[:, 0]), Sums(one, 0.5 * one[:, 0])
    )
    count = len(coefficients)
    draws = Draws(np.arange(1.0, count + 1.0), np.zeros(count), np.zeros(count), np.zeros((count, 1)), np.asarray(score))
    return problem, draws


def test_the_best_on_the_validation_part_wins_and_noise_may_change_it():
    problem, draws = simple([0.0, 1.0, 0.8], [0.0, 0.0, -10.0])
    trials = Trials(np.array([[0.0], [1.0], [0.8]]), np.array([1.0, 2.0, 3.0]))
    chosen = winners(problem, trials, draws, 1.0)
    assert chosen["unpaid"].ridge == 2.0
    assert chosen["unpaid"].test_error == pytest.approx(0.25)
    assert chosen["paid"].ridge == 3.0
    assert chosen["paid"].precision == 3.0


def test_without_an_answer_every_prediction_is_0():
    problem, draws = simple([1.0], [0.0])
    chosen = winners(problem, Trials(np.ones((1, 1)), np.zeros(1)), draws, 1.0)["unpaid"]
    assert (chosen.test_error, chosen.answered) == (pytest.approx(0.25), 0.0)


def test_a_trial_without_an_answer_never_wins():
    problem, draws = simple([1.0, 0.0], [0.0, 0.0])
    assert winners(problem, Trials(np.array([[1.0], [0.0]]), np.array([0.0, 1.0])), draws, 1.0)["unpaid"].ridge == 2.0


def test_one_record_moves_a_clipped_sum_by_at_most_the_clip(problem):
    coefficients = np.random.default_rng(2).normal(size=(20, 3)) * 10.0
    rows, targets = problem.validation
    fewer = Problem(problem.training, problem.vectors, problem.values, problem.moment, (rows[1:], targets[1:]), problem.test)
    moved = problem.clipped_sums(coefficients) - fewer.clipped_sums(coefficients)
    assert (moved >= 0.0).all()
    assert moved.max() <= CLIP * (1.0 + 1e-12)
