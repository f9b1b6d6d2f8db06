"""Specs with an unknown number: parsing, writing, filling."""

import copy
import pickle

import pytest

import privselect as ps
from privselect.errors import ParameterError, TextFormError
from privselect.open_spec import UNKNOWN, OpenSpec

TEXTS = [
    ("gaussian(sigma=?)", "sigma", "gaussian(sigma=3)"),
    ("dpsgd(noise_multiplier=1.1, sampling_probability=256/60000, steps=?)", "steps", None),
    ("geometric(mean=30, cap=?)", "cap", "geometric(mean=30, cap=3)"),
    ("composed(gaussian(sigma=2), laplace(scale=?), times=4)", "scale", "composed(gaussian(sigma=2), laplace(scale=3), times=4)"),
    ("composed(gaussian(sigma=2), times=?)", "times", "composed(gaussian(sigma=2), times=3)"),
    ("disjoint(gaussian(sigma=?), pure(epsilon=1))", "sigma", "disjoint(gaussian(sigma=3), pure(epsilon=1))"),
    ("mixture(1/4*gaussian(sigma=?), 3/4*gaussian(sigma=8))", "sigma", "mixture(1/4*gaussian(sigma=3), 3/4*gaussian(sigma=8))"),
    ("selection(gaussian(sigma=4), poisson(mean=?))", "mean", "selection(gaussian(sigma=4), poisson(mean=3))"),
]


@pytest.mark.parametrize(("text", "parameter", "filled"), TEXTS)
def test_a_text_with_an_unknown_can_be_filled(text, parameter, filled):
    open_spec = ps.parse(text)
    assert isinstance(open_spec, OpenSpec)
    assert str(open_spec) == text
    assert [unknown.parameter for unknown in open_spec.open_parameters] == [parameter]
    wunknown = open_spec.fill(3)
    assert str(wunknown) == (filled or text.replace("?", "3").replace("256/60000", repr(256 / 60000)))
    assert ps.parse(str(wunknown)) == wunknown


def test_python_and_text_say_the_same():
    made = ps.DPSGD(noise_multiplier=UNKNOWN, sampling_probability=0.01, steps=4000)
    assert str(made) == "dpsgd(noise_multiplier=?, sampling_probability=0.01, steps=4000)"
    assert made.fill(2.0) == ps.DPSGD(noise_multiplier=2.0, sampling_probability=0.01, steps=4000)
    mixed = ps.Mixture([(0.5, ps.Gaussian(ps.UNKNOWN)), (0.5, ps.Gaussian(2))])
    assert str(mixed) == "mixture(0.5*gaussian(sigma=?), 0.5*gaussian(sigma=2))"
    assert mixed.fill(4) == ps.Mixture([(0.5, ps.Gaussian(4)), (0.5, ps.Gaussian(2))])


def test_an_unknown_parameter_can_be_set_to_its_default():
    assert ps.parse("selection(gaussian(sigma=4), geometric(mean=30, cap=?))").without_unknowns() == ps.Selection(
        ps.Gaussian(4), ps.Geometric(30)
    )


def test_every_unknown_is_counted():
    assert len(ps.parse("selection(gaussian(sigma=?), geometric(mean=?, cap=?))").open_parameters) == 3


@pytest.mark.parametrize("text", ["finite({0: 1, 5: ?})", "points((?, 1e-6))", "renyi((2, ?))"])
def test_an_unknown_inside_a_list_has_no_range(text):
    (unknown,) = ps.parse(text).open_parameters
    assert unknown.allowed is None


@pytest.mark.parametrize("text", ["?", "?*gaussian(sigma=2)", "gaussian(?)", "gaussian(colour=?)", "gaussian(sigma=?4)"])
def test_a_misplaced_unknown_is_refused(text):
    with pytest.raises(TextFormError):
        ps.parse(text)


def test_a_open_spec_cannot_be_computed_with():
    open_spec = ps.Gaussian(sigma=UNKNOWN)
    with pytest.raises(ParameterError, match="solve for it with `plan`"):
        open_spec.epsilon_at(1e-6)
    with pytest.raises(ParameterError, match="must be a mechanism"):
        ps.compare(open_spec, delta=1e-6)
    assert not hasattr(open_spec, "_repr_html_")


def test_filling_checks_the_range():
    with pytest.raises(ParameterError, match=r"`sigma` must be in \(0, inf\), got -1"):
        ps.Gaussian(sigma=UNKNOWN).fill(-1)


def test_specs_without_unknowns_are_unaffected():
    mechanism = ps.parse("mixture(1/4*gaussian(sigma=2), 3/4*dpsgd(noise_multiplier=1, sampling_probability=0.1, steps=2))")
    assert pickle.loads(pickle.dumps(mechanism)) == copy.deepcopy(mechanism) == mechanism  # noqa: S301
    assert repr(UNKNOWN) == "UNKNOWN"
    assert str(UNKNOWN) == "?"
