"""Define-by-run spaces: the same draws as a fixed space, known only to the trial, released with the winner."""

import contextlib
import json
import pickle
import threading

import numpy as np
import pytest

import privselect as ps
from privselect.errors import AbortedError, LedgerError, ParameterError
from privselect.tuning.distributions import Choice, Integer, LogUniform, Uniform
from privselect.tuning.dry_run import dry_run
from privselect.tuning.executors import Serial
from privselect.tuning.plan_violation import PlanViolation, ViolationResult, recorded_violations
from privselect.tuning.randomness import Stream
from privselect.tuning.space import DefineByRunSpace, Space
from privselect.tuning.suggest import Suggest
from privselect.tuning.trial import TrialSetup, pack_trial, run_trial, unpack_trial
from privselect.tuning.tune import configure_run

DATA = np.arange(5.0)
LAWS = {"rate": LogUniform(1e-3, 1.0), "depth": Integer(1, 9), "kind": Choice(["a", "b"])}
HERE = {"ledger": None, "executor": "serial"}
GIVEN = {"mechanism": ps.Gaussian(sigma=4), "count": ps.Geometric(mean=2), "score": "public", "delta": 1e-6, **HERE}
pytestmark = pytest.mark.usefixtures("quick")


def plain(candidate, _data, _randomness):
    return candidate["rate"], {"weights": np.array([candidate["depth"]])}


def asking(suggest, data, randomness):
    return plain({name: suggest.draw(name, law) for name, law in LAWS.items()}, data, randomness)


def conditional(suggest, _data, _randomness):
    if suggest.choice("kind", ["a", "b"]) == "a":
        return suggest.uniform("only/a", 0, 1), None
    return 2.0 + suggest.integer("only b", 1, 3), None


@pytest.mark.parametrize("seed", range(3))
def test_the_same_secret_releases_what_a_space_would(seed):
    count = {"count": ps.Geometric(mean=5), "insecure_seed": seed, "data": DATA, "export": "arrays"}
    here, there = (ps.tune(trial, space, **GIVEN | count) for trial, space in ((plain, LAWS), (asking, DefineByRunSpace("asking"))))
    assert (here.candidate, here.score) == (there.candidate, there.score)
    assert np.array_equal(here.artifact["weights"], there.artifact["weights"])
    assert here.distributions is None
    assert there.distributions == {name: law.as_dict() for name, law in LAWS.items()}


def test_a_draw_may_depend_on_another_and_have_any_name():
    found = [ps.tune(conditional, DefineByRunSpace("c"), **GIVEN, insecure_seed=seed) for seed in range(12)]
    assert {tuple(sorted(release.candidate)) for release in found} == {("kind", "only/a"), ("kind", "only b")}
    assert all(list(release.candidate) == list(release.distributions) for release in found)


def test_the_release_folder_holds_the_candidate_and_its_distributions(tmp_path):
    release = ps.tune(asking, DefineByRunSpace("asking"), **GIVEN, data=DATA, export="arrays", out=tmp_path / "out")
    said = json.loads((tmp_path / "out" / "release.json").read_text())
    assert said["candidate"] == release.candidate
    assert said["distributions"] == release.distributions
    with np.load(tmp_path / "out" / "model.npz") as arrays:
        assert arrays["weights"] == release.candidate["depth"]
    assert json.loads((tmp_path / "out" / "plan.json").read_text())["space"] == {"suggested": "asking"}
    assert any("the objective defines the search space" in note for note in release.certificate.run.notes)


def test_a_run_that_is_resumed_releases_the_same(tmp_path):
    given = {name: value for name, value in GIVEN.items() if name != "ledger"} | {"count": ps.Geometric(mean=9), "insecure_seed": 3}
    calls = []

    def stopped(suggest, data, randomness):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return asking(suggest, data, randomness)

    with pytest.raises(KeyboardInterrupt):
        ps.tune(stopped, DefineByRunSpace("s"), **given, data=DATA, ledger=tmp_path / "ledger")
    resumed = ps.tune(stopped, DefineByRunSpace("s"), **given, data=DATA, ledger=tmp_path / "ledger")
    assert len(calls) > 4
    assert resumed.candidate == ps.tune(asking, DefineByRunSpace("s"), **given, data=DATA, ledger=None).candidate
    with pytest.raises(LedgerError, match="again"):
        ps.tune(stopped, DefineByRunSpace("s"), **given, data=DATA, ledger=tmp_path / "ledger")


def test_a_fallback_has_no_candidate():
    given = {"count": ps.Poisson(mean=0.5), "export": "arrays", "fallback": {"weights": [0.0]}}
    release = ps.tune(asking, DefineByRunSpace("s"), **GIVEN | given, data=DATA, insecure_seed=1)
    assert release.candidate is None
    assert release.distributions is None
    assert release.artifact["weights"] == 0.0


