"""Small mechanisms with exact masses, whose leak can be computed by brute force: fractions for the truth, floats for the package."""

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from hypothesis import strategies as st

import privselect as ps
from closed_forms import discrete_hockey
from privselect.pairs import Bracket, DominatingPair


def normalized(weights):
    """One distribution as exact fractions."""
    total = int(sum(weights))
    return [Fraction(int(weight), total) for weight in weights]


_WEIGHT = st.one_of(st.integers(0, 40), st.integers(10**6, 10**6 + 50), st.integers(0, 10**12))
WEIGHTS = st.lists(st.tuples(_WEIGHT, _WEIGHT), min_size=1, max_size=6).filter(
    lambda weights: sum(a for a, _ in weights) > 0 and sum(b for _, b in weights) > 0
)


def shares(weights):
    """Two distributions, from one pair of weights for each outcome."""
    return tuple(normalized(side) for side in zip(*weights, strict=True))


# Two distributions of up to six outcomes: similar, of very different sizes, or with outcomes that only one of them has.
SHARES = WEIGHTS.map(shares)


def pair_of(p, q):
    """The pair of two distributions."""
    return DominatingPair.from_masses([float(x) for x in p], [float(x) for x in q])


@dataclass(frozen=True)
class Given(ps.Mechanism):
    """A mechanism that is one bracket for each order."""

    text_name = "given"
    first: Bracket

    def _make_brackets(self, _accuracy):
        return (self.first,) if self.first.direction == "both" else (self.first, self.first.reverse)


def mechanism_of(p, q):
    """The mechanism with these distributions with and without the record."""
    pair = pair_of(p, q)
    return Given(Bracket(pair, (pair,), "remove"))


def small(p, q):
    """The exact distributions and the mechanism of these weights."""
    p, q = normalized(p), normalized(q)
    return (p, q), mechanism_of(p, q)


def product(*laws):
    """Both distributions of several independent outputs."""
    return tuple([math.prod(masses) for masses in itertools.product(*each)] for each in zip(*laws, strict=True))


def hockey(laws, epsilon):
    """The hockey stick, the greater of both orders of the neighbours."""
    return max(discrete_hockey(*laws, epsilon), discrete_hockey(*laws[::-1], epsilon))


def random_weights(rng):
    """Weights of 3 to 5 outcomes under two distributions: similar, of many magnitudes, of nearly equal loss, or with outcomes of mass 0."""
    n = int(rng.integers(3, 6))
    kind = rng.choice(["plain", "sizes", "near"])
    if kind == "near":
        p = rng.integers(1, 30, n) * 10**9
        q = p + rng.integers(-999, 1000, n) * 10 ** int(rng.integers(0, 7))
    else:
        p, q = (rng.integers(1, 30, n) * 10 ** (rng.integers(0, 5, n) if kind == "sizes" else 0) for _ in range(2))
    if rng.random() < 0.4:
        p[0] = 0
    if rng.random() < 0.4:
        q[1] = 0
    return p, q


ORDERS = {n: np.array(list(itertools.permutations(range(n)))) for n in range(1, 6)}
