"""What a run does, in which order, and what it refuses."""

import contextlib
import dataclasses
import json
import os
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import privselect as ps
from privselect.errors import AbortedError, LedgerError, ParameterError
from privselect.tuning import release_time as release_module
from privselect.tuning import tuning_run as module
from privselect.tuning.executors import read_engine
from privselect.tuning.ledger import Ledger, RunRecord
from privselect.tuning.randomness import Stream, derive_key
from privselect.tuning.runner import RunDraws, Runner, RunnerOptions
from privselect.tuning.space import Space
from privselect.tuning.trial import Outcome, TrialSetup, run_trial
from privselect.tuning.trial_mechanism import trial_mechanism
from privselect.tuning.tune import configure_run
from privselect.tuning.tuning_run import seeded_secret

DATA = {"x": np.arange(20.0), "id": np.arange(20)}
SPACE = {"depth": ps.Choice([1, 2, 3])}
FALSE_ALARM = 1e-6  # of each statistical test here; all use fixed secrets, so that a run that passed passes again


def objective(candidate, data, randomness):
    return float(randomness.numpy().normal()), {"weights": candidate["depth"] + data["x"][:3]}


def failing(_candidate, _data, _randomness):
    raise ValueError("always")


@pytest.fixture
def tuned(quick, tmp_path):  # noqa: ARG001 - it works by being there
    """A run with all that it needs; what is given takes the place of what is not."""

    def run(trial=objective, space=SPACE, **given):
        usual = {
            "data": DATA,
            "mechanism": ps.Gaussian(sigma=4),
            "count": ps.Poisson(mean=5),
            "score": "public",
            "delta": 1e-6,
            "export": "arrays",
            "fallback": {"weights": np.zeros(3)},
            "executor": "serial",
            "ledger": tmp_path / "ledgers",
            "insecure_seed": 3,
        }
        return ps.tune(trial, space, **{**usual, **given})

    return run


