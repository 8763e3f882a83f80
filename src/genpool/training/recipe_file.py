"""Settings from a recipe's text, with `section.key=value` of the command line put over it."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from genpool.config import PartKind, Settings, from_dict
from genpool.errors import ConfigError


def read_recipe(
    cls: type[Settings],
    parts: Mapping[str, PartKind],
    contradictions: Callable[[Settings], list[str]],
    text: str,
    overrides: Iterable[str],
    source: str | Path | None,
) -> Settings:
    """Settings of a TOML text with dotted overrides ("training.epochs=3"), all mistakes at once.

    contradictions: settings that are right alone but not together.
    """
    given = read_toml(text, source)
    problems = put_overrides(given, overrides, parts)
    try:
        settings = from_dict(cls, given, parts)
    except ConfigError as error:
        raise ConfigError(problems + error.problems, source) from None
    problems += contradictions(settings)
    if problems:
        raise ConfigError(problems, source)
    return settings


def read_toml(text: str, source: str | Path | None) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"this is not TOML: {error}", source) from None


def put_overrides(
    given: dict[str, Any], overrides: Iterable[str], parts: Mapping[str, PartKind]
) -> list[str]:
    """Puts "section.key=value" into the settings; gives what is wrong with some."""
    problems, settings = [], []
    for each in overrides:
        name, equals, value = each.partition("=")
        keys = name.strip().split(".")
        if equals and len(keys) == 2 and all(keys):
            settings.append((keys[0], keys[1], parse_value(value.strip())))
        else:
            problems.append(f"{each!r} is not an override; expected section.key=value.")
    # Names first, so that options given beside another name are that one's, in any order.
    for section, key, value in sorted(settings, key=lambda each: each[1] != "name"):
        if key == "name" and section in parts:
            given[section] = _kept_options(given.get(section), value, parts[section])
        held = given.setdefault(section, {})
        if not isinstance(held, dict):
            held = given[section] = {"name": held}
        held[key] = value
    return problems


def _kept_options(section: Any, name: Any, kind: PartKind) -> dict[str, Any]:
    """What the recipe said for one part that holds for another too: max pooling has no heads."""
    if not isinstance(section, dict):
        return {}
    if section.get("name") == name or name not in list(kind.names):
        return section
    known = kind.options(name)
    return {key: value for key, value in section.items() if key in known}


def parse_value(text: str) -> Any:
    """A value of the command line is TOML, or else plain text."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
