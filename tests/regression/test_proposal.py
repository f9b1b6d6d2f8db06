"""The run of propose-test-release: outcomes, and what they are declared to leak."""

from dataclasses import dataclass
from typing import ClassVar

import pytest

import privselect as ps
from privselect.errors import NeighbourError, ParameterError
from privselect.regression.gaussian_sampler import normals_from
from privselect.regression.ptr.propose_test_release import ProposeTestRelease
from privselect.regression.ptr.ptr_protocol import NO_ANSWER, NoAnswer, Proposal


@dataclass(frozen=True, kw_only=True)
class Shown(Proposal):
    """Passes where the data is at least ``least``, with no noise at all."""

    least: int = 3

    def propose(self, data, source):
        return None if data < self.least else (data, source.read(2))

    def release(self, data, plan, source):
        return data, plan, source.read(2)


@dataclass(frozen=True, kw_only=True)
class Bounded(Shown):
    calibrated: ClassVar[bool] = True


PARTS = {"test": ps.Gaussian(sigma=2), "target": ps.Pure(epsilon=1), "failure": 0.01}


def test_the_release_follows_the_plan():
    proposal = Shown(**PARTS)
    data, (seen, first), second = proposal.answer(5, normals_from(1))
    assert (data, seen) == (5, 5)
    assert first != second  # one source, read on
    assert proposal.answer(5, normals_from(1)) == (5, (5, first), second)


def test_no_answer_is_a_value():
    answer = Shown(**PARTS).answer(2, normals_from(1))
    assert answer == NoAnswer() == NO_ANSWER
    assert isinstance(answer, NoAnswer)
    assert repr(answer) == "NoAnswer()"


def test_nothing_is_released_where_the_test_fails():
    class Never(Shown):
        def release(self, data, plan, source):
            raise AssertionError(data, plan, source)

    assert Never(**PARTS).answer(2, normals_from(1)) == NO_ANSWER


@pytest.mark.parametrize(("kind", "calibrated"), [(Shown, False), (Bounded, True)])
def test_the_mechanism_is_that_of_its_form(kind, calibrated):
    assert kind(**PARTS).mechanism == ProposeTestRelease(PARTS["test"], PARTS["target"], failure=0.01, calibrated=calibrated)


def test_a_proposal_says_how_it_is_tested():
    with pytest.raises(TypeError, match="abstract"):
        Proposal(**PARTS)


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"failure": 2}, ParameterError),
        ({"failure": float("nan")}, ParameterError),
        ({"test": None}, ParameterError),
        ({"test": ps.Gaussian(sigma=2, neighbours="add_remove"), "target": ps.Gaussian(sigma=1, neighbours="replace_one")}, NeighbourError),
    ],
)
def test_what_cannot_be_accounted_for_is_refused_at_once(changed, error):
    with pytest.raises(error):
        Shown(**PARTS | changed)


def test_a_failure_is_kept_as_a_float():
    assert type(Shown(**PARTS | {"failure": 0}).failure) is float
