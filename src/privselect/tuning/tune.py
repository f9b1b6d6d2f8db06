"""Run private selection: plan and certificate first, then K, then the trials, then the winner alone."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, fields, replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from privselect._util.validation import POSITIVE, check_number, format_value, integer_range
from privselect.certificates.certificate import Certificate
from privselect.certificates.certify import certify
from privselect.certificates.declarations import Declared
from privselect.certificates.run_metadata import Run
from privselect.certificates.score_privacy import with_score
from privselect.counts import Count
from privselect.errors import LedgerError, ParameterError
from privselect.text_forms import parse
from privselect.tuning import certificate_notes
from privselect.tuning.define_by_run import unpacked
from privselect.tuning.executors import read_engine
from privselect.tuning.exports import read_export
from privselect.tuning.fingerprint import feature, fingerprint
from privselect.tuning.isolation.sigint import uninterrupted
from privselect.tuning.ledger import Begun, Ledger
from privselect.tuning.randomness.key_derivation import SECRET_BYTES, derived
from privselect.tuning.randomness.secret_draws import draw_trials, new_secret
from privselect.tuning.randomness.trial_randomness import ENOUGH_BITS
from privselect.tuning.release import CERTIFICATE, PLAN, RELEASE, Release, check_out, write_folder, written
from privselect.tuning.release_time import as_monotonic, check_certain, read_moment, wait_until
from privselect.tuning.run_registry import DEFAULT, Opened, check_target, open_run
from privselect.tuning.run_spec import Recipe, accounted
from privselect.tuning.runner import Conduct, Drawn, Runner
from privselect.tuning.scores import NoisyCount, described_score, read_score
from privselect.tuning.space import Space
from privselect.tuning.trial import Work, can_limit_time

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from pathlib import Path

    from privselect.mechanisms import Mechanism
    from privselect.tuning.executors.base import Engine
    from privselect.tuning.ledger import Best
    from privselect.tuning.run_spec import MechanismOf

_CURATOR = "the curator's view: what follows tells K and must be shown to nobody who may learn only the release"


@dataclass(frozen=True, repr=False)
class Tuning:
    """A run that is fully described, and checked as far as it can be without the data."""

    recipe: Recipe
    delta: float
    epsilon: float | None
    declared: Declared
    engine: Engine
    out: Path | None = None
    ledger: str | Path | None = DEFAULT
    again: bool = False
    insecure_seed: int | None = None
    seed_bits: int = ENOUGH_BITS
    timeout: float | None = None
    memory_limit: int | None = None
    release_at: datetime | None = None
    deadline: float | None = None
    constant_work: bool = False
    losses: int = 3
    curator: bool = False

    def run(self, load: Callable[[], Any] | None) -> Release:
        """Make the run, or go on with it; ``load`` gives the data, and is not called before K is drawn and the candidates are checked."""
        plan = self.recipe.digest()
        ends = self._ends()
        opened = open_run(self.ledger, plan, again=self.again)
        try:
            begun = self._begin(opened, plan) if opened.begun is None else self._resumed(opened.begun, load)
            certificate = Certificate.from_json(begun.certificate)
            drawn = Drawn(begun.secret, begun.trials, self.recipe.space)
            if self.recipe.judges and not self.recipe.suggested:
                for slot in range(self._slots() or drawn.trials):
                    self.recipe.check(drawn.candidate(slot))
            work = self._work(opened.ledger, begun, load)
            best = Runner(opened.ledger, drawn, self._conduct(ends)).run(work)
            if self.release_at is not None:
                wait_until(self.release_at)
            with uninterrupted():
                release = self._release(best, drawn, certificate)
                opened.ledger.destroy_secrets()
            return release
        finally:
            opened.ledger.close()

    # -- before the draw ------------------------------------------------------------------------------------------------------

    def _begin(self, opened: Opened, plan: str) -> Begun:
        """Certificate first, then the secret and K, in one transaction."""
        try:
            check_target(self.ledger, plan, self.out)
            if self.out is not None:
                check_out(self.out)
            if self.release_at is not None:
                check_certain(self.release_at, self.recipe.count, self.engine, self.timeout)
            self.recipe.look_at_space()
            certificate = self._certificate(opened.number, plan)
        except BaseException:
            opened.discard()
            raise
        secret = new_secret() if self.insecure_seed is None else _seeded(self.insecure_seed, opened.number)
        trials = draw_trials(self.recipe.count, secret)
        target = None if self.out is None else str(self.out)
        begun = Begun(plan, certificate.to_json(), target, secret, trials, None, released=False)
        opened.ledger.begin(begun)
        return begun

    def _certificate(self, number: int, plan: str) -> Certificate:
        run = Run(plan=plan, runs=number, notes=certificate_notes.of(self))
        if self.insecure_seed is not None:
            run = Run(plan=plan, runs=number, notes=certificate_notes.of(self), randomness="a seed given by the caller", insecure=True)
        recipe = self.recipe
        return certify(recipe.mechanism, recipe.count, delta=self.delta, epsilon=self.epsilon, declared=self.declared, run=run)

    def _resumed(self, begun: Begun, load: Callable[[], Any] | None) -> Begun:
        if load is None:
            raise LedgerError("a run whose `data` was not given cannot be resumed: nobody could tell whether the data is still the same")
        certificate = Certificate.from_json(begun.certificate)
        promise = certificate.promise
        same_budget = self.epsilon is None or promise.epsilon == self.epsilon
        if not same_budget or promise.delta != self.delta or promise.declared != self.declared:
            raise LedgerError("the run was begun under another budget or declaration, which its certificate states; resume it with those")
        if begun.target != (None if self.out is None else str(self.out)):
            raise LedgerError(f"the run was begun for the folder {format_value(begun.target)}; resume it with that one")
        stated = () if certificate.run is None else certificate.run.notes
        if not set(certificate_notes.of(self)) <= set(stated):
            raise LedgerError(
                "the run was begun under other conditions (release_at, deadline, constant_work, curator, seed_bits, losses or what the "
                "executor shows), which its certificate states; resume it with those"
            )
        if self.release_at is not None:
            # Also now: a run that ends in time only where few trials are left would tell K.
            check_certain(self.release_at, self.recipe.count, self.engine, self.timeout)
        return begun

    # -- the data and the trials ----------------------------------------------------------------------------------------------

    def _work(self, ledger: Ledger, begun: Begun, load: Callable[[], Any] | None) -> Work:
        data = None if load is None else load()
        # Without data to be known again: a fingerprint that no data has, so that the run cannot be resumed.
        score, measured, found = self.recipe.score, None, b""
        if isinstance(score, NoisyCount):
            score = score.loaded()
        if load is not None:
            held = score.holdout if isinstance(score, NoisyCount) else None
            found = fingerprint((data, held, feature(self.recipe.objective)), derived(begun.secret, "fingerprint"))
            if begun.fingerprint is not None and begun.fingerprint != found:
                raise LedgerError(
                    "the data, or the objective, is not what the run was begun with: the same randomness on something else would reveal "
                    "the difference"
                )
        if isinstance(score, NoisyCount):
            data, measured = score.parts(data, self.recipe.split_key())
        if begun.fingerprint is None:
            ledger.bind(found)  # only now: no trial was run on data that could not be split, and the run may go on with better data
        return Work(
            self.recipe.objective,
            data,
            measured,
            self.recipe.export,
            seed_bits=self.seed_bits,
            timeout=self.timeout,
            memory=self.engine.memory_share if self.memory_limit is None else self.memory_limit,
            suggested=self.recipe.suggested,
            fault=self.recipe.judge,
        )

    def _conduct(self, ends: float | None) -> Conduct:
        return Conduct(self.engine, self._slots(), self.losses, ends, _curator_view() if self.curator else None)

    def _slots(self) -> int | None:
        """How many trials are run where that is not K."""
        return self.recipe.count.largest if self.constant_work else None

    def _ends(self) -> float | None:
        limits = [] if self.release_at is None else [as_monotonic(self.release_at)]
        if self.deadline is not None:
            limits.append(time.monotonic() + self.deadline)
        return min(limits) if limits else None

    # -- the release ----------------------------------------------------------------------------------------------------------

    def _release(self, best: Best | None, drawn: Drawn, certificate: Certificate) -> Release:
        export, content = self.recipe.export, self.recipe.fallback if best is None else best.artifact
        candidate = None if best is None else drawn.candidate(best.slot)
        score = None if best is None else best.score
        laws = None
        if best is not None and self.recipe.suggested:
            candidate, laws, content = unpacked(best.artifact)
        if self.out is not None:
            said = {
                "version": 1,
                "fallback": best is None,
                "candidate": candidate,
                "score": score,
                "artifact": None if export is None or content is None else export.file,
                "certificate": certificate.hash,
            }
            if laws is not None:
                said["laws"] = laws
            files = {PLAN: written(self.recipe.plain()), CERTIFICATE: certificate.to_json().encode("utf-8"), RELEASE: written(said)}
            if export is not None and content is not None:
                files[export.file] = content
            write_folder(self.out, files, certificate)
        artifact = None if export is None or content is None else export.decode(content)
        return Release(candidate, score, artifact, certificate, self.out, laws)


def tune(  # noqa: PLR0913 - a run has as many parts
    objective: Callable[..., Any],
    space: Any,
    *,
    data: Any = None,
    mechanism: Mechanism | MechanismOf | str | None = None,
    count: Count | str,
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
    """Draw K trials of ``objective`` on candidates from ``space``, and release the best one alone, with its certificate.

    ``objective(candidate, data, randomness)`` returns ``(score, artifact)``; it must take all its randomness from ``randomness``.
    ``mechanism`` is what one trial leaks, ``count`` the law of K, ``score`` how the score is private ("public", NoisyCount(...) or
    "covered"), ``export`` how the artifact leaves ("arrays", "safetensors", a function that returns bytes, None to release the
    candidate alone), ``fallback`` what is released where no trial was drawn or all failed. Further options are those of ``Tuning``:
    out, ledger, again, insecure_seed, seed_bits, timeout, memory_limit, release_at, deadline, constant_work, losses, curator.

    ``synthetic`` is data of the same form that is nobody's: one trial is run on it before K is drawn, so that an objective that cannot
    run is found before anything is spent; without it, trials that all fail release the fallback without a word.

    A run that was killed goes on where it was when the same call is made again. Ctrl-C and a deadline release nothing.
    """
    tuning = described(
        objective,
        space,
        mechanism=mechanism,
        count=count,
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
    if synthetic is not None:
        from privselect.tuning.dry_run import try_once

        try_once(tuning, lambda: synthetic)
    return tuning.run(None if data is None else lambda: data)


def described(objective: Callable[..., Any], space: Any, **given: Any) -> Tuning:
    """A run from its parts, each checked: nothing here touches the data."""
    if not callable(objective):
        raise ParameterError(f"`objective` must be a function of (candidate, data, randomness), got {format_value(objective)}")
    laws = space if isinstance(space, Space) else Space(space)
    score, export = read_score(given.pop("score")), read_export(given.pop("export"))
    law, mechanism = given.pop("count"), given.pop("mechanism")
    law = parse(law) if isinstance(law, str) else law
    if not isinstance(law, Count):
        raise ParameterError(f"`count` must be a law of K such as geometric(mean=30), got {format_value(law)}")
    mechanism = parse(mechanism) if isinstance(mechanism, str) else mechanism
    trial = accounted(mechanism, given.pop("mechanism_of"), objective, score, laws)
    fallback, declared = given.pop("fallback"), given.pop("declared") or Declared()
    if fallback is not None and export is None:
        raise ParameterError(f"`fallback` must be None where nothing is exported, got {format_value(fallback)}")
    recipe = Recipe(
        objective,
        laws,
        trial.mechanism,
        law,
        score,
        export,
        None if fallback is None or export is None else export.encode(fallback),
        trial.mechanism_of,
        trial.mixed,
    )
    known = {field.name for field in fields(Tuning)} - {"recipe", "declared"}
    for name in given:
        if name not in known:
            raise ParameterError(f"`{name}` is no option of tune; options are {', '.join(sorted(known - {'engine', 'epsilon', 'delta'}))}")
    return _checked(Tuning(recipe, declared=with_score(declared, described_score(score)), **given))


def _checked(tuning: Tuning) -> Tuning:
    engine, count = tuning.engine, tuning.recipe.count
    check_number("seed_bits", tuning.seed_bits, integer_range(1, ENOUGH_BITS))
    check_number("losses", tuning.losses, integer_range(0, 1000))
    for name, value in (("timeout", tuning.timeout), ("deadline", tuning.deadline)):
        if value is not None:
            check_number(name, value, POSITIVE)
    if tuning.memory_limit is not None:
        check_number("memory_limit", tuning.memory_limit, integer_range(2**20, 2**60))
    _check_flags(tuning)
    if tuning.timeout is not None and not (engine.can_limit_time and (engine.name != "serial" or can_limit_time())):
        raise ParameterError(
            f"`timeout` must be None with the executor {engine.name}, which cannot stop a trial"
            f"{' outside of the main thread' if engine.can_limit_time else ''}, got {tuning.timeout}"
        )
    if tuning.memory_limit is not None and not engine.can_limit_memory:
        raise ParameterError(f"`memory_limit` must be None with the executor {engine.name}, which has no process of its own, got one")
    if tuning.constant_work and count.largest is None:
        raise ParameterError(f"`constant_work` needs a law of K with a largest K, such as one with a cap, got {count}")
    if tuning.insecure_seed is not None:
        check_number("insecure_seed", tuning.insecure_seed, integer_range(0, 2**256 - 1))
    out = None if tuning.out is None else check_parent(tuning.out)
    return replace(tuning, out=out, release_at=read_moment(tuning.release_at))


def _check_flags(tuning: Tuning) -> None:
    for name in ("again", "constant_work", "curator"):
        if not isinstance(getattr(tuning, name), bool):
            raise ParameterError(f"`{name}` must be true or false, got {format_value(getattr(tuning, name))}")


def check_parent(path: Any) -> Path:
    """The folder of the release as an absolute path; whether it is free is asked only where a run begins."""
    from pathlib import Path

    if not isinstance(path, str | Path):
        raise ParameterError(f"`out` must be the path of a folder, got {format_value(path)}")
    return Path(path).absolute()


def _seeded(seed: int, number: int) -> bytes:
    return blake2b(int(seed).to_bytes(33, "big") + number.to_bytes(8, "big"), digest_size=SECRET_BYTES, person=b"insecure").digest()


def _curator_view() -> Callable[[int, int], object]:
    sys.stderr.write(f"warning: {_CURATOR}\n")
    return lambda done, total: sys.stderr.write(f"trial {done} of {total}\n")
