"""Private selection as a search of scikit-learn's: RandomizedSearchCV's place in a program, with a certificate."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from sklearn.base import BaseEstimator, MetaEstimatorMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from privselect._util.validation import format_value
from privselect.errors import ParameterError
from privselect.integrations.sklearn import seeds
from privselect.integrations.sklearn.input_checks import read_columns, read_synthetic
from privselect.integrations.sklearn.seeds import seeds_of
from privselect.integrations.sklearn.tune_arguments import described_run
from privselect.integrations.sklearn.unsupported import check_no_folds, check_no_refit, explained, hidden
from privselect.integrations.sklearn.validation import HoldOut, scorer_of
from privselect.tuning.run_registry import DEFAULT_LEDGER_FOLDER
from privselect.tuning.tune import configure_run, tune

if TYPE_CHECKING:
    from collections.abc import Callable

    from privselect.tuning.release import Release


Method = TypeVar("Method", bound="Callable[..., Any]")


def _if_any(name: str) -> Callable[[Method], Method]:
    """A method that is there where the estimator has it: the released one, or before the fit the one that was given."""
    decorator: Callable[[Method], Method] = available_if(
        lambda search: hasattr(getattr(search, "best_estimator_", None) or search.estimator, name)
    )
    return decorator


class PrivateSearch(MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """Draw K in secret, fit K clones with parameters drawn from ``param_distributions``, and keep the best one alone, with its certificate.

    ``count`` is the law of K, ``mechanism`` what one fit leaks (a mechanism, its text, or a function of the parameters; None where the
    estimator says so itself by an attribute ``mechanism``), ``validation`` what candidates are compared on: ``(X, y)`` that are public,
    a :class:`HoldOut`, or "covered". ``covered`` names steps of a pipeline that learn from the data and that the mechanism accounts for;
    ``classes`` are the labels, as public knowledge. ``n_jobs`` is None or 1 for this process, more for as many, -1 for all cores.
    ``random_state`` as a number makes a search that can be repeated, and its certificate says that it is insecure; None is the operating
    system's entropy. ``synthetic`` is (X, y) that is nobody's, for one trial before K is drawn; ``options`` are further ones of
    :func:`privselect.tune`. ``delta``, ``epsilon``, ``mechanism_of``, ``declared``, ``ledger``, ``again`` and ``out`` are those of tune.

    After ``fit``: ``best_estimator_``, ``best_params_``, ``best_score_``, ``certificate_``, ``release_``. The first three are None where no
    trial was drawn or all failed, and which of the two it was stays secret.
    """

    @explained
    def __init__(  # noqa: PLR0913 - parameters of a search
        self,
        estimator: Any,
        param_distributions: Any,
        *,
        count: Any = None,
        mechanism: Any = None,
        scoring: Any = None,
        validation: Any = None,
        delta: Any = None,
        epsilon: Any = None,
        mechanism_of: Any = None,
        declared: Any = None,
        refit: Any = False,
        cv: Any = None,
        covered: Any = (),
        classes: Any = None,
        n_jobs: Any = None,
        random_state: Any = None,
        ledger: Any = DEFAULT_LEDGER_FOLDER,
        again: Any = False,
        out: Any = None,
        synthetic: Any = None,
        options: Any = None,
    ) -> None:
        self.estimator = estimator
        self.param_distributions = param_distributions
        self.count = count
        self.mechanism = mechanism
        self.scoring = scoring
        self.validation = validation
        self.delta = delta
        self.epsilon = epsilon
        self.mechanism_of = mechanism_of
        self.declared = declared
        self.refit = refit
        self.cv = cv
        self.covered = covered
        self.classes = classes
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.ledger = ledger
        self.again = again
        self.out = out
        self.synthetic = synthetic
        self.options = options

    cv_results_ = hidden("cv_results_")
    best_index_ = hidden("best_index_")
    n_splits_ = hidden("n_splits_")
    refit_time_ = hidden("refit_time_")
    multimetric_ = hidden("multimetric_")
    scorer_ = hidden("scorer_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        for name in ("estimator_type", "classifier_tags", "regressor_tags", "transformer_tags", "target_tags", "input_tags"):
            setattr(tags, name, deepcopy(getattr(inner, name)))
        return tags

    def __getstate__(self) -> Any:
        """Of a fitted search, without a hold-out's records: who pickles it means to hand on what was released."""
        state = super().__getstate__()
        held = self.validation
        return {**state, "validation": held.without_records()} if "release_" in state and isinstance(held, HoldOut) else state

    def fit(self, X: Any, y: Any = None, **fit_params: Any) -> PrivateSearch:  # noqa: N803 - scikit-learn's name
        """Run the search on these records; ``sample_weight`` is all that ``fit_params`` may hold."""
        self._check_estimator()
        records = read_columns(self, X, y, fit_params)
        given = described_run(self, records)
        if self.refit or self.cv is not None:
            tuning = configure_run(**_without_data(given))
            check_no_refit(self.refit, tuning)
            check_no_folds(self.cv, tuning)
        release = tune(**given, data=records.table(), synthetic=None if self.synthetic is None else read_synthetic(self))
        self._keep(release, records.classes)
        return self

    def _check_estimator(self) -> None:
        if not isinstance(self.estimator, BaseEstimator) or not hasattr(self.estimator, "fit"):
            raise ParameterError(f"`estimator` must be an estimator of scikit-learn's with a fit, got {format_value(self.estimator)}")
        for part in (self.estimator, *self.estimator.get_params(deep=True).values()):
            # Its `mechanism` is that of one of its own trials, not of all that it does.
            if isinstance(part, PrivateSearch):
                raise ParameterError("`estimator` must not be or hold a PrivateSearch, as a search leaks more than one fit, got one")

    def _keep(self, release: Release, classes: Any) -> None:
        self.best_estimator_ = None
        if release.artifact is not None:
            # The seeds as they were given: those of the trial are not in the artifact, as they would tell its noise.
            self.best_estimator_ = seeds.from_bytes(release.artifact).set_params(**seeds_of(self.estimator))
        self.best_params_, self.best_score_, self.certificate_ = release.candidate, release.score, release.certificate
        self.release_ = replace(release, artifact=self.best_estimator_)
        if classes is not None:
            self.classes_ = classes

    @_if_any("predict")
    def predict(self, X: Any) -> Any:  # noqa: N803
        """By the released estimator."""
        return self._winner().predict(X)

    @_if_any("predict_proba")
    def predict_proba(self, X: Any) -> Any:  # noqa: N803
        """By the released estimator."""
        return self._winner().predict_proba(X)

    @_if_any("predict_log_proba")
    def predict_log_proba(self, X: Any) -> Any:  # noqa: N803
        """By the released estimator."""
        return self._winner().predict_log_proba(X)

    @_if_any("decision_function")
    def decision_function(self, X: Any) -> Any:  # noqa: N803
        """By the released estimator."""
        return self._winner().decision_function(X)

    @_if_any("transform")
    def transform(self, X: Any) -> Any:  # noqa: N803
        """By the released estimator."""
        return self._winner().transform(X)

    @_if_any("score")
    def score(self, X: Any, y: Any = None) -> float:  # noqa: N803
        """The score of the released estimator on these records, by ``scoring`` where that names a score; it has no guarantee of its own."""
        winner = self._winner()
        return float(scorer_of(winner, self.scoring)(winner, X, y))

    def _winner(self) -> Any:
        check_is_fitted(self, "release_")
        if self.best_estimator_ is None:
            raise NotFittedError(
                "the search released no estimator: no trial was drawn, or every one failed, and which of the two it was stays secret; "
                "`synthetic` finds before the run what makes trials fail"
            )
        return self.best_estimator_


def _without_data(given: dict[str, Any]) -> dict[str, Any]:
    """What :func:`configure_run` takes of what :func:`tune` does."""
    from privselect.tuning.executors import Serial

    return {name: value for name, value in given.items() if name not in {"executor", "workers"}} | {"engine": Serial()}
