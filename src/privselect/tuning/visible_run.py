"""What a visible search is, in the terms of a run: its specification, its checks, its options and its ledger."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from privselect._util.validation import format_value
from privselect.errors import ParameterError
from privselect.mechanisms import Mechanism
from privselect.tuning.candidate_checks import CandidateChecks
from privselect.tuning.progress import Progress
from privselect.tuning.run_registry import open_run
from privselect.tuning.run_spec import RunSpec
from privselect.tuning.space import DefineByRunSpace, Space
from privselect.tuning.tuning_run import Setups, TuningRun
from privselect.tuning.visible_ledger import VisibleLedger

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from fractions import Fraction

    from privselect._util.random_bits import Entropy
    from privselect.tuning.ledger import RunRecord
    from privselect.tuning.scores import Score
    from privselect.tuning.space import Candidate
    from privselect.tuning.trial import TrialSetup

OPTIONS = ("out", "ledger", "again", "insecure_seed", "seed_bits", "timeout", "final_timeout", "memory_limit", "losses")


class ChosenSpace(Space):
    """Candidates that somebody chooses, from ``inner`` or from anywhere.

    Nothing is known about how probable a candidate is, so no mixture over candidates can be computed.
    """

    def __init__(self, inner: Space | None) -> None:
        self.distributions, self._function, self.defaults, self.inner = None, None, None, inner

    def __repr__(self) -> str:
        return f"ChosenSpace({self.inner!r})"

    def draw(self, entropy: Entropy) -> Candidate:
        """Draw a candidate, as a suggestion."""
        if self.inner is None:
            raise ParameterError("`space` is required to draw a candidate, got none")
        return self.inner.draw(entropy)

    def as_dict(self) -> Any:
        """Return the inner space for JSON."""
        return {"chosen from": None if self.inner is None else self.inner.as_dict()}

    def listed(self) -> list[tuple[Fraction, Candidate]] | None:
        """Return None: the probabilities are unknown."""
        return None

    def fault(self, candidate: Mapping[str, Any]) -> str | None:
        """Return why a candidate is not in the inner space, or None."""
        return None if self.inner is None else self.inner.fault(candidate)


class VisibleChecks(CandidateChecks):
    """The checks of candidates that somebody chooses: each one is checked before its trial."""

    def validate_space(self) -> None:
        """Check nothing if there is no space to draw from."""
        if not isinstance(self.space, ChosenSpace) or self.space.inner is not None:
            super().validate_space()


@dataclass(frozen=True, repr=False)
class VisibleSpec(RunSpec):
    """The specification of a visible search: the number of trials takes the place of a law of K."""

    shown: int = 1
    artifacts: bool = False  # whether what the search trials trained is shown too, when a final training follows

    def as_dict(self) -> dict[str, Any]:
        """Return the values that are hashed."""
        content = super().as_dict()
        del content["count"]
        return {**content, "visible": self.shown, "artifacts": self.artifacts}

    @property
    def visible(self) -> int:
        """The number of trials."""
        return self.shown

    @property
    def checks(self) -> VisibleChecks:
        """The checks of candidates."""
        return VisibleChecks(self.space, self.trial, self.final)

    def search_setup(self, data: Any, score: Score, secret: bytes, **limits: Any) -> TrialSetup:
        """Return what a worker needs to run search trials."""
        setup = super().search_setup(data, score, secret, **limits)
        return replace(setup, export=self.export) if self.artifacts else setup


@dataclass(frozen=True, repr=False)
class OpenVisibleRun:
    """A visible search in progress: its ledger, its record, and what the workers need."""

    ledger: VisibleLedger
    record: RunRecord
    setups: Setups


@dataclass(frozen=True, repr=False)
class VisibleRun(TuningRun):
    """A visible search with all its options."""

    def open(self, load: Callable[[], Any] | None) -> OpenVisibleRun:
        """Issue the certificate or find it in the ledger, then load the data and check on resume that it is unchanged."""
        if self.spec.subsample is not None and load is None:
            raise ParameterError("`data` is required for a subsampled search, got none")
        opened = open_run(self.ledger, self.spec.digest(), again=self.again, kind=VisibleLedger)
        try:
            record = self._start(opened, Progress(self, None)) if opened.record is None else self._check_resume(opened, opened.record, load)
            ledger = cast("VisibleLedger", opened.ledger)
            return OpenVisibleRun(ledger, record, self._load_setups(opened, record, load))
        except BaseException:
            opened.ledger.close()
            raise

    def _trial_count(self, secret: bytes) -> int:  # noqa: ARG002 - nothing is drawn
        """Return the number of trials."""
        return self.spec.visible or 1


def check_arguments(space: Any, mechanism: Any, options: Mapping[str, Any]) -> Space:
    """Check what is special to a visible search; return the space of its candidates."""
    for name in options:
        if name not in OPTIONS:
            raise ParameterError(f"`{name}` is not an option of a visible search. Options are {', '.join(sorted(OPTIONS))}")
    if callable(mechanism) and not isinstance(mechanism, Mechanism):
        raise ParameterError(
            "`mechanism` must be one mechanism that covers every candidate, because candidates may depend on earlier results, got "
            f"{format_value(mechanism)}. Pass a function of the candidate as `mechanism_of`"
        )
    read = space if space is None or isinstance(space, Space) else Space(space)
    if not isinstance(read, DefineByRunSpace):
        return ChosenSpace(read)
    if read.defaults is not None:
        raise ParameterError("`defaults` are for candidates that are drawn; in a visible search, run a default with run(candidate)")
    return read
