"""Common behaviour of mechanisms and laws of K: abstract classes, repr, accepted number types."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import privselect as ps
from privselect.counts.capped import CappedCount
from privselect.mechanisms.base import StatedMechanism

SHOWN = {
    "Gaussian(sigma=4.0)": ps.Gaussian(sigma=4),
    "Gaussian(sigma=4.0, neighbours='replace_one')": ps.Gaussian(sigma=4, neighbours="replace_one"),
    "GaussianDP(mu=1.0)": ps.GaussianDP(mu=1),
    "Points(points=((0.1, 0.001),))": ps.Points(((0.1, 1e-3),)),
    "DPSGD(noise_multiplier=2.0, sampling_probability=0.1, steps=10)": ps.DPSGD(2, 0.1, 10),
    "Renyi(orders=((2.0, 0.1),))": ps.Renyi(((2, 0.1),)),
    "DiscreteGaussian(sigma=2.0)": ps.DiscreteGaussian(2),
    "DiscreteLaplace(scale=2.0)": ps.DiscreteLaplace(2),
    "SampledGaussian(noise_multiplier=2.0, batch_size=1, records=10)": ps.SampledGaussian(2, 1, 10),
    "Geometric(mean=300.0)": ps.Geometric(mean=300),
    "Geometric(gamma=0.5, cap=9)": ps.Geometric(gamma=0.5, cap=9),
    "Finite(pmf=((0, 1), (5, 9)))": ps.Finite({0: 1, 5: 9}),
    "Mixture(parts=((Fraction(1, 3), Pure(epsilon=1.0)), (Fraction(2, 3), Laplace(scale=2.0))))": ps.Mixture(
        ((Fraction(1, 3), ps.Pure(epsilon=1)), (Fraction(2, 3), ps.Laplace(scale=2)))
    ),
    "Disjoint(parts=(Gaussian(sigma=4.0), Pure(epsilon=1.0)))": ps.Disjoint((ps.Gaussian(sigma=4), ps.Pure(epsilon=1))),
    "Selection(mechanism=Gaussian(sigma=4.0), count=Poisson(mean=3.0))": ps.Selection(ps.Gaussian(sigma=4), ps.Poisson(mean=3)),
}


@pytest.mark.parametrize("text", SHOWN)
def test_repr_is_python_code_without_defaults(text):
    assert repr(SHOWN[text]) == text
    names = {name: getattr(ps, name) for name in ps.__all__}
    assert eval(text, {**names, "Fraction": Fraction}) == SHOWN[text]  # noqa: S307 -- our own text


@pytest.mark.parametrize("kind", [ps.Mechanism, ps.Count, CappedCount, StatedMechanism])
def test_abstract_classes_cannot_be_instantiated(kind):
    with pytest.raises(TypeError, match="abstract"):
        kind()


def test_a_custom_mechanism_must_define_its_brackets():
    class Unfinished(ps.Mechanism):
        text_name = "unfinished"

    with pytest.raises(TypeError, match="_make_brackets"):
        Unfinished()


@pytest.mark.parametrize("four", [Decimal(4), np.array(4.0), np.array(4)], ids=repr)
def test_a_parameter_may_be_any_kind_of_number(four):
    assert ps.Gaussian(four) == ps.Gaussian(sigma=4)
    assert ps.Fixed(four) == ps.Fixed(k=4)
    assert ps.Finite({4: four, 5: 1}) == ps.Finite({4: 4, 5: 1})
