"""Untuned noise as it was found once, and problems that are made in a moment."""

import pytest
from experiments_made import UNTUNED, made_problem

from research.experiments import bank, headline, problems, regimes, results, settings, stage_bank, stage_options, trainers, visible_runs


@pytest.fixture(autouse=True)
def known_noise(monkeypatch):
    """In place of a search of some seconds; test_settings.py shows that these are what it finds."""
    for module in (settings, bank, results, regimes, headline, stage_bank, stage_options):
        monkeypatch.setattr(module, "untuned_noise", UNTUNED.__getitem__)


@pytest.fixture
def quick(monkeypatch):
    """Trainings of a few steps on a problem of our own, called "made"."""
    for module in (trainers, bank, settings, stage_bank, visible_runs):
        monkeypatch.setattr(module, "STEPS", 10)
    for module in (stage_bank, visible_runs):
        monkeypatch.setattr(module, "SEARCH_STEPS", 4)
    monkeypatch.setattr(visible_runs, "SHORT_STEPS", 2)
    monkeypatch.setitem(problems.PROBLEMS, "made", made_problem)
    problems.load.cache_clear()
    yield
    problems.load.cache_clear()
