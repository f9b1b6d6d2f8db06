"""The keyed split: each record by its own id and the key alone."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from privselect.errors import ParameterError
from privselect.tuning.scores import _encode_id, keyed_split

KEY = bytes(range(16))
FALSE_ALARM = 1e-6  # of each statistical test below

ids = st.one_of(st.integers(), st.binary(), st.text(st.characters()))  # lone surrogates too


@given(st.lists(ids), st.data())
def test_a_records_side_is_its_own(records, data):
    together = keyed_split(records, 0.5, KEY)
    assert together.tolist() == [bool(keyed_split([record], 0.5, KEY)[0]) for record in records]
    order = data.draw(st.permutations(range(len(records))))
    assert keyed_split([records[i] for i in order], 0.5, KEY).tolist() == [bool(together[i]) for i in order]


@given(st.lists(ids, min_size=2, max_size=2))
def test_different_ids_are_different_bytes(pair):
    first, second = pair
    assert (_encode_id(first) == _encode_id(second)) == (type(first) is type(second) and first == second)


def test_ids_that_look_alike_are_told_apart():
    alike = [
        "1",
        1,
        b"1",
        "\x01",
        b"\x01",
        b"i\x01",
        "i\x01",
        -1,
        255,
        256,
        b"\xff",
        0,
        "",
        b"",
        -128,
        128,
        2**64,
        "\U00010000",
        "\ud800\udc00",
    ]
    assert len({_encode_id(record) for record in alike}) == len(alike)


def test_numpy_ids_are_those_of_python():
    assert keyed_split(np.arange(50), 0.5, KEY).tolist() == keyed_split(range(50), 0.5, KEY).tolist()
    texts = [f"record {i}" for i in range(50)]
    assert keyed_split(np.array(texts), 0.5, KEY).tolist() == keyed_split(texts, 0.5, KEY).tolist()


def test_the_split_never_changes():
    # Made once with this very function: data split last year must be split the same way today.
    chosen = "".join("01"[int(out)] for out in keyed_split([*range(8), *"abcdefgh", b"a", b"b"], Fraction(1, 2), KEY))
    assert chosen == "001011111110110011"


def test_ids_that_occur_twice_go_to_the_same_side():
    sides = keyed_split(["a", "b", "a", "c", "a"], 0.5, KEY)
    assert sides[0] == sides[2] == sides[4]


@pytest.mark.parametrize("fraction", [0.2, 0.5, Fraction(9, 10)])
def test_the_share_held_out_is_the_stated_one(fraction, fresh_rng):
    held_out = keyed_split(range(20_000), fraction, fresh_rng.bytes(32))
    assert binomtest(int(held_out.sum()), 20_000, float(fraction)).pvalue > FALSE_ALARM


def test_two_keys_split_independently(fresh_rng):
    first, second = (keyed_split(range(20_000), 0.5, fresh_rng.bytes(32)) for _ in range(2))
    assert binomtest(int((first == second).sum()), 20_000, 0.5).pvalue > FALSE_ALARM


def test_a_greater_fraction_holds_out_more_records_and_never_others():
    small, large = keyed_split(range(500), 0.2, KEY), keyed_split(range(500), 0.3, KEY)
    assert np.all(large[small])


def test_the_threshold_is_exact():
    # The hash of one record, found by bisection with fractions: a threshold just above it takes the record, the hash itself does not.
    low, high = 0, 2**128
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if keyed_split([7], Fraction(middle, 2**128), KEY)[0] else (middle, high)
    assert keyed_split([7], Fraction(2 * low + 1, 2**129), KEY)[0]
    assert not keyed_split([7], Fraction(low, 2**128), KEY)[0]


def test_no_records_are_split_into_none():
    assert keyed_split([], 0.2, KEY).shape == (0,)


@pytest.mark.parametrize("fraction", [0, 1, 0.0, 1.0, -0.1, 1.5])
def test_a_fraction_out_of_range_is_one_sentence(fraction):
    with pytest.raises(ParameterError, match=r"`fraction` must be in \(0, 1\), got"):
        keyed_split([1], fraction, KEY)


@pytest.mark.parametrize("fraction", [float("nan"), float("inf"), "half", None, True])
def test_a_fraction_that_is_no_number_is_one_sentence(fraction):
    with pytest.raises(ParameterError, match="`fraction` must be a finite number, got"):
        keyed_split([1], fraction, KEY)


@pytest.mark.parametrize(
    ("key", "told"), [(b"short", "5 bytes"), (bytes(65), "65 bytes"), ("a text of sixteen", "a str"), (None, "a NoneType")]
)
def test_a_bad_key_is_one_sentence_without_the_key(key, told):
    with pytest.raises(ParameterError, match=f"`key` must be 16 to 64 bytes, got {told}$"):
        keyed_split([1], 0.2, key)


@pytest.mark.parametrize("record", [1.5, None, True, ("a",)])
def test_an_id_of_another_type_is_refused_without_being_shown(record):
    with pytest.raises(ParameterError, match=r"`ids` must be texts, integers or bytes, got a [A-Za-z]+$"):
        keyed_split(["a", record], 0.2, KEY)


@pytest.mark.parametrize("text", ["abc", b"bytes"])
def test_a_single_text_is_no_list_of_ids(text):
    with pytest.raises(ParameterError, match="`ids` must contain one id for each record, got a single"):
        keyed_split(text, 0.2, KEY)
