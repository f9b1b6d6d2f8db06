"""The numbers of a certificate computed once for each mechanism and law of K: true ones, for tests that run the same plan many times."""

import pytest

from privselect.certificates import certify as module

MADE = {}


def remembered(name):
    function = getattr(module, name)

    def call(*args, **given):
        key = (name, repr(args), repr(given))
        if key not in MADE:
            MADE[key] = function(*args, **given)
        return MADE[key]

    return call


@pytest.fixture
def once(monkeypatch):
    for name in ("compare", "upper_curve", "fitted"):
        monkeypatch.setattr(module, name, remembered(name))
