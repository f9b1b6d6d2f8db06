"""The numbers in docs/noisy_max.md are those of the accounting."""

import re
from pathlib import Path

import pytest

import privselect as ps

PAGE = (Path(__file__).parent.parent.parent / "docs" / "noisy_max.md").read_text(encoding="utf-8")
ROWS = [[float(cell) for cell in row.strip("| ").split("|")] for row in re.findall(r"^\| [\d.| ]+\|$", PAGE, flags=re.MULTILINE)]
BY_SIZE, BY_ROUNDS = ([row for row in ROWS if len(row) == width] for width in (9, 6))
NAMES = ("paper", "renyi", "full_release")


def test_both_tables_are_read():
    assert [row[0] for row in BY_SIZE] == [2, 3, 5, 10, 30, 100, 300, 1000]
    assert [row[0] for row in BY_ROUNDS] == [1, 2, 5, 10, 20, 50, 100]


@pytest.mark.parametrize("row", BY_SIZE, ids=lambda row: str(row[0]))
def test_over_scores(row):
    m, noise = int(row[0]), ps.Gaussian(sigma=4)
    choice = ps.NoisyMax(noise, m=m)
    found, bounds = choice.epsilon_at(1e-6), choice.bounds(1e-6)
    moves = ({"monotone": True}, {"changes": 2}, {"changes": 1})
    uppers = [ps.NoisyMax(noise, m=m, **move).epsilon_at(1e-6).upper for move in moves]
    assert row[1:] == pytest.approx([*(bounds[name] for name in NAMES), found.upper, found.lower, *uppers], abs=1e-4)


@pytest.mark.parametrize("row", BY_ROUNDS, ids=lambda row: str(row[0]))
def test_over_rounds(row):
    choice = ps.NoisyMax(ps.Gaussian(sigma=40), m=10, rounds=int(row[0]))
    found, bounds = choice.epsilon_at(1e-6), choice.bounds(1e-6)
    assert row[1:] == pytest.approx([*(bounds[name] for name in NAMES), found.upper, found.lower], abs=1e-4)
