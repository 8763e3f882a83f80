"""All tables and figures by name, and the check of their definitions before anything is run."""

from __future__ import annotations

from collections.abc import Mapping

from genpool.errors import ConfigError, unknown_name
from genpool.recipes import recipe_names, recipe_text
from genpool.reproduction.definition import Experiment
from genpool.reproduction.figure2 import FIGURE2
from genpool.reproduction.figure3 import FIGURE3
from genpool.reproduction.ledger import Ledger
from genpool.reproduction.plan import BEST, NONE, PENALTIES, Plan
from genpool.reproduction.systems import SYSTEMS
from genpool.reproduction.table1 import TABLE1
from genpool.reproduction.table2 import TABLE2
from genpool.reproduction.table3 import TABLE3
from genpool.reproduction.table4 import TABLE4
from genpool.reproduction.tasks import SCALES, TASKS
from genpool.training.settings import read_settings

EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment for experiment in (TABLE1, TABLE2, TABLE3, TABLE4, FIGURE2, FIGURE3)
}


def check_definitions(experiments: Mapping[str, Experiment], scale: str, ledger: Ledger) -> None:
    """Raises ConfigError with every unknown scale, recipe, task, system, column and setting."""
    if scale not in SCALES:
        raise ConfigError(unknown_name("scale", scale, SCALES))
    problems: list[str] = []
    for experiment in experiments.values():
        problems += [
            f"{experiment.name}: {problem}" for problem in _problems(experiment, scale, ledger)
        ]
    if problems:
        raise ConfigError(list(dict.fromkeys(problems)))


def _problems(experiment: Experiment, scale: str, ledger: Ledger) -> list[str]:
    tasks, problems = TASKS[scale], []
    for column in experiment.columns:
        if column.task not in tasks:
            problems.append(unknown_name("task", column.task, tasks))
        elif column.split not in tasks[column.task].splits:
            splits = tasks[column.task].splits
            problems.append(
                unknown_name(f"column of the task {column.task!r}", column.split, splits)
            )
    systems = []
    for row in experiment.rows:
        if row.system not in SYSTEMS:
            problems.append(unknown_name("system", row.system, SYSTEMS))
        else:
            systems.append(row)
        if row.penalty not in (NONE, BEST, *PENALTIES):
            problems.append(unknown_name("penalty", row.penalty, (NONE, BEST, *PENALTIES)))
    recipes = recipe_names()
    for name in dict.fromkeys(column.task for column in experiment.columns):
        if name not in tasks:
            continue
        if tasks[name].recipe not in recipes:
            problems.append(unknown_name("recipe", tasks[name].recipe, recipes))
            continue
        for row in systems:
            problems += _setting_problems(Plan(scale, ledger), name, row.system, row.overrides)
    return problems


def _setting_problems(plan: Plan, task: str, system: str, overrides: tuple[str, ...]) -> list[str]:
    cell = plan.cell(task, system, overrides, 0)
    # Word vectors are found when a cell is run; without them some recipes refuse to start.
    changes = [*cell.overrides, "vectors.path=vectors.txt"]
    try:
        read_settings(recipe_text(cell.recipe), changes, cell.recipe)
    except ConfigError as error:
        return [f"{task}, {system}: {problem}" for problem in error.problems]
    return []
