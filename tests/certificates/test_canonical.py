"""Equal values, equal bytes; what JSON cannot hold is refused."""

import hashlib
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privselect.certificates.canonical import canonical, digest
from privselect.errors import ParameterError

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner, max_size=3),
    max_leaves=6,
)


def test_keys_are_sorted_and_nothing_is_spaced():
    assert canonical({"b": [1, 2.0, None, True], "a": "é"}) == '{"a":"é","b":[1,2.0,null,true]}'.encode()


def test_the_digest_is_sha256_of_the_bytes():
    assert digest({}) == "sha256:" + hashlib.sha256(b"{}").hexdigest()


def test_a_tuple_is_a_list():
    assert canonical((1, (2,))) == canonical([1, [2]])


@given(VALUES)
def test_writing_what_was_read_changes_nothing(value):
    assert canonical(json.loads(canonical(value))) == canonical(value)


@pytest.mark.parametrize("value", [math.nan, math.inf, [-math.inf], {1: 2}, {"a": {True: 1}}, {1, 2}, b"a", "\ud800", object()])
def test_what_json_cannot_hold_is_refused(value):
    with pytest.raises(ParameterError):
        canonical(value)