def tree_of(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


# -- a run as a whole ---------------------------------------------------------------------------------------------------------


def test_a_release_has_the_winner_and_a_certificate_that_verifies(tmp_path):
    release = ps.tune(
        objective,
        SPACE,
        data=DATA,
        mechanism="gaussian(sigma=4)",
        count="geometric(mean=5)",
        score="public",
        delta=1e-6,
        export="arrays",
        executor="serial",
        ledger=None,
        out=tmp_path / "out",
    )
    assert release.candidate["depth"] in {1, 2, 3}
    assert np.array_equal(release.artifact["weights"], release.candidate["depth"] + DATA["x"][:3])
    assert ps.verify(release.certificate).holds
    assert ps.Certificate.read(tmp_path / "out" / "certificate.json") == release.certificate
    assert not release.certificate.run.insecure
    assert sorted(tree_of(tmp_path / "out")) == ["certificate.json", "model.npz", "plan.json", "release.json"]
    assert json.loads((tmp_path / "out" / "release.json").read_text())["score"] == release.score


@pytest.mark.usefixtures("quick")
def test_certificate_then_k_then_data_then_trials(monkeypatch):
    order = []
    certify, sample = module.certify, ps.Poisson.sample
    monkeypatch.setattr(module, "certify", lambda *a, **b: order.append("certificate") or certify(*a, **b))
    monkeypatch.setattr(ps.Poisson, "sample", lambda *a: order.append("K") or sample(*a))

    def load():
        order.append("data")
        return DATA

    def trial(candidate, data, randomness):
        order.append("trial")
        return objective(candidate, data, randomness)

    tuning = configure_run(
        trial,
        SPACE,
        mechanism=ps.Gaussian(sigma=4),
        count=ps.Poisson(mean=5),
        score="public",
        delta=1e-6,
        epsilon=None,
        fallback=None,
        export="arrays",
        declared=None,
        engine=read_engine("serial"),
        mechanism_of=None,
        ledger=None,
        insecure_seed=3,
    )
    tuning.run(load)
    assert order[:4] == ["certificate", "K", "data", "trial"]
    assert set(order[4:]) <= {"trial"}


def test_the_best_of_exactly_k_trials_is_released(tuned):
    scores = []

    def trial(candidate, data, randomness):
        outcome = objective(candidate, data, randomness)
        scores.append(outcome[0])
        return outcome

    for seed in range(12):
        scores.clear()
        release = tuned(trial, insecure_seed=seed, ledger=None)
        assert len(scores) == ps.Poisson(mean=5).sample(Stream(derive_key(seeded_secret(seed, 1), "count")))
        assert release.score == max(scores, default=None)


def test_no_trial_and_all_failed_release_the_same_fallback_to_the_byte(tuned, tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    zero, three = 8, 1  # by these seeds K is 0 and 3 under poisson(mean=1)
    trees = []
    for seed in (zero, three):
        release = tuned(failing, count=ps.Poisson(mean=1), insecure_seed=seed, out=tmp_path / "out", ledger=tmp_path / f"ledgers {seed}")
        assert release.is_fallback
        assert (release.candidate, release.score) == (None, None)
        assert np.array_equal(release.artifact["weights"], np.zeros(3))
        trees.append(tree_of(tmp_path / "out"))
        (tmp_path / "out").rename(tmp_path / f"out {seed}")
    assert trees[0] == trees[1]


def test_ties_are_won_by_every_slot_alike():
    # 400 runs of 4 equal trials: a chi-square with 3 degrees of freedom, false alarm 1e-6.
    winners = Counter()
    for seed in range(400):
        ledger = Ledger.in_memory()
        secret = seeded_secret(seed, 1)
        ledger.begin(RunRecord("p", "c", None, secret, 4, None, released=False))
        best = Runner(ledger, RunDraws(secret, 4, Space(SPACE)), RunnerOptions(read_engine("serial"))).run(TrialSetup(equal, None))
        winners[best.slot] += 1
    assert stats.chisquare([winners[slot] for slot in range(4)]).pvalue > FALSE_ALARM


def equal(*_):
    return 1.0, None


@pytest.mark.parametrize("trials", [0, 1, 3])
def test_an_executor_is_opened_once_whatever_k_is_and_closed_as_often(trials, monkeypatch):
    events = []
    serial = read_engine("serial")
    opened = type(serial).open

    def watched(engine, work):
        executor = opened(engine, work)
        events.append("opened")
        monkeypatch.setattr(executor, "shutdown", lambda **_: events.append("closed"))
        return executor

    monkeypatch.setattr(type(serial), "open", watched)
    ledger = Ledger.in_memory()
    ledger.begin(RunRecord("p", "c", None, bytes(32), trials, None, released=False))
    Runner(ledger, RunDraws(bytes(32), trials, Space(SPACE)), RunnerOptions(serial)).run(TrialSetup(equal, None))
    assert events == ["opened", "closed"]


# -- interrupted and resumed --------------------------------------------------------------------------------------------------


class Interrupted:
    """Ctrl-C in the n-th trial, once."""

    def __init__(self, number):
        self.left, self.calls = number, []

    def __call__(self, candidate, data, randomness):
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt
        self.calls.append(randomness.integer(128))
        return objective(candidate, data, randomness)


def test_an_interrupted_run_releases_nothing_and_then_what_it_would_have(tuned, tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    whole, trial = Interrupted(-1), Interrupted(4)
    tuned(whole, out=tmp_path / "out", ledger=tmp_path / "others")
    expected = tree_of(tmp_path / "out")
    (tmp_path / "out").rename(tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        tuned(trial, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()
    tuned(trial, out=tmp_path / "out")
    assert tree_of(tmp_path / "out") == expected
    assert trial.calls == whole.calls  # each trial once


def interrupt(tuned, **given):
    with pytest.raises(KeyboardInterrupt):
        tuned(Interrupted(2), **given)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"data": {**DATA, "x": np.arange(20.0) + (np.arange(20) == 7)}}, "the data or the objective has changed since it started"),
        ({"data": None}, "it was started without `data`, so the data cannot be checked"),
        ({"delta": 1e-7}, "another budget"),
        ({"epsilon": 3.0}, "another budget"),
        ({"declared": ps.Declared(unit="one household")}, "another budget or declaration"),
        ({"out": "elsewhere"}, "its `out` folder is"),
        ({"seed_bits": 32}, "states other options"),
        ({"losses": 9}, "states other options"),
    ],
)
def test_a_run_is_not_resumed_under_other_conditions(tuned, tmp_path, change, said):
    interrupt(tuned, out=tmp_path / "out")
    (ledger,) = (tmp_path / "ledgers").iterdir()
    before = ledger.read_bytes()
    with pytest.raises(LedgerError, match=said):
        tuned(Interrupted(-1), **{"out": tmp_path / "out", **change})
    assert ledger.read_bytes() == before
    tuned(Interrupted(-1), out=tmp_path / "out")


def test_constant_work_cannot_be_given_up_on_resume(tuned):
    given = {"count": ps.Poisson(mean=5, cap=12)}
    interrupt(tuned, constant_work=True, **given)
    with pytest.raises(LedgerError, match="states other options"):
        tuned(Interrupted(-1), **given)
    tuned(Interrupted(-1), constant_work=True, **given)


def test_a_run_begun_without_data_is_not_resumed_with_data(tuned):
    def trial(_candidate, _data, _randomness):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return 1.0, {"weights": np.zeros(3)}

    calls = []
    with pytest.raises(KeyboardInterrupt):
        tuned(trial, data=None)
    with pytest.raises(LedgerError, match="has changed since it started"):
        tuned(trial)


def test_an_unfinished_run_keeps_its_folder_from_other_plans(tuned, tmp_path):
    interrupt(tuned, out=tmp_path / "out")
    with pytest.raises(LedgerError, match="an unfinished run of another plan"):
        tuned(count=ps.Poisson(mean=6), out=tmp_path / "out")
    tuned(count=ps.Poisson(mean=6), out=tmp_path / "another")


def test_files_beside_the_ledgers_do_not_stop_a_run(tuned, tmp_path):
    (tmp_path / "ledgers").mkdir(mode=0o700)
    for name, content in (("a-1.sqlite", b"text"), ("b-2.sqlite", b"")):
        (tmp_path / "ledgers" / name).write_bytes(content)
        (tmp_path / "ledgers" / name).chmod(0o600)
    tuned(out=tmp_path / "out")
    assert (tmp_path / "ledgers" / "a-1.sqlite").read_bytes() == b"text"


def test_a_second_run_must_be_asked_for_and_stands_in_the_certificate(tuned, tmp_path):
    assert tuned().certificate.run.runs == 1
    with pytest.raises(LedgerError, match="was already run and released"):
        tuned()
    # Nor does a file that a killed second coordinator left give leave for a second run.
    (first,) = (tmp_path / "ledgers").iterdir()
    second = first.with_name(first.name.replace("-1.", "-2."))
    os.close(os.open(second, os.O_CREAT | os.O_WRONLY, 0o600))
    with pytest.raises(LedgerError, match="was already run and released"):
        tuned()
    assert tuned(again=True).certificate.run.runs == 2
    assert tuned(again=True).certificate.run.runs == 3


def test_a_seed_marks_the_certificate(tuned):
    assert tuned().certificate.run.insecure
    assert not tuned(insecure_seed=None, ledger=None).certificate.run.insecure


def test_without_a_seed_runs_differ(tuned):
    assert len({tuned(insecure_seed=None, ledger=None, count=ps.Poisson(mean=30)).score for _ in range(5)}) == 5


# -- time ---------------------------------------------------------------------------------------------------------------------


def test_a_deadline_releases_nothing_and_the_run_goes_on_later(tuned, tmp_path):
    def slow(candidate, data, randomness):
        time.sleep(0.1)
        return objective(candidate, data, randomness)

    with pytest.raises(AbortedError, match="missed its deadline"):
        tuned(slow, deadline=0.15, out=tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["ledgers"]
    assert tuned(slow, out=tmp_path / "out").out.exists()


def test_a_time_limit_is_a_failed_trial(tuned):
    def endless(_candidate, _data, _randomness):
        while True:
            with contextlib.suppress(Exception):  # as careless trainers do
                time.sleep(10.0)

    assert tuned(endless, timeout=0.02, ledger=None).is_fallback


def test_a_memory_limit_is_a_failed_trial():
    work = TrialSetup(lambda *_: (1.0, np.ones(10**9)[0]), None, memory_limit=2**29)
    reader, writer = os.pipe()
    process = os.fork()
    if process == 0:
        os.write(writer, b"failed" if run_trial(work, {}, bytes(32)) is None else b"ran")
        os._exit(0)
    os.waitpid(process, 0)
    assert os.read(reader, 10) == b"failed"
    os.close(reader)
    os.close(writer)


def test_constant_work_runs_the_largest_k_and_the_winner_is_among_the_first_k(tuned, tmp_path):
    law = ps.Poisson(mean=3, cap=9)
    for seed in range(8):
        calls = tmp_path / f"calls {seed}"

        def trial(candidate, data, randomness, calls=calls):
            outcome = objective(candidate, data, randomness)
            with calls.open("a") as file:
                file.write(f"{outcome[0]!r}\n")
            return outcome

        release = tuned(trial, count=law, constant_work=True, insecure_seed=seed, ledger=None)
        scores = [float(line) for line in calls.read_text().split()]
        drawn = law.sample(Stream(derive_key(seeded_secret(seed, 1), "count")))
        assert len(scores) == 9
        assert release.score == max(scores[:drawn], default=None)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"timeout": 0.1}, "a law of K with a largest K"),
        ({"count": ps.Poisson(mean=2, cap=4)}, "needs a `timeout`"),
        ({"count": ps.Poisson(mean=2, cap=4), "timeout": 100.0}, "must be at least 464 seconds from now"),
    ],
)
def test_a_time_of_release_that_is_not_certain_is_refused_before_the_draw(tuned, tmp_path, given, said):
    with pytest.raises(ParameterError, match=said):
        tuned(release_at=datetime.now(UTC) + timedelta(seconds=100), **given)
    assert not list((tmp_path / "ledgers").iterdir())


