"""The search space: a distribution of candidates, fixed before the data is accessed.

Every trial draws its candidate from this distribution, independently and with replacement. Trying each point of a grid once, or
choosing the next candidate by earlier scores, would be another mechanism. Defaults are a part of the distribution: with a stated
probability a candidate starts from one of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from privselect._util.validation import format_value
from privselect.errors import ParameterError, PrivselectError
from privselect.tuning.defaults import Defaults, read_defaults
from privselect.tuning.distributions import MAX_LISTED, Distribution
from privselect.tuning.plan_ids import name_in_plan
from privselect.tuning.randomness import Stream, derive_key
from privselect.tuning.suggest import COMPLETE, FIXED, STREAM, Suggest, check_name

if TYPE_CHECKING:
    from privselect._util.random_bits import Entropy

Candidate: TypeAlias = dict[str, Any]
_DEFAULT_DRAWS = 20  # candidates drawn from each default of a function, to find names that it never draws


class Space:
    """Named hyperparameters with their distributions, or a function of a :class:`Suggest` if a draw depends on other draws.

    With probability ``weight``, exactly, a candidate starts from one of ``defaults``, all equally likely; the names that this default
    leaves out are drawn. Otherwise the whole candidate is drawn. Without ``weight`` the probability is 1/2.
    """

    def __init__(
        self,
        distributions: Mapping[str, Distribution] | Callable[[Suggest], Any],
        defaults: Any = None,
        weight: Any = None,
    ) -> None:
        if isinstance(distributions, Mapping):
            for name, distribution in distributions.items():
                check_name(name)
                if not isinstance(distribution, Distribution):
                    raise ParameterError(
                        f"`{name}` of the space must be Uniform, LogUniform, Integer or Choice, got {format_value(distribution)}"
                    )
            if not distributions:
                raise ParameterError("`space` must have at least one hyperparameter, got none")
            self.distributions: dict[str, Distribution] | None = dict(distributions)
            self._function: Callable[[Suggest], Any] | None = None
        elif callable(distributions):
            self.distributions, self._function = None, distributions
        else:
            raise ParameterError(f"`space` must be a dict of distributions or a function of `suggest`, got {format_value(distributions)}")
        self.defaults: Defaults | None = None
        self._set_defaults(read_defaults(defaults, weight))

    def __repr__(self) -> str:
        return f"Space({self._function if self.distributions is None else self.distributions!r}{self._defaults_text()})"

    def draw(self, entropy: Entropy) -> Candidate:
        """Draw one candidate."""
        fixed = {} if self.defaults is None else self.defaults.choose(entropy)
        return self._draw_from(fixed, entropy)

    def as_dict(self) -> Any:
        """Return the distributions, or the name of the function, with the defaults if there are any, for JSON."""
        return self._plain_dict() if self.defaults is None else self.defaults.as_dict(self._plain_dict())

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for the certificate."""
        return () if self.defaults is None else (self.defaults.note,)

    def listed(self) -> list[tuple[Fraction, Candidate]] | None:
        """Return the :meth:`finite_part` of every candidate with its exact probability, or None if unknown or too many."""
        if self.distributions is None:
            return None
        starts = [(Fraction(1), {})] if self.defaults is None else self.defaults.listed()
        entries: list[tuple[Fraction, Candidate]] = []
        for probability, fixed in starts:
            rest = self._listed_from(fixed) if probability else []
            if rest is None or len(entries) + len(rest) > MAX_LISTED:
                return None
            entries += [(probability * weight, candidate) for weight, candidate in rest]
        return entries if self.defaults is None else _merge_equal(entries)

    def finite_part(self, candidate: Candidate) -> Candidate:
        """Return the candidate without the hyperparameters that have infinitely many values, or too many to list."""
        return {name: candidate[name] for name in self._finite_names()}

    def fault(self, candidate: Mapping[str, Any]) -> str | None:
        """Return why a candidate is not one of this space, such as the result of a transfer, or None."""
        suggest = Suggest(Stream(bytes(32)), fixed=candidate, complete=True)
        try:
            if self._function is not None:
                self._function(suggest)
            for name, distribution in (self.distributions or {}).items():
                suggest.draw(name, distribution)
        except PrivselectError as error:
            return str(error)
        except Exception as error:  # noqa: BLE001 - from the user's function
            return f"the space failed with {type(error).__name__}"
        for name, distribution in suggest.distributions.items():
            if not distribution.contains(candidate[name]):
                return f"`{name}` of the space must be {distribution.allowed}, got {format_value(candidate[name])}"
        unknown = [name for name in candidate if name not in suggest.drawn]
        return f"the space has no hyperparameter {format_value(unknown[0])}" if unknown else None

    def with_defaults(self, defaults: Any, weight: Any = None) -> Space:
        """Return this space with defaults; a space that has defaults already is refused."""
        read = read_defaults(defaults, weight)
        if read is None:
            return self
        if self.defaults is not None:
            raise ParameterError("`defaults` must be given once, but the space has its own; got them again")
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other._set_defaults(read)
        return other

    # -- defaults -------------------------------------------------------------------------------------------------------------

    def _set_defaults(self, defaults: Defaults | None) -> None:
        """Check the defaults against the space and keep them in the form in which the space draws values."""
        if defaults is None:
            return
        if self.distributions is not None:
            known, candidates = self.distributions, []
            for number, default in enumerate(defaults.candidates, 1):
                candidates.append({name: _checked(name, value, number, known) for name, value in default.items()})
            defaults = replace(defaults, candidates=tuple(candidates))
        else:
            for number, default in enumerate(defaults.candidates, 1):
                self._try_default(number, default)
        self.defaults = defaults

    def _try_default(self, number: int, default: Candidate) -> None:
        """Draw from one default of a function, to find values outside its ranges and names that it never draws."""
        drawn: set[str] = set()
        for draw in range(_DEFAULT_DRAWS):
            try:
                drawn |= set(self._draw_from(default, Stream(derive_key(bytes(32), "default", draw))))
            except PrivselectError as error:
                raise ParameterError(f"default {number}: {error}") from None
            except Exception:  # noqa: BLE001 - from the user's function; the run draws from it too, and reports the error with its text
                return
        for name in default:
            if name not in drawn:
                raise ParameterError(
                    f"`defaults` must use hyperparameters of the space, got {format_value(name)} in default {number}, which the space "
                    f"did not draw in {_DEFAULT_DRAWS} candidates"
                )

    def _defaults_text(self) -> str:
        if self.defaults is None:
            return ""
        return f", defaults={list(self.defaults.candidates)!r}, weight={str(self.defaults.weight)!r}"

    # -- parts ----------------------------------------------------------------------------------------------------------------

    def _draw_from(self, fixed: Mapping[str, Any], entropy: Entropy) -> Candidate:
        suggest = Suggest(entropy, fixed=fixed)
        if self._function is not None:
            self._function(suggest)
        for name, distribution in (self.distributions or {}).items():
            suggest.draw(name, distribution)
        return suggest.drawn

    def _plain_dict(self) -> Any:
        if self.distributions is None:
            return {"function": name_in_plan(self._function)}
        return {name: distribution.as_dict() for name, distribution in self.distributions.items()}

    def _finite_names(self) -> list[str]:
        """Return the names whose values can be listed: by their distribution, or because every candidate gets them from a default."""
        always = set()
        if self.defaults is not None and self.defaults.weight == 1:
            always = set.intersection(*(set(default) for default in self.defaults.candidates))
        return [name for name, column in (self.distributions or {}).items() if name in always or column.listed() is not None]

    def _listed_from(self, fixed: Mapping[str, Any]) -> list[tuple[Fraction, Candidate]] | None:
        known = self.distributions or {}
        names = self._finite_names()
        columns = [[(Fraction(1), fixed[name])] if name in fixed else known[name].listed() or [] for name in names]
        if math.prod(len(column) for column in columns) > MAX_LISTED:
            return None
        return [
            (math.prod((weight for weight, _ in row), start=Fraction(1)), dict(zip(names, (value for _, value in row), strict=True)))
            for row in product(*columns)
        ]


