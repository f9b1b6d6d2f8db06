"""Private replacement for scikit-learn's RandomizedSearchCV that returns a certificate."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import KW_ONLY, dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from sklearn.base import BaseEstimator, MetaEstimatorMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from privselect._util.validation import format_value
from privselect.errors import ParameterError
from privselect.integrations.sklearn.input_checks import check_synthetic_records, check_training_records
from privselect.integrations.sklearn.seeds import get_seeds, load_estimator
from privselect.integrations.sklearn.tune_arguments import plan_search
from privselect.integrations.sklearn.unsupported import check_no_folds, explain_unsupported_arguments, unavailable
from privselect.integrations.sklearn.validation import HoldOut, scorer_of
from privselect.tuning.dry_run import run_synthetic_trial
from privselect.tuning.run_registry import DEFAULT_LEDGER_FOLDER

if TYPE_CHECKING:
    from collections.abc import Callable

    from privselect.tuning.release import Release

_REASONS = (
    "either no trial was drawn or all trials failed",
    "no trial was drawn, all trials failed or the final fit failed",
)

Method = TypeVar("Method", bound="Callable[..., Any]")


def _available(name: str) -> Callable[[Method], Method]:
    """Return a decorator: the method exists if the released estimator has it, or before the fit the given estimator."""
    decorator: Callable[[Method], Method] = available_if(
        lambda search: hasattr(getattr(search, "best_estimator_", None) or search.estimator, name)
    )
    return decorator


def _delegated(name: str) -> Any:
    """Return a method that calls the method of the same name of the released estimator."""

    def method(self: PrivateSearch, X: Any) -> Any:  # noqa: N803 - scikit-learn's name
        return getattr(self._released_estimator(), name)(X)

    method.__name__, method.__qualname__ = name, f"PrivateSearch.{name}"
    method.__doc__ = f"Return ``{name}(X)`` of the released estimator."
    return _available(name)(method)


@explain_unsupported_arguments
@dataclass(eq=False, repr=False)
class PrivateSearch(MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """Draw K in secret, fit K clones with parameters drawn from ``param_distributions``, and keep only the best one, with a certificate.

    - ``epsilon``, ``delta``: the budget for everything that is released. A noise that is not stated follows from it.
    - ``refit``: whether a final fit on all records follows, with the best parameters. Its result is then released instead of the best
      trial, and the trials may be cheaper.
    - ``search_params``: the parameters of a search trial that differ from those of the final fit, such as ``{"steps": 60}``. None gives
      the trials a tenth of the ``steps``, if the estimator has this parameter.
    - ``final_noise``, ``split``: how the budget is divided, as in :func:`privselect.plan`. By default ``split="auto"``.
    - ``transfer``: how the best parameters become those of the final fit: "same", "noise" or a function of the parameters, as in
      :func:`privselect.tune`. ``learning_rate`` is the parameter that "noise" changes. The default is "noise" if the estimator trains by
      DP-SGD and states its ``learning_rate_parameter``, and "same" otherwise.
    - ``defaults``: parameters known to be good, a list of dicts. With probability ``weight`` (1/2) a candidate starts from one of them.
    - ``subsample``: the probability of each record to be in the one sample that all search trials share.
    - ``count``: the law of K. None uses :func:`privselect.default_count`.
    - ``mechanism``: what one fit leaks: a mechanism, its text form, or a function of the parameters. None uses the estimator's own
      attribute ``mechanism``. ``final`` is the same for the final fit.
    - ``noise_parameter``: the parameter of the estimator that sets its noise. None uses the estimator's attribute of this name. If the
      parameter is None, or ``mechanism`` has an open number, the search computes it from the budget.
    - ``validation``: what candidates are scored on: ``(X, y)`` of public records, a :class:`HoldOut`, or "covered". None holds out a fifth
      of the records for a classifier.
    - ``covered``: names of pipeline steps that learn from the data and that the mechanism accounts for.
    - ``classes``: the labels, which are public.
    - ``n_jobs``: None or 1 for this process, a larger number for as many processes, -1 for all cores.
    - ``random_state``: None for the operating system's entropy. An integer makes the search repeatable, and its certificate insecure.
    - ``synthetic``: non-private (X, y) for a dry run before K is drawn.
    - ``options``: further options of :func:`privselect.tune`.
    - ``mechanism_of``, ``declared``, ``ledger``, ``again`` and ``out``: as in :func:`privselect.tune`.

    After ``fit``:

    - ``best_estimator_``: the released model, ``best_params_``: the parameters that it was fitted with.
    - ``search_params_``, ``best_score_``: the parameters and the score of the best trial.
    - ``plan_``: the noise of each stage, and what it costs. ``certificate_``, ``release_``: the certificate and the whole release.

    The first four are None if no trial was drawn, if all trials failed, or if the final fit failed. Which of these happened stays secret.
    """

    estimator: Any
    param_distributions: Any
    _: KW_ONLY
    epsilon: Any = None
    delta: Any = None
    refit: Any = False
    search_params: Any = None
    defaults: Any = None
    weight: Any = None
    validation: Any = None
    scoring: Any = None
    count: Any = None
    final_noise: Any = None
    split: Any = None
    transfer: Any = None
    learning_rate: Any = None
    subsample: Any = None
    mechanism: Any = None
    final: Any = None
    noise_parameter: Any = None
    mechanism_of: Any = None
    declared: Any = None
    cv: Any = None
    covered: Any = ()
    classes: Any = None
    n_jobs: Any = None
    random_state: Any = None
    ledger: Any = DEFAULT_LEDGER_FOLDER
    again: Any = False
    out: Any = None
    synthetic: Any = None
    options: Any = None

    cv_results_ = unavailable("cv_results_")
    best_index_ = unavailable("best_index_")
    n_splits_ = unavailable("n_splits_")
    refit_time_ = unavailable("refit_time_")
    multimetric_ = unavailable("multimetric_")
    scorer_ = unavailable("scorer_")

    predict = _delegated("predict")
    predict_proba = _delegated("predict_proba")
    predict_log_proba = _delegated("predict_log_proba")
    decision_function = _delegated("decision_function")
    transform = _delegated("transform")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        for name in ("estimator_type", "classifier_tags", "regressor_tags", "transformer_tags", "target_tags", "input_tags"):
            setattr(tags, name, deepcopy(getattr(inner, name)))
        return tags

    def __getstate__(self) -> Any:
        """Return the state; that of a fitted search leaves out the records of a hold-out, because its pickle may be published."""
        state = super().__getstate__()
        held = self.validation
        return {**state, "validation": held.without_records()} if "release_" in state and isinstance(held, HoldOut) else state

    def fit(self, X: Any, y: Any = None, **fit_params: Any) -> PrivateSearch:  # noqa: N803 - scikit-learn's name
        """Run the search on these records; ``fit_params`` may only hold ``sample_weight``."""
        self._check_estimator()
        records = check_training_records(self, X, y, fit_params)
        run, cheaper = plan_search(self, records)
        if self.cv is not None:
            check_no_folds(self.cv, run)
        if self.synthetic is not None:
            synthetic = check_synthetic_records(self)
            run_synthetic_trial(run, lambda: synthetic)
        self._keep(run.run(records.columns), cheaper, records.classes)
        return self

    @_available("score")
    def score(self, X: Any, y: Any = None) -> float:  # noqa: N803
        """Return the score of the released estimator on these records, which is not private.

        It uses ``scoring`` if that is the name of a score or a scorer, and the estimator's own score otherwise.
        """
        estimator = self._released_estimator()
        return float(scorer_of(estimator, self.scoring)(estimator, X, y))

    def _check_estimator(self) -> None:
        if not isinstance(self.estimator, BaseEstimator) or not hasattr(self.estimator, "fit"):
            raise ParameterError(f"`estimator` must be a scikit-learn estimator with a fit method, got {format_value(self.estimator)}")
        for part in (self.estimator, *self.estimator.get_params(deep=True).values()):
            # Its `mechanism` is that of one of its trials, not of the whole search.
            if isinstance(part, PrivateSearch):
                raise ParameterError("`estimator` must not be or hold a PrivateSearch: a search leaks more than one fit")

    def _keep(self, release: Release, cheaper: dict[str, Any], classes: Any) -> None:
        self.best_estimator_ = None
        if release.artifact is not None:
            # Restore the user's seeds. The trial's seeds are not in the artifact, because they would reveal its noise.
            self.best_estimator_ = load_estimator(release.artifact).set_params(**get_seeds(self.estimator))
        self.best_params_ = release.trained_with if self.refit else release.candidate
        self.search_params_ = None if release.candidate is None else {**cheaper, **release.candidate}
        self.best_score_, self.certificate_, self.plan_ = release.score, release.certificate, release.plan
        self.release_ = replace(release, artifact=self.best_estimator_)
        if classes is not None:
            self.classes_ = classes

    def _released_estimator(self) -> Any:
        check_is_fitted(self, "release_")
        if self.best_estimator_ is None:
            raise NotFittedError(
                f"the search released no estimator: {_REASONS[bool(self.refit)]}, and which one is secret. "
                "Pass `synthetic` to find failures before the run"
            )
        return self.best_estimator_
