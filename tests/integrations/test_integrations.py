"""The names of the package, and what they load."""

import subprocess
import sys

import pytest

from privselect import integrations


@pytest.mark.parametrize("name", integrations.__all__)
def test_every_public_name_is_there(name):
    assert callable(getattr(integrations, name))
    assert name in dir(integrations)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match=r"module 'privselect.integrations' has no attribute 'nothing'"):
        _ = integrations.nothing


def test_importing_the_package_loads_nothing_heavy():
    check = "import sys, privselect.integrations; assert not {'numpy', 'scipy', 'dp_accounting', 'opacus', 'torch'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", check], check=True)
