"""Compute the noise of a search from its budget: that of a trial, of its score on a hold-out, and of the final training."""

from __future__ import annotations

from dataclasses import asdict, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from privselect._util.validation import OPEN_UNIT, check_number, format_value
from privselect.certificates.canonical import digest
from privselect.certificates.certificate import Certificate
from privselect.certificates.model import PUBLIC_SCORE
from privselect.counts import Count
from privselect.errors import LedgerError, ParameterError
from privselect.integrations.sklearn.open_noise import SCALE, OpenFit, open_fit
from privselect.integrations.sklearn.trial_mechanism import declared_mechanism
from privselect.mechanisms import DiscreteGaussian, Disjoint, Mechanism, Mixture
from privselect.mechanisms.neighbours import ADD_REMOVE
from privselect.open_spec import UNKNOWN, OpenSpec, is_open
from privselect.pairs.compose import ACCURACY
from privselect.planning.default_law import default_count
from privselect.planning.plan import plan as solve_plan
from privselect.planning.search import InfeasibleError
from privselect.planning.search_range import FastOptions
from privselect.planning.split import AUTO
from privselect.planning.stages import read_count, read_final
from privselect.text_forms import parse
from privselect.tuning.run_registry import find_run_of_problem
from privselect.tuning.scores import NoisyCount
from privselect.tuning.trial_mechanism import trial_mechanism

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from privselect.integrations.sklearn.stages import StageEstimators
    from privselect.integrations.sklearn.validation import Validation
    from privselect.planning.plan_result import Plan, Problem
    from privselect.tuning.space import Space

_FAST = FastOptions(accuracy=ACCURACY)  # without plans by other bounds: nobody knows a regressor by the scale 1/epsilon
_TOO_SMALL = "`epsilon` must be larger, got {epsilon}: no fit leaks little enough"


class SolvedSearch(NamedTuple):
    """A search without open numbers; ``plan`` and the hash of the ``problem`` that it solves are None if none was open."""

    stages: StageEstimators
    validation: Validation
    mechanism: Any  # as the user gave it, or filled
    final: Mechanism | None
    count: Any
    plan: Plan | None = None
    problem: str | None = None


def solve_noise(  # noqa: PLR0913 - the parts of a search
    search: Any, stages: StageEstimators, validation: Validation, space: Space, *, declares: bool, identity: dict[str, Any]
) -> SolvedSearch:
    """Solve for all open numbers of a search.

    ``declares`` says whether the estimator's own mechanism covers a whole fit. ``identity`` is what distinguishes the search from others.
    """
    count = default_count() if search.count is None else read_count(search.count)
    if isinstance(count, Count) and stages.open_stages:
        stages = stages.with_fit_delta(check_number("delta", search.delta, OPEN_UNIT), count.expected())
    given = parse(search.mechanism) if isinstance(search.mechanism, str) else search.mechanism
    training = _training(given, stages, stages.trial, partial(_over_candidates, space=space), "mechanism")
    final = None if stages.final is None else _final(search, given, stages, space, declares=declares)
    mechanism = _with_count_noise(training, validation.score)
    if not is_open((mechanism, final, count)):
        return SolvedSearch(stages, validation, given, final, count)
    if search.epsilon is None:
        unknown = _open_name(stages, training, final, validation)
        raise ParameterError(f"`epsilon` is required, because {unknown} is computed from the budget: pass epsilon=..., or state it")
    plan = _solved_plan(search, mechanism, count, final, by_scale=any(_is_scale(fit) for fit in (training, final)))
    problem = digest(
        {
            "run": identity,
            "problem": asdict(cast("Problem", plan.problem)),
            "subsample": str(search.subsample),
            "budget": [plan.epsilon, plan.delta],
        }
    )
    _check_same_as_earlier(search, problem, plan)
    values = {stage: iter([found.value for found in plan.solved if found.stage == stage]) for stage in ("search", "final")}
    trial_noise, final_noise = _next_noise(training, values["search"]), _next_noise(final, values["final"])
    for fit, solved in ((training, plan.mechanism), (final, plan.final)):
        _check_some_leak(fit, solved, search)
    if isinstance(score := validation.score, NoisyCount) and score.sigma is None:
        validation = replace(validation, score=score.with_sigma(next(values["search"])))
    if isinstance(given, OpenSpec):
        given = given.fill(trial_noise)  # type: ignore[arg-type]  # it has one open number
    return SolvedSearch(stages.with_noise(trial_noise, final_noise), validation, given, plan.final, plan.count, plan, problem)


