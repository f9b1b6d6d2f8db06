"""Trains the banks of two small settings by two processes into a folder, for test_banks.py to kill."""

import sys
from pathlib import Path

import experiments_made as made

from research.experiments import bank, banks, problems, settings, trainers

if __name__ == "__main__":
    for module in (settings, bank):
        module.untuned_noise = made.UNTUNED.__getitem__
    for module in (settings, bank, trainers):
        module.STEPS = made.KILLED_STEPS
    problems.PROBLEMS["made"] = made.made_problem
    banks.REPETITIONS = made.KILLED_REPETITIONS
    banks.train_banks(made.KILLED, None, Path(sys.argv[1]), 2)