def test_a_certain_time_of_release_is_kept_and_cannot_be_moved(tuned, tmp_path, monkeypatch):
    monkeypatch.setattr(release_module, "_STARTUP_SECONDS", 1.0)
    monkeypatch.setattr(release_module, "_SECONDS_BETWEEN_TRIALS", 0.0)
    moment = datetime.now(UTC) + timedelta(seconds=2)
    given = {"count": ps.Poisson(mean=2, cap=4), "timeout": 0.1, "out": tmp_path / "out", "insecure_seed": 1}
    with pytest.raises(KeyboardInterrupt):
        tuned(Interrupted(1), release_at=moment, **given)
    with pytest.raises(LedgerError, match="states other options"):
        tuned(Interrupted(-1), release_at=moment + timedelta(seconds=5), **given)
    release = tuned(Interrupted(-1), release_at=moment, **given)
    assert datetime.now(UTC) >= moment
    assert moment.isoformat() in " ".join(release.certificate.run.notes)


def test_a_run_that_is_late_for_its_release_releases_nothing(tuned, tmp_path, monkeypatch):
    monkeypatch.setattr(release_module, "_STARTUP_SECONDS", 0.05)
    monkeypatch.setattr(release_module, "_SECONDS_BETWEEN_TRIALS", 0.0)

    def load_slowly(candidate, data, randomness):
        time.sleep(0.4)
        return objective(candidate, data, randomness)

    given = {"count": ps.Poisson(mean=3, cap=4), "timeout": 0.05, "insecure_seed": 1, "out": tmp_path / "out"}
    monkeypatch.setattr(module, "fingerprint", lambda *_: time.sleep(0.5) or bytes(32))
    with pytest.raises(AbortedError, match="missed its deadline"):
        tuned(load_slowly, release_at=datetime.now(UTC) + timedelta(seconds=0.4), **given)
    assert not (tmp_path / "out").exists()


