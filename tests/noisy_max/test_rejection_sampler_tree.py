"""The distribution of a small staircase without probability: all bits that it can ask for are walked through as a tree, down to a depth."""

from collections import defaultdict

import numpy as np
import pytest
from drawn_noise import CDF

from privselect.noisy_max.sampling import rejection_sampler, sample_grid
from privselect.noisy_max.sampling.rejection_sampler import Density, RejectionSampler
from privselect.noisy_max.sampling.sample_grid import IntegerGrid, RealGrid

POINT_BITS = 8
LINE = RealGrid(box_bits=1, cell_bits=1)
TOTAL = {
    Density.NORMAL: np.sqrt(2.0 * np.pi),
    Density.LAPLACE: 2.0,
    Density.EXPONENTIAL: 1.0,
    Density.GUMBEL: np.e,
}  # integrals of the densities


class MoreBitsError(Exception):
    """How many are asked for beyond those that are given."""


class Given:
    """A first word, then the given answers."""

    def __init__(self, word, answers):
        self.word, self.answers = word, iter(answers)

    def getrandbits(self, k):
        if k in {0, 64}:
            return self.word if k else 0
        answer = next(self.answers, None)
        if answer is None:
            raise MoreBitsError(k)
        return answer


def walked(stairs, depth):
    """The probability that one attempt ends in each box of the grid, as far as decided, and the probability of what is left open."""
    kept, still_open = defaultdict(float), 0.0
    places = 1 << stairs.grid.box_bits
    first = 1.0 / (places << POINT_BITS)
    for point in range(1 << POINT_BITS):
        todo = [(point << 64 - POINT_BITS | place, (), first) for place in range(places)]
        while todo:
            word, answers, chance = todo.pop()
            try:
                drawn = stairs._attempts(1, Given(word, answers))
            except MoreBitsError as asked:
                bits = asked.args[0]
                if chance < first * 2.0**-depth:
                    still_open += chance
                else:
                    todo += [(word, (*answers, answer), chance / 2**bits) for answer in range(1 << bits)]
                continue
            if len(drawn):
                place = drawn.box(0, stairs.grid)
                kept[place.index >> place.bits - stairs.grid.box(0).bits] += chance
    return kept, still_open


def assert_law(kept, still_open, wanted):
    """No box has more than its share, and all together lack no more than what is open; probabilities are sums of powers of two."""
    lacking = [wanted(at) - chance for at, chance in kept.items()]
    assert min(lacking) > -1e-12
    assert sum(lacking) < still_open + 1e-12


@pytest.fixture(autouse=True)
def one_bit_at_a_time(monkeypatch):
    monkeypatch.setattr(rejection_sampler, "_MORE_BITS", 1)
    monkeypatch.setattr(sample_grid, "_REFINE_BITS", 1)


@pytest.mark.parametrize("shape", Density)
def test_each_box_of_the_line_has_its_integral(shape):
    stairs = RejectionSampler(shape, LINE, POINT_BITS)
    kept, still_open = walked(stairs, depth=4)
    cells = stairs.height * 2.0**LINE.cell_bits / 2.0**POINT_BITS  # a point is one cell broad and 1 high

    def wanted(at):
        low, high = (CDF[shape](z * 2.0**-LINE.unit_bits) for z in (at, at + 1))
        return cells * TOTAL[shape] * (high - low)

    assert still_open < 0.1
    assert_law(kept, still_open, wanted)


@pytest.mark.parametrize("scale", [0.3, 1.0, 1.7])
@pytest.mark.parametrize("shape", [Density.NORMAL, Density.LAPLACE])
def test_each_whole_number_has_its_mass(shape, scale):
    stairs = RejectionSampler(shape, IntegerGrid(scale), POINT_BITS)
    kept, still_open = walked(stairs, depth=8)
    assert still_open < 0.01
    assert_law(kept, still_open, lambda at: stairs.height * float(shape.density(np.array(at / scale))) / 2.0**POINT_BITS)
