"""Certificates without their price in time, for tests that are about something else, and a run of two stages."""

import numpy as np
import pytest
from two_stage_runs import DATA, FINAL, SEARCH, SPACE, objective

import privselect as ps
from privselect.certificates.model import PlanTerms
from privselect.tuning import tuning_run as module


@pytest.fixture(scope="session")
def template():
    return ps.certify(ps.Gaussian(sigma=4), ps.Geometric(mean=30), delta=1e-6)


@pytest.fixture
def quick(monkeypatch, template):
    """Certificates at once: their numbers are those of another plan, which matters to no test that asks for this."""

    def certify(mechanism, count, *, final, visible, subsample, delta, epsilon, declared, run):
        texts = {name: None if value is None else str(value) for name, value in (("final", final), ("subsample", subsample))}
        texts |= {"count": None if count is None else str(count), "visible": visible}
        promise = PlanTerms(mechanism=str(mechanism), epsilon=epsilon or 2.0, delta=delta, declared=declared, **texts)
        certificate = template.model_copy(update={"plan": promise, "run": run})
        return certificate.model_copy(update={"hash": certificate.digest()})

    monkeypatch.setattr(module, "certify", certify)


@pytest.fixture
def tuned(quick, tmp_path):  # noqa: ARG001 - certificates at once
    """A run of two stages; what is given takes the place of what is usual."""

    def run(trial=objective, space=SPACE, **given):
        usual = {
            "data": DATA,
            "mechanism": SEARCH,
            "count": ps.Poisson(mean=5),
            "final": FINAL,
            "score": "public",
            "delta": 1e-6,
            "export": "arrays",
            "fallback": {"weights": np.zeros(3)},
            "executor": "serial",
            "ledger": tmp_path / "ledgers",
            "insecure_seed": 3,
        }
        return ps.tune(trial, space, **{**usual, **given})

    return run
