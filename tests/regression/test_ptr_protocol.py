"""Runs of propose-test-release: outcomes and the mechanism that covers them."""

from dataclasses import dataclass
from typing import ClassVar

import pytest

import privselect as ps
from privselect.errors import NeighbourError, ParameterError
from privselect.regression.noise_source import make_noise_source
from privselect.regression.ptr.propose_test_release import NO_ANSWER, NoAnswer, ProposeTestRelease, PTRProtocol


@dataclass(frozen=True, kw_only=True)
class NoiseFree(PTRProtocol):
    """Passes if the data is at least ``smallest``, without noise."""

    smallest: int = 3

    def propose(self, data, source):
        return None if data < self.smallest else (data, source.read(2))

    def release(self, data, plan, source):
        return data, plan, source.read(2)


@dataclass(frozen=True, kw_only=True)
class Bounded(NoiseFree):
    calibrated: ClassVar[bool] = True


PARTS = {"test": ps.Gaussian(sigma=2), "target": ps.Pure(epsilon=1), "failure": 0.01}


def test_the_release_follows_the_plan():
    protocol = NoiseFree(**PARTS)
    data, (seen, first), second = protocol.answer(5, make_noise_source(1))
    assert (data, seen) == (5, 5)
    assert first != second  # the source is read further
    assert protocol.answer(5, make_noise_source(1)) == (5, (5, first), second)


def test_no_answer_is_a_value():
    answer = NoiseFree(**PARTS).answer(2, make_noise_source(1))
    assert answer == NoAnswer() == NO_ANSWER
    assert isinstance(answer, NoAnswer)
    assert repr(answer) == "NoAnswer()"


def test_nothing_is_released_where_the_test_fails():
    class Never(NoiseFree):
        def release(self, data, plan, source):
            raise AssertionError(data, plan, source)

    assert Never(**PARTS).answer(2, make_noise_source(1)) == NO_ANSWER


@pytest.mark.parametrize(("kind", "calibrated"), [(NoiseFree, False), (Bounded, True)])
def test_the_mechanism_is_that_of_its_form(kind, calibrated):
    assert kind(**PARTS).mechanism == ProposeTestRelease(PARTS["test"], PARTS["target"], failure=0.01, calibrated=calibrated)


def test_a_protocol_must_implement_its_test():
    with pytest.raises(TypeError, match="abstract"):
        PTRProtocol(**PARTS)


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"failure": 2}, ParameterError),
        ({"failure": float("nan")}, ParameterError),
        ({"test": None}, ParameterError),
        ({"test": ps.Gaussian(sigma=2, neighbours="add_remove"), "target": ps.Gaussian(sigma=1, neighbours="replace_one")}, NeighbourError),
    ],
)
def test_invalid_parameters_are_refused_when_constructed(changed, error):
    with pytest.raises(error):
        NoiseFree(**PARTS | changed)


def test_a_failure_is_kept_as_a_float():
    assert type(NoiseFree(**PARTS | {"failure": 0}).failure) is float
