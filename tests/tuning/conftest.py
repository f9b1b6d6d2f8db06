"""Certificates without their price in time, for tests that are about something else."""

import pytest

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
