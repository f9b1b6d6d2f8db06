"""What each regime asks for meets the budget by the accounting that it is named after, and no more than that."""

from functools import cache

import pytest
from experiments_made import UNTUNED

from privselect import Selection
from privselect.counts import Binomial, Fixed, Geometric, Poisson
from privselect.mechanisms import Composed, Disjoint, Gaussian
from privselect.selection.compare import paper_bound, renyi_bound
from research.csv_io import as_csv, read_csv
from research.experiments.regimes import MOST_TRIALS, REGIMES, RUNS, SELECTIONS, Option, fixed_options, law_options, laws
from research.experiments.settings import DELTA, EPSILONS, training

LESS = 1.0 / 1.01  # a hundredth less noise
FEW = [(1.0, Geometric(mean=3)), (3.0, Poisson(mean=30))]
found_by_law, found_by_runs = cache(law_options), cache(fixed_options)


def epsilon_of(option, mechanism):
    """By the accounting that the regime is named after."""
    if option.regime == "free":
        return float(mechanism.epsilon_at(DELTA).upper)
    if isinstance(option.count, Fixed):
        return float(Composed(mechanism, times=option.count.k).epsilon_at(DELTA).upper)
    if option.regime == "exact":
        return float(Selection(mechanism, option.count).epsilon_at(DELTA).upper)
    return {"paper": paper_bound, "renyi": renyi_bound}[option.regime](mechanism, option.count, DELTA)


def assert_paid_for_and_not_overpaid(option):
    for mechanism, noise in ((training, option.noise), (Gaussian, option.score_noise)):
        assert epsilon_of(option, mechanism(noise)) <= option.epsilon
        assert epsilon_of(option, mechanism(LESS * noise)) > option.epsilon


def by_regime(epsilon, count):
    return {option.regime: option for option in found_by_law(epsilon, count)}


@pytest.mark.parametrize(("epsilon", "count"), FEW, ids=str)
def test_every_selection_meets_its_budget_and_with_a_hundredth_less_noise_would_not(epsilon, count):
    for option in found_by_law(epsilon, count):
        assert_paid_for_and_not_overpaid(option)


@pytest.mark.parametrize(("epsilon", "count"), FEW, ids=str)
def test_exact_accounting_asks_for_the_least_noise_that_is_paid_for(epsilon, count):
    options = by_regime(epsilon, count)
    for other in SELECTIONS[1:]:
        assert options["free"].noise < options["exact"].noise <= options[other].noise
        assert options["free"].score_noise < options["exact"].score_noise <= options[other].score_noise


def test_a_regime_without_a_bound_for_a_law_is_missing():
    assert set(by_regime(*FEW[0])) == {"exact", "paper", "renyi", "free"}
    assert set(by_regime(1.0, Binomial(n=6, p=0.5))) == {"exact", "paper", "free"}  # Renyi has none for a binomial K


@pytest.mark.parametrize("runs", [2, 30])
def test_a_fixed_number_of_runs_meets_its_budget_and_with_a_hundredth_less_noise_would_not(runs):
    exact, composition, free = (option for option in found_by_runs(3.0) if option.count == Fixed(k=runs))
    assert_paid_for_and_not_overpaid(composition)
    # The winner is one of the outputs: the exact regime may do the same.
    assert (exact.regime, composition.regime, free.regime) == ("exact", "composition", "free")
    assert (exact.noise, exact.score_noise) == (composition.noise, composition.score_noise)
    assert free.noise == UNTUNED[3.0]


def test_the_training_and_the_count_together_meet_the_budget_of_one_selection():
    option = by_regime(*FEW[0])["exact"]
    both = Selection(Disjoint((training(option.noise), Gaussian(option.score_noise))), option.count)
    assert both.epsilon_at(DELTA).upper <= option.epsilon
    for less in ((LESS, 1.0), (1.0, LESS)):
        weaker = Disjoint((training(less[0] * option.noise), Gaussian(less[1] * option.score_noise)))
        assert Selection(weaker, option.count).epsilon_at(DELTA).upper > option.epsilon


def test_options_survive_a_table_to_the_last_digit(tmp_path):
    some = [Option(3.0, "exact", law, 1.234567, 7.654321) for law in laws()]
    options = [*some, *found_by_law(*FEW[0]), *found_by_runs(3.0)]
    (tmp_path / "options.csv").write_bytes(as_csv([option.as_row() for option in options]))
    assert [Option.from_row(row) for row in read_csv(tmp_path / "options.csv")] == options


def test_a_law_of_each_kind_and_none_with_more_trials_in_the_mean_than_the_most():
    assert {type(law).__name__ for law in laws()} == {"Geometric", "Logarithmic", "NegativeBinomial", "Poisson", "Binomial"}
    assert len(set(laws())) == len(laws()) == 6 * 5  # families and means
    # The means are solved for by the laws themselves.
    assert max(law.expected() for law in laws()) == pytest.approx(MOST_TRIALS, rel=1e-9)
    assert max(RUNS) == MOST_TRIALS
    assert Poisson(mean=MOST_TRIALS) in laws()


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_options_of_every_family(epsilon):
    ten = [law for law in laws() if round(law.expected()) == 10]
    options = [option for law in ten for option in law_options(epsilon, law)]
    assert {option.regime for option in options} == {*SELECTIONS, "free"}
    exact = {option.count: option for option in options if option.regime == "exact"}
    for option in options:
        if option.regime in SELECTIONS:
            assert_paid_for_and_not_overpaid(option)
            assert exact[option.count].noise <= option.noise
            assert exact[option.count].score_noise <= option.score_noise


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_options_of_every_number_of_runs(epsilon):
    options = found_by_runs(epsilon)
    assert {option.regime for option in options} == set(REGIMES) - {"paper", "renyi"}
    for option in options:
        if option.regime != "exact":  # whose noise is composition's
            assert_paid_for_and_not_overpaid(option)