# -- the mechanism ------------------------------------------------------------------------------------------------------------


def test_the_mechanism_of_a_finite_space_is_the_mixture_by_its_exact_weights():
    space = Space({"sigma": ps.Choice([2, 4, 8], ["1/2", "1/3", "1/6"]), "depth": ps.Integer(1, 3)})
    mixture = trial_mechanism(lambda candidate: ps.Gaussian(sigma=candidate["sigma"]), objective, "public", space)
    weights = {Fraction(1, 2): ps.Gaussian(sigma=2), Fraction(1, 3): ps.Gaussian(sigma=4), Fraction(1, 6): ps.Gaussian(sigma=8)}
    assert mixture == ps.Mixture(tuple(weights.items()))
    same = trial_mechanism(lambda _: ps.Gaussian(sigma=2), objective, "public", space)
    assert same == ps.Gaussian(sigma=2)


def test_a_function_of_the_candidate_is_no_mechanism_for_an_endless_space(tuned):
    with pytest.raises(ParameterError, match="\\(none\\), got one that uses 'sigma'"):
        tuned(space={"sigma": ps.Uniform(4, 8)}, mechanism=lambda candidate: ps.Gaussian(sigma=candidate["sigma"]))


def test_every_draw_is_checked_against_the_declared_mechanism_before_data_is_touched(tuned):
    space = {"sigma": ps.Uniform(4, 8)}
    seen = []

    def of(candidate):
        seen.append(candidate["sigma"])
        return ps.Gaussian(sigma=candidate["sigma"])

    release = tuned(space=space, trial=sigma_is_score, mechanism_of=of, ledger=None)
    assert len(seen) == 200 + ps.Poisson(mean=5).sample(Stream(derive_key(seeded_secret(3, 1), "count")))
    assert release.candidate["sigma"] in seen[200:]
    with pytest.raises(ParameterError, match="may leak more than the declared"):
        tuned(space={"sigma": ps.Uniform(3, 8)}, trial=sigma_is_score, mechanism_of=of, ledger=None)


