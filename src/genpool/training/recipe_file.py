"""Settings from the text of a recipe, with `section.key=value` overrides of the command line."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from genpool.config import Settings, from_dict
from genpool.errors import ConfigError
from genpool.registry import Registry, load_plugins

#: the range of TOML's integers, and of a seed of PyTorch
INTEGER_BITS = 64
#: overrides are quoted in messages up to this many characters
MAX_QUOTED_CHARACTERS = 80
_TOO_DEEP = "is nested too deeply; expected a value, or a list of values."


def read_recipe(
    cls: type[Settings],
    parts: Mapping[str, Registry[Any]],
    contradictions: Callable[[Settings], list[str]],
    text: str,
    overrides: Iterable[str],
    source: str | Path | None,
    values: Mapping[str, Any] = MappingProxyType({}),
    plugins: Iterable[str] = (),
) -> Settings:
    """Returns the settings of a TOML text with overrides, after checking all of them.

    `parts` are the names and options of each section that chooses a class by name, and
    `contradictions` returns the problems of settings that are valid alone but not together.
    `values`, by "section.key", are written over the recipe, then the overrides. The plugins and
    those of the recipe are imported first; ConfigError has every mistake of the rest.
    """
    tables = read_toml(text, source)
    listed = tables.get("plugins", [])
    if not isinstance(listed, list) or not all(isinstance(module, str) for module in listed):
        raise ConfigError(f"plugins is {listed!r}; expected a list of module names.", source)
    if listed := list(dict.fromkeys([*listed, *plugins])):
        tables["plugins"] = listed
        load_plugins(listed)
    problems = apply_overrides(tables, overrides, parts, values) + _remove_unusable(tables)
    try:
        settings = from_dict(cls, tables, parts)
    except ConfigError as error:
        unknown_parts = tuple(f"unknown {section} " for section in parts)
        hint = f" The plugin {', '.join(listed)} is imported and does not register it."
        for problem in error.problems:
            is_missing = listed and problem.startswith(unknown_parts)
            problems.append(problem + hint if is_missing else problem)
        raise ConfigError(problems, source) from None
    problems += contradictions(settings)
    if problems:
        raise ConfigError(problems, source)
    return settings


def read_toml(text: str, source: str | Path | None) -> dict[str, Any]:
    """Returns the tables of a TOML text."""
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ConfigError(f"a value {_TOO_DEEP}", source) from None
    except ValueError as error:  # TOMLDecodeError, or an integer of more digits than Python reads
        raise ConfigError(f"this is not TOML: {error}", source) from None


def apply_overrides(
    tables: dict[str, Any],
    overrides: Iterable[str],
    parts: Mapping[str, Registry[Any]],
    values: Mapping[str, Any] = MappingProxyType({}),
) -> list[str]:
    """Writes values by "section.key", then "section.key=value" overrides into the tables.

    Returns the problems of the overrides that cannot be used.
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
            settings.append((*keys, tomllib.loads(f"value = {text}")["value"]))
        except ValueError:  # it is not TOML, but plain text
            settings.append((*keys, text))
        except RecursionError:
            problems.append(f"{name} {_TOO_DEEP}")
    # Names first: options that are given beside a new name belong to it, in any order.
    for section, key, value in sorted(settings, key=lambda setting: setting[1] != "name"):
        if key == "name" and section in parts:
            tables[section] = _shared_options(tables.get(section), value, parts[section])
        table = tables.setdefault(section, {})
        if not isinstance(table, dict):
            table = tables[section] = {"name": table}
        table[key] = value
    return problems


def _shared_options(section: Any, name: Any, classes: Registry[Any]) -> dict[str, Any]:
    """Returns the options of a recipe's part that a part of another name takes as well."""
    if not isinstance(section, dict):
        return {}
    if section.get("name") == name or name not in list(classes):
        return section
    known = classes.options(name)
    return {key: value for key, value in section.items() if key in known}


def _remove_unusable(tables: dict[str, Any]) -> list[str]:
    """Removes values that no setting can have, so that the rest can be checked; returns why."""
    problems = []
    for section, table in list(tables.items()):
        holder, prefix = (table, f"{section}.") if isinstance(table, dict) else (tables, "")
        for key in list(table) if holder is table else [section]:
            if problem := _unusable(prefix + key, holder[key]):
                problems.append(problem)
                del holder[key]
    return problems


def _unusable(name: str, value: Any) -> str | None:
    """Returns the problem of a value that cannot be shown, or of an integer that is too large."""
    try:
        shown = repr(value)
    except RecursionError:
        return f"{name} {_TOO_DEEP}"
    except ValueError:  # Python does not print an integer of thousands of digits
        shown = "too large"
    else:
        entries = value if isinstance(value, list) else [value]
        if not any(isinstance(x, int) and x.bit_length() >= INTEGER_BITS for x in entries):
            return None
    return f"{name} is {shown}; expected a whole number of {INTEGER_BITS} bits (below 2**63)."


def _quoted(text: str) -> str:
    return repr(text if len(text) <= MAX_QUOTED_CHARACTERS else f"{text[:77]}...")
