"""What the user says: one line each, and what is missing makes a draft."""

import pytest

import privselect as ps
from privselect.certificates.model import PlanTerms, RunMetadata
from privselect.errors import ParameterError


def test_nothing_declared_is_a_draft():
    assert len(ps.Declared().missing) == 3
    assert ps.Declared(unit="one person", trust_model="central", records_public=False).missing == ()


@pytest.mark.parametrize(
    "text", ["", " ", "two\nlines", "two\rlines", "a\ttab", "\x1b[31mred", "back\u202ewards", "two\u2028lines", "nothing\u200b", "x" * 1001]
)
@pytest.mark.parametrize("field", ["unit", "trust_model", "score"])
def test_text_that_is_not_one_visible_line_is_refused(field, text):
    with pytest.raises(ParameterError, match=f"`{field}`"):
        ps.Declared(**{field: text})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"unit": 3}, "`unit` must be a valid string, got 3"),
        ({"records_public": "yes"}, "`records_public` must be a valid boolean, got 'yes'"),
        ({"not_covered": ("a\nb",)}, "`not_covered.0` must be one line"),
        ({"colour": "red"}, "`colour` is not a known field"),
    ],
)
def test_a_wrong_field_is_refused_in_one_sentence(given, said):
    with pytest.raises(ParameterError) as caught:
        ps.Declared(**given)
    assert str(caught.value).startswith(said)
    assert "\n" not in str(caught.value)


def test_what_is_declared_cannot_be_changed():
    declared = ps.Declared(unit="one person", not_covered=["a"])
    assert declared.not_covered == ("a",)
    with pytest.raises(ValueError, match="frozen"):
        declared.unit = "nobody"


def test_equal_plans_have_equal_hashes_however_they_are_written():
    plain = PlanTerms(mechanism="gaussian(sigma=4)", count="geometric(mean=30)", epsilon=2, delta=1e-6)
    assert PlanTerms(mechanism=" gaussian( sigma = 4.0 )", count="geometric(mean=30.0)", epsilon=2.0, delta=1e-6).digest() == plain.digest()
    assert PlanTerms(mechanism="gaussian(sigma=4)", count="geometric(mean=31)", epsilon=2, delta=1e-6).digest() != plain.digest()


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"mechanism": "geometric(mean=3)"}, "mechanism"),
        ({"mechanism": "gaussian(sigma=0)"}, "mechanism"),
        ({"mechanism": 4}, "mechanism"),
        ({"count": "gaussian(sigma=4)"}, "count"),
        ({"epsilon": -1}, "epsilon"),
        ({"epsilon": float("inf")}, "epsilon"),
        ({"epsilon": float("nan")}, "epsilon"),
        ({"delta": 0.0}, "delta"),
        ({"delta": 1.0}, "delta"),
    ],
)
def test_invalid_plan_terms_are_refused(change, named):
    with pytest.raises(ParameterError, match=f"`{named}`"):
        PlanTerms(**{"mechanism": "gaussian(sigma=4)", "count": None, "epsilon": 1.0, "delta": 1e-6, **change})


def test_randomness_from_elsewhere_is_insecure():
    assert RunMetadata(randomness="a seed", insecure=True).insecure
    with pytest.raises(ParameterError, match="`insecure` must be true"):
        RunMetadata(randomness="a seed")
