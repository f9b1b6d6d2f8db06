"""The page on private voting: what one record can do, and every number of its tables, by the page's own code."""

import re
from pathlib import Path

import numpy as np
import pytest

import privselect as ps
from privselect.noisy_max.accounting.bounds import BOUNDS

PAGE = (Path(__file__).parents[2] / "docs" / "tutorials" / "voting.md").read_text()
VOTING, COSTS = re.findall(r"^```python\n(.*?)^```$", PAGE, flags=re.DOTALL | re.MULTILINE)
ROWS = {
    "the paper's bound": "paper",
    "Renyi divergences": "renyi",
    "every count released": "full_release",
    "any change": "any_change",
    "one ballot, by Renyi divergences": "pate",
    "**one ballot**": "ballots",
}
BUDGETS = (1, 2, 5, 10)
RELEASED, SMOOTHED = (
    {
        (ROWS[name], epsilon): cell
        for name, *cells in (re.split(r" \| ", line.strip("| ")) for line in table.splitlines()[2:])
        for epsilon, cell in zip(BUDGETS, cells, strict=True)
    }
    for table in re.findall(r"^\| \| epsilon 1 .*?\n(?=\n)", PAGE, flags=re.DOTALL | re.MULTILINE)
)


def ran(code):
    names = {}
    exec(compile(code, "voting.md", "exec"), names)  # noqa: S102
    return names


@pytest.fixture(scope="module")
def voting():
    return ran(VOTING)


@pytest.fixture(scope="module")
def sigmas():
    return ran(COSTS)["sigmas"]


def smoothed_share(voting, released):
    """By the page's own last step, on other labels."""
    classes = (np.eye(voting["CLASSES"])[released].T @ voting["visits"]).argmax(axis=0)
    return np.mean(classes == voting["labels"][voting["public"]])


def test_teachers_have_records_of_their_own(voting):
    assert not set(voting["public"]) & set(voting["private"])
    assert (voting["QUERIES"], len(voting["private"])) == (1000, 789)
    assert voting["counts"].shape == (1000, 10)
    assert voting["counts"].sum(axis=1).max() <= 250


def test_one_record_moves_one_ballot(voting):
    private, counts = voting["private"], voting["counts"]
    moved = [voting["vote"](np.delete(private, place)) - counts for place in range(0, len(private), 50)]
    assert all(np.abs(move).max() <= 1 for move in moved)
    assert all(np.abs(move).sum(axis=1).max() <= 2 for move in moved)  # changes=2
    assert all(np.abs(move.sum(axis=1)).max() <= 1 for move in moved)
    assert any(np.any(np.abs(move).sum(axis=1) == 2) for move in moved)  # a ballot does move from class to class
    assert any(np.any(move) for move in moved)


def right(voting, counts):
    """The share of the ballots, and of the images by plain plurality."""
    truth = voting["labels"][voting["public"]]
    return counts[np.arange(len(truth)), truth].sum() / counts.sum(), np.mean(counts.argmax(axis=1) == truth)


def test_by_the_nearest_record_teachers_are_worse(voting):
    pixels, labels, private, public = (voting[name] for name in ("pixels", "labels", "private", "public"))
    distances = voting["squared_distances"](pixels[private], pixels[public])
    teachers = np.array([voting["assign_part"](record, b"teacher", 250) for record in private])
    counts = np.zeros_like(voting["counts"])
    for teacher in np.unique(teachers):
        own = np.flatnonzero(teachers == teacher)
        counts[np.arange(len(public)), labels[private[own[distances[own].argmin(axis=0)]]]] += 1
    assert right(voting, counts) == pytest.approx((0.23, 0.84), abs=0.006)


def test_plain_plurality(voting):
    assert right(voting, voting["counts"]) == pytest.approx((0.83, 0.953), abs=0.005)
    assert voting["counts"].sum(axis=1).mean() == pytest.approx(67, abs=0.6)


def test_the_expected_accuracy_is_that_of_the_mechanism(voting):
    """By Hoeffding, 1000 independent labels are further off than this with probability 1e-9."""
    off = np.sqrt(np.log(2e9) / 2000)
    truth = voting["labels"][voting["public"]]
    for sigma in (5, 20):
        released = ps.report_noisy_max(voting["counts"], ps.Gaussian(sigma=sigma))
        assert np.mean(released == truth) == pytest.approx(voting["accuracy"](voting["counts"], sigma), abs=off)
    assert voting["accuracy"](voting["counts"], 40) == pytest.approx(0.46, abs=0.006)


@pytest.mark.parametrize("cell", RELEASED, ids=str)
def test_released_labels(voting, sigmas, cell):
    name, epsilon = cell
    said, sigma = map(float, re.fullmatch(r"(0\.\d\d) \(([\d.]+)\)", RELEASED[cell]).groups())
    # Three digits, up.
    assert sigmas[epsilon][name] <= sigma * 1.001
    assert sigma == pytest.approx(sigmas[epsilon][name], rel=0.012)
    assert voting["accuracy"](voting["counts"], sigma) == pytest.approx(said, abs=0.0075)


def test_the_sigmas_meet_their_budgets(sigmas):
    for epsilon, found in sigmas.items():
        for name in ("paper", "renyi", "full_release"):
            assert 0.98 * epsilon <= BOUNDS[name](ps.NoisyMax(ps.Gaussian(sigma=found[name]), m=10, rounds=1000), 1e-5) <= epsilon
        for name, changes in {"any_change": None, "ballots": 2}.items():
            whole = ps.NoisyMax(ps.Gaussian(sigma=found[name]), m=10, rounds=1000, changes=changes)
            assert 0.999 * epsilon <= whole.epsilon_at(1e-5).upper <= epsilon
        noise = [found[name] for name in ("renyi", "paper", "full_release", "any_change", "pate", "ballots")]
        assert noise == sorted(noise, reverse=True)


def test_the_worst_case_known_of_one_ballot_costs_less_than_the_bound(sigmas):
    whole = ps.NoisyMax(ps.Gaussian(sigma=sigmas[5]["ballots"]), m=10, rounds=1000, changes=2)
    assert whole.epsilon_at(1e-5).lower >= 3.8
    assert "costs 3.8; the bound is 5" in PAGE


def test_one_ballot_costs_a_gaussian_of_sensitivity_root_2(sigmas):
    for epsilon, found in sigmas.items():
        alone = ps.plan("gaussian(sigma=?)", epsilon=epsilon, delta=1e-5).value
        assert found["ballots"] == pytest.approx(alone * np.sqrt(2 * 1000), rel=1e-4)


@pytest.mark.parametrize("cell", SMOOTHED, ids=str)
def test_smoothed_labels(voting, cell):
    """A mean of 100 runs, to 7 of its standard deviations: a false alarm in any of the cells has a probability below 1e-8."""
    rng = np.random.default_rng()
    sigma = float(re.search(r"\(([\d.]+)\)", RELEASED[cell])[1])
    noise = rng.normal(0, sigma, size=(100, *voting["counts"].shape))  # an experiment on public data: nothing is released
    runs = [smoothed_share(voting, released) for released in (voting["counts"] + noise).argmax(axis=2)]
    assert np.std(runs) < 0.15
    assert np.mean(runs) == pytest.approx(float(SMOOTHED[cell]), abs=0.015 + 0.7 * np.std(runs))
