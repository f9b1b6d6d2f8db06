"""A search on one secret sample of the records, and a final training on all of them."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats
from two_stage_runs import DATA, FINAL, SEARCH, SPACE, SYNTHETIC, TEST, Recorded, held_out, right

import privselect as ps
from privselect.errors import ParameterError
from privselect.tuning.dry_run import dry_run
from privselect.tuning.executors import Serial
from privselect.tuning.subsample import HOLDOUT, TRAINING, draw_sample
from privselect.tuning.tune import configure_run
from privselect.tuning.tuning_run import seeded_secret

FALSE_ALARM = 1e-6
GIVEN = {"mechanism": SEARCH, "final": FINAL, "count": ps.Poisson(mean=6), "score": "public", "delta": 1e-6, "subsample": "1/3"}


def tuned(trial, **given):
    usual = {**GIVEN, "data": DATA, "export": "arrays", "executor": "serial", "ledger": None, "insecure_seed": 3}
    return ps.tune(trial, SPACE, **{**usual, **given})


@pytest.mark.usefixtures("quick")
def test_all_trials_share_one_sample_and_the_final_training_has_all_records():
    trial = Recorded()
    release = tuned(trial)
    samples = {frozenset(call[4]) for call in trial.of("search")}
    expected = draw_sample(DATA, Fraction(1, 3), seeded_secret(3, 1), TRAINING)
    assert len(trial.of("search")) > 1
    assert samples == {frozenset(expected["id"].tolist())}
    assert trial.of("final")[0][4] == set(DATA["id"].tolist())
    assert release.certificate.plan.subsample == "1/3"
    assert any("each record is in it with probability 1/3" in note for note in release.certificate.run.notes)


@pytest.mark.usefixtures("quick")
def test_another_run_has_another_sample():
    samples = []
    for seed in (3, 4):
        trial = Recorded()
        tuned(trial, insecure_seed=seed)
        samples.append(trial.of("search")[0][4])
    assert samples[0] != samples[1]


def test_the_certificate_of_a_subsampled_search_verifies():
    release = tuned(Recorded(), count="geometric(mean=3)")
    assert ps.verify(release.certificate).holds
    all_records = ps.search_then_train(SEARCH, ps.Geometric(mean=3), FINAL)
    assert release.certificate.total.upper < all_records.epsilon_at(1e-6).lower


class Counted:
    """Answers, with the ids of the records that were asked about noted."""

    def __init__(self):
        self.asked = set()

    def __call__(self, model, held):
        self.asked |= set(held["id"].tolist())
        return right(model, held)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("apart", [False, True])
def test_records_that_are_held_out_are_sampled_too(apart):
    counted, trial = Counted(), Recorded(held_out)
    hold = {"holdout": TEST} if apart else {"fraction": 0.5, "ids": "id"}
    score = ps.NoisyCount(counted, sigma=4.0, **hold)
    tuned(trial, score=score, mechanism=ps.Disjoint((SEARCH, score.noise)))
    (trained,) = {frozenset(call[4]) for call in trial.of("search")}
    assert len(trained) < (0.5 if apart else 0.27) * len(DATA["id"])
    assert 0 < len(counted.asked) < 0.5 * len(TEST["id"])
    if apart:
        expected = draw_sample(TEST, Fraction(1, 3), seeded_secret(3, 1), HOLDOUT)
        assert counted.asked == set(expected["id"].tolist())
    else:
        assert not trained & counted.asked
    assert trial.of("final")[0][4] == set(DATA["id"].tolist())


def test_each_record_is_drawn_with_the_stated_probability_independently():
    # 4000 samples of 6 records: the 64 subsets against their probabilities, a chi-square; false alarm 1e-6.
    probability, records = Fraction(2, 7), np.arange(6)
    observed = np.zeros(64)
    for number in range(4000):
        sample = draw_sample(records, probability, number.to_bytes(32, "big"), TRAINING)
        observed[int(np.sum(2**sample))] += 1
    sizes = np.array([subset.bit_count() for subset in range(64)])
    expected = 4000 * float(probability) ** sizes * float(1 - probability) ** (6 - sizes)
    rare = expected < 5.0  # pooled
    pooled = [np.append(cells[~rare], cells[rare].sum()) for cells in (observed, expected)]
    assert stats.chisquare(*pooled).pvalue > FALSE_ALARM


def test_a_sample_of_all_and_the_forms_of_data():
    for data in (np.arange(9), list(range(9)), (np.arange(9), list(range(9))), {"a": np.arange(9)}):
        assert str(draw_sample(data, Fraction(1), bytes(32), TRAINING)) == str(data)
    with pytest.raises(ParameterError, match="`data` must be arrays, a table or a list for a subsampled search, got a int"):
        draw_sample(7, Fraction(1, 2), bytes(32), TRAINING)
    with pytest.raises(ParameterError, match=r"`data` must support selecting records by a boolean mask, .* got a str"):
        draw_sample("records", Fraction(1, 2), bytes(32), TRAINING)


def test_a_dry_run_samples_the_synthetic_data_too():
    trial = Recorded()
    run = configure_run(trial, SPACE, **GIVEN, engine=Serial(), ledger=None)
    shown = list(dry_run(run, lambda: SYNTHETIC))
    assert [one.stage for one in shown] == ["search"] * 3 + ["final"]
    assert {call[3] for call in trial.of("search")} != {len(SYNTHETIC["id"])}
    assert len({frozenset(call[4]) for call in trial.of("search")}) == 1
    assert {call[3] for call in trial.of("final")} == {len(SYNTHETIC["id"])}
    best = max(shown[:3], key=lambda one: one.score)
    assert shown[3].candidate == best.candidate
    assert shown[0].reproducible