def _training(given: Any, stages: StageEstimators, estimator: Any, over_candidates: Callable[[Any], Mechanism], name: str) -> Any:
    """Return what the fit of a stage leaks, possibly with one open number: as the user states it, or as the estimator declares it."""
    has_open_noise = stages.has_open_noise(estimator)
    if isinstance(given, OpenSpec):
        if len(given.open_parameters) != 1:
            raise ParameterError(f"`{name}` must have at most one open number, got {format_value(str(given))}")
        if stages.noise is None:
            raise ParameterError(
                f"`{name}` has an open number, so the estimator must have a parameter for its value: name it with noise_parameter=..., "
                f"got {format_value(str(given))}"
            )
        return given
    if given is not None and has_open_noise:
        raise ParameterError(
            f"`{name}` must leave its noise open, as in dpsgd(noise_multiplier=?, ...), if {stages.noise} is None, "
            f"got {format_value(str(given))}"
        )
    if isinstance(given, Mechanism):
        return given
    if given is None and has_open_noise:
        return open_fit(estimator, str(stages.noise), lambda one: over_candidates(declared_mechanism(one)))
    return over_candidates(declared_mechanism(estimator) if given is None else given)


def _final(search: Any, given: Any, stages: StageEstimators, space: Space, *, declares: bool) -> Any:
    """Return what the final fit leaks: the given mechanism, the declared one, or that of a trial if both stages fit the same estimator."""
    if search.final is None and not declares and (stages.cheaper or not isinstance(given, Mechanism | OpenSpec)):
        raise ParameterError(
            "`final` is required: pass final=... to state what the final fit leaks, because the search trials have other parameters"
        )
    stated = given if search.final is None and not declares else None if search.final is None else read_final(search.final)
    return _training(stated, stages, stages.final, partial(_one_for_all, space=space), "final")


def _one_for_all(mechanism_of: Any, space: Space) -> Mechanism:
    mechanism = _over_candidates(mechanism_of, space)
    if isinstance(mechanism, Mixture):
        raise ParameterError(
            "`final` is required: the candidates differ in what one fit leaks. Pass final=..., a mechanism that covers every candidate"
        )
    return mechanism


def _over_candidates(mechanism_of: Any, space: Space) -> Mechanism:
    """Return the mechanism of a fit whose candidate is drawn from the space."""
    return trial_mechanism(mechanism_of, None, PUBLIC_SCORE, space)


def _with_count_noise(training: Any, score: Any) -> Any:
    if not isinstance(score, NoisyCount):
        return training
    noise = DiscreteGaussian(sigma=UNKNOWN if score.sigma is None else score.sigma, neighbours=ADD_REMOVE)
    return training if isinstance(training, Disjoint) and noise in training.parts else Disjoint((training, noise))


def _next_noise(fit: Any, values: Iterator[float]) -> float | None:
    """Return the estimator's parameter for the next value, or None if the fit has no open number."""
    if not isinstance(fit, OpenSpec):
        return None
    return fit.parameter_at(next(values)) if isinstance(fit, OpenFit) else next(values)


def _solved_plan(search: Any, mechanism: Any, count: Any, final: Any, *, by_scale: bool) -> Plan:
    """Return the plan; ``by_scale`` says whether the epsilon of a fit is solved for."""
    both = is_open((mechanism, count)) and is_open(final)
    try:
        return solve_plan(
            mechanism,
            count,
            final=final,
            subsample=search.subsample,
            final_noise=search.final_noise,
            split=AUTO if both and search.final_noise is None and search.split is None else search.split,
            epsilon=search.epsilon,
            delta=search.delta,
            fast=_FAST if by_scale else None,
        )
    except InfeasibleError:
        if not by_scale:
            raise
        raise ParameterError(_TOO_SMALL.format(epsilon=format_value(search.epsilon))) from None


def _is_scale(fit: Any) -> bool:
    """Return whether the open number of a fit is the scale 1/epsilon."""
    return isinstance(fit, OpenFit) and fit.unknown.name == SCALE


def _check_same_as_earlier(search: Any, problem: str, plan: Plan) -> None:
    """Refuse another solution than that of an earlier run: it would be another plan, whose runs are not counted together."""
    earlier = None if search.ledger is None else find_run_of_problem(search.ledger, problem)
    if earlier is None:
        return
    terms = Certificate.from_json(earlier).plan
    found = tuple(None if part is None else str(part) for part in (plan.mechanism, plan.count, plan.final))
    if found != (terms.mechanism, terms.count, terms.final):
        ran = terms.mechanism if terms.final is None else f"{terms.mechanism} and {terms.final}"
        raise LedgerError(
            "this search was run before with the noise that another version of privselect computed. State that noise to resume or repeat "
            f"it, or use that version: {ran}"
        )


def _check_some_leak(fit: Any, solved: Any, search: Any) -> None:
    """Refuse a fit that leaks nothing: it has no information, because its budget is too small for any release."""
    if _is_scale(fit):
        training = solved.parts[0] if isinstance(solved, Disjoint) else solved
        if float(training.epsilon_at(search.delta).upper) == 0.0:
            raise ParameterError(_TOO_SMALL.format(epsilon=format_value(search.epsilon)))


def _open_name(stages: StageEstimators, training: Any, final: Any, validation: Validation) -> str:
    if is_open((training, final)):
        return f"`{stages.noise}` of a fit"
    return "`sigma` of the HoldOut" if isinstance(validation.score, NoisyCount) and validation.score.sigma is None else "`count`"
