"""The final training of a visible search: with which candidate, and what is released."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from privselect._util.validation import format_value
from privselect.errors import ParameterError
from privselect.tuning.isolation import ignore_sigint
from privselect.tuning.release import RELEASE, Release, files_of_release, to_json_bytes, write_release
from privselect.tuning.runner import FinalDraw, Runner, RunnerOptions
from privselect.tuning.visible_trial import exported_content, with_tuples

if TYPE_CHECKING:
    from collections.abc import Sequence

    from privselect.certificates.certificate import Certificate
    from privselect.planning.plan_result import Plan
    from privselect.tuning.space import Candidate
    from privselect.tuning.visible_run import OpenVisibleRun, VisibleRun
    from privselect.tuning.visible_trial import VisibleTrial


@dataclass(frozen=True, repr=False)
class VisibleTraining:
    """The final training of a visible search, or the release of its best trial if the plan has no final training."""

    run: VisibleRun
    current: OpenVisibleRun
    results: Sequence[VisibleTrial]
    best: VisibleTrial | None

    def choose(self, given: Candidate | None) -> dict[str, Any]:
        """Return with what the training is made. It is recorded before the training begins and cannot be changed then."""
        made = self.current.ledger.chosen_final()
        if made is None:
            made = self._first_choice(given)
            self.current.ledger.choose_final(made)
        elif given is not None and given != with_tuples(made["trained_with"] or {}):
            raise ParameterError(
                f"the final training was begun with {format_value(made['trained_with'])}: call train() without a candidate to finish it"
            )
        return made

    def train(self, choice: dict[str, Any]) -> bytes | None:
        """Return what is released as the artifact; None if the training failed."""
        if self.current.setups.final is None:
            return exported_content(self.run, self.current.ledger.visible_trials()[choice["number"] - 1])
        candidate = self.run.spec.final_candidate(with_tuples(choice["trained_with"]))
        draw, options = FinalDraw(self.current.record.secret, candidate), RunnerOptions(self.run.engine, 1, self.run.losses)
        trained = Runner(self.current.ledger, draw, options).run(self.current.setups.final)
        return None if trained is None else trained.artifact

    def release(self, choice: dict[str, Any], content: bytes | None, certificate: Certificate, plan: Plan) -> Release:
        """Write the release, then destroy the secret of the run."""
        export, out = self.run.spec.export, self.run.out
        best = None if choice["number"] is None else self.results[choice["number"] - 1]
        release = Release(
            choice["trained_with"] if best is None else best.candidate,
            None if best is None else best.score,
            None if export is None or content is None else export.decode(content),
            certificate,
            out,
            None if best is None else best.distributions,
            None if content is None else choice["trained_with"],
            plan,
        )
        with ignore_sigint():
            if out is not None:
                file = None if export is None or content is None else export.file
                files = files_of_release(release, self.run.spec.as_dict(), file)
                shown = [{"candidate": trial.candidate, "score": trial.score} for trial in self.results]
                files[RELEASE] = to_json_bytes({**json.loads(files[RELEASE]), "trials": shown})
                if file is not None and content is not None:
                    files[file] = content
                write_release(out, files, certificate)
            self.current.ledger.destroy_secrets()
        return release

    def _first_choice(self, given: Candidate | None) -> dict[str, Any]:
        spec = self.run.spec
        if spec.final is None and given is not None:
            raise ParameterError(f"`candidate` is for a final training, and the plan has none, got {format_value(given)}")
        if self.best is None and given is None:
            advice = "" if spec.final is None else ", or pass the candidate of the final training to train(candidate)"
            raise ParameterError(f"no trial has succeeded: run more trials{advice}")
        number = None if self.best is None else self.best.number
        if spec.final is None:
            return {"number": number, "trained_with": None}
        if given is None:
            trained_with = self._transferred(cast("VisibleTrial", self.best).candidate)
        else:
            trained_with = given
            _refuse(spec.space.fault(given))
        if not spec.define_by_run:
            _refuse(spec.checks.safe_final_fault(trained_with))
        return {"number": number, "trained_with": trained_with}

    def _transferred(self, candidate: Candidate) -> Candidate:
        final = self.run.spec.final
        if final is None:
            return candidate
        if (fault := final.transfer.fault(candidate, self.run.spec.space)) is not None:
            raise ParameterError(f"{fault}. Pass the candidate of the final training to train(candidate)")
        return final.transfer.apply(candidate)


def _refuse(fault: str | None) -> None:
    if fault is not None:
        raise ParameterError(fault)
