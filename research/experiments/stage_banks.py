"""Train all banks of two-stage tuning and run all visible searches in several processes, the most informative first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from research.experiments.banks import Job, run_jobs, tell
from research.experiments.settings import EPSILONS, REPETITIONS
from research.experiments.stage_bank import VALIDATIONS, Task, stored_stage_bank, train_stage_bank
from research.experiments.visible_runs import run_visible, stored_visible

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from research.experiments.settings import Setting
    from research.experiments.stage_options import StageOption


def tasks(settings: Sequence[Setting], validation: str, epsilon: float) -> list[Task]:
    """Return the tasks of one validation and epsilon: each repetition of all settings before the next repetition."""
    return [Task(setting, repetition, epsilon, validation) for repetition in range(REPETITIONS) for setting in settings]


def train_stage_banks(settings: Sequence[Setting], data: str | None, folder: Path, options: Sequence[StageOption], jobs: int) -> None:
    """Train every bank and run every visible search that is missing in ``folder``: public validation and epsilon 1 first."""
    missing: list[Job] = []
    wanted = 0
    for group in [tasks(settings, validation, epsilon) for validation in VALIDATIONS for epsilon in EPSILONS]:
        wanted += 2 * len(group)
        banks = [task for task in group if stored_stage_bank(folder, task) is None]
        missing += [Job(f"secret search, {_named(task)}", _work(task), train_stage_bank, (task, data, folder)) for task in banks]
        runs = [task for task in group if stored_visible(folder, task, options) is None]
        missing += [Job(f"visible search, {_named(task)}", _work(task), run_visible, (task, data, folder, options)) for task in runs]
    tell(f"{wanted - len(missing)} of {wanted} banks of two stages are there, {len(missing)} to train")
    run_jobs(missing, jobs)


def _named(task: Task) -> str:
    return f"{task.setting.name}, epsilon {task.epsilon:g}, {task.validation} validation, repetition {task.repetition + 1}"


def _work(task: Task) -> float:
    """Return the approximate work for a bank in arbitrary units."""
    return 1.0 + task.setting.records / 4000.0