def test_a_worker_learns_a_stream_that_tells_nothing_else():
    candidate = DefineByRunSpace("s").draw(Stream(bytes(32)))
    assert candidate == {"stream": bytes(32).hex()}
    suggest = Suggest.of_candidate(candidate)
    assert suggest.draw("depth", LAWS["depth"]) == Space({"depth": LAWS["depth"]}).draw(Stream(bytes(32)))["depth"]
    assert unpack_trial(pack_trial(suggest, b"rest")) == (suggest.drawn, {"depth": {"integer": [1, 9]}}, b"rest")
    assert repr(unpack_trial(pack_trial(suggest, b""))) == "PackedTrial(...)"


def test_a_candidate_that_is_not_covered_ends_the_run():
    def of(candidate):
        return ps.Gaussian(sigma=4 if candidate["depth"] <= 9 else 1)

    assert ps.tune(asking, DefineByRunSpace("s"), **GIVEN, data=DATA, mechanism_of=of).candidate
    with pytest.raises(AbortedError, match=r"may leak more than the declared .*; nothing is released$"):
        ps.tune(asking, DefineByRunSpace("s"), **GIVEN, data=DATA, mechanism_of=lambda _: ps.Gaussian(sigma=1))
    with pytest.raises(ParameterError, match="must be one that covers every candidate"):
        ps.tune(asking, DefineByRunSpace("s"), **GIVEN | {"mechanism": of}, data=DATA)


def test_a_dry_run_shows_the_candidate():
    given = {name: value for name, value in GIVEN.items() if name != "executor"}
    rest = dict.fromkeys(["epsilon", "fallback", "declared", "mechanism_of"])
    tuning = configure_run(asking, DefineByRunSpace("s"), **given, **rest, export="arrays", engine=Serial())
    trials = list(dry_run(tuning, lambda: DATA))
    assert all(set(trial.candidate) == set(LAWS) for trial in trials)
    assert trials[0].reproducible


# -- breaches -------------------------------------------------------------------------------------------------------------------------


def breaching(_candidate, _data, _randomness):
    with contextlib.suppress(Exception):  # a trainer that catches what it can
        raise PlanViolation("the trainer ran something else", details="canary 4711")
    return 1.0, None


