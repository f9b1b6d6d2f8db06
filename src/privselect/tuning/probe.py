"""Probe an objective on synthetic data before anything is drawn, if it has a method ``probe``.

``probe(data, candidate, mechanism=..., stage=...)`` raises an error if the objective cannot be trusted with private data. It gets the
keywords that the objective gets. An objective that has ``requires_synthetic`` does not run without synthetic data.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from privselect.errors import ParameterError
from privselect.tuning.randomness import Stream, derive_key

if TYPE_CHECKING:
    from privselect.tuning.run_spec import RunSpec
    from privselect.tuning.space import Candidate, Space
    from privselect.tuning.trial import TrialSetup

_DRAWS = 200
_LEAST, _MOST = 2, 8  # candidates to probe


def check_synthetic(objective: Any, synthetic: Any) -> None:
    """Refuse an objective without the synthetic data on which it must be probed."""
    if synthetic is None and getattr(objective, "requires_synthetic", False):
        raise ParameterError(
            "`synthetic` is required: this objective is probed on data of the same form that is not private, before any private data is "
            "used"
        )


def probe_objective(spec: RunSpec, data: Any, search: TrialSetup, final: TrialSetup | None) -> None:
    """Probe the objective as each stage calls it, on all the synthetic data: a sample of it may be too small."""
    probe = getattr(spec.objective, "probe", None)
    if not callable(probe) or spec.define_by_run:
        return
    for candidate in probed_candidates(spec.space):
        probe(data, dict(candidate), **_told(search, candidate))
        if final is not None:
            transferred = spec.checks.transferred(candidate)
            probe(data, dict(transferred), **_told(final, transferred))


def _told(setup: TrialSetup, candidate: Candidate) -> dict[str, Any]:
    return {} if setup.told is None else setup.told.keywords(candidate)


def probed_candidates(space: Space) -> list[Candidate]:
    """Return a few candidates of the space that together have many of its options.

    They are the same in every run and unrelated to its draws. An option may be another loss or layer, so each one should be probed.
    """
    chosen: list[Candidate] = []
    seen: set[tuple[str, str]] = set()
    for number in range(_DRAWS):
        candidate = space.draw(Stream(derive_key(bytes(32), "probe", number)))
        # A float is a point of a range, and no option; so is an integer, unless it is one of a few.
        options = {(name, repr(value)) for name, value in candidate.items() if not isinstance(value, float)}
        if len(chosen) < _LEAST or not options <= seen:
            chosen.append(candidate)
            seen |= options
        if len(chosen) == _MOST:
            break
    return chosen
