"""Certificates, each computed once."""

from functools import cache

import privselect as ps
from privselect.certificates.model import RunMetadata

DECLARED = ps.Declared(unit="one person", trust_model="central: the curator sees the data", records_public=True, score="public data")


@cache
def certified(mechanism="gaussian(sigma=4)", count=None, delta=1e-6, epsilon=None, declared=DECLARED, run=None, **stages):
    return ps.certify(mechanism, count, delta=delta, epsilon=epsilon, declared=declared, run=run, **stages)


@cache
def selected(run=RunMetadata()):  # noqa: B008 - frozen
    return certified("gaussian(sigma=4)", "geometric(mean=30)", epsilon=2.0 if run.runs == 1 else 8.0, run=run)


def searched(run=None):
    """A secret search and a final training."""
    return certified("gaussian(sigma=4)", "geometric(mean=30)", epsilon=2.5, run=run, final="gaussian(sigma=5)")


def searched_visibly(run=None):
    """A visible search and a final training."""
    return certified("gaussian(sigma=8)", epsilon=2.5, run=run, visible=6, final="gaussian(sigma=5)")
