"""The result of a private study, in Optuna's terms."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from privselect.certificates.certificate import parse_time
from privselect.tuning.isolation import suppress_output

if TYPE_CHECKING:
    import optuna

    from privselect.certificates.certificate import Certificate
    from privselect.planning.plan_result import Plan
    from privselect.tuning.release import Release

SIGNS = {"minimize": -1, "maximize": 1}


class StudyResult(ABC):
    """What a private study shows after ``optimize``."""

    _release: Release | None
    _direction: str
    _artifact: str | None

    @abstractmethod
    def _winner_number(self) -> int:
        """Return the number that the best trial has in the study."""

    @property
    def release(self) -> Release:
        """The winner or the fallback, with the certificate."""
        if self._release is None:
            raise ValueError("nothing is released yet: optimize has not finished")
        return self._release

    @property
    def certificate(self) -> Certificate:
        """The certificate of the release."""
        return self.release.certificate

    @property
    def plan(self) -> Plan | None:
        """Which mechanisms were run, and why if their noise was solved for."""
        return self.release.plan

    @property
    def trained_params(self) -> dict[str, Any] | None:
        """The parameters of the final training, after the transfer; None without one."""
        from privselect.integrations.optuna.distributions import lists_to_tuples

        trained_with = self.release.trained_with
        return None if trained_with is None else {name: lists_to_tuples(value) for name, value in trained_with.items()}

    @property
    def direction(self) -> optuna.study.StudyDirection:
        """The direction, in Optuna's enumeration."""
        from optuna.study import StudyDirection

        return StudyDirection[self._direction.upper()]

    @property
    def directions(self) -> list[optuna.study.StudyDirection]:
        """A list of the only direction."""
        return [self.direction]

    @property
    def best_params(self) -> dict[str, Any]:
        """The winner's parameters."""
        return self.best_trial.params

    @property
    def best_value(self) -> float:
        """The winner's value in the search, as the objective returned it."""
        return float(self.best_trial.value or 0.0)

    @property
    def best_trial(self) -> optuna.trial.FrozenTrial:
        """The winner as an Optuna trial. Its user attribute ``artifact`` is what is released: after a final training, its result.

        Its start and end are the time of the certificate. In a secret search its number is 0.
        """
        from optuna.trial import FrozenTrial, TrialState

        from privselect.integrations.optuna.distributions import lists_to_tuples, to_optuna

        release = self.release
        if release.candidate is None or release.score is None:
            unset = "" if self._artifact is None else f"; a trial that does not set {self._artifact!r} fails"
            raise ValueError(f"no trial is released: none was drawn or all failed, and it stays secret which{unset}")
        issued = parse_time(release.certificate.issued_at).replace(tzinfo=None)
        distributions = {name: to_optuna(fields) for name, fields in (release.distributions or {}).items()}
        return FrozenTrial(
            number=self._winner_number(),
            state=TrialState.COMPLETE,
            value=SIGNS[self._direction] * release.score + 0.0,  # no -0.0
            datetime_start=issued,
            datetime_complete=issued,
            params={name: lists_to_tuples(value) for name, value in release.candidate.items()},
            distributions=distributions,
            user_attrs={} if self._artifact is None else {self._artifact: release.artifact},
            system_attrs={},
            intermediate_values={},
            trial_id=0,
        )

    def to_optuna_study(self) -> optuna.Study:
        """Return an in-memory Optuna study with only the released trial, and the public facts of the run as its user attribute."""
        import optuna

        release = self.release
        with suppress_output():  # Optuna would log the new study
            study = optuna.create_study(study_name="privselect", direction=self.direction)
            study.set_user_attr("privselect", release.public_facts())
            if not release.is_fallback:
                study.add_trial(self.best_trial)
        return study
