"""Settings from the text of a recipe, with `section.key=value` overrides of the command line."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from genpool.config import PartKind, Settings, from_dict
from genpool.errors import ConfigError
from genpool.registry import load_plugins

#: levels of lists and tables within a value; no setting needs more than two
MAX_NESTING = 16
#: the range of TOML's integers, and of a seed of PyTorch
INTEGER_BITS = 64
#: overrides are quoted in messages up to this many characters
MAX_QUOTED_CHARACTERS = 80


def read_recipe(
    cls: type[Settings],
    parts: Mapping[str, PartKind],
    contradictions: Callable[[Settings], list[str]],
    text: str,
    overrides: Iterable[str],
    source: str | Path | None,
    values: Mapping[str, Any] = MappingProxyType({}),
) -> Settings:
    """Returns the settings of a TOML text with overrides, after checking all of them.

    Args:
        cls: The dataclass of the settings.
        parts: The names and options of each section that chooses a class by name.
        contradictions: Returns the problems of settings that are valid alone but not together.
        text: The recipe.
        overrides: Settings that replace those of the recipe, such as "training.epochs=3".
        source: The name of the recipe, for messages.
        values: Settings as Python values, by "section.key"; None is left out. Default: none.

    Raises:
        ConfigError: with every mistake of the recipe and the overrides.
    """
    tables = read_toml(text, source)
    load_plugins(tables.pop("plugins", ()))
    problems = _remove_unusable(tables) + apply_overrides(tables, overrides, parts, values)
    try:
        settings = from_dict(cls, tables, parts)
    except ConfigError as error:
        raise ConfigError(problems + error.problems, source) from None
    problems += contradictions(settings)
    if problems:
        raise ConfigError(problems, source)
    return settings


def read_toml(text: str, source: str | Path | None) -> dict[str, Any]:
    """Returns the tables of a TOML text."""
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ConfigError(f"a value is nested {_TOO_DEEP}", source) from None
    except ValueError as error:  # TOMLDecodeError, or an integer of more digits than Python reads
        raise ConfigError(f"this is not TOML: {error}", source) from None


def apply_overrides(
    tables: dict[str, Any],
    overrides: Iterable[str],
    parts: Mapping[str, PartKind],
    values: Mapping[str, Any] = MappingProxyType({}),
) -> list[str]:
    """Writes values by "section.key", then "section.key=value" overrides into the tables.

    Returns:
        The problems of the overrides that cannot be used.
    """
    problems = []
    settings = [(*name.split("."), value) for name, value in values.items() if value is not None]
    for override in overrides:
        name, equals, text = (piece.strip() for piece in override.partition("="))
        keys = name.split(".")
        if not (equals and len(keys) == 2 and all(keys)):
            problems.append(f"{_quoted(override)} is not an override; expected section.key=value.")
            continue
        try:
            value = parse_value(text)
        except RecursionError:
            problems.append(f"{name} is nested {_TOO_DEEP}")
            continue
        if problem := _unusable(name, value):
            problems.append(problem)
        else:
            settings.append((*keys, value))
    # Names first: options that are given beside a new name belong to it, in any order.
    for section, key, value in sorted(settings, key=lambda setting: setting[1] != "name"):
        if key == "name" and section in parts:
            tables[section] = _shared_options(tables.get(section), value, parts[section])
        table = tables.setdefault(section, {})
        if not isinstance(table, dict):
            table = tables[section] = {"name": table}
        table[key] = value
    return problems


def parse_value(text: str) -> Any:
    """Returns a value of the command line: TOML, or else the text itself."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except ValueError:
        return text


def _shared_options(section: Any, name: Any, kind: PartKind) -> dict[str, Any]:
    """Returns the options of a recipe's part that a part of another name takes as well."""
    if not isinstance(section, dict):
        return {}
    if section.get("name") == name or name not in list(kind.names):
        return section
    known = kind.options(name)
    return {key: value for key, value in section.items() if key in known}


def _remove_unusable(values: dict[str, Any]) -> list[str]:
    """Removes values that no setting can have, so that the rest can be checked; returns why."""
    problems = []
    for section, table in list(values.items()):
        holder, prefix = (table, f"{section}.") if isinstance(table, dict) else (values, "")
        for key in list(table) if holder is table else [section]:
            if problem := _unusable(prefix + key, holder[key]):
                problems.append(problem)
                del holder[key]
    return problems


def _unusable(name: str, value: Any) -> str | None:
    """Returns the problem of a value that is nested too deeply or has too large an integer."""
    pending = [(value, 0)]  # not recursive: the nesting is what may be too deep
    while pending:
        entry, depth = pending.pop()
        if isinstance(entry, dict | list):
            if depth == MAX_NESTING:
                return f"{name} is nested {_TOO_DEEP}"
            entries = entry.values() if isinstance(entry, dict) else entry
            pending += [(inner, depth + 1) for inner in entries]
        elif isinstance(entry, int) and entry.bit_length() >= INTEGER_BITS:
            # Python does not print an integer of thousands of digits.
            shown = f"is {entry}" if entry.bit_length() < 4 * INTEGER_BITS else "is too large"
            return f"{name} {shown}; expected a whole number of {INTEGER_BITS} bits (below 2**63)."
    return None


_TOO_DEEP = f"more than {MAX_NESTING} levels deep; expected a value, or a list of values."


def _quoted(text: str) -> str:
    return repr(text if len(text) <= MAX_QUOTED_CHARACTERS else f"{text[:77]}...")
