"""The two stages that a plan describes, a search and a final training; numbers in them may be open."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from privselect._util.validation import check_fraction, check_number, format_value, integer_range
from privselect.counts.base import Count
from privselect.errors import NeighbourError, ParameterError, TextFormError
from privselect.mechanisms.base import Mechanism
from privselect.mechanisms.neighbours import common_relation
from privselect.mechanisms.parallel_composition import Disjoint
from privselect.open_spec import OpenSpec
from privselect.planning.default_law import default_count
from privselect.selection.two_stages import Stages
from privselect.text_forms import parse_number, read_spec

if TYPE_CHECKING:
    from collections.abc import Iterator
    from fractions import Fraction

    from privselect.open_spec import OpenParameter

_VISIBLE = integer_range(1, 10**6)


@dataclass(frozen=True, slots=True)
class OpenStages:
    """A search, and a final training (None: no training follows). Numbers in the first three fields may be open.

    - ``mechanism``: one search trial.
    - ``count``: the law of K of a secret search; None for a visible search, or for one trial alone.
    - ``final``: the final training.
    - ``visible``: the number of trials of a visible search.
    - ``subsample``: the probability of each record to be in the sample that all search trials share; None for all records.
    """

    mechanism: Mechanism | OpenSpec
    count: Count | OpenSpec | None = None
    final: Mechanism | OpenSpec | None = None
    visible: int | None = None
    subsample: Fraction | None = None

    @property
    def open_in_search(self) -> tuple[OpenParameter, ...]:
        """The open parameters of a search trial and of the law of K."""
        return (*_open_parameters(self.mechanism), *_open_parameters(self.count))

    @property
    def open_in_final(self) -> tuple[OpenParameter, ...]:
        """The open parameters of the final training."""
        return _open_parameters(self.final)

    @property
    def is_open(self) -> bool:
        """Whether a number is open."""
        return any(isinstance(part, OpenSpec) for part in (self.mechanism, self.count, self.final))

    @property
    def is_two_stage(self) -> bool:
        """Whether more is released than the best of K trials."""
        return self.final is not None or self.visible is not None or self.subsample is not None

    def fill(self, value: float | None) -> OpenStages:
        """Return the stages with ``value`` for the open number (None: its default, such as no cap)."""
        return replace(self, mechanism=_filled(self.mechanism, value), count=_filled(self.count, value), final=_filled(self.final, value))

    def closed(self) -> Stages:
        """Return the stages as mechanisms and a law of K; nothing may be open."""
        if self.is_open:
            raise ParameterError(f"nothing can be computed while a number is open, got {format_value(self.describe())}")
        return Stages(self.mechanism, self.count, self.final, self.visible, self.subsample)  # type: ignore[arg-type]  # nothing is open

    def check_relations(self) -> None:
        """Raise an error if search and final training are stated for different neighbouring relations."""
        closed = self.closed()
        mechanism, final = closed.mechanism, closed.final
        if final is None:
            return
        try:
            common_relation([(mechanism.neighbours, mechanism), (final.neighbours, final)])
        except NeighbourError:
            raise NeighbourError(
                "search and final training must be stated for the same neighbouring relation, got "
                f"{mechanism.neighbours} for {mechanism} and {final.neighbours} for {final}"
            ) from None

    def describe(self) -> str:
        """Return all text forms, joined by "and"."""
        search = [str(self.mechanism)] if self.count is None else [str(self.mechanism), str(self.count)]
        return " and ".join([*search, *([] if self.final is None else [str(self.final)])])


def read_stages(
    mechanism: object, count: object = None, final: object = None, *, visible: object = None, subsample: object = None
) -> OpenStages:
    """Return the stages that specifications or text forms describe; a secret search before a final training has a default law of K."""
    trial, law = read_mechanism(mechanism), None if count is None else read_count(count)
    trials = None if visible is None else int(check_number("visible", visible, _VISIBLE))
    if law is not None and trials is not None:
        raise ParameterError(f"a search is either secret, with a law of K, or visible, got {law} and {trials} visible trials")
    training = None if final is None else read_final(final)
    if training is not None and law is None and trials is None:
        law = default_count()
    return OpenStages(trial, law, training, trials, None if subsample is None else read_probability(subsample))


def read_mechanism(given: object) -> Mechanism | OpenSpec:
    """Return a mechanism, possibly with open parameters, from an object or its text form."""
    return read_spec(given, Mechanism, "`mechanism` must be a mechanism such as gaussian(sigma=4)")  # type: ignore[type-abstract]


def read_final(given: object) -> Mechanism | OpenSpec:
    """Return the mechanism of a final training, possibly with open parameters, from an object or its text form."""
    return read_spec(given, Mechanism, "`final` must be a mechanism such as gaussian(sigma=4)")  # type: ignore[type-abstract]


def read_count(given: object) -> Count | OpenSpec:
    """Return a law of K, possibly with open parameters, from an object or its text form."""
    return read_spec(given, Count, "`count` must be a law of K such as geometric(mean=30)")  # type: ignore[type-abstract]


def read_probability(given: object) -> Fraction:
    """Return the probability of a record to be in the sample of the search, from a number or text such as "1/10"."""
    requirement = f"`subsample` must be a probability in (0, 1] such as 1/10, got {format_value(given)}"
    try:
        exact = parse_number(given) if isinstance(given, str) else check_fraction("subsample", given)
    except (ParameterError, TextFormError):
        exact = None
    if exact is None or not 0 < exact <= 1:
        raise ParameterError(requirement)
    return exact


# -- several open numbers: one in each part of a disjoint trial ----------------------------------------------------------------


def disjoint_parts(mechanism: Mechanism | OpenSpec) -> tuple[OpenSpec, ...]:
    """Return the parts of a ``disjoint(...)`` that have an open number, inner ones included; else the open mechanism itself."""
    return tuple(_open_parts(mechanism))


def fill_parts(mechanism: Mechanism | OpenSpec, values: Iterator[float]) -> Mechanism:
    """Return the mechanism with the next of ``values`` for the open number of each of its `disjoint_parts`."""
    if not isinstance(mechanism, OpenSpec):
        return mechanism
    if mechanism.spec_class is Disjoint:
        return Disjoint(tuple(fill_parts(part, values) for part in _parts_of(mechanism)))
    filled: Mechanism = mechanism.fill(next(values))
    return filled


def _open_parts(mechanism: Any) -> Iterator[OpenSpec]:
    if isinstance(mechanism, OpenSpec) and mechanism.spec_class is Disjoint:
        for part in _parts_of(mechanism):
            yield from _open_parts(part)
    elif isinstance(mechanism, OpenSpec):
        yield mechanism


def _parts_of(disjoint: OpenSpec) -> tuple[Any, ...]:
    parts = dict(disjoint.arguments)["parts"]
    return tuple(parts) if isinstance(parts, tuple | list) else (parts,)


def _open_parameters(part: object) -> tuple[OpenParameter, ...]:
    return part.open_parameters if isinstance(part, OpenSpec) else ()


def _filled(part: Any, value: float | None) -> Any:
    if not isinstance(part, OpenSpec):
        return part
    return part.without_unknowns() if value is None else part.fill(value)