@pytest.mark.parametrize("executor", ["serial", "processes"])
def test_a_breach_ends_the_run_without_a_release_and_without_details(executor, tmp_path, capfd):
    with pytest.raises(AbortedError, match=r"^the trainer ran something else; nothing is released$"):
        ps.tune(breaching, {"x": Uniform(0, 1)}, **GIVEN | {"executor": executor}, data=DATA, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert "4711" not in "".join(capfd.readouterr())


def test_a_breach_on_synthetic_data_is_told_before_anything_is_drawn():
    with pytest.raises(ParameterError, match=r"before any private data was accessed: the trainer ran something else: canary 4711$"):
        ps.tune(breaching, {"x": Uniform(0, 1)}, **GIVEN, data=DATA, synthetic=DATA)


def test_a_worker_tells_a_breach_by_its_sentence_alone():
    assert run_trial(TrialSetup(breaching, None), {}, bytes(32)) == ViolationResult("the trainer ran something else")


def swallowing(_candidate, _data, _randomness):
    with contextlib.suppress(BaseException):
        raise PlanViolation("the trainer ran something else", details="canary 4711")
    return 1.0, None


def in_a_thread(candidate, data, randomness):
    thread = threading.Thread(target=breaching, args=(candidate, data, randomness))
    thread.start()
    thread.join()
    return 1.0, None


@pytest.mark.parametrize("objective", [swallowing, in_a_thread])
def test_a_breach_that_nobody_lets_through_is_told_all_the_same(objective):
    assert run_trial(TrialSetup(objective, None), {}, bytes(32)) == ViolationResult("the trainer ran something else")
    assert run_trial(TrialSetup(lambda *_: (1.0, None), None), {}, bytes(32)).score == 1.0


def test_a_breach_from_another_process_has_the_same_message():
    breach = pickle.loads(pickle.dumps(PlanViolation("a sentence", details="canary 4711")))  # noqa: S301 - our own bytes
    assert (breach.message, str(breach)) == ("a sentence", "a sentence: canary 4711")
    assert recorded_violations()[-2:] == ("a sentence", "a sentence")


# -- a mechanism for each candidate ---------------------------------------------------------------------------------------------------

MIXED = {"rate": LogUniform(1e-3, 1.0), "batch": Choice([1, 2], weights=["1/3", "2/3"]), "depth": Integer(1, 2)}


def by_batch(candidate):
    return ps.Gaussian(sigma=4.0 * candidate["batch"])


class Telling:
    """An objective that states what each candidate runs."""

    def __call__(self, candidate, _data, _randomness):
        return candidate["rate"], None

    mechanism_of = staticmethod(by_batch)


MIXTURE = ps.parse("mixture(1/3*gaussian(sigma=4), 2/3*gaussian(sigma=8))")


def test_the_mixture_is_over_the_finite_hyperparameters_alone():
    release = ps.tune(lambda c, _d, _r: (c["rate"], None), MIXED, **GIVEN | {"mechanism": by_batch})
    assert release.certificate.plan.mechanism == str(MIXTURE)
    assert any("each candidate's mechanism was checked" in note for note in release.certificate.run.notes)


@pytest.mark.parametrize("mechanism", [None, MIXTURE], ids=["left to the objective", "said as well"])
def test_an_objective_tells_what_each_candidate_runs(mechanism):
    release = ps.tune(Telling(), MIXED, **GIVEN | {"mechanism": mechanism})
    assert release.certificate.plan.mechanism == str(MIXTURE)


def test_what_an_objective_tells_must_be_covered():
    assert ps.tune(Telling(), MIXED, **GIVEN).certificate.plan.mechanism == "gaussian(sigma=4)"
    with pytest.raises(ParameterError, match=r"may leak more than the declared 'gaussian\(sigma=5\)'"):
        ps.tune(Telling(), MIXED, **GIVEN | {"mechanism": ps.Gaussian(sigma=5)})


def test_a_mechanism_that_looks_at_what_cannot_be_listed_is_refused():
    with pytest.raises(ParameterError, match=r"\(batch, depth\), got one that uses 'rate'"):
        ps.tune(plain, MIXED, **GIVEN | {"mechanism": lambda c: ps.Gaussian(sigma=4 + c["rate"])})
    with pytest.raises(ParameterError, match="may leak more than the one accounted for"):
        ps.tune(plain, MIXED, **GIVEN | {"mechanism": lambda c: ps.Gaussian(sigma=4 - c.get("rate", 0))})
    # What leaks less than was accounted for is covered.
    covered = ps.tune(plain, MIXED, **GIVEN | {"mechanism": lambda c: ps.Gaussian(sigma=3 + c.get("rate", 0))})
    assert covered.certificate.plan.mechanism == "gaussian(sigma=3)"


@pytest.mark.parametrize("name", ["mechanism", "mechanism_of"])
def test_what_an_objective_tells_is_not_overruled_by_another_function(name):
    with pytest.raises(ParameterError, match=rf"^`{name}` must not be a function when the objective has its own `mechanism_of`"):
        ps.tune(Telling(), MIXED, **GIVEN | {name: lambda _: ps.Gaussian(sigma=100)})
    assert ps.tune(Telling(), MIXED, **GIVEN | {"mechanism": Telling.mechanism_of}).certificate.plan.mechanism == str(MIXTURE)


def by_rate(candidate):
    return ps.Gaussian(sigma=4.0 + candidate["rate"])


@pytest.mark.parametrize(("own", "of"), [(None, by_rate), (ps.Gaussian(sigma=4), by_rate), (ps.Gaussian(sigma=4), by_batch)])
def test_a_mechanism_that_covers_all_is_held_against_each_candidate(own, of):
    objective = Telling()
    objective.mechanism, objective.mechanism_of = own, of
    given = GIVEN | ({} if own is None else {"mechanism": None})
    assert ps.tune(objective, MIXED, **given).certificate.plan.mechanism == "gaussian(sigma=4)"
    objective.mechanism_of = lambda candidate: ps.Gaussian(sigma=4.0 - candidate["rate"])
    with pytest.raises(ParameterError, match="may leak more than the declared"):
        ps.tune(objective, MIXED, **given)


BAD_FUNCTIONS = {
    "no function": ({"mechanism_of": ps.Gaussian(sigma=4)}, r"^`mechanism_of` must be a function of the candidate, got gaussian"),
    "a wrong name": (
        {"mechanism_of": lambda c: c["sgima"]},
        r"must return the mechanism of every candidate, got KeyError: 'sgima' for \{'rate': ",
    ),
    "an error": ({"mechanism": lambda c: c.get("rate") + 1}, r"^`mechanism` must be a function that succeeds, got TypeError: unsupported"),
}


@pytest.mark.parametrize("kind", BAD_FUNCTIONS)
def test_a_function_that_says_no_mechanism_is_refused_in_words(kind):
    given, words = BAD_FUNCTIONS[kind]
    with pytest.raises(ParameterError, match=words):
        ps.tune(plain, MIXED, **GIVEN | given)


def test_public_facts_are_plain_and_public():
    release = ps.tune(asking, DefineByRunSpace("s"), **GIVEN, data=DATA)
    facts = release.public_facts()
    assert json.loads(json.dumps(facts)) == facts
    assert facts["candidate"] == release.candidate
    assert facts["epsilon"] == release.certificate.total.upper
    assert facts["certificate"] == release.certificate.hash
    assert not {"trials", "k", "duration", "seconds", "seed"} & set(facts)
