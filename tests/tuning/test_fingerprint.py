"""The fingerprint of data: another one for every difference, the same one in every process."""

import copy
import dataclasses
import functools
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import privselect as ps
from privselect.errors import ParameterError
from privselect.tuning.fingerprint import fingerprint, objective_content
from privselect.tuning.trial_mechanism import leaks_at_most

KEY = bytes(32)
ARRAY = np.arange(24.0).reshape(4, 6)


def changed(index):
    array = ARRAY.copy()
    array.flat[index] = np.nextafter(array.flat[index], np.inf)
    return array


@dataclasses.dataclass
class Records:
    x: object
    y: object


@dataclasses.dataclass(frozen=True)
class Frozen:
    noise: float

    def __call__(self, _candidate, _data, _randomness):
        return self.noise, None


class Counting:
    def __init__(self):
        self.calls = 0

    def __call__(self, _candidate, _data, _randomness):
        self.calls += 1
        return 0.0, None


def another_counting():
    """Of a class of the same name that does something else."""
    return type("Counting", (), {"__call__": lambda *_: (1.0, None)})()


@dataclasses.dataclass(frozen=True)
class Wrapping:
    runs: object

    def __call__(self, *given):
        return self.runs(*given)


@dataclasses.dataclass
class Loaded:
    path: str

    def __post_init__(self):
        self.rows = []


def closed_over(noise):
    return lambda _c, _d, _r: (noise, None)


MASKED = np.ma.masked_array([1.0, 2.0], mask=[False, True])
DIFFERENT = [
    None, 0, 0.0, -0.0, False, "", b"", "0", b"0", 1, 1.0, True, 1j, [], (), {}, [()], [[]], ["a", "b"], ["ab"], ["a", ["b"]], ("a", "b"),
    {"a": 1}, {"a": 2}, {"b": 1}, {"a": 1, "b": 2}, {"b": 2, "a": 1}, {1: "a"}, set(), frozenset(), {1, 2}, {1, 3}, {"1", "2"},
    ARRAY, ARRAY.T, ARRAY.reshape(6, 4), ARRAY.astype(np.float32), ARRAY.astype(int), ARRAY.astype(">f8"), ARRAY[::-1], ARRAY[:3],
    ARRAY.tolist(), [ARRAY], ARRAY.astype(object), np.array([]), np.array([[]]), np.array(0.0), np.zeros((0, 3)), np.zeros((3, 0)),
    np.array(["a", "b"]), np.array([b"a", b"b"]), np.array([1, 2], dtype="M8[s]"), np.array([1, 2], dtype="M8[ns]"),
    np.zeros(2, dtype=[("a", "<i4"), ("b", "<f4")]), np.zeros(2, dtype=[("a", "<f4"), ("b", "<i4")]),
    np.zeros(2, dtype=[("b", "<i4"), ("a", "<f4")]),
    MASKED, np.ma.masked_array([1.0, 2.0], mask=[True, False]), np.array([1.0, 2.0]),
    Records(1, 2), Records(2, 1), Records(1, ARRAY), range(3), range(4),
]  # fmt: skip


def test_no_two_different_data_have_one_fingerprint():
    found = [fingerprint(data, KEY) for data in DIFFERENT]
    for index, mine in enumerate(found):
        for other in range(index):
            assert mine != found[other], (DIFFERENT[index], DIFFERENT[other])


@pytest.mark.parametrize("index", range(24))
def test_the_last_digit_of_every_entry_counts(index):
    assert fingerprint(changed(index), KEY) != fingerprint(ARRAY, KEY)
    assert fingerprint({"x": [changed(index)]}, KEY) != fingerprint({"x": [ARRAY]}, KEY)
    assert fingerprint(Records(changed(index), 0), KEY) != fingerprint(Records(ARRAY, 0), KEY)


def test_equal_data_have_one_fingerprint_however_they_lie_in_memory():
    for data in DIFFERENT:
        assert fingerprint(copy.deepcopy(data), KEY) == fingerprint(data, KEY)
    assert fingerprint(np.asfortranarray(ARRAY), KEY) == fingerprint(ARRAY, KEY)
    assert fingerprint(np.repeat(ARRAY, 2, axis=0)[::2], KEY) == fingerprint(ARRAY, KEY)


def test_without_the_key_nothing_is_known():
    assert fingerprint(ARRAY, KEY) != fingerprint(ARRAY, bytes([1] * 32))


