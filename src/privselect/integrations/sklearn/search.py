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
from privselect.integrations.sklearn.tune_arguments import tune_arguments
from privselect.integrations.sklearn.unsupported import check_no_folds, check_no_refit, explain_unsupported_arguments, unavailable
from privselect.integrations.sklearn.validation import HoldOut, scorer_of
from privselect.tuning.run_registry import DEFAULT_LEDGER_FOLDER
from privselect.tuning.tune import configure_run, tune

if TYPE_CHECKING:
    from collections.abc import Callable

    from privselect.tuning.release import Release

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

    - ``count``: the law of K.
    - ``mechanism``: what one fit leaks: a mechanism, its text form, or a function of the parameters. None uses the estimator's own
      attribute ``mechanism``.
    - ``validation``: what candidates are scored on: ``(X, y)`` of public records, a :class:`HoldOut`, or "covered".
    - ``covered``: names of pipeline steps that learn from the data and that the mechanism accounts for.
    - ``classes``: the labels, which are public.
    - ``n_jobs``: None or 1 for this process, a larger number for as many processes, -1 for all cores.
    - ``random_state``: None for the operating system's entropy. An integer makes the search repeatable, and its certificate insecure.
    - ``synthetic``: non-private (X, y) for a dry run before K is drawn.
    - ``options``: further options of :func:`privselect.tune`.
    - ``delta``, ``epsilon``, ``mechanism_of``, ``declared``, ``ledger``, ``again`` and ``out``: as in :func:`privselect.tune`.

    After ``fit``: ``best_estimator_``, ``best_params_``, ``best_score_``, ``certificate_`` and ``release_``. The first three are None if no
    trial was drawn or all trials failed. Which of the two happened stays secret.
    """

    estimator: Any
    param_distributions: Any
    _: KW_ONLY
    count: Any = None
    mechanism: Any = None
    scoring: Any = None
    validation: Any = None
    delta: Any = None
    epsilon: Any = None
    mechanism_of: Any = None
    declared: Any = None
    refit: Any = False
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
        arguments = tune_arguments(self, records)
        if self.refit or self.cv is not None:
            from privselect.tuning.executors import Serial

            without_executor = {name: value for name, value in arguments.items() if name not in {"executor", "workers"}}
            run = configure_run(**without_executor, engine=Serial())
            check_no_refit(self.refit, run)
            check_no_folds(self.cv, run)
        synthetic = None if self.synthetic is None else check_synthetic_records(self)
        self._keep(tune(**arguments, data=records.columns(), synthetic=synthetic), records.classes)
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

    def _keep(self, release: Release, classes: Any) -> None:
        self.best_estimator_ = None
        if release.artifact is not None:
            # Restore the user's seeds. The trial's seeds are not in the artifact, because they would reveal its noise.
            self.best_estimator_ = load_estimator(release.artifact).set_params(**get_seeds(self.estimator))
        self.best_params_, self.best_score_, self.certificate_ = release.candidate, release.score, release.certificate
        self.release_ = replace(release, artifact=self.best_estimator_)
        if classes is not None:
            self.classes_ = classes

    def _released_estimator(self) -> Any:
        check_is_fitted(self, "release_")
        if self.best_estimator_ is None:
            raise NotFittedError(
                "the search released no estimator: either no trial was drawn or all trials failed, and which one is secret. "
                "Pass `synthetic` to find failures before the run"
            )
        return self.best_estimator_
