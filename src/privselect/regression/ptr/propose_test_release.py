"""Generalized propose-test-release: what it leaks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from privselect._util.validation import NON_NEGATIVE, UNIT, check_number, check_bool, parameter, format_value
from privselect.errors import ParameterError
from privselect.mechanisms import Composed
from privselect.mechanisms.base import Mechanism
from privselect.mechanisms.neighbours import agreed
from privselect.mechanisms.told_apart import told_apart
from privselect.pairs import Bracket, DominatingPair, pair_from_curve
from privselect.pairs.compose import ACCURACY
from privselect.pairs.discretize import LARGEST_LOSS
from privselect.pairs.envelope import above_all, one_per_order
from privselect.text_forms import register

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_PAST = 1e-12  # beyond the last loss and its rounding


def thm_gptr(release: tuple[float, float], test: tuple[float, float], failure: float) -> tuple[float, float]:
    """One point of propose-test-release from one point of each part.

    Claim: a test that is ``(eh, dh)``-DP and passes bad proposals with chance at most d', and a release that is ``(e, d)``-DP wherever the
    proposal is good, give ``(e + eh, dh + max(d, d'))``. The published statement has ``d + d'`` in place of the greater of the two; its
    proof gives this: a data set is good or bad, never both.

    Holds when the test passes bad proposals with chance at most d' on each data set. Label: thm:gptr.
    """
    epsilon, delta = check_number("epsilon", release[0], NON_NEGATIVE), check_number("delta", release[1], UNIT)
    test_epsilon, test_delta = check_number("epsilon", test[0], NON_NEGATIVE), check_number("delta", test[1], UNIT)
    wrong = check_number("failure", failure, UNIT)
    return (epsilon + test_epsilon) * (1.0 + 1e-15), min((test_delta + max(delta, wrong)) * (1.0 + 1e-15), 1.0)


@register
@dataclass(frozen=True, slots=True)
class ProposeTestRelease(Mechanism):
    """Propose, test in private, release only if the test passes ("no answer" otherwise).

    ``test`` is what the test's outcome leaks, ``target`` what the release leaks at most wherever the proposal is good for the data at
    hand, ``failure`` the greatest chance d' of the test to go wrong. The whole curve, in place of one point of ``thm:gptr``:

    - a fixed proposal, which a bad data set passes with chance at most d':
      ``delta(e) = max(delta_{test, target}(e), d' + delta_test(e))``, where "test, target" is both released. Proof: on a good data set
      it is the composition; on a bad one what is released counts for at most d', and "no answer" for what the test leaks.
    - ``calibrated``: the test releases bounds, one after the other, of which one or more are wrong for the data with chance at most d' on
      each data set; each bound and the release are fitted to the bounds before: ``delta(e) = d' + delta_{test, target}(e)``. Proof: stop
      the runs on both data sets at the first bound that is wrong for the first of them. Until then every step leaks what is stated,
      whatever came before, so the stopped runs are the composition; past that everything may leak, with chance at most d'. So what a
      later bound leaks need hold only where those before it are right.

    Both are for e >= 0 and each order of the neighbours, which is all there is: the reverse pair at -e says what holds at e < 0.

    Holds when the target covers the release at every data set that is good (whose bounds hold) against each of its neighbours, in both
    orders; the first of two neighbours decides. Label: **Propose-test-release**.
    """

    text_name = "ptr"

    test: Mechanism = field(metadata={"positional": True})
    target: Mechanism = field(metadata={"positional": True})
    failure: float = parameter(UNIT, leaks="more", kw_only=True)
    calibrated: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        for name in ("test", "target"):
            if not isinstance(getattr(self, name), Mechanism):
                raise ParameterError(f"`{name}` must be a mechanism such as gaussian(sigma=4), got {format_value(getattr(self, name))}")
        Mechanism.__post_init__(self)
        object.__setattr__(self, "calibrated", check_bool("calibrated", self.calibrated))
        agreed((part.neighbours, part) for part in (self.test, self.target))

    @property
    def neighbours(self) -> str:
        """The one relation that both parts agree on."""
        return agreed((part.neighbours, part) for part in (self.test, self.target))

    def _make_brackets(self) -> tuple[Bracket, ...]:
        return self._make_brackets_within(ACCURACY)

    def _make_brackets_within(self, accuracy: float) -> tuple[Bracket, ...]:
        # No lower end: a test that is never wrong, or a release that leaks less, is covered as well.
        both = Composed((self.test, self.target)).brackets_within(accuracy)
        if self.calibrated:
            return tuple(Bracket(_raised(bracket.upper, self.failure), (), bracket.direction) for bracket in both)
        tests = one_per_order(self.test.brackets_within(accuracy))
        return tuple(
            Bracket(
                above_all([bracket.upper, _raised((tests.get(bracket.direction) or tests["both"]).upper, self.failure)]),
                (),
                bracket.direction,
            )
            for bracket in both
        )


def _raised(pair: DominatingPair, leak: float) -> DominatingPair:
    """The pair whose hockey sticks are so much higher, at most 1."""
    losses = np.concatenate([pair.losses, pair.losses[-1:] + _PAST, -pair.losses, -pair.losses[:1] + _PAST])
    knots = np.unique(np.concatenate([[0.0], losses[(losses > 0.0) & (losses <= LARGEST_LOSS)]]))
    knots = knots[told_apart(knots)]
    forward, backward = (np.minimum(side.hockey_stick(knots, side=1) + leak, 1.0) for side in (pair, pair.reverse))
    return pair_from_curve(knots, forward, backward)
