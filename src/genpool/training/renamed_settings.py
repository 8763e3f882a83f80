"""Settings that have a new name: recipes with the old one keep working, with a warning."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import Any


def rename_settings(
    values: dict[str, Any], overrides: Iterable[str], renamed: Mapping[str, str]
) -> tuple[list[str], list[str]]:
    """Gives the settings of a recipe their new names, in place, and warns once of all old ones.

    Args:
        values: the tables of the recipe.
        overrides: "section.key=value" overrides.
        renamed: the old names and the new ones, each as "section.key".

    Returns:
        The overrides with new names, and the problems: settings that have both names.
    """
    old_names, problems = rename_tables(values, renamed)
    new_overrides = []
    for override in overrides:
        name, equals, value = override.partition("=")
        if name.strip() in renamed:
            old_names.append(name.strip())
            name = renamed[name.strip()]
        new_overrides.append(name + equals + value)
    if old_names:
        changes = ", ".join(f"{old} is now {renamed[old]}" for old in dict.fromkeys(old_names))
        message = f"settings with an old name, which a later genpool will refuse: {changes}"
        warnings.warn(message, FutureWarning, stacklevel=4)
    return new_overrides, problems


def rename_tables(
    values: dict[str, Any], renamed: Mapping[str, str]
) -> tuple[list[str], list[str]]:
    """Gives the settings of tables their new names, in place.

    Args:
        values: the tables.
        renamed: the old names and the new ones, each as "section.key".

    Returns:
        The old names that were used, and the problems: settings that have both names.
    """
    old_names: list[str] = []
    problems: list[str] = []
    for old, new in renamed.items():
        section, _, key = old.partition(".")
        table = values.get(section)
        if isinstance(table, dict) and key in table:
            new_key = new.partition(".")[2]
            if new_key in table:
                problems.append(f"{old} is the old name of {new}; expected only one of them.")
            table.setdefault(new_key, table.pop(key))
            old_names.append(old)
    return old_names, problems