class DefineByRunSpace(Space):
    """A space that only the objective knows: it gets a :class:`Suggest` and draws from it while it runs.

    The user declares that no range was computed from the records. A :class:`Space` is safer: it is fixed before the data is accessed.
    Values of defaults are checked when the objective draws them; names that it does not draw are ignored.
    """

    def __init__(self, name: str, defaults: Any = None, weight: Any = None) -> None:
        self.distributions, self._function, self._name = None, None, name
        self.defaults = read_defaults(defaults, weight)

    def __repr__(self) -> str:
        return f"DefineByRunSpace({self._name!r}{self._defaults_text()})"

    def draw(self, entropy: Entropy) -> Candidate:
        """Return the key of the stream from which the objective will draw, and what is fixed if the candidate starts from a default."""
        key = cast("Stream", entropy).key
        # The choice has its own stream: with the same bits it would depend on the first draws.
        fixed = {} if self.defaults is None else self.defaults.choose(Stream(derive_key(key, "default")))
        return {STREAM: key.hex(), **({FIXED: dict(fixed)} if fixed else {})}

    def final_candidate(self, candidate: Mapping[str, Any]) -> Candidate:
        """Return the candidate of a final training, in which the objective gets these values and may draw no other name."""
        return {STREAM: bytes(32).hex(), FIXED: dict(candidate), COMPLETE: True}

    def fault(self, candidate: Mapping[str, Any]) -> str | None:  # noqa: ARG002
        """Return None: only the objective knows its ranges."""
        return None

    def _set_defaults(self, defaults: Defaults | None) -> None:
        self.defaults = defaults

    def _plain_dict(self) -> Any:
        return {"suggested": self._name}


def read_space(given: Any, defaults: Any = None, weight: Any = None) -> Space:
    """Return a space from a space, a dict of distributions or a function, with its defaults."""
    if isinstance(given, Space):
        if defaults is None and weight is None:
            return given
        return given.with_defaults(defaults, weight)
    return Space(given, defaults, weight)


def _checked(name: str, value: Any, number: int, known: Mapping[str, Distribution]) -> Any:
    if name not in known:
        raise ParameterError(f"`defaults` must use hyperparameters of the space ({', '.join(known)}), got {format_value(name)}")
    distribution = known[name]
    if not distribution.contains(value):
        raise ParameterError(f"`{name}` of default {number} must be {distribution.allowed}, got {format_value(value)}")
    return distribution.normalize(value)


def _merge_equal(entries: list[tuple[Fraction, Candidate]]) -> list[tuple[Fraction, Candidate]]:
    """Add up the probabilities of equal candidates; true and 1 are not equal."""
    merged: dict[str, tuple[Fraction, Candidate]] = {}
    for weight, candidate in entries:
        before, _ = merged.get(repr(candidate), (Fraction(0), candidate))
        merged[repr(candidate)] = (before + weight, candidate)
    return list(merged.values())
