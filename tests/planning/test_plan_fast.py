"""Plans for those who wait: as sound as the careful ones, and nearly as good."""

import pytest

import privselect as ps
from privselect.errors import ParameterError
from privselect.planning.plan import check_plan
from privselect.planning.search_range import FastOptions

QUESTIONS = [
    ("gaussian(sigma=?)", "geometric(mean=30)", 2.0),
    ("gaussian(sigma=4)", "poisson(mean=?)", 2.0),
    ("dpsgd(noise_multiplier=1.3, sampling_probability=0.01, steps=?)", "geometric(mean=30)", 2.5),
    ("dpsgd(noise_multiplier=?, sampling_probability=1024/60000, steps=600)", "geometric(mean=30)", 1.0),
    ("gaussian(sigma=?)", None, 0.5),
]


STARTS = [(*question, None) for question in QUESTIONS] + [(*QUESTIONS[0], near) for near in (3.0, 0.1, 40.0)]


@pytest.mark.parametrize(("mechanism", "count", "epsilon", "near"), [*STARTS, (*QUESTIONS[3], 3.0)])
def test_a_quick_plan_keeps_its_budget(mechanism, count, epsilon, near):
    quick = ps.plan(mechanism, count, epsilon=epsilon, delta=1e-6, fast=FastOptions(start=near))
    assert quick.cost.upper <= epsilon
    assert quick.cost.upper >= epsilon * (1 - 3e-3)
    assert quick.baselines == {}
    assert check_plan(quick.mechanism, quick.count, epsilon=epsilon, delta=1e-6).cost.lower <= quick.cost.upper


def test_from_nearby_it_takes_fewer_looks(monkeypatch):
    looks = []
    about = ps.Mechanism.epsilon_fast
    monkeypatch.setattr(ps.Mechanism, "epsilon_fast", lambda self, delta, **care: looks.append(self) or about(self, delta, **care))
    found = ps.plan("gaussian(sigma=?)", "geometric(mean=30)", epsilon=2.0, delta=1e-6, fast=FastOptions())
    far, looks[:] = len(looks), []
    ps.plan("gaussian(sigma=?)", "geometric(mean=31)", epsilon=2.0, delta=1e-6, fast=FastOptions(start=found.value))
    assert len(looks) < far


@pytest.mark.parametrize(
    ("name", "value"), [("accuracy", 0.5), ("accuracy", 0), ("start", float("nan")), ("start", "4"), ("largest", float("inf"))]
)
def test_what_makes_no_sense_is_refused(name, value):
    with pytest.raises(ParameterError, match=rf"`{name}` must be in .*, got"):
        FastOptions(**{name: value})


@pytest.mark.parametrize("near", [1e308, -1.0, 0.0, 1e-300])
def test_a_start_far_off_is_not_taken(near):
    found, wanted = (
        ps.plan("gaussian(sigma=?)", "geometric(mean=30)", epsilon=1, delta=1e-6, fast=FastOptions(start=start)).value
        for start in (near, None)
    )
    assert found == wanted


def test_no_number_above_the_most_is_looked_at():
    with pytest.raises(ParameterError, match="even mean = 1000: there is nothing to solve for"):
        ps.plan("gaussian(sigma=4)", "geometric(mean=?)", epsilon=30, delta=1e-6, fast=FastOptions(largest=1000))
    assert ps.plan("gaussian(sigma=4)", "geometric(mean=?)", epsilon=2, delta=1e-6, fast=FastOptions(largest=1000)).value < 1000


@pytest.mark.parametrize("accuracy", [1e-2, 1e-3, 1e-4])
@pytest.mark.parametrize(
    "mechanism",
    [
        "selection(gaussian(sigma=4), geometric(mean=300))",
        "dpsgd(noise_multiplier=1.1, sampling_probability=256/60000, steps=1000)",
        "laplace(scale=4)",
        "noisy_max(gaussian(sigma=4), m=10)",
        "disjoint(gaussian(sigma=4), laplace(scale=2))",
    ],
)
def test_about_is_proved_from_both_sides(mechanism, accuracy):
    described = ps.parse(mechanism)
    rough, exact = described.epsilon_fast([1e-6, 1e-9], accuracy=accuracy), described.epsilon_at([1e-6, 1e-9])
    assert (rough.lower <= exact.upper).all()
    assert (exact.lower <= rough.upper).all()


def test_about_is_not_refused_where_the_ends_stay_apart():
    renyi = ps.parse("selection(renyi((2, 0.1), (10, 0.6)), geometric(mean=3))")
    assert renyi.epsilon_fast(1e-6, accuracy=1e-3).lower is None
    with pytest.raises(ParameterError):
        renyi.epsilon_at(1e-6, accuracy=1e-3)