def test_what_a_function_of_the_candidate_notes_stands_in_the_certificate_once(tuned):
    def of(candidate):
        return ps.Gaussian(sigma=candidate["sigma"])

    of.notes = ("sigma is read from the manual",)
    for given in ({"mechanism_of": of}, {"mechanism": of}):
        release = tuned(space={"sigma": ps.Choice([4, 8])}, trial=sigma_is_score, ledger=None, **given)
        assert release.certificate.run.notes.count("sigma is read from the manual") == 1


def sigma_is_score(candidate, _data, _randomness):
    return candidate["sigma"], {"weights": np.zeros(3)}


def test_a_draw_that_is_not_covered_aborts_before_data_is_loaded(tuned, monkeypatch):
    looked = iter(range(10**6))

    def of(_candidate):  # fine for all that are looked at before the draw
        return ps.Gaussian(sigma=4 if next(looked) < 202 else 3)

    monkeypatch.setattr(module, "fingerprint", lambda *_: pytest.fail("data was touched"))
    with pytest.raises(AbortedError, match="may leak more than the declared"):
        tuned(failing, mechanism_of=of, ledger=None, count=ps.Poisson(mean=30))


def test_a_mechanism_that_cannot_be_found_aborts_without_a_word_of_the_candidate(tuned):
    looked = iter(range(10**6))

    def of(candidate):
        if next(looked) > 201:
            raise ValueError(f"canary {candidate}")
        return ps.Gaussian(sigma=4)

    with pytest.raises(AbortedError) as caught:
        tuned(mechanism_of=of, ledger=None, count=ps.Poisson(mean=30))
    assert "canary" not in str(caught.value)
    assert caught.value.__suppress_context__


# -- scores -------------------------------------------------------------------------------------------------------------------


def test_a_score_of_which_nothing_is_said_is_refused(tuned):
    with pytest.raises(ParameterError, match="`score` must state how the score is private"):
        tuned(score=None)