@pytest.mark.parametrize("hashes", ["1", "2"])
def test_another_process_finds_the_same(hashes):
    make = "{'x': np.arange(5.0), 'names': {'a', 'b', 'c', 'dd'}, 'rest': [1, 2.5, 'text', None, (True, b'x')]}"
    use = f"import numpy as np\nfrom privselect.tuning.fingerprint import fingerprint\nprint(fingerprint({make}, bytes(32)).hex())"
    found = subprocess.run(
        [sys.executable, "-c", use], capture_output=True, text=True, check=True, env={**os.environ, "PYTHONHASHSEED": hashes}
    )
    data = {"x": np.arange(5.0), "names": {"a", "b", "c", "dd"}, "rest": [1, 2.5, "text", None, (True, b"x")]}
    assert found.stdout.strip() == fingerprint(data, KEY).hex()


def test_data_of_an_unknown_kind_is_refused_without_being_shown():
    with pytest.raises(ParameterError, match="`data` must consist of arrays") as caught:
        fingerprint(lambda: "canary", KEY)
    assert "canary" not in str(caught.value)


# -- what a candidate runs against what is declared -----------------------------------------------------------------------------

STEPS = ps.DPSGD(noise_multiplier=1.0, sampling_probability=0.01, steps=100)


@pytest.mark.parametrize(
    ("mechanism", "declared", "certain"),
    [
        (ps.Gaussian(sigma=4), ps.Gaussian(sigma=4), True),
        (ps.Gaussian(sigma=5), ps.Gaussian(sigma=4), True),
        (ps.Gaussian(sigma=3.999), ps.Gaussian(sigma=4), False),
        (ps.Pure(epsilon=1), ps.Pure(epsilon=2), True),
        (ps.Pure(epsilon=2), ps.Pure(epsilon=1), False),
        (ps.Pure(epsilon=1), ps.Gaussian(sigma=4), False),
        (dataclasses.replace(STEPS, steps=99), STEPS, True),
        (dataclasses.replace(STEPS, steps=101), STEPS, False),
        (dataclasses.replace(STEPS, noise_multiplier=2.0), STEPS, True),
        (dataclasses.replace(STEPS, noise_multiplier=2.0, steps=101), STEPS, False),
        (ps.Composed((ps.Gaussian(sigma=5), ps.Pure(epsilon=1))), ps.Composed((ps.Gaussian(sigma=4), ps.Pure(epsilon=1))), True),
        (ps.Composed((ps.Gaussian(sigma=3), ps.Pure(epsilon=1))), ps.Composed((ps.Gaussian(sigma=4), ps.Pure(epsilon=2))), False),
        (ps.Composed((ps.Gaussian(sigma=4),)), ps.Composed((ps.Gaussian(sigma=4), ps.Pure(epsilon=1))), False),
    ],
)
def test_only_what_is_certain_to_leak_less_is_covered(mechanism, declared, certain):
    assert leaks_at_most(mechanism, declared) is certain


def noisy(_candidate, _data, _randomness, *, noise):
    return noise, None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (functools.partial(noisy, noise=4), functools.partial(noisy, noise=0)),
        (lambda _c, _d, _r: (4, None), lambda _c, _d, _r: (0, None)),
        (Frozen(4), Frozen(0)),
        (closed_over(4), closed_over(0)),
        (Wrapping(Counting()), Wrapping(another_counting())),
    ],
    ids=["partial", "lambda", "frozen dataclass", "closure", "an object that is wrapped"],
)
def test_an_objective_that_changed_is_another_one(one, other):
    assert fingerprint(objective_content(one), KEY) != fingerprint(objective_content(other), KEY)
    assert fingerprint(objective_content(one), KEY) == fingerprint(objective_content(one), KEY)


def test_an_objective_may_hold_a_function_that_calls_itself():
    def factorial(number):
        return factorial(number - 1) * number if number else 1

    def held(_candidate, _data, _randomness):
        return factorial(3), None

    assert fingerprint(objective_content(held), KEY) == fingerprint(objective_content(held), KEY)


@dataclasses.dataclass(frozen=True)
class Derived(Frozen):
    def __call__(self, *given):
        return super().__call__(*given)


def test_an_objective_may_call_its_base_class():
    contents = [fingerprint(objective_content(Derived(noise)), KEY) for noise in (1.0, 1.0, 2.0)]
    assert contents[0] == contents[1] != contents[2]


def test_what_an_objective_counts_or_keeps_is_not_part_of_it():
    counts = Counting()
    before = fingerprint(objective_content(counts), KEY)
    counts(None, None, None)
    assert fingerprint(objective_content(counts), KEY) == before


def test_attributes_that_are_no_fields_count():
    one, other = Loaded("a"), Loaded("a")
    other.rows = [1]
    assert fingerprint(one, KEY) != fingerprint(other, KEY)


def test_a_path_is_not_data():
    with pytest.raises(ParameterError, match="`data` must be the data itself, got the path of a file"):
        fingerprint({"train": Path("records.csv")}, KEY)
