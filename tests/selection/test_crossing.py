"""The search for a crossing ends on the asked side, at a point that was looked at, and soon."""

import math

from hypothesis import given
from hypothesis import strategies as st

from privselect._util.safe_search import BracketedSecant

CLOSE = 4e-4


def exponential(_, rate):
    return lambda e: math.exp(-rate * e)


def cliff(edge, power):
    """Falls to nothing at the edge, as the delta of a pure base does."""
    return lambda e: max(edge - e, 0.0) ** power


def steps(edge, rate):
    return lambda e: math.exp(-rate * math.floor(8.0 * e / edge) * edge / 8.0)


def all_or_nothing(edge, _):
    return lambda e: 1.0 if e < 0.7 * edge else 0.0


def restless(_, rate):
    """A bound that is not quite nonincreasing, as on a mesh that adapts."""
    return lambda e: math.exp(-rate * e + 0.3 * math.sin(50.0 * e))


SHAPES = st.sampled_from([exponential, cliff, steps, all_or_nothing, restless])


class Seen:
    """A bound that remembers where it was asked."""

    def __init__(self, bound):
        self.bound, self.values = bound, {}

    def __call__(self, epsilon):
        self.values[epsilon] = self.bound(epsilon)
        return self.values[epsilon]


@given(SHAPES, st.floats(0.01, 30.0), st.floats(0.2, 40.0), st.floats(-40.0, -0.01), st.floats(0.0, 1.2), st.floats(0.2, 1e4))
def test_the_answer_was_seen_on_the_asked_side(shape, edge, rate, log_delta, guess, slope):
    delta = math.exp(log_delta)
    for direction in ("above", "below"):
        bound = Seen(shape(edge, min(rate, 20.0 / edge)))
        crossing = BracketedSecant(bound, delta, slope, CLOSE)
        if direction == "above":
            found = crossing.from_above(guess * edge, 0.0, edge)
            assert found == edge or bound.values[found] <= delta
        else:
            found = crossing.from_below(guess * edge, edge)
            assert found == 0.0 or bound.values[found] >= delta
        assert 0.0 <= found <= edge


@given(st.sampled_from([exponential, cliff]), st.floats(0.05, 20.0), st.floats(0.5, 4.0), st.floats(0.02, 0.98))
def test_smooth_bounds_take_few_steps(shape, edge, rate, share):
    curve = shape(edge, rate)
    delta = curve(share * edge)
    bound = Seen(curve)
    found = BracketedSecant(bound, delta, 1.0, CLOSE).from_above(0.97 * edge, 0.0, edge)
    assert bound.values.get(found, 0.0) <= delta
    assert abs(found - share * edge) <= max(2e-5 * edge, 2.0 * CLOSE / rate * max(1.0, edge))
    assert len(bound.values) <= 24