@pytest.mark.parametrize("score", [float("nan"), float("inf"), "1.0", None, True, np.array([1.0]), 1j])
def test_a_score_that_is_no_finite_number_is_a_failure(score):
    assert run_trial(TrialSetup(lambda *_: (score, None), None), {}, bytes(32)) is None


@pytest.mark.parametrize("score", [1, 1.0, np.float32(1.0), np.int64(1), np.array(1.0), Fraction(1)])
def test_numbers_of_all_kinds_are_scores(score):
    assert run_trial(TrialSetup(lambda *_: (score, None), None), {}, bytes(32)) == Outcome(1.0, b"")


def right(artifact, holdout):
    return holdout["x"] < artifact["limit"]


def test_a_noisy_count_on_a_hold_out_has_the_noise_that_is_accounted():
    # 4000 draws in cells of the discrete Gaussian with sigma 2: a chi-square, false alarm 1e-6.
    score = ps.NoisyCount(right, sigma=2.0, holdout=DATA)
    measured = score.scorer(DATA)
    drawn = Counter(measured.score({"limit": 5.0}, Stream(derive_key(bytes(32), "test", number))) - 5 for number in range(4000))
    cells = np.arange(-5, 6)
    weights = np.exp(-np.square(np.arange(-60, 61)) / 8.0)
    chances = dict(zip(range(-60, 61), weights / weights.sum(), strict=True))
    inner = [chances[cell] for cell in cells]
    expected = 4000 * np.array([*inner, 1.0 - sum(inner)])
    observed = [drawn[cell] for cell in cells]
    assert stats.chisquare([*observed, 4000 - sum(observed)], expected).pvalue > FALSE_ALARM


def test_a_noisy_count_costs_the_greater_of_two_selections(tuned):
    score = ps.NoisyCount(right, sigma=4.0, holdout=DATA)
    with pytest.raises(ParameterError, match=r"must be disjoint\(what training leaks, discrete_gaussian\(sigma=4\)\)"):
        tuned(score=score)
    both = ps.Disjoint((ps.Gaussian(sigma=4), score.noise))

    def trial(candidate, _data, _randomness):
        return None, {"limit": np.array(float(candidate["depth"]))}

    release = tuned(trial, score=score, mechanism=both, fallback=None)
    assert release.certificate.plan.mechanism == str(both)
    assert release.score == round(release.score)
    failed = tuned(lambda *_: (1.0, {"limit": np.array(1.0)}), score=score, mechanism=both, fallback=None, ledger=None)
    assert failed.is_fallback  # a score of its own beside the count


def test_a_record_more_changes_its_own_side_of_the_split_alone():
    score = ps.NoisyCount(right, sigma=4.0, fraction=Fraction(1, 4), ids="id")
    key = bytes(range(32))
    everyone = {"x": np.arange(200.0), "id": np.arange(200)}
    training, held = score.split(everyone, key)
    assert not set(training["id"]) & set(held["id"])
    assert sorted([*training["id"], *held["id"]]) == list(range(200))
    for gone in range(0, 200, 9):
        fewer = {name: np.delete(column, gone) for name, column in everyone.items()}
        less_training, less_held = score.split(fewer, key)
        assert set(training["id"]) - set(less_training["id"]) <= {gone}
        assert set(held["id"]) - set(less_held["id"]) <= {gone}
        assert len(less_training["id"]) + len(less_held["id"]) == 199
        counts = [int(np.count_nonzero(right({"limit": 90.0}, part))) for part in (held, less_held)]
        assert 0 <= counts[0] - counts[1] <= (gone in held["id"])


def test_data_smaller_than_the_split_is_refused():
    score = ps.NoisyCount(right, sigma=4.0, fraction=Fraction(1, 4), ids="id")
    with pytest.raises(ParameterError, match="enough records"):
        score.split({"x": np.arange(3.0), "id": np.arange(3)}, bytes(32))


