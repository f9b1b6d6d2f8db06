"""``ps.tune``: check the arguments, solve for open noise, then draw K, run the trials, train with the winner's candidate and release."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from privselect._util.validation import NON_NEGATIVE, OPEN_UNIT, check_number, format_value
from privselect.certificates.model import Declared, with_score_declaration
from privselect.errors import ParameterError
from privselect.mechanisms import Mechanism
from privselect.open_spec import OpenSpec
from privselect.planning.default_law import default_count
from privselect.planning.stages import OpenStages, read_mechanism
from privselect.tuning.budget import read_terms, solve_terms, solved_sigma
from privselect.tuning.executors import read_engine
from privselect.tuning.exports import read_export
from privselect.tuning.probe import check_synthetic
from privselect.tuning.run_options import check_options
from privselect.tuning.run_registry import DEFAULT_LEDGER_FOLDER
from privselect.tuning.run_spec import FinalTraining, RunSpec
from privselect.tuning.scores import NoisyCount, read_score, score_statement
from privselect.tuning.space import read_space
from privselect.tuning.told import told_names
from privselect.tuning.transfer import SAME, Transfer, read_transfer, transfer_name
from privselect.tuning.trial_mechanism import TrialMechanism, final_mechanism_of, resolve_mechanism
from privselect.tuning.tuning_run import TuningRun

if TYPE_CHECKING:
    from collections.abc import Callable
    from fractions import Fraction

    from privselect.counts import Count
    from privselect.tuning.executors import Engine
    from privselect.tuning.release import Release
    from privselect.tuning.scores import Score
    from privselect.tuning.trial_mechanism import MechanismOf

# Fields of TuningRun that are not options: arguments of tune itself, and what is computed from them.
_ARGUMENTS = {"engine", "epsilon", "delta"}
_COMPUTED = {"spec", "declared", "plan", "problem"}


def tune(  # noqa: PLR0913 - a run has this many parts
    objective: Callable[..., Any],
    space: Any,
    *,
    data: Any = None,
    mechanism: Mechanism | OpenSpec | MechanismOf | str | None = None,
    count: Count | str | None = None,
    final: Mechanism | OpenSpec | str | None = None,
    transfer: Any = SAME,
    learning_rate: str | None = None,
    final_noise: float | None = None,
    split: str | None = None,
    subsample: Fraction | float | str | None = None,
    defaults: Any = None,
    weight: Any = None,
    score: Any = None,
    delta: float,
    epsilon: float | None = None,
    fallback: Any = None,
    export: Any = None,
    declared: Declared | None = None,
    executor: Engine | str = "processes",
    workers: int | None = None,
    mechanism_of: MechanismOf | None = None,
    synthetic: Any = None,
    **options: Any,
) -> Release:
    """Run K trials of ``objective`` on candidates drawn from ``space``, and release only the best one, with its certificate.

    ``objective(candidate, data, randomness)`` returns ``(score, artifact)`` and must take all its randomness from ``randomness``. If it
    has a parameter ``mechanism``, it is told which mechanism to run.

    - ``mechanism``: what one trial leaks. A number left open, ``dpsgd(noise_multiplier=?, ...)``, is solved for from the budget
      ``epsilon``, ``delta``.
    - ``count``: the law of K; by default ``ps.default_count()``.
    - ``final``: what one final training leaks. The best candidate is then trained once more, on all records, and this model is released
      instead of the trial's. Its noise may be open too; ``final_noise=1.07`` or ``split="auto"`` divides the budget.
    - ``transfer``: the candidate of the final training: "same" as the winner's; "noise", which adapts the hyperparameter
      ``learning_rate`` to the noise; or a function of the winner's candidate alone.
    - ``subsample``: the probability of each record to be in the one secret sample on which all search trials run.
    - ``defaults``, ``weight``: candidates that are known to be good, and the probability that a trial starts from one of them.
    - ``score``: how the score is private: "public", NoisyCount(...) or "covered".
    - ``export``: how the artifact is released: "arrays", "safetensors", a function that returns bytes, or None for the candidate only.
    - ``fallback``: what is released if no trial is drawn, all trials fail or the final training fails.
    - ``synthetic``: non-private data of the same form. One trial, and the final training, run on it before K is drawn, so an objective
      that cannot run is found before anything is spent. Without it, if all trials fail, the fallback is released without any message.
    - ``options``: out, ledger, again, insecure_seed, seed_bits, timeout, final_timeout, memory_limit, release_at, deadline,
      constant_work, losses, curator.

    To resume a run that was killed, make the same call again. Ctrl-C and a missed deadline release nothing.
    """
    _check_option_names(options)
    run = configure_run(
        objective,
        space,
        mechanism=mechanism,
        count=count,
        final=final,
        transfer=transfer,
        learning_rate=learning_rate,
        final_noise=final_noise,
        split=split,
        subsample=subsample,
        defaults=defaults,
        weight=weight,
        score=score,
        delta=delta,
        epsilon=epsilon,
        fallback=fallback,
        export=export,
        declared=declared,
        engine=read_engine(executor, workers),
        mechanism_of=mechanism_of,
        **options,
    )
    check_synthetic(objective, synthetic)
    if synthetic is not None:
        from privselect.tuning.dry_run import run_synthetic_trial

        run_synthetic_trial(run, lambda: synthetic)
    return run.run(None if data is None else lambda: data)


def configure_run(  # noqa: PLR0913 - as many as tune has
    objective: Callable[..., Any],
    space: Any,
    *,
    mechanism: Any = None,
    count: Any = None,
    final: Any = None,
    transfer: Any = SAME,
    learning_rate: str | None = None,
    final_noise: float | None = None,
    split: str | None = None,
    subsample: Any = None,
    defaults: Any = None,
    weight: Any = None,
    score: Any = None,
    delta: float,
    epsilon: float | None = None,
    fallback: Any = None,
    export: Any = None,
    declared: Declared | None = None,
    mechanism_of: MechanismOf | None = None,
    ledger: Any = DEFAULT_LEDGER_FOLDER,
    visible: int | None = None,
    spec_kind: Callable[..., RunSpec] = RunSpec,
    run_kind: type[TuningRun] = TuningRun,
    **options: Any,
) -> TuningRun:
    """Check every argument of a run, solve for open noise and return the run; the data is not accessed and nothing is drawn.

    ``visible``, ``spec_kind`` and ``run_kind`` are for a visible search, which shows all of its trials and has no law of K.
    """
    if not callable(objective):
        raise ParameterError(f"`objective` must be a function of (candidate, data, randomness), got {format_value(objective)}")
    _check_option_names(options)
    told_names(objective)  # raises if the objective cannot be called with what it asks for
    space, score, export = read_space(space, defaults, weight), read_score(score), read_export(export)
    if fallback is not None and export is None:
        raise ParameterError(f"`fallback` must be None when nothing is exported, got {format_value(fallback)}")
    encoded = None if fallback is None or export is None else export.encode(fallback)
    rule = _check_final_arguments(final, transfer, learning_rate)

    given = read_mechanism(mechanism) if isinstance(mechanism, str) else mechanism
    is_open = isinstance(given, OpenSpec) or (isinstance(score, NoisyCount) and score.sigma is None)
    trial = None if is_open else resolve_mechanism(given, mechanism_of, objective, score, space)
    terms = read_terms(
        _open_trial(given, objective) if trial is None else trial.mechanism,
        score,
        count=count,
        final=final,
        subsample=subsample,
        final_noise=final_noise,
        split=split,
        epsilon=None if epsilon is None else check_number("epsilon", epsilon, NON_NEGATIVE),
        delta=check_number("delta", delta, OPEN_UNIT),
        visible=visible,
    )
    stated: Any = TrialMechanism(terms.mechanism, mechanism_of, None) if trial is None else trial  # type: ignore[arg-type]  # may be open
    training: Any = None if terms.final is None else FinalTraining(terms.final, Transfer(rule, dict, ""))  # type: ignore[arg-type]
    unsolved = spec_kind(objective, space, stated, terms.count, score, export, encoded, training, terms.subsample)
    problem = terms.problem(unsolved.as_dict())
    plan = solve_terms(terms, ledger, problem)
    if plan is not None:
        mechanism, count, final = plan.mechanism, plan.count, plan.final
    else:
        mechanism, count, final = terms.mechanism, terms.count or _default_count(visible), terms.final
    if trial is None:
        score = _with_solved_noise(score, mechanism)
        trial = resolve_mechanism(mechanism, mechanism_of, objective, score, space)
    spec = spec_kind(
        objective,
        space,
        trial,
        count,
        score,
        export,
        encoded,
        None
        if final is None
        else FinalTraining(
            final, read_transfer(transfer, learning_rate, trial.training(score), final), final_mechanism_of(objective, final)
        ),
        terms.subsample,
    )
    OpenStages(trial.mechanism, count, final, visible).check_relations()
    return check_options(
        run_kind(
            spec,
            delta=terms.delta,
            epsilon=terms.epsilon,
            declared=with_score_declaration(declared or Declared(), score_statement(score)),
            ledger=ledger,
            plan=plan,
            problem=problem,
            **options,
        )
    )


def _default_count(visible: int | None) -> Count | None:
    return default_count() if visible is None else None


def _check_option_names(options: dict[str, Any]) -> None:
    allowed = {field.name for field in fields(TuningRun)} - _COMPUTED
    for name in options:
        if name not in allowed:
            visible = "; a visible search is run by VisibleSearch" if name == "visible" else ""
            raise ParameterError(f"`{name}` is not an option of tune{visible}. Options are {', '.join(sorted(allowed - _ARGUMENTS))}")


def _check_final_arguments(final: Any, transfer: Any, learning_rate: Any) -> str:
    """Return the name of the transfer rule; refuse a rule for a final training that is not made."""
    rule = transfer_name(transfer, learning_rate)
    if final is None and rule != SAME:
        raise ParameterError(f"`transfer` is the rule of a final training and needs `final`, got {format_value(rule)} without it")
    return rule


def _open_trial(given: Any, objective: Any) -> Mechanism | OpenSpec:
    """Return the mechanism of a trial whose noise, or the noise of whose score, is open."""
    stated = getattr(objective, "mechanism", None) if given is None else given
    if not isinstance(stated, Mechanism | OpenSpec):
        got = "none" if given is None else format_value(given)
        raise ParameterError(
            "`mechanism` must be one mechanism for all candidates, such as dpsgd(noise_multiplier=?, sampling_probability=1/50, "
            f"steps=60), when noise is solved for, got {got}"
        )
    return stated


def _with_solved_noise(score: Score, trial: Mechanism) -> Score:
    if not isinstance(score, NoisyCount) or score.sigma is not None:
        return score
    sigma = solved_sigma(trial)
    if sigma is None:
        raise ParameterError(
            "`sigma` of the noisy count must be stated, or be that of a discrete_gaussian(sigma=?) in the disjoint(...) of `mechanism`, "
            "got none"
        )
    return score.with_sigma(sigma)