def test_the_noise_of_a_score_is_none_that_the_objective_can_ask_for():
    measured = ps.NoisyCount(right, sigma=50.0, holdout=DATA).scorer(DATA)
    noise = ps.DiscreteGaussian(sigma=50.0)
    asked = []

    def trial(_candidate, _data, randomness):
        asked.extend(noise.sample(randomness.stream(name)) for name in ("score", "stream", "objective"))
        return None, {"limit": 0.0}

    outcomes = [run_trial(TrialSetup(trial, None, measured), {}, bytes([number]) * 32).score for number in range(10)]
    assert all(asked[i::3] != outcomes for i in range(3))


# -- bad input ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"trial": 3}, "`objective` must be a function"),
        ({"count": 3}, "`count` must be a law of K"),
        ({"count": "gaussian(sigma=4)"}, "`count` must be a law of K"),
        ({"mechanism": None}, "`mechanism` is required: the objective does not state"),
        ({"mechanism": "geometric(mean=3)"}, "`mechanism` must be a mechanism"),
        ({"executor": "threads"}, "`executor` must be one of"),
        ({"export": "pickle"}, "`export` must be one of"),
        ({"export": None}, "`fallback` must be None"),
        ({"memory_limit": 2**30}, "`memory_limit` must be None with the executor serial"),
        ({"constant_work": True}, "`constant_work` needs a law of K with a largest K"),
        ({"timeout": 0}, "`timeout` must be in"),
        ({"deadline": float("nan")}, "`deadline` must be in"),
        ({"insecure_seed": -1}, "`insecure_seed` must be"),
        ({"insecure_seed": 2**256}, "`insecure_seed` must be"),
        ({"seed_bits": 129}, "`seed_bits` must be"),
        ({"release_at": "tomorrow"}, "`release_at` must be a time with a time zone"),
        ({"release_at": datetime(2030, 1, 1)}, "`release_at` must be a time with a time zone"),  # noqa: DTZ001
        ({"out": 3}, "`out` must be the path of a folder"),
    ],
)
def test_what_cannot_be_run_is_refused_in_one_sentence_before_the_draw(tuned, tmp_path, given, said):
    with pytest.raises(ValueError, match=said) as caught:
        tuned(**given)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "ledgers").exists()


def test_a_folder_that_cannot_take_the_release_is_refused_before_the_draw(tuned, tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "empty")
    (tmp_path / "nowhere").symlink_to(tmp_path / "none")
    for out in ("full", "full/file", "none/out", "link", "nowhere", "x" * 250, "/proc"):
        with pytest.raises(ParameterError, match="`out` must be"):
            tuned(out=tmp_path / out)
        assert not list((tmp_path / "ledgers").iterdir())
    assert tuned(out=tmp_path / "empty").out == tmp_path / "empty"


def test_a_space_whose_candidates_cannot_be_written_is_refused_before_the_draw(tuned, tmp_path):
    @dataclasses.dataclass(frozen=True)
    class Odd(ps.tuning.distributions.Distribution):
        def draw(self, entropy):
            return np.int64(entropy.getrandbits(3))

        def as_dict(self):
            return {"odd": 8}

    with pytest.raises(ParameterError, match="can be written as JSON"):
        tuned(space={"depth": Odd()})
    with pytest.raises(ParameterError, match="`space` must draw candidates"):
        tuned(space=lambda suggest: suggest.nothing())
    assert not list((tmp_path / "ledgers").iterdir())


def test_a_full_disk_at_the_release_leaves_nothing_half_written_and_a_run_to_resume(tuned, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "utime", full)
        with pytest.raises(ParameterError, match="No space left"):
            tuned(out=tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["ledgers"]
    assert tuned(out=tmp_path / "out").out.exists()


def test_the_curators_view_warns_and_counts(tuned, capsys):
    tuned(curator=True, ledger=None)
    told = capsys.readouterr().err.splitlines()
    assert told[0].startswith("warning: curator view")
    assert told[1] == (
        "planned: no largest number of search trials, 5 on average; no longest time, because a trial has no time limit or K has no "
        "largest value"
    )
    assert told[-1][9:] == f"trial {len(told) - 2} of {len(told) - 2}"


def test_paths_may_be_text(tuned, tmp_path):
    assert tuned(out=str(tmp_path / "out"), ledger=str(tmp_path / "l")).out == Path(tmp_path / "out")
